# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""References of laws: what is asked for, and the smooth motion that approaches it within limits.

A reference that jumps is approached as far as velocity and acceleration allow, one that ends or
stops coming is held. The limiter is that of a second-order filter that brakes along v^2 = 2 a e,
and with a time constant at the end (Biagiotti and Melchiorri, Trajectory Planning for Automatic
Machines and Robots, 2008, chapter 4.6); a target that can be reached in one period is met exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.control.environment import fixed_links
from mbs_dynamics.control.fast_path import verified
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError, UnknownBodyError, listed, quoted
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model

GAIN = 20.0
"""Gain in 1/s with which the last part of an error is approached."""

SHARE = 0.8
"""Share of the acceleration limit that braking is planned with."""

MOST_STEPS, LARGEST_STEP = 60, 0.3
"""Steps of the search for positions that place a link, and their largest length in rad or m."""

REACHED = 0.01, 1e-3
"""Errors in rad and m within which a pose is reached."""

PACE_TIME = 0.3
"""Time in s in which a trajectory stops or goes on."""


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
    size = _length(e)
    brake = SHARE * acceleration
    linear = brake / gain**2
    root = np.sqrt(2.0 * brake * np.maximum(size - 0.5 * linear, 0.0))
    speed = np.minimum(fastest, np.where(size < linear, gain * size, root))
    goal = target_v + e * (speed / np.where(size > 0.0, size, 1.0))
    goal = goal * np.minimum(1.0, fastest / np.maximum(_length(goal), 1e-12))
    step = goal - v
    limited = v + step * np.minimum(1.0, change / np.maximum(_length(step), 1e-12))
    direct = e / dt
    met = (
        (_length(direct) <= fastest)
        & (_length(direct - v) <= change)
        & (_length(target_v - direct) <= change)
    )
    return np.where(met, direct, limited), met


def _length(x: FloatArray) -> FloatArray:
    length: FloatArray = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return length


class JointFollower:
    """The reference of a law of joints, from the present state towards targets and trajectories.

    Parameters: ``joints`` (m,) are the coordinates of the commanded joints, in the order of
    ``settings.joints``.
    """

    def __init__(self, model: Model, joints: Sequence[int], settings: MotionSettings) -> None:
        self._model, self._columns, self._names = model, list(joints), settings.joints
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
        self.remark = ""
        """Change of the reference, for the log; empty if it is as commanded."""

    def apply(self, settings: MotionSettings) -> None:
        """Use other limits."""
        limits = self._model.velocity_limits[self._columns]
        self._fastest = np.minimum(settings.reference_velocity, limits)[:, None]
        self._acceleration = np.array(settings.reference_acceleration)[:, None]
        self._timeout = settings.reference_timeout

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
        self._target, self._target_v = self._stopped(), np.zeros_like(self._v)
        self._pace = self._pace_goal = 1.0

    def _stopped(self) -> FloatArray:
        stopped = self._x + self._v * abs(self._v) / (2.0 * SHARE * self._acceleration)
        return np.clip(stopped, self.low[:, None], self.high[:, None])

    def aim(self, target: Any, q: FloatArray, now: float) -> None:
        """Go to a :class:`JointTarget`, or play a :class:`Trajectory`.

        Raises ArgumentError and UnknownJointError for one that is invalid; nothing changes then.
        """
        if isinstance(target, Trajectory):
            trajectory = target.ordered(self._names)
            trajectory.check(self._model)
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
            if self.elapsed is not None:
                self._play(dt)
            else:
                self._approach(dt, now)
        positions, n = q.copy(), len(q)
        qd, qdd = np.zeros(n), np.zeros(n)
        positions[self._columns] = self._x[:, 0]
        qd[self._columns], qdd[self._columns] = self._v[:, 0], self._a[:, 0]
        return JointReference(positions, qd, qdd)

    def _approach(self, dt: float, now: float) -> None:
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
            self._x = np.where(met, target, self._x + v * dt)
            after = np.where(met, rate, v)
            self._a, self._v = (after - self._v) / dt, after
        if self.trajectory is not None and not (e.any() or self._v.any()):
            begun = now - self._since >= self.trajectory.times[0]  # as other parts do
            self.elapsed = 0.0 if begun and self._pace_goal > 0.0 else None

    def _play(self, dt: float) -> None:
        trajectory, elapsed = self.trajectory, self.elapsed
        assert trajectory is not None
        assert elapsed is not None
        change = max(-dt / PACE_TIME, min(dt / PACE_TIME, self._pace_goal - self._pace))
        self._pace += change
        self.elapsed = elapsed = elapsed + self._pace * dt
        q, qd, qdd = trajectory.at(float(trajectory.times[0]) + elapsed)
        self._x, self._v = q[:, None], self._pace * qd[:, None]
        self._a = self._pace**2 * qdd[:, None] + change / dt * qd[:, None]
        if elapsed >= trajectory.duration:
            self.trajectory = self.elapsed = None
            self._target, self._target_v = self._x, np.zeros_like(self._v)
            self.remark = "the trajectory has ended, and its last point is held"


