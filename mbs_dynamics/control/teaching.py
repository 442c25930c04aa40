# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motions taught by hand: from recorded positions to a trajectory within limits.

    taught = Demonstration(Rig(model), TimeSeries.read("taught.npz"))
    arm.aim(now(), taught.as_taught(speed=2.0))     # or taught.fastest()

A recording is thinned and smoothed in one step: it becomes the quintic spline with the fewest knots
that is within a tolerance of all samples, begins and ends at rest, and stays within the position
limits. A trajectory at the taught timing has a point at each knot, so that its quintic segments are
this spline. Needs SciPy, see ``check_scipy``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.period.measurement import jumps
from mbs_dynamics.control.trajectory import RATE, Trajectory
from mbs_dynamics.errors import ArgumentError, MbsError, UnknownJointError
from mbs_dynamics.model.coordinates import check_arm, is_continuous
from mbs_dynamics.model.model import Model
from mbs_dynamics.settings import check_once
from mbs_dynamics.timeseries import TimeSeries

SHORTEST, GAP = 0.5, 0.25
"""Least duration of a recording, and longest time between two samples, in s."""

FASTEST_HAND = 20.0
"""Speed in rad/s or m/s above which a joint without a velocity limit has jumped."""

EASE = 0.2
"""Time in s at both ends of a recording that is stretched to twice its length, to begin and end at
rest."""

BEYOND, STILL = 0.05, 0.01
"""Largest distance of recorded positions beyond limits, and least motion, in rad or m."""

