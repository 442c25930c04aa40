# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps simulated time in step with real time, and says when it cannot. Knows no ROS."""

from __future__ import annotations

import math
from typing import NamedTuple

LONGEST_LAG = 0.1
"""Seconds that simulated time may lag behind before it gives up catching up."""

SLOW = 0.97
"""Part of the wanted rate below which a simulation is too slow."""


class Pace(NamedTuple):
    """How fast a simulation went since the report before."""

    rate: float
    """Periods per second of real time."""
    wanted: float
    """The same, as asked for."""
    load: float
    """Part of the time that was spent computing and publishing."""
    lost: float
    """Seconds that were given up."""

    @property
    def too_slow(self) -> bool:
        """Whether simulated time fell behind."""
        return self.lost > 0.0 or self.rate < SLOW * self.wanted


class Pacer:
    """Says how many periods of simulated time are due. Times are those of one steady clock, in s.

    ``period`` is simulated, ``factor`` says how many simulated seconds a second has. Periods that
    come late are caught up, so that jitter changes nothing; but at most LONGEST_LAG.
    """

    def __init__(self, period: float, factor: float, now: float) -> None:
        self.period = period
        self._factor = factor
        self._start, self._done = now, 0
        self._since, self._periods, self._busy, self._lost = now, 0, 0.0, 0.0

    @property
    def interval(self) -> float:
        """Seconds between two periods."""
        return self.period / self._factor

    def change(self, factor: float, now: float) -> None:
        """Go at another pace from now on."""
        self._factor = factor
        self._start, self._done = now, 0
        self._since, self._periods, self._busy, self._lost = now, 0, 0.0, 0.0

    def due(self, now: float) -> int:
        """Return how many periods are due now, the one that is nearest included."""
        due = math.floor((now - self._start) / self.interval + 0.5) - self._done
        most = max(1, math.ceil(LONGEST_LAG / self.interval))
        if due > most:
            self._lost += (due - most) * self.interval
            self._done += due - most
            due = most
        return max(due, 0)

    def did(self, periods: int, seconds: float) -> None:
        """Note that periods were simulated, and how long that took."""
        self._done += periods
        self._periods += periods
        self._busy += seconds

    def report(self, now: float) -> Pace:
        """Return how it went, and begin the next report."""
        elapsed = max(now - self._since, 1e-9)
        pace = Pace(
            rate=self._periods / elapsed,
            wanted=1.0 / self.interval,
            load=self._busy / elapsed,
            lost=self._lost,
        )
        self._since, self._periods, self._busy, self._lost = now, 0, 0.0, 0.0
        return pace
