# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""References of laws: what is asked for, and the smooth motion that approaches it within limits.

A reference that jumps is approached as far as velocity and acceleration allow, one that ends or
stops coming is held. The limiter is that of a second-order filter that brakes along v^2 = 2 a e,
and with a time constant at the end (Biagiotti and Melchiorri, Trajectory Planning for Automatic
Machines and Robots, 2008, chapter 4.6); a target that can be reached in one period is met exactly.

A reference never leads the measured arm by more than a distance, the lead: it slows down before
and waits there, so that an arm that something holds back is not thrown when it comes free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.control.turns import nearest, sliding, turning
from mbs_dynamics.errors import ArgumentError, listed, quoted
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.model import Model

GAIN = 20.0
"""Gain in 1/s with which the last part of an error is approached."""

SHARE = 0.8
"""Share of the acceleration limit that braking is planned with."""

PACE_TIME = 0.3
"""Time in s in which a trajectory stops or goes on."""


LEAD = 0.2
"""Largest distance by which a reference leads a joint, in rad or m, if its law states none."""

ARRIVED = 0.03
"""Distance from the last point of a trajectory within which a joint has arrived, in rad or m."""

AT_LIMIT = 0.05
"""Distance from a position limit in rad or m within which a joint is at it."""

REPORTED_AFTER = 1.0
"""Time in s for which an arm must lag behind until that is reported."""


class JointTarget(NamedTuple):
    """Positions to go to, of some or all commanded joints; the others stay where they are to be."""

    names: Sequence[str]
    positions: Sequence[float]
    """In rad or m, in the order of names."""
    velocities: Sequence[float] = ()
    """In rad/s or m/s, with which positions go on until the next target; empty: none."""


class PoseTarget(NamedTuple):
    """A pose to go to, of the link that the law moves."""

    pose: Any
    """(4, 4) in m."""
    frame: str = ""
    """The fixed link in whose frame the pose is; empty: the root link of the description."""


Target = JointTarget | PoseTarget | Trajectory


