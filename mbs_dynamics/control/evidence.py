# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence for the sign of gravity torques of an arm that no drive holds, while they ramp in.

What ``period/evidence.py`` describes, for the nodes: torques grow while the arm stays still or
sinks, and stop where it rises, or sinks faster and faster under the whole of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.control.faults import Doubt, Fault
from mbs_dynamics.control.period.evidence import (
    CATCH_UP,
    DELAY,
    EFFORT_FLOOR,
    FAST,
    FASTER,
    GROWTH,
    LOADED,
    MODEL_ERROR,
    PAUSE,
    RISE,
    SINKING,
    SUNK,
    WATCHED,
)
from mbs_dynamics.control.settings import ArmSettings

UNVERIFIED = (
    "nothing has shown yet that the torques are right: they grow slowly while the arm stays still"
)


def shown(efforts: Sequence[float]) -> bool:
    """Return whether efforts are measured: drives that measure none report NaN, or zeros."""
    return all(map(math.isfinite, efforts)) and any(efforts)


def disagreement(
    settings: ArmSettings,
    efforts: Sequence[float],
    needed: Sequence[float],
    limits: Sequence[float],
) -> str:
    """Return how efforts (m,) contradict the gravity torques ``needed`` (m,); empty if not.

    Both are compared as shares of the effort limits, within ``effort_tolerance`` times the largest
    share of a gravity torque, and EFFORT_FLOOR.
    """
    largest = max(abs(x) / most for x, most in zip(needed, limits, strict=True))
    bound = EFFORT_FLOOR + settings.effort_tolerance * largest
    rows = zip(settings.joints, efforts, needed, limits, strict=True)
    share, name, effort, x, most = max((abs(e - g) / f, name, e, g, f) for name, e, g, f in rows)
    if share <= bound:
        return ""
    return (
        f"the measured efforts do not agree with gravity: {name} measures {effort:.4g}, and "
        f"{x:.4g} would hold it against gravity; valid is within {bound * most:.4g}, see "
        "effort_tolerance. Does the driver compensate gravity itself, is the arm mounted "
        "otherwise, is a mass wrong?"
    )


class Evidence:
    """Watches an arm of the joints ``names`` (m,) while unverified torques ramp in."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.active = False
        """Whether the arm is watched."""
        self.passed = False
        """Whether torques were found to be right."""
        self.trouble: Fault | None = None
        """What contradicts the torques; None if nothing does."""
        self.share = 1.0
        """Largest share of the torques that may be commanded."""
        self._ramp = CATCH_UP

    def begin(self, now: float, q: Sequence[float], ramp_in_time: float) -> None:
        """Begin to watch an arm at positions q (m,) of its joints."""
        self.active, self.passed, self.trouble = True, False, None
        self.share, self._ramp = 0.0, max(CATCH_UP, ramp_in_time)
        self._now, self._slowest = now, max(GROWTH, ramp_in_time)
        self._start, self._lowest = list(q), list(q)
        self._least = 0.0
        """Mean displacement of the lowest posture."""
        self._sinking = 0
        self._whole_at = math.inf
        """When whole torques began to move the arm alone, or the latest time before that."""
        self._speeds: Sequence[float] = ()
        """(m,) velocities at this time."""
        self._let_go_at = math.inf

    def end(self) -> None:
        """Stop watching, and allow whole torques."""
        self.active, self.share = False, 1.0

    def watch_again(self, now: float, q: Sequence[float], qd: Sequence[float]) -> None:
        """Watch the arm at positions q (m,) again, which another holder has just let go of."""
        self.begin(now, q, 0.0)
        self.share, self._whole_at, self._speeds = 1.0, now, list(qd)

    def update(
        self,
        now: float,
        q: Sequence[float],
        qd: Sequence[float],
        gravity: Sequence[float],
        limits: Sequence[float],
        floats: bool,
    ) -> Fault | None:
        """Process a state of the joints, each (m,); return the fault that it shows, or None.

        ``gravity`` are the whole torques. ``floats``: whether no law acts whose motion would be no
        evidence.
        """
        elapsed, self._now = min(max(0.0, now - self._now), 0.1), now
        weight = sum(map(abs, gravity)) or math.inf
        speed = sum(g * v for g, v in zip(gravity, qd, strict=True)) / weight
        rows = zip(gravity, q, self._start, strict=True)
        mean = sum(g * (x - start) for g, x, start in rows) / weight
        if mean < self._least:
            self._least, self._lowest = mean, list(q)
        if floats:
            self.trouble = self._contradiction(now, q, qd, gravity, limits, mean, speed)
        if self.trouble is not None:
            self.active = False
            return self.trouble
        self._sinking = self._sinking + 1 if speed < -SINKING and mean < -SUNK else 0
        if self._sinking >= 2:
            self.share += elapsed / self._ramp
        elif mean - self._least < PAUSE or not floats:
            self.share += elapsed / self._slowest
        self.share = 1.0 if self.share > 1.0 - 1e-9 else self.share
        if self.share == 1.0 and self._whole_at == math.inf:
            self._whole_at, self._speeds = now, list(qd)
        return None

    def watch(self, now: float, alone: bool) -> None:
        """Stop watching some time after torques ``alone`` hold the arm."""
        if not alone:
            self._let_go_at = math.inf
        elif self._let_go_at == math.inf:
            self._let_go_at = now
        elif now - self._let_go_at >= WATCHED:
            self.passed = True
            self.end()

    def _contradiction(
        self,
        now: float,
        q: Sequence[float],
        qd: Sequence[float],
        gravity: Sequence[float],
        limits: Sequence[float],
        mean: float,
        speed: float,
    ) -> Fault | None:
        loaded = [abs(g) > LOADED * most for g, most in zip(gravity, limits, strict=True)]
        rows = zip(gravity, q, self._lowest, loaded, strict=True)
        rises = [abs(x - low) if on and g * (x - low) > 0.0 else 0.0 for g, x, low, on in rows]
        highest = max(rises)
        k = rises.index(highest)
        most = RISE
        if self.share >= 1.0 - MODEL_ERROR:
            most = most if speed > FAST else 3.0 * most
        if mean > self._least and highest > most:
            return Fault(
                "support",
                f"{self._names[k]} rises by {highest:.3g} under {self.share:.0%} of the gravity "
                "torques: something else carries the arm. Does its driver compensate gravity "
                "itself, is the arm mounted otherwise, is a mass wrong?",
                Doubt.GRAVITY,
            )
        if now - self._whole_at >= DELAY:
            for k, (g, v, before) in enumerate(zip(gravity, qd, self._speeds, strict=True)):
                if loaded[k] and g * v < 0.0 and abs(v) > abs(before) + FASTER:
                    return Fault(
                        "support",
                        f"{self._names[k]} sinks at {abs(v):.3g}, faster and faster, under the "
                        "whole gravity torques: is the sign of its torque wrong, or a mass?",
                        Doubt.GRAVITY,
                    )
        return None