DEGREE, SPACINGS = 5, (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
"""Degree of splines, and the times in s between their knots that are tried."""

ROUGHNESS = 1e-6
"""Weight of the third differences of the coefficients, where samples are sparse."""

HASTE = 20.0
"""Largest factor of the taught speed."""


def check_scipy() -> None:
    """Raise MbsError if SciPy is not installed, or too old for smooth trajectories."""
    try:
        from scipy.interpolate import BSpline  # noqa: F401
        from scipy.sparse import diags_array  # noqa: F401
    except ImportError as error:
        raise MbsError(
            f"teaching needs SciPy 1.11 or later ({error}): install the package python3-scipy, or "
            "pip install 'scipy>=1.11'"
        ) from error


class Rig:
    """The joints of an arm that move, its model in force, and the limits of its motions.

    Parameters: ``model``, under its gravity and with its loads; ``names`` of the joints that move,
    by default all; ``fixed`` positions in rad or m of the others by name, zero where none are
    given. ``velocity`` and ``torque`` are shares of the limits of the model, ``acceleration`` is in
    rad/s^2 or m/s^2. Torques are those of gravity, inertia, and friction by the description.

    Raises UnknownJointError, ModelError, and ArgumentError for names that repeat and limits that
    are not positive.
    """

    def __init__(
        self,
        model: Model,
        names: Sequence[str] = (),
        *,
        fixed: Mapping[str, float] = {},
        velocity: float = 0.8,
        acceleration: float = 20.0,
        torque: float = 0.8,
    ) -> None:
        check_arm(model.joints, "teaching")
        self.model = model.loaded()
        self.names = tuple(names) or model.joint_names
        check_once("names", "joint", self.names)
        UnknownJointError.check((*self.names, *fixed), model.joint_names)
        self._places = [model.joint_names.index(name) for name in self.names]
        self._others = [fixed.get(name, 0.0) for name in model.joint_names]
        bounds = model.lower, model.upper, model.velocity_limits, model.effort_limits
        self.lower, self.upper, self.fastest, effort = (x[self._places] for x in bounds)
        free = ~(self.lower < self.upper)
        self.lower[free], self.upper[free] = -np.inf, np.inf
        self.velocity = checks.positive("velocity", velocity) * self.fastest
        self.effort = checks.positive("torque", torque) * effort
        self.acceleration = checks.positive("acceleration", acceleration)
        self.turning = np.array(is_continuous(model.joints, model.lower, model.upper))[self._places]
        """(m,) whether joints have unlimited angles, which sensors may wrap."""
        self.damping, self.friction = model.damping[self._places], model.friction[self._places]

    def torques(self, q: FloatArray, qd: Any = 0.0, qdd: Any = 0.0) -> FloatArray:
        """Return the torques (N, m) of a motion (N, m) in N m or N, without friction."""
        whole = np.zeros((3, len(q), self.model.n))
        whole[0] = self._others
        for x, given in zip(whole, (q, qd, qdd), strict=True):
            x[:, self._places] = given
        tau: FloatArray = mbs.inverse_dynamics(self.model, *whole)[:, self._places]
        return tau

    def largest_speed(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> tuple[float, str]:
        """Return the largest factor of speed within limits of a motion (N, m), and what limits it.

        At the factor k the torque is g + F sign(qd) + k D qd + k^2 (M qdd + C qd).
        """
        rest = self.torques(q)
        steady = rest + self.friction * np.sign(qd)
        moving, viscous = self.torques(q, qd, qdd) - rest, self.damping * qd
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = {
                "velocity": self.velocity / np.abs(qd),
                "acceleration": np.sqrt(self.acceleration / np.abs(qdd)),
                "torque": np.minimum(
                    _until(moving, viscous, steady - self.effort),
                    _until(-moving, -viscous, -steady - self.effort),
                ),
            }
        what, least = min(factors.items(), key=lambda each: each[1].min())
        joint = self.names[int(least.argmin()) % len(self.names)]
        return float(least.min()), f"the {what} of {joint!r}"


def _until(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Return the smallest k >= 0 above which a k^2 + b k + c > 0; 0 if c > 0, inf if there is none.

    Source: the roots of a quadratic in the form without cancellation.
    """
    square = b * b - 4.0 * a * c
    sum_ = -0.5 * (b + np.copysign(np.sqrt(np.maximum(square, 0.0)), b))
    roots = np.stack([sum_ / a, c / sum_])
    least: FloatArray = np.where((roots > 0.0) & (square >= 0.0), roots, np.inf).min(axis=0)
    return np.where(c > 0.0, 0.0, np.where(np.isfinite(c), least, np.inf))


class Demonstration:
    """A taught motion, thinned and smoothed.

    Parameters: ``rig``; ``recording``, the positions of its joints; ``tolerance`` in rad or m, the
    largest distance of a sample from the spline.

    Raises UnknownJointError for recordings without one of the joints, and ArgumentError for others
    that this arm cannot play: gaps, jumps, positions beyond the limits, recordings that are too
    short, do not move, or are not within the tolerance. Raises MbsError without SciPy.
    """

    def __init__(self, rig: Rig, recording: TimeSeries, *, tolerance: float = 0.002) -> None:
        check_scipy()
        checks.positive("tolerance", tolerance)
        t, q = _checked(rig, recording)
        self.rig, t = rig, _eased(t)
        for spacing in SPACINGS:
            self.spline, self.deviation = _smoothed(rig, t, q, spacing)
            if self.deviation <= tolerance:
                break
        else:
            raise ArgumentError(
                f"tolerance is {tolerance:g}; the smoothed recording is within "
                f"{self.deviation:.3g} of its samples: they are noisy or jump. Raise it"
            )
        self.knots: FloatArray = np.unique(self.spline.t)
        """(K,) in s, from the beginning to the end."""

    def motion(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return positions, velocities and accelerations (N, m) at taught times (N,) in s."""
        return self.spline(t), self.spline(t, 1), self.spline(t, 2)

    @property
    def instants(self) -> FloatArray:
        """(N,) taught times in s at which limits are checked."""
        end = float(self.knots[-1])
        return np.linspace(0.0, end, int(RATE * end) + 2)

    @cached_property
    def largest_speed(self) -> tuple[float, str]:
        """The largest factor of the taught speed within limits, and what limits it."""
        return self.rig.largest_speed(*self.motion(self.instants))

    def as_taught(self, speed: float = 1.0) -> Trajectory:
        """Return the trajectory at the taught timing, ``speed`` times as fast.

        Raises ArgumentError, with the largest speed, if limits are exceeded.
        """
        largest, what = self.largest_speed
        if not largest:
            raise ArgumentError(
                f"{what} exceeds its limit at any speed: this arm cannot hold the posture"
            )
        if checks.positive("speed", speed) > largest:
            raise ArgumentError(
                f"speed is {speed:g}; must be at most {largest:.3g} of the taught speed, by {what}"
            )
        q, qd, qdd = self.motion(self.knots)
        return Trajectory(self.rig.names, self.knots / speed, q, speed * qd, speed**2 * qdd)

    def fastest(self) -> Trajectory:
        """Return the trajectory at the taught timing, sped up as far as the limits allow.

        Raises ArgumentError for postures that motors cannot hold.
        """
        return self.as_taught(min(self.largest_speed[0], HASTE))


def _checked(rig: Rig, recording: TimeSeries) -> tuple[FloatArray, FloatArray]:
    """Return times from zero on and positions (N, m) of the joints of the rig, within limits."""
    t, q = recording.t - recording.t[:1], recording.of_joints(rig.names).q
    steps = np.diff(t, prepend=0.0)
    if len(t) < 3 or t[-1] < SHORTEST or np.ptp(q, axis=0).max() < STILL:
        raise ArgumentError(
            f"the recording has {len(t)} samples up to {t[-1] if len(t) else 0.0:.3g} s; must be "
            f"at least {SHORTEST:g} s, in which a joint moves by {STILL:g}"
        )
    q = np.where(rig.turning, np.unwrap(q, axis=0), q)
    moved, fastest = np.diff(q, axis=0, prepend=q[:1]), np.minimum(rig.fastest, FASTEST_HAND)
    for bad, what in (
        (np.tile(steps > GAP, (len(q[0]), 1)).T, "jumps in time"),
        (jumps(moved, steps[:, None], fastest), "jumps"),
        (np.maximum(rig.lower - q, q - rig.upper) > BEYOND, "is beyond its limits"),
    ):
        if bad.any():
            k, j = map(int, np.argwhere(bad)[0])
            raise ArgumentError(
                "the recording is of another robot, or disturbed: at "
                f"{t[k]:.4g} s {rig.names[j]!r} {what}: it moves by {moved[k, j]:.3g} in "
                f"{steps[k]:.3g} s, to {q[k, j]:.4g}; "
                f"must be {rig.lower[j]:.4g} to {rig.upper[j]:.4g}, up to {fastest[j]:.3g} per "
                f"second, with a state every {GAP:g} s"
            )
    return t, np.clip(q, rig.lower, rig.upper)


def _eased(t: FloatArray) -> FloatArray:
    """Return times (N,) over which the same positions begin and end at rest.

    Time runs at a rate that grows linearly to 1 over the first EASE s of the recording, which take
    twice as long by it, and falls likewise at the end.
    """
    end = float(t[-1])
    ease = min(EASE, 0.5 * end)
    first = np.where(t < ease, 2.0 * np.sqrt(ease * t), t + ease)
    last = end + 2.0 * ease * (1.0 - np.sqrt(np.maximum(end - t, 0.0) / ease))
    return np.where(end - t < ease, last, first)


def _smoothed(rig: Rig, t: FloatArray, q: FloatArray, spacing: float) -> tuple[Any, float]:
    """Return the least-squares spline with knots about ``spacing`` s apart, and its deviation.

    Equal first and last coefficients make it begin and end at rest. Its coefficients, and hence the
    spline, are within the limits.
    """
    from scipy.interpolate import BSpline
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import splu

    inner = np.linspace(0.0, t[-1], max(2, round(t[-1] / spacing)) + 1)
    knots = np.concatenate([[0.0] * DEGREE, inner, [t[-1]] * DEGREE])
    A = csr_array(BSpline.design_matrix(t, knots, DEGREE))
    n = A.shape[1]
    equal = np.clip(np.arange(n) - 2, 0, n - 5)  # the first three, and the last three
    expand = csr_array((np.ones(n), (np.arange(n), equal)))
    third = diags_array([-1.0, 3.0, -3.0, 1.0], offsets=[0, 1, 2, 3], shape=(n - 3, n))
    rough, near = third @ expand, A @ expand
    weight = ROUGHNESS * len(t) / n
    normal = (near.T @ near + weight * rough.T @ rough).tocsc()
    c = np.clip(expand @ splu(normal).solve(near.T @ q), rig.lower, rig.upper)
    return BSpline(knots, c, DEGREE), float(np.abs(A @ c - q).max())
