# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Counts, rates, latencies and costs that diagnostics show, and rate limits. No ROS is needed."""

from __future__ import annotations

import statistics
import time
from collections import Counter, deque
from typing import Any, NamedTuple

from mbs_dynamics.compiler import Kernel
from mbs_dynamics.control.joint_input import Rejection

KEPT_DURATIONS = 1024
"""Latencies are those of at most this many latest messages."""

REASONS = 4
"""Lines of one kind that are logged within a period, if their reasons differ."""

RUNS = 5
"""Number of timed evaluations; the shortest counts, without what other processes add."""


def cost_of(kernel: Kernel, *arguments: Any) -> dict[str, object]:
    """Return operations and time of one evaluation of a kernel, as diagnostics show them."""
    shortest = float("inf")
    for _ in range(RUNS):
        begin = time.perf_counter()
        kernel(*arguments)
        shortest = min(shortest, time.perf_counter() - begin)
    return {
        "operations": str(kernel.operations),
        "evaluation time [us]": f"{1e6 * shortest:.2f}",
    }


class Report(NamedTuple):
    """State of an input, for diagnostics."""

    rate: float
    """Messages answered per second since the report before."""
    rejected: int
    """Likewise, number of messages."""
    last_rejection: str
    answered: int
    """Number of messages since the node started, as is the next."""
    repeated: int
    values: dict[str, object]
    """The values that the diagnostics of every node show, by name."""


class InputStatistics:
    """Counters of the messages of an input. Times are those of one steady clock, in s."""

    def __init__(self, now: float) -> None:
        self.total_answered = 0
        self.total_skipped = 0
        self.total_repeated = 0
        self.total_rejected: Counter[str] = Counter()
        self.last_rejection = ""
        self.without_velocity = ""
        """Why the latest message had no velocities; empty if it had."""
        self.last_valid: float | None = None
        self._waiting_since: float | None = None
        self._latencies: deque[tuple[float, float]] = deque(maxlen=KEPT_DURATIONS)
        """Times in s from the entry of a callback until results are computed, and published."""
        self._since = now
        self._before = (0, 0)

    def answered(self, begin: float, computed: float, published: float, why_not: str) -> None:
        """Count a message that was answered; ``why_not`` says why it has no velocities."""
        self.total_answered += 1
        self.last_valid = begin
        self.without_velocity = why_not
        self._latencies.append((computed - begin, published - begin))

    def rejected(self, rejection: Rejection) -> None:
        """Count a message that was rejected."""
        self.total_rejected[rejection.kind] += 1
        self.last_rejection = rejection.reason

    def skipped(self, begin: float) -> None:
        """Count a valid message that came too soon after another to be answered."""
        self.total_skipped += 1
        self.last_valid = begin

    def repeated(self) -> None:
        """Count a message that repeats an earlier measurement; it does not count as valid."""
        self.total_repeated += 1

    def wait(self, since: float | None) -> None:
        """Expect messages from this time on; None expects none."""
        self._waiting_since = since

    def stale_for(self, now: float, timeout: float) -> float | None:
        """Return how long valid messages have been missing, None if that is not too long."""
        if self._waiting_since is None:
            return None
        missing = now - max(self._waiting_since, self.last_valid or self._waiting_since)
        return missing if missing > timeout else None

    def report(self, now: float) -> Report:
        """Return the report, and begin the next one."""
        totals = (self.total_answered, sum(self.total_rejected.values()))
        answered, rejected = (a - b for a, b in zip(totals, self._before, strict=True))
        rate = answered / max(now - self._since, 1e-9)
        values: dict[str, object] = {
            "rate [Hz]": f"{rate:.1f}",
            "rejected": totals[1],
            "last rejection": self.last_rejection or "none",
        }
        for kind, count in sorted(self.total_rejected.items()):
            values[f"rejected: {kind}"] = count
        for what, latencies in zip(
            ("computed", "published"), zip(*self._latencies, strict=True), strict=False
        ):
            values[f"latency {what} median [ms]"] = f"{1e3 * statistics.median(latencies):.4f}"
            values[f"latency {what} max [ms]"] = f"{1e3 * max(latencies):.4f}"
        if self.last_valid is not None:
            values["since last valid message [s]"] = f"{now - self.last_valid:.3f}"
        self._latencies.clear()
        self._since, self._before = now, totals
        return Report(rate, rejected, self.last_rejection, totals[0], self.total_repeated, values)


class Throttle:
    """Limits how often something of one kind is logged, and counts what is withheld.

    Each reason is due once in a period, so that one does not hide another, but only REASONS of
    them, so that a stream of different ones does not fill the log.
    """

    def __init__(self, period: float) -> None:
        self.period = period
        self._logged: dict[str, dict[str, float]] = {}
        self._withheld: Counter[str] = Counter()

    def due(self, kind: str, now: float, reason: str = "") -> int | None:
        """Return how many were withheld since the last that was due; None to withhold this one."""
        logged = self._logged.get(kind, {})
        recent = {one: at for one, at in logged.items() if now - at < self.period}
        if reason in recent or len(recent) >= REASONS:
            self._withheld[kind] += 1
            return None
        self._logged[kind] = {**recent, reason: now}
        return self._withheld.pop(kind, 0)

    def released(self, kind: str, now: float, reason: str = "") -> int:
        """Return how many of a kind were withheld, once nothing of it was due for a period.

        The line about them then counts as one of this reason.
        """
        logged = self._logged.get(kind, {})
        if not self._withheld[kind] or any(now - at < self.period for at in logged.values()):
            return 0
        self._logged[kind] = {reason: now}
        return self._withheld.pop(kind)

    def restart(self, kind: str) -> None:
        """Let the next of a kind be due."""
        self._logged.pop(kind, None)


class RateLimit:
    """Lets events through at most ``rate`` times a second on average; 0 lets all through."""

    def __init__(self, rate: float = 0.0) -> None:
        self.rate = rate
        self._due = float("-inf")

    def passes(self, now: float) -> bool:
        """Return whether an event now is let through."""
        if self.rate == 0.0:
            return True
        if now < self._due:
            return False
        # count from when it was due, so that jitter does not lower the rate
        period = 1.0 / self.rate
        self._due = max(self._due, now - period) + period
        return True
