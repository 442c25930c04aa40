# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence for the sign of gravity torques while they ramp in, where no effort has shown it.

Torques g of the arm's weight grow from zero by a share s. The motion that follows tells what holds
the arm. Where it stays still, something supports it, and s grows slowly. Where it sinks, nothing
does, and s grows as fast as torques may ramp in. Where it rises, something else carries its weight
already, such as drives that compensate gravity themselves, and torques stop. Where it sinks faster
and faster under the whole of g, torques act in the wrong direction, and stop as well. The efforts
of drives that hold the arm are compared with g before these drives let go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.control.policy import Doubt, Fault
from mbs_dynamics.control.settings import ArmSettings

GROWTH = 1.0
"""Time in s in which unverified torques grow while the arm stays still."""

CATCH_UP = 0.03
"""Shortest time in s in which torques grow while the arm sinks."""

SINKING, SUNK = 0.03, 1e-4
"""Mean speed in rad/s and mean displacement in rad from which on an arm sinks."""

RISE, PAUSE = 0.01, 0.002
"""Displacements in rad or m against gravity at which torques stop, and at which they stop to
grow."""

OVERSHOOT = 1.4
"""Rise of an arm on its drives that follows from its sinking before, relative to that."""

MODEL_ERROR = 0.2
"""Share of g by which the model may be wrong: an arm may rise slowly under the rest."""

FAST = 0.2
"""Mean speed in rad/s that a rising arm does not reach by an error of the model."""

FASTER = 0.3
"""Growth of a speed in rad/s or m/s under the whole of g that no error of the model explains.

Simulated arms of right signs, with masses wrong by a fifth, stay below 0.08; those with a joint of
the wrong sign grow by 1 to 20, except where they rise elsewhere, which stops them first."""

DELAY = 0.06
"""Time in s after which the whole of g must have stopped a sinking arm from getting faster."""

WATCHED = 0.3
"""Time in s for which the arm is watched once torques alone hold it."""

LOADED = 0.02
"""Share of its effort limit from which on a joint is loaded by gravity."""

EFFORT_FLOOR = 0.02
"""Largest accepted error of a measured effort, as a share of its limit: noise and friction."""

STILL = 0.1
"""Speed in rad/s or m/s up to which efforts of drives are compared with those at rest."""

UNVERIFIED = (
    "nothing has shown yet that the torques are right: they grow slowly while the arm stays still"
)

CONFIRMED, LONGEST_DOUBT = 5, 0.15
"""Number of successive states in which efforts must agree, and the time in s that they have."""


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
        self._sprung = False
        """Whether drives have held the arm, which brings it back up to where it was."""
        self._whole_at = math.inf
        """When whole torques began to move the arm alone, or the latest time before that."""
        self._speeds: Sequence[float] = ()
        """(m,) velocities at this time."""
        self._agreeing, self._doubted_at = 0, math.inf
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
        grip: float,
        agree: bool | None,
        floats: bool,
        alone: bool,
    ) -> Fault | None:
        """Process a state of the joints, each (m,); return the fault that it shows, or None.

        ``gravity`` are the whole torques, ``grip`` is the share of the drives' position loops.
        ``agree``: whether the efforts of drives that hold the arm agree with gravity; None if this
        is not known. ``floats``: whether no law acts whose motion would be no evidence. ``alone``:
        whether drives neither hold the arm nor switch, so that torques alone move it.
        """
        elapsed, self._now = min(max(0.0, now - self._now), 0.1), now
        weight = sum(map(abs, gravity)) or math.inf
        speed = sum(g * v for g, v in zip(gravity, qd, strict=True)) / weight
        rows = zip(gravity, q, self._start, strict=True)
        mean = sum(g * (x - start) for g, x, start in rows) / weight
        if mean < self._least:
            self._least, self._lowest = mean, list(q)
        self._sprung = self._sprung or grip > 0.0
        if floats:
            self.trouble = self._contradiction(now, q, qd, gravity, limits, alone, mean, speed)
        if self.trouble is None and grip > 0.0:
            self.trouble = self._efforts(now, agree, max(map(abs, qd)) < STILL)
        if self.trouble is not None:
            self.active = False
            return self.trouble
        self._sinking = self._sinking + 1 if speed < -SINKING and mean < -SUNK else 0
        if self._sinking >= 2:
            self.share += elapsed / self._ramp
        elif mean - self._least < PAUSE or grip > 0.0 or not floats:
            self.share += elapsed / self._slowest
        most = 1.0 if grip < 1.0 or agree is None or self._agreeing >= CONFIRMED else 0.999
        self.share = most if self.share > most - 1e-9 else self.share
        if self.share == 1.0 and not (alone and self.whole):
            self._whole_at, self._speeds = now, list(qd)
        return None

    def watch(self, now: float, alone: bool) -> None:
        """Stop watching some time after torques ``alone`` hold the arm, or drives hold it again."""
        if not alone:
            self._let_go_at = math.inf
        elif self._let_go_at == math.inf:
            self._let_go_at = now
        elif now - self._let_go_at >= WATCHED:
            self.passed = True
            self.end()

    @property
    def whole(self) -> bool:
        """Whether whole torques have been found to be right as far as the drives can show it."""
        return self._whole_at < math.inf

    def _contradiction(
        self,
        now: float,
        q: Sequence[float],
        qd: Sequence[float],
        gravity: Sequence[float],
        limits: Sequence[float],
        alone: bool,
        mean: float,
        speed: float,
    ) -> Fault | None:
        loaded = [abs(g) > LOADED * most for g, most in zip(gravity, limits, strict=True)]
        dips = zip(gravity, self._start, self._lowest, strict=True)
        dip = max(abs(a - b) if g else 0.0 for g, a, b in dips) if self._sprung else 0.0
        rows = zip(gravity, q, self._lowest, loaded, strict=True)
        rises = [abs(x - low) if on and g * (x - low) > 0.0 else 0.0 for g, x, low, on in rows]
        highest = max(rises)
        k = rises.index(highest)
        most = RISE + OVERSHOOT * dip
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
        if alone and now - self._whole_at >= DELAY:
            for k, (g, v, before) in enumerate(zip(gravity, qd, self._speeds, strict=True)):
                if loaded[k] and g * v < 0.0 and abs(v) > abs(before) + FASTER:
                    return Fault(
                        "support",
                        f"{self._names[k]} sinks at {abs(v):.3g}, faster and faster, under the "
                        "whole gravity torques: is the sign of its torque wrong, or a mass?",
                        Doubt.GRAVITY,
                    )
        return None

    def _efforts(self, now: float, agree: bool | None, still: bool) -> Fault | None:
        """Return the fault that drives which hold the arm exert other efforts than gravity."""
        if agree is None or self.share < 0.999:
            return None
        if agree or not still:
            self._agreeing, self._doubted_at = self._agreeing + bool(agree), math.inf
            return None
        self._agreeing = 0
        self._doubted_at = min(self._doubted_at, now)
        if now - self._doubted_at < LONGEST_DOUBT:
            return None
        return Fault(
            "support",
            "the drives hold the arm with other efforts than gravity needs: does its driver "
            "compensate gravity itself, is a sign or a factor of the efforts wrong, is the arm "
            "mounted otherwise?",
            Doubt.GRAVITY,
        )
