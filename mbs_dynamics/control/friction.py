# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compensation of the friction of joints, which takes less than friction does.

    assist = share F(v, g) (s + (1 - |s|) (p + d)),    s = tanh(v / speed)

with a share of at most 0.9. F is :func:`mbs_dynamics.model.friction.friction_bound` at the measured
rate v and the gravity torque g. A joint that moves is helped in its direction; a slow one is helped
to break away in the direction p, -1 to 1, of the effort beyond gravity, and on request by a dither
d. The bracket stays within -1 and 1. So the power of the assist is at
most 0.9 F |v| at any rate and in any direction, which friction dissipates, as long as the
identified F is less than a ninth too large: held over a period it adds at most what v and F change
meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.control.settings import LARGEST_SHARE, ArmSettings
from mbs_dynamics.model.friction import friction_bound

RISE = 0.02
"""Time constant in s of p."""


class FrictionCompensation:
    """Torques that help the n joints of these settings against friction, smooth in time.

    ``breakaway`` is the effort beyond gravity up to which a joint at rest is not helped; at twice
    as much it is helped fully.
    """

    def __init__(self, settings: ArmSettings) -> None:
        self.apply(settings)
        self.reset()

    def apply(self, settings: ArmSettings) -> None:
        """Use other settings from now on; pushes go on."""
        self.speed, self.frequency = settings.friction_speed, settings.dither_frequency
        self.dither = settings.dither
        self.loaded = any(settings.load_friction)
        """Whether friction depends on the load."""
        bands = [band or math.inf for band in settings.breakaway]
        self._turn = settings.stribeck_speed
        self._rows = list(zip(bands, settings.stribeck, settings.load_friction, strict=True))

    def reset(self) -> None:
        """Forget pushes, as when the law takes over."""
        self._push = [0.0] * len(self._rows)
        self._assist = [0.0] * len(self._rows)
        self._time: float | None = None

    def torques(
        self,
        rates: Sequence[float],
        efforts: Sequence[float],
        gravity: Sequence[float],
        now: float,
        shares: Sequence[float],
        coulomb: Sequence[float],
    ) -> list[float]:
        """Return the assist (n,) in N m or N at a time in s of one steady clock.

        ``rates``, measured ``efforts`` and ``gravity`` torques are those of the joints; an effort
        that is NaN helps no joint break away. The own assist of the call before is taken off the
        efforts, so that the law does not follow itself. ``shares`` (n,) of the friction are
        compensated, at most LARGEST_SHARE; if none is positive nothing is computed. ``coulomb``
        (n,) is the Coulomb friction.
        """
        if not any(shares):
            return self._assist if self._time is None else self._ended()
        elapsed = 0.0 if self._time is None else max(0.0, now - self._time)
        self._time = now
        kept = RISE / (RISE + elapsed)
        wave = self.dither and self.dither * math.sin(2.0 * math.pi * self.frequency * now)
        tanh, speed, push, assist = math.tanh, self.speed, self._push, self._assist
        torques: list[float] = []
        for k, (band, stribeck, load) in enumerate(self._rows):
            g, v = gravity[k], rates[k]
            beyond = efforts[k] - g - assist[k]
            goal = 0.0
            if beyond > band:
                goal = beyond / band - 1.0 if beyond < 2.0 * band else 1.0
            elif beyond < -band:
                goal = beyond / band + 1.0 if beyond > -2.0 * band else -1.0
            p = push[k] = goal + kept * (push[k] - goal)
            s = tanh(v / speed)
            help_ = p + wave
            if help_ > 1.0 or help_ < -1.0:
                help_ = 1.0 if help_ > 0.0 else -1.0
            weight = g if g > 0.0 else -g
            bound = friction_bound(coulomb[k], stribeck, self._turn, load, v, weight)
            level = min(LARGEST_SHARE, shares[k]) * bound
            torques.append(level * (s + (1.0 - s if s > 0.0 else 1.0 + s) * help_))
        self._assist = torques
        return torques

    def _ended(self) -> list[float]:
        self.reset()
        return self._assist
