# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Trajectories of joints: points in time, and the polynomials between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.period.references import polynomial
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries

MOST_POINTS = 1_000_000
"""Largest number of points of a trajectory."""

AT_REST = 1e-3
"""Largest velocity, in rad/s or m/s, with which a trajectory may begin and end."""

SAMPLES = 16
"""Instants in each segment at which positions and velocities are compared with limits."""


RATE = 100.0
"""Rows per second of motion data, and instants per second at which limits are checked."""


class Point(NamedTuple):
    """The state of m joints at one time."""

    positions: FloatArray
    """(m,) in rad or m."""
    velocities: FloatArray
    """(m,) in rad/s or m/s."""
    accelerations: FloatArray
    """(m,) in rad/s^2 or m/s^2."""


class Trajectory:
    """A motion of m joints through N points.

    Parameters: ``names`` (m,) of the joints; ``times`` (N,) in s, increasing; ``positions`` (N, m)
    in rad or m; ``velocities`` and ``accelerations`` (N, m), as far as they are known. Segments
    are quintic with both, cubic with velocities. Without them, the velocity at each point is that
    of the parabola through it and its neighbours, and zero at the first and the last point.

    Raises ArgumentError for names that repeat, other shapes, numbers that are not finite, times
    that do not increase, and accelerations without velocities.
    """

    def __init__(
        self,
        names: Sequence[str],
        times: ArrayLike,
        positions: ArrayLike,
        velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
    ) -> None:
        if velocities is None and accelerations is not None:
            raise ArgumentError("accelerations need velocities")
        points = TimeSeries(
            checks.real("times", times),
            tuple(names),
            checks.real("positions", positions),
            qd=None if velocities is None else checks.real("velocities", velocities),
            qdd=None if accelerations is None else checks.real("accelerations", accelerations),
            name="trajectory",
        )
        N, m = points.q.shape
        if not (0 < N <= MOST_POINTS and m):
            raise ArgumentError(
                f"a trajectory has {N} point(s) of {m} joint(s); valid: 1 to {MOST_POINTS} "
                "points of at least one joint"
            )
        for name, array in (("velocities", points.qd), ("accelerations", points.qdd)):
            if array is not None and np.isnan(array).any():
                raise ArgumentError(f"{name} must be finite; got nan")
        self.names, self.times, self.positions = points.joints, points.t, points.q
        self.velocities = _slopes(points.t, points.q) if points.qd is None else points.qd
        self.accelerations = points.qdd
        if N == 1:
            self._coefficients = np.zeros((1, 6, m))
            self._coefficients[0, 0] = self.positions[0]
        else:
            self._coefficients = _coefficients(
                np.diff(self.times), self.positions, self.velocities, self.accelerations
            )

    @classmethod
    def of(cls, series: TimeSeries) -> Trajectory:
        """Return the trajectory through the rows of motion data.

        Rates and accelerations are used if those of all joints are there.
        """
        qd, qdd = (None if x is None or np.isnan(x).any() else x for x in (series.qd, series.qdd))
        return cls(series.joints, series.t, series.q, qd, None if qd is None else qdd)

    def sampled(self, t: FloatArray | None = None) -> TimeSeries:
        """Return positions, rates and accelerations at times t (N,) in s after the first point.

        By default these are about RATE per second, to the last point.
        """
        if t is None:
            t = np.linspace(0.0, self.duration, round(RATE * self.duration) + 1)
        q, qd, qdd = np.swapaxes([self.at(self.times[0] + x) for x in t], 0, 1)
        return TimeSeries(t, self.names, q, qd=qd, qdd=qdd)

    @property
    def duration(self) -> float:
        """The time in s from the first point to the last."""
        return float(self.times[-1] - self.times[0])

    def at(self, t: float) -> Point:
        """Return the state at time ``t`` in s; before the first and after the last point, at rest.

        Source: Hermite interpolation, with x = t - t_k in segment k: q = c_0 + c_1 x + ...
        """
        if not self.times[0] <= t < self.times[-1]:
            end = self.positions[-1 if t >= self.times[-1] else 0]
            return Point(end, np.zeros_like(end), np.zeros_like(end))
        k = self._place(t)
        return Point(*polynomial(self._coefficients[k], float(t - self.times[k])))

    def segment(self, t: float) -> tuple[float, FloatArray]:
        """Return the start of the segment at time ``t`` in s, and its coefficients (6, m).

        Both times count from the first point; q = c_0 + c_1 x + ... with x since the start.
        """
        k = self._place(t + self.times[0])
        return float(self.times[k] - self.times[0]), self._coefficients[k]

    def _place(self, t: float) -> int:
        """Return the place of the segment at time ``t``, or of the nearest one."""
        k = int(self.times.searchsorted(t, side="right")) - 1
        return min(max(k, 0), len(self._coefficients) - 1)

    def ordered(self, names: Sequence[str]) -> Trajectory:
        """Return the trajectory with its joints in another order.

        Raises ArgumentError unless these are its joints.
        """
        missing = [name for name in names if name not in self.names]
        other = [name for name in self.names if name not in names]
        if missing or other:
            raise ArgumentError(
                f"the trajectory is of other joints: it lacks {listed(missing)}, and has "
                f"{listed(other)} in addition; valid: {listed(names)}"
            )
        order = [self.names.index(name) for name in names]
        accelerations = None if self.accelerations is None else self.accelerations[:, order]
        return Trajectory(
            names, self.times, self.positions[:, order], self.velocities[:, order], accelerations
        )

    def check(self, model: Model) -> None:
        """Raise ArgumentError or UnknownJointError unless this arm can play it.

        It must begin and end at rest, and stay within the limits of positions and velocities that
        the model states: a faster segment is a jump.
        """
        for end, k in (("begin", 0), ("end", -1)):
            for name, speed in zip(self.names, self.velocities[k], strict=True):
                if abs(speed) > AT_REST:
                    raise ArgumentError(
                        f"the trajectory must {end} at rest; the velocity of {name!r} is {speed:g}"
                    )
        columns = [model.joint(name).coordinate for name in self.names]
        places = [model.positions(name).start for name in self.names]
        low, high = model.lower[places], model.upper[places]
        free = ~(low < high)
        low, high = np.where(free, -np.inf, low), np.where(free, np.inf, high)
        fastest = model.velocity_limits[columns]
        q, qd = self.positions[None], self.velocities[None]
        if len(self.times) > 1:
            x = np.linspace(0.0, 1.0, SAMPLES)[:, None] * np.diff(self.times)
            q, qd, _ = polynomial(np.moveaxis(self._coefficients, 1, 0), x[..., None])
        for what, values, bounds in (
            ("position", q, (low, high)),
            ("velocity", qd, (-fastest, fastest)),
        ):
            beyond = (values < bounds[0] - 1e-9) | (values > bounds[1] + 1e-9)
            if beyond.any():
                s, k, j = map(int, np.argwhere(beyond)[0])
                raise ArgumentError(
                    f"the trajectory jumps or leaves the limits: the {what} of {self.names[j]!r} "
                    f"is {values[s, k, j]:.4g} after {self.times[k]:g} s; must be "
                    f"{bounds[0][j]:.4g} to {bounds[1][j]:.4g}"
                )