class JointReference(NamedTuple):
    """Reference of a joint law at one time. Joints without a command have their measured state."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray
    """(n,) velocities."""
    qdd: FloatArray
    """(n,) accelerations."""


class PoseReference(NamedTuple):
    """Reference of a law for a link at one time."""

    pose: FloatArray
    """(4, 4) pose of the link in the root frame, in m."""
    twist: FloatArray
    """(6,) hybrid: angular velocity, then the velocity of the link's origin, in the root's axes."""
    posture: FloatArray
    """(n,) positions of joints to prefer among those that place the link so."""
    posture_rate: FloatArray
    """(n,) velocities of the posture."""


def approached(
    e: FloatArray,
    v: FloatArray,
    target_v: FloatArray,
    fastest: FloatArray,
    acceleration: FloatArray,
    dt: float,
) -> tuple[FloatArray, Any]:
    """Return the velocities (k, d) of the next period, and which of the k vectors are met by it.

    ``e`` (k, d) are the errors of k vectors at its end if they stood still, ``target_v`` (k, d)
    the velocities of targets; ``fastest`` (k, 1) and ``acceleration`` (k, 1) limit lengths.
    """
    gain = min(GAIN, 0.3 / dt)
    change = acceleration * dt
    size = length_of(e)
    brake = SHARE * acceleration
    linear = brake / gain**2
    root = np.sqrt(2.0 * brake * np.maximum(size - 0.5 * linear, 0.0))
    speed = np.minimum(fastest, np.where(size < linear, gain * size, root))
    goal = target_v + e * (speed / np.where(size > 0.0, size, 1.0))
    goal = goal * np.minimum(1.0, fastest / np.maximum(length_of(goal), 1e-12))
    step = goal - v
    limited = v + step * np.minimum(1.0, change / np.maximum(length_of(step), 1e-12))
    direct = e / dt
    met = (
        (length_of(direct) <= fastest)
        & (length_of(direct - v) <= change)
        & (length_of(target_v - direct) <= change)
    )
    return np.where(met, direct, limited), met


def slowed_by(ahead: FloatArray, lead: FloatArray) -> FloatArray:
    """Return the share of the speed (...,) of a reference that is ``ahead`` of the arm.

    It is 1 up to three quarters of the ``lead``, and 0 from the lead on.
    """
    share: FloatArray = np.clip(4.0 * (1.0 - ahead / lead), 0.0, 1.0)
    return share


class Lag:
    """Reports once that an arm has lagged behind its reference for some time."""

    def __init__(self) -> None:
        self._since = math.inf
        self._reported = False

    def restart(self) -> None:
        """Forget the lag, as for another motion."""
        self._since, self._reported = math.inf, False

    def due(self, lags: bool, now: float) -> bool:
        """Return whether a lag is to be reported now."""
        if not lags:
            self.restart()
            return False
        self._since = min(self._since, now)
        due = not self._reported and now - self._since >= REPORTED_AFTER
        self._reported = self._reported or due
        return due


def length_of(x: FloatArray) -> FloatArray:
    """Return lengths (..., 1) of vectors."""
    length: FloatArray = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return length


class JointFollower:
    """The reference of a law of joints, from the present state towards targets and trajectories.

    Parameters: ``joints`` (m,) are the coordinates of the commanded joints, in the order of
    ``settings.joints``.
    """

    def __init__(self, model: Model, joints: Sequence[int], settings: MotionSettings) -> None:
        self._model, self._columns, self._names = model, list(joints), settings.joints
        self._turning = np.array(turning(model))[self._columns]
        slides = sliding(model)
        self._units = ["m" if slides[k] else "rad" for k in self._columns]
        low, high = model.lower[self._columns], model.upper[self._columns]
        bounded = low < high
        self.low = np.where(bounded, low, -np.inf)
        self.high = np.where(bounded, high, np.inf)
        self.apply(settings)
        self._x = self._v = self._a = np.zeros((len(self._columns), 1))
        self._target = self._target_v = self._x
        self._since = self._at = -math.inf
        self.joints = self
        self.begun = False
        """Whether it has started at a state."""
        self.trajectory: Trajectory | None = None
        """The trajectory that is approached or played."""
        self.elapsed: float | None = None
        """Its time in s since its first point; None while that is approached."""
        self._pace = self._pace_goal = 1.0
        self.lead: FloatArray = np.full(len(self._columns), LEAD)
        """(m,) distances in rad or m by which the reference may lead; infinite: as far as it likes.

        A joint without a spring leads nowhere."""
        self._along = np.zeros(len(self._columns))
        """(m,) signs of the velocities of the trajectory."""
        self._lag = Lag()
        self.remark = ""
        """Change of the reference, for the log; empty if it is as commanded."""

    def apply(self, settings: MotionSettings) -> None:
        """Use other limits."""
        limits = self._model.velocity_limits[self._columns]
        self._fastest = np.minimum(settings.reference_velocity, limits)[:, None]
        self._acceleration = np.array(settings.reference_acceleration)[:, None]
        self._timeout = settings.reference_timeout

    def use(self, law: Any, qd: FloatArray) -> None:
        """Lead the arm by no more than a law states: ``lead`` (m,) in rad or m."""
        lead = getattr(law, "lead", None)
        if lead is not None:
            self.lead = lead

    def at_limits(self, q: FloatArray) -> list[str]:
        """Return the names of joints that are near a position limit at q (n,)."""
        at = q[self._columns]
        near = np.minimum(at - self.low, self.high - at) < AT_LIMIT
        return [name for name, so in zip(self._names, near, strict=True) if so]

    def begin(self, q: FloatArray, qd: FloatArray, now: float) -> None:
        """Start at a state (n,), and come to rest."""
        self._x, self._v = q[self._columns, None], qd[self._columns, None]
        self._v = np.clip(self._v, -self._fastest, self._fastest)
        self._a = np.zeros_like(self._v)
        self._at, self.begun = now, True
        self.stop(now)

    def stop(self, now: float) -> None:
        """Come to rest within the limits, and stay there."""
        self.trajectory = self.elapsed = None
        self._lag.restart()
        self._target, self._target_v = self._stopped(), np.zeros_like(self._v)
        self._pace = self._pace_goal = 1.0

    def _stopped(self) -> FloatArray:
        stopped = self._x + self._v * abs(self._v) / (2.0 * SHARE * self._acceleration)
        return np.clip(stopped, self.low[:, None], self.high[:, None])

    def aim(self, target: Any, q: FloatArray, now: float) -> None:
        """Go to a :class:`JointTarget`, or play a :class:`Trajectory`.

        Targets of joints without limits are shifted by whole turns to the nearest equivalents of
        the measured positions q (n,), a trajectory as a whole by its first point. Raises
        ArgumentError and UnknownJointError for one that is invalid; nothing changes then.
        """
        if isinstance(target, Trajectory):
            trajectory = target.ordered(self._names)
            trajectory.check(self._model)
            first = trajectory.positions[0]
            here = nearest(first, q[self._columns], self._turning)
            trajectory = trajectory.shifted(here - first)
            self.stop(now)
            self.trajectory, self._target = trajectory, trajectory.positions[0][:, None]
            self._since = now
            return
        if not isinstance(target, JointTarget):
            raise ArgumentError(
                f"the reference is a {type(target).__name__}; valid for a law of joints are "
                "JointTarget and Trajectory"
            )
        names, positions, velocities = target
        rows = [self._row(name) for name in names]
        if not rows or len(set(rows)) != len(rows):
            raise ArgumentError(f"the target names joints {listed(names)}; valid is each once")
        at = checks.numbers("positions of the target", positions, (len(rows),))
        at = nearest(at, q[self._columns][rows], self._turning[rows])
        rates = np.zeros(len(rows))
        if len(velocities):
            rates = checks.numbers("velocities of the target", velocities, (len(rows),))
        for k, x, v in zip(rows, at, rates, strict=True):
            name, most = self._names[k], float(self._model.velocity_limits[self._columns[k]])
            if not self.low[k] - 1e-9 <= x <= self.high[k] + 1e-9:
                raise ArgumentError(
                    f"the target of {name!r} is out of reach at {x:.6g}; valid is "
                    f"{self.low[k]:.6g} to {self.high[k]:.6g}"
                )
            if abs(v) > most:
                raise ArgumentError(
                    f"the target of {name!r} moves at {v:.6g}; its velocity limit is {most:.6g}"
                )
        if self.trajectory is not None:
            self.stop(now)
        self._lag.restart()
        self._target, self._target_v = self._target.copy(), np.zeros_like(self._v)
        self._target[rows, 0], self._target_v[rows, 0] = at, rates
        self._since = now

    def _row(self, name: str) -> int:
        if name not in self._names:
            raise ArgumentError(
                f"the target names joint {quoted(name)}; valid are {listed(self._names)}"
            )
        return self._names.index(name)

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed, along the same path; 0: pause."""
        self._pace_goal = rate
        if self.trajectory is not None and self.elapsed is None:
            first = self.trajectory.positions[0][:, None]
            self._target = first if rate > 0.0 else self._stopped()

    def at(self, q: FloatArray, now: float) -> JointReference:
        """Return the reference at a time, for measured positions (n,)."""
        dt, self._at = now - self._at, now
        if dt > 0.0:
            off = self._x - q[self._columns, None]
            if self.elapsed is not None:
                self._play(dt, off[:, 0], now)
            else:
                self._approach(dt, off, now)
        positions, n = q.copy(), len(q)
        qd, qdd = np.zeros(n), np.zeros(n)
        positions[self._columns] = self._x[:, 0]
        qd[self._columns], qdd[self._columns] = self._v[:, 0], self._a[:, 0]
        return JointReference(positions, qd, qdd)

    def _approach(self, dt: float, off: FloatArray, now: float) -> None:
        """Go on towards the target, ``off`` (m, 1) from the measured positions."""
        target, rate = self._target, self._target_v
        if rate.any():
            ahead = now - self._since
            if ahead > self._timeout:
                self.remark = f"the reference is {self._timeout:g} s old, and is held"
                self._target_v = np.zeros_like(rate)
            self._target = target = np.clip(
                target + self._target_v * dt, self.low[:, None], self.high[:, None]
            )
            rate = self._target_v
        e = target - self._x
        if not (e.any() or self._v.any() or rate.any()):
            self._a = self._v
        else:
            v, met = approached(e, self._v, rate, self._fastest, self._acceleration, dt)
            most = self._fastest * slowed_by(off * np.sign(v), self.lead[:, None])
            slower = abs(v) > most
            v, met = np.where(slower, np.sign(v) * most, v), met & ~slower
            self._x = np.where(met, target, self._x + v * dt)
            after = np.where(met, rate, v)
            self._a = np.where(slower, 0.0, (after - self._v) / dt)
            self._v = after
            waits = ((most < 0.1 * self._fastest) & (abs(e) > ARRIVED))[:, 0]
            self._report_lag(waits, off[:, 0], now)
        if self.trajectory is not None and not (e.any() or self._v.any()):
            begun = now - self._since >= self.trajectory.times[0]  # as other parts do
            self.elapsed = 0.0 if begun and self._pace_goal > 0.0 else None
            self._along = np.zeros(len(self._columns))

    def _play(self, dt: float, off: FloatArray, now: float) -> None:
        """Play the trajectory, as far as joints that are ``off`` (m,) behind follow it."""
        trajectory, elapsed = self.trajectory, self.elapsed
        assert trajectory is not None
        assert elapsed is not None
        if elapsed >= trajectory.duration:
            self._arrive(trajectory, off, now)
            return
        change = max(-dt / PACE_TIME, min(dt / PACE_TIME, self._pace_goal - self._pace))
        ahead = off * self._along
        most = float(slowed_by(ahead, self.lead).min())
        if self._pace + change > most:
            self._pace, change = most, 0.0
        self._pace += change
        self._report_lag(ahead > 0.9 * self.lead, off, now)
        self.elapsed = elapsed = elapsed + self._pace * dt
        q, qd, qdd = trajectory.at(float(trajectory.times[0]) + elapsed)
        self._along = np.sign(qd)
        self._x, self._v = q[:, None], self._pace * qd[:, None]
        self._a = self._pace**2 * qdd[:, None] + change / dt * qd[:, None]
        if elapsed >= trajectory.duration:
            self.elapsed = trajectory.duration
            self._target, self._target_v = self._x, np.zeros_like(self._v)
            self._v = self._a = self._target_v

    def _arrive(self, trajectory: Trajectory, off: FloatArray, now: float) -> None:
        """End the trajectory once the measured arm has arrived at its last point."""
        away = (abs(off) > ARRIVED) & np.isfinite(self.lead)
        if away.any():
            if self._lag.due(True, now):
                joints = self._named(away, off)
                self.remark = f"the trajectory is at its last point, and the arm is not: {joints}"
            return
        self.trajectory = self.elapsed = None
        self.remark = "the trajectory has ended, and its last point is held"

    def _report_lag(self, waits: Array, off: FloatArray, now: float) -> None:
        if self._lag.due(bool(waits.any()), now):
            self.remark = f"the reference waits for the arm: {self._named(waits, off)}"

    def _named(self, which: Array, off: FloatArray) -> str:
        """Return joints with their distances ``off`` (m,) from the reference, in words."""
        rows = zip(self._names, which, off.tolist(), self._units, strict=True)
        away = [f"{name} is {abs(x):.3g} {unit} away" for name, some, x, unit in rows if some]
        return listed(away)
