# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rate, latency and drops of an input, and rate limits. No ROS is needed."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from mbs_dynamics.control.joint_states import Rejection


class Report(NamedTuple):
    """State of an input, for diagnostics."""

    rate: float
    """Messages answered per second since the report before."""
    rejected: int
    """Number of messages rejected since then."""
    values: dict[str, object]
    """The values that the diagnostics of every node show, by name."""


class InputStatistics:
    """Rate, latency and drops of an input. Times are those of one steady clock, in s."""

    def __init__(self, now: float) -> None:
        self.last_rejection = ""
        self.last_valid: float | None = None
        self._answered, self._rejected = 0, Counter[str]()
        self._waiting_since: float | None = None
        self._latency = 0.0
        """Longest time in s from the entry of a callback until the answer was published."""
        self._since, self._before = now, (0, 0)

    def answered(self, begin: float, published: float) -> None:
        """Count a message that was answered."""
        self._answered += 1
        self.last_valid = begin
        self._latency = max(self._latency, published - begin)

    def rejected(self, rejection: Rejection) -> None:
        """Count a message that was rejected."""
        self._rejected[rejection.kind] += 1
        self.last_rejection = rejection.reason

    def skipped(self, begin: float) -> None:
        """Record a valid message that is not answered."""
        self.last_valid = begin

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
        totals = self._answered, sum(self._rejected.values())
        answered, rejected = (a - b for a, b in zip(totals, self._before, strict=True))
        rate = answered / max(now - self._since, 1e-9)
        values: dict[str, object] = {
            "rate [Hz]": f"{rate:.1f}",
            "answered": self._answered,
            "rejected": totals[1],
            "last rejection": self.last_rejection or "none",
            **{f"rejected: {kind}": count for kind, count in sorted(self._rejected.items())},
            "latency max [ms]": f"{1e3 * self._latency:.4f}",
        }
        self._latency = 0.0
        self._since, self._before = now, totals
        return Report(rate, rejected, values)


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