def _coefficients(
    h: FloatArray, q: FloatArray, qd: FloatArray, qdd: FloatArray | None
) -> FloatArray:
    """Return the coefficients (N - 1, 6, m) of the segments of lengths h (N - 1,)."""
    h = h[:, None]
    d, v0, v1 = np.diff(q, axis=0), qd[:-1] * h, qd[1:] * h
    if qdd is None:
        zero = np.zeros_like(d)
        c = (q[:-1], v0, 3 * d - 2 * v0 - v1, v0 + v1 - 2 * d, zero, zero)
    else:
        a0, a1 = 0.5 * qdd[:-1] * h * h, 0.5 * qdd[1:] * h * h
        c = (
            q[:-1],
            v0,
            a0,
            10 * d - 6 * v0 - 4 * v1 - 3 * a0 + a1,
            -15 * d + 8 * v0 + 7 * v1 + 3 * a0 - 2 * a1,
            6 * d - 3 * v0 - 3 * v1 - a0 + a1,
        )
    return np.stack([x / h**k for k, x in enumerate(c)], axis=1)


def _slopes(times: FloatArray, q: FloatArray) -> FloatArray:
    """Return velocities (N, m) at points: those of the parabola through a point and its neighbours.

    The motion begins and ends at rest. Source: de Boor, A Practical Guide to Splines, chapter IV,
    cubic Bessel interpolation.
    """
    v = np.zeros_like(q)
    if len(times) > 2:
        v[1:-1] = np.gradient(q, times, axis=0)[1:-1]
    return v
