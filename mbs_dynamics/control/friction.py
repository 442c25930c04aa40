# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Friction of joints as data, and its compensation, which takes less than friction does.

    assist = share F(v, g) (s + (1 - |s|) (p + d)),    s = tanh(v / speed)

with a share of at most 0.9. F is :func:`mbs_dynamics.model.friction.friction_bound` at the measured
rate v and the gravity torque g. A joint that moves is helped in its direction; a slow one is helped
to break away in the direction p, -1 to 1, of the effort beyond gravity or of the operator's push,
and on request by a dither d. The bracket stays within -1 and 1. So the power of the assist is at
most 0.9 F |v| at any rate and in any direction, which friction dissipates, as long as the
identified F is less than a ninth too large: held over a period it adds at most what v and F change
meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.model.friction import friction_bound

LARGEST_SHARE = 0.9
"""Largest share of the identified friction that is compensated."""

STRIBECK_SPEED = 0.05
"""Speed in rad/s or m/s at which half of the static share is left, if none is stated."""


@dataclass(frozen=True, eq=False)
class Friction:
    """Identified friction of n joints, each (n,) and not negative, SI units."""

    coulomb: FloatArray
    """N m or N."""
    viscous: FloatArray
    """N m s/rad or N s/m; not compensated, as it holds no joint."""
    stribeck: FloatArray
    """Share by which static friction exceeds Coulomb friction."""
    stribeck_speed: FloatArray
    """Speed at which half of this share is left, rad/s or m/s; positive."""
    load: FloatArray
    """Friction over the torque of gravity, added to Coulomb friction."""

    def __post_init__(self) -> None:
        n = np.size(self.coulomb)
        for field in fields(self):
            value = checks.numbers(field.name, getattr(self, field.name), (n,))
            if (value < 0.0).any() or (field.name == "stribeck_speed" and not value.all()):
                valid = "positive" if field.name == "stribeck_speed" else "not negative"
                raise ArgumentError(f"{field.name} must be {valid}; got {value.tolist()}")
            object.__setattr__(self, field.name, value)

    @classmethod
    def of(cls, joints: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> Friction:
        """Return the friction of joints, in the order of ``names``, from terms by joint.

        Terms are those of the fields; others are ignored, and missing ones are zero. Raises
        UnknownJointError for a joint that is not among the names, ArgumentError for wrong numbers.
        """
        for joint in joints:
            if joint not in names:
                raise UnknownJointError(joint, names)
        found = {}
        for field in fields(cls):
            unstated = STRIBECK_SPEED if field.name == "stribeck_speed" else 0.0
            found[field.name] = [joints.get(x, {}).get(field.name, unstated) for x in names]
        return cls(**{name: np.array(column) for name, column in found.items()})


class FrictionCompensation:
    """Torques that help joints against friction, smooth in time.

    ``speed`` in rad/s or m/s: at this rate s is 76 %. ``dead_band`` in N m or N: effort beyond
    gravity up to which a joint at rest is not helped, infinite where it never is; at twice as much
    it is helped fully. ``rise``
    in s is the time constant of p. ``dither`` is the share d of 0 to 1 at ``dither_frequency`` Hz.
    Raises ArgumentError for numbers that are not positive, or not in range.
    """

    def __init__(
        self,
        friction: Friction,
        *,
        speed: float = 0.05,
        dead_band: float | Sequence[float] = 1.0,
        rise: float = 0.02,
        dither: float = 0.0,
        dither_frequency: float = 20.0,
    ) -> None:
        n = friction.coulomb.size
        self.speed = checks.positive("speed", speed)
        self.rise = checks.positive("rise", rise)
        self.frequency = checks.positive("dither_frequency", dither_frequency)
        if not 0.0 <= checks.number("dither", dither) <= 1.0:
            raise ArgumentError(f"dither must be between 0 and 1; got {dither:g}")
        self.dither = float(dither)
        bands = np.full(n, dead_band) if np.ndim(dead_band) == 0 else dead_band
        bands = np.asarray(checks.real("dead_band", bands), dtype=float)
        if bands.shape != (n,):
            raise ArgumentError(f"dead_band must be of {n} joints; got shape {bands.shape}")
        if not (bands > 0.0).all():
            raise ArgumentError(f"dead_band must be positive; got {bands.tolist()}")
        terms = friction.coulomb, friction.stribeck, friction.stribeck_speed, friction.load
        self.loaded = bool(friction.load.any())
        """Whether friction depends on the load."""
        self._rows = list(zip(bands.tolist(), *(x.tolist() for x in terms), strict=True))
        self.reset()

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
        coulomb: Sequence[float] | None = None,
        pushes: Sequence[float] | None = None,
    ) -> list[float]:
        """Return the assist (n,) in N m or N at a time in s of one steady clock.

        ``rates``, measured ``efforts`` and ``gravity`` torques are those of the joints; an effort
        that is NaN helps no joint break away. The own assist of the call before is taken off the
        efforts, so that the law does not follow itself. ``pushes`` are estimated external torques,
        in place of these differences. ``shares`` (n,) of the friction are compensated, at most
        LARGEST_SHARE; if none is positive nothing is computed. ``coulomb`` (n,) is in place of the
        identified friction, as on the way from one to another.
        """
        if not any(shares):
            return self._assist if self._time is None else self._ended()
        elapsed = 0.0 if self._time is None else max(0.0, now - self._time)
        self._time = now
        kept = self.rise / (self.rise + elapsed)
        wave = self.dither and self.dither * math.sin(2.0 * math.pi * self.frequency * now)
        tanh, speed, push, assist = math.tanh, self.speed, self._push, self._assist
        found: list[float] = []
        for k, (band, own, stribeck, turn, load) in enumerate(self._rows):
            g, v = gravity[k], rates[k]
            beyond = efforts[k] - g - assist[k] if pushes is None else pushes[k]
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
            dry = own if coulomb is None else coulomb[k]
            bound = friction_bound(dry, stribeck, turn, load, v, g if g > 0.0 else -g)
            level = min(LARGEST_SHARE, shares[k]) * bound
            found.append(level * (s + (1.0 - s if s > 0.0 else 1.0 + s) * help_))
        self._assist = found
        return found

    def _ended(self) -> list[float]:
        self.reset()
        return self._assist
