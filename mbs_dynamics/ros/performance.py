# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rate, latency and drops of an input, and rate limits. No ROS is needed."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from typing import NamedTuple

from mbs_dynamics.control.joint_states import Rejection

KEPT_DURATIONS = 1024
"""Latencies are those of at most this many latest messages."""


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
        self._latencies: deque[float] = deque(maxlen=KEPT_DURATIONS)
        """Times in s from the entry of a callback until the answer is published."""
        self._since = now
        self._before = (0, 0)

    def answered(self, begin: float, published: float, why_not: str = "") -> None:
        """Count a message that was answered; ``why_not`` says why it has no velocities."""
        self.total_answered += 1
        self.last_valid = begin
        self.without_velocity = why_not
        self._latencies.append(published - begin)

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
        if self._latencies:
            values["latency median [ms]"] = f"{1e3 * statistics.median(self._latencies):.4f}"
            values["latency max [ms]"] = f"{1e3 * max(self._latencies):.4f}"
        if self.last_valid is not None:
            values["since last valid message [s]"] = f"{now - self.last_valid:.3f}"
        self._latencies.clear()
        self._since, self._before = now, totals
        return Report(rate, rejected, self.last_rejection, totals[0], self.total_repeated, values)


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