class PoseFollower:
    """The reference of a law that moves a link, from its present pose towards targets.

    Straight lines, and rotations about fixed axes. A :class:`JointTarget` is the posture to prefer.
    Raises UnknownBodyError for a link that no joint moves.
    """

    def __init__(
        self, model: Model, joints: Sequence[int], settings: MotionSettings, link: str
    ) -> None:
        if link not in model.frames or model.frames[link].body == GROUND:
            moving = [name for name, frame in model.frames.items() if frame.body != GROUND]
            raise UnknownBodyError(link, moving)
        self._model, self._link, self._columns = model, link, list(joints)
        self.joints = JointFollower(model, joints, settings)
        self._error, self._moved = _pose_kernels()
        self._kinematics = mbs.compile_together(
            [
                (mbs.forward_kinematics, {"bodies": [link]}),
                (mbs.jacobian, {"body": link, "representation": "hybrid"}),
            ],
            model.without_payloads(),
        )
        self.apply(settings)
        self._C = self._target = np.eye(4)
        self._v = np.zeros((2, 3))
        self._at = -math.inf

    def apply(self, settings: MotionSettings) -> None:
        """Use other limits."""
        self.joints.apply(settings)
        angular = settings.reference_angular_velocity, settings.reference_angular_acceleration
        linear = settings.reference_linear_velocity, settings.reference_linear_acceleration
        self._fastest, self._acceleration = np.array([angular, linear]).T[:, :, None]

    def begin(self, q: FloatArray, qd: FloatArray, now: float) -> None:
        """Start at a state (n,), and come to rest."""
        self.joints.begin(q, np.zeros_like(qd), now)
        C, J = self._kinematics(q)
        self._C, self._at = C[0], now
        v = (J @ qd).reshape(2, 3)
        self._v = v * np.minimum(1.0, self._fastest / np.maximum(_length(v), 1e-12))
        self.stop(now)

    def stop(self, now: float) -> None:
        """Come to rest within the limits, and stay there."""
        ahead = self._v * _length(self._v) / (2.0 * SHARE * self._acceleration)
        self._target = self._moved(self._C, ahead)

    def aim(self, target: Any, q: FloatArray, now: float) -> None:
        """Go to a :class:`PoseTarget`; or prefer the posture of a :class:`JointTarget`.

        ``q`` (n,) are the measured positions. Raises ArgumentError for a pose that is none or that
        the arm cannot reach from there, and UnknownBodyError for a frame that is no fixed link.
        """
        if isinstance(target, JointTarget):
            self.joints.aim(target, q, now)
            return
        if not isinstance(target, PoseTarget):
            raise ArgumentError(
                f"the reference is a {type(target).__name__}; valid for a law that moves a link "
                "are PoseTarget, and JointTarget for its posture"
            )
        pose = checks.pose("pose of the target", target.pose)
        if target.frame:
            fixed = fixed_links(self._model)
            if target.frame not in fixed:
                raise UnknownBodyError(target.frame, fixed)
            pose = self._model.frames[target.frame].placement @ pose
        self._check_reach(pose, q)
        self._target = pose

    def _check_reach(self, pose: FloatArray, q: FloatArray) -> None:
        """Raise ArgumentError unless joints can move from q (n,) to a pose (4, 4).

        Damped least squares within the limits, as the law moves the arm: Nakamura and Hanafusa
        (1986).
        """
        q, columns = q.copy(), self._columns
        low, high = self.joints.low, self.joints.high
        for _ in range(MOST_STEPS):
            C, J = self._kinematics(q)
            e = self._error(C[0], pose).ravel()
            angle, distance = np.linalg.norm(e[:3]), np.linalg.norm(e[3:])
            if angle < REACHED[0] and distance < REACHED[1]:
                return
            damping = (1e-3 * min(float(e @ e), 1.0) + 1e-6) * np.eye(6)
            free = np.ones(len(columns), dtype=bool)
            for _ in range(2):
                A = J[:, columns] * free
                step = A.T @ np.linalg.solve(A @ A.T + damping, e)
                step *= min(1.0, LARGEST_STEP / max(float(abs(step).max()), 1e-12))
                moved = q[columns] + step
                free &= (moved >= low) & (moved <= high)
            q[columns] = np.clip(moved, low, high)
        raise ArgumentError(
            f"the pose of {self._link!r} at {pose[:3, 3].round(4).tolist()} is out of reach: the "
            f"nearest found from here is off by {distance:.3g} m and {angle:.3g} rad"
        )

    def at(self, q: FloatArray, now: float) -> PoseReference:
        """Return the reference at a time, for measured positions (n,)."""
        dt, self._at = now - self._at, now
        posture = self.joints.at(q, now).q
        e = self._error(self._C, self._target)
        if dt > 0.0 and (e.any() or self._v.any()):
            still = np.zeros_like(e)
            v, met = approached(e, self._v, still, self._fastest, self._acceleration, dt)
            self._C = self._moved(self._C, np.where(met, e, v * dt))
            self._v = np.where(met, 0.0, v)
            if met.all():
                self._C = self._target
        return PoseReference(self._C, self._v.ravel(), posture)


Follower = JointFollower | PoseFollower


@lru_cache
def _pose_kernels() -> tuple[Kernel, Kernel]:
    """Return the error (2, 3) of a pose and a target, and the pose moved by an error.

    Rows of the error are the rotation vector from the pose to the target and the difference of
    their positions, in the axes of the root.
    """

    def error(C: Any, target: Any) -> Any:
        R = target[:3, :3] @ C[:3, :3].T
        return np.stack([so3.log(R), target[:3, 3] - C[:3, 3]])

    def moved(C: Any, e: Any) -> Any:
        return se3.pose(so3.exp(e[0]) @ C[:3, :3], C[:3, 3] + e[1])

    return (
        verified(error, {"C": (4, 4), "target": (4, 4)}, "pose_error"),
        verified(moved, {"C": (4, 4), "e": (2, 3)}, "pose_moved"),
    )
