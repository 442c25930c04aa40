# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The frames of a wrist sensor and its tool on an arm, and their motion.

Times are of one steady clock, in s, and stamps in ns, 0 for none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import algorithms, checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.control.turns import nearest, turning
from mbs_dynamics.errors import ArgumentError, ModelError, listed
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model

IMU_TIME = 0.5
"""Time constant in s of the low-pass filter on an imu that is fixed to the base."""

FALLS = (0.0, 200.0), (5.0, 15.0)
"""Valid lengths of the acceleration in m/s^2 that an imu measures: on the sensor, on the base."""


class SensorMotion(NamedTuple):
    """The motion of a sensor, in the axes of its frame."""

    fall: FloatArray
    """(3,) gravity less the acceleration of the origin, in m/s^2."""
    rate: FloatArray
    """(3,) angular velocity in rad/s."""
    acceleration: FloatArray
    """(3,) angular acceleration in rad/s^2."""
    pose: FloatArray
    """(4, 4) in the frame of the root."""
    q: FloatArray
    """(n,) positions of the arm in rad or m."""
    stamp: int

    def reading(self, M: FloatArray) -> FloatArray:
        """Return the wrench (6,) on the sensor of a tool, whose inertia is the matrix M (6, 6)."""
        W = M[:, 3:] @ self.fall
        if self.rate.any() or self.acceleration.any():
            momentum = (M[:, :3] @ self.rate).reshape(2, 3)
            W -= M[:, :3] @ self.acceleration + (momentum @ so3.hat(self.rate).T).ravel()
        return W


class Mounting:
    """The place of a sensor on an arm, and its motion by joint positions, and by an imu if used.

    ``sensor`` and ``tool`` are links fixed to one another; ``gravity`` (3,) in m/s^2 in the axes of
    the root. With ``inertial``, accelerations are differences of joint velocities. With
    ``use_imu`` the free fall is that of an imu, fixed to the base or to the sensor.

    Raises UnknownBodyError; ModelError for links that do not move, or move against the sensor.
    """

    def __init__(
        self,
        model: Model,
        sensor: str,
        tool: str = "",
        *,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        inertial: bool = False,
        use_imu: bool = False,
        timeout: float = 0.5,
    ) -> None:
        self.model, self.sensor, self.tool = model, sensor, tool or sensor
        self.gravity = checks.numbers("gravity", gravity, (3,))
        self.inertial, self.use_imu, self.timeout = inertial, use_imu, timeout
        self._body = model.frames[sensor].body
        if self._body == GROUND:
            raise ModelError(f"the sensor's link {sensor!r} does not move: its bias is not seen")
        self._turning = turning(model)
        self._to_tool = se3.inverse(self._in_sensor(self.tool))
        self.missing = ""
        """Why the latest joint positions give no motion; empty if they do."""
        self._latest: tuple[SensorMotion, float] | None = None
        self._rates: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._imu: tuple[FloatArray, FloatArray | None, int, float] | None = None

    def _in_sensor(self, link: str) -> FloatArray:
        """Return the pose (4, 4) of a link in the frame of the sensor, to which it is fixed."""
        frame, own = self.model.frames[link], self.model.frames[self.sensor]
        if frame.body != self._body:
            valid = [each.name for each in self.model.frames.values() if each.body == self._body]
            raise ModelError(
                f"link {link!r} is not fixed to the sensor's link {self.sensor!r}; valid: "
                f"{listed(valid)}"
            )
        return np.asarray(se3.inverse(own.placement) @ frame.placement)

    def to_sensor(self, link: str, W: FloatArray) -> FloatArray:
        """Return a wrench (6,) on the sensor, given in the frame of a link that is fixed to it.

        Raises UnknownBodyError, ModelError.
        """
        return W if link == self.sensor else moved(W, self._in_sensor(link))

    def to_tool(self, W: FloatArray) -> FloatArray:
        """Return a wrench (6,) at the origin and in the axes of the tool's link."""
        return moved(W, self._to_tool)

    def load(self, link: str, load: Inertia) -> Inertia:
        """Return a load on a link as the sensor bears it, in its frame.

        It is zero on links that the sensor does not carry. Raises UnknownBodyError; ModelError for
        a link that moves against the sensor and is carried by it.
        """
        body = self.model.frames[link].body
        while body not in (GROUND, self._body):
            body = self.model.parents[body]
        return load.transformed(self._in_sensor(link)) if body != GROUND else Inertia.zero()

    def move(
        self,
        q: ArrayLike,
        qd: ArrayLike | None,
        stamp: int,
        now: float,
        stamps: Sequence[int] | None = None,
    ) -> None:
        """Take positions (n,) in rad or m and velocities (n,) of the joints, None if unknown.

        Angles of joints without limits are unwrapped.

        ``stamps`` (n,) are those of each joint, of which several drivers may report; 0 for one that
        none does, None: ``stamp`` for all. Raises ArgumentError for a wrong shape, and for numbers
        that are not finite.
        """
        q = checks.numbers("q", q, (self.model.n,))
        if self._latest is not None:
            q = nearest(q, self._latest[0].q, self._turning)
        qd = None if qd is None else checks.numbers("qd", qd, (self.model.n,))
        C = algorithms.forward_kinematics(self.model, q, bodies=[self.sensor])[0]
        rate, acceleration, a = np.zeros((3, 3))
        self.missing = ""
        if self.inertial:
            at = np.full(q.size, now) if not stamp else 1e-9 * np.array(stamps or [stamp] * q.size)
            qdd = self._accelerations(qd, at)
            if qd is None or np.isnan(qdd).any():
                self.missing = "joint velocities" if qd is None else "a second joint velocity"
            else:
                V = algorithms.twists(self.model, q, qd, bodies=[self.sensor])[0]
                Vd = algorithms.accelerations(self.model, q, qd, qdd, bodies=[self.sensor])[0]
                rate, acceleration, a = V[:3], Vd[:3], Vd[3:] + so3.hat(V[:3]) @ V[3:]
        fall = C[:3, :3].T @ self.gravity - a
        self._latest = SensorMotion(fall, rate, acceleration, C, q, stamp), now

    def _accelerations(self, qd: FloatArray | None, at: FloatArray) -> FloatArray:
        """Return differences of the velocities measured at these times in s; NaN if unknown."""
        qdd, before = np.where(at == 0.0, 0.0, np.nan), self._rates
        if qd is not None and before is not None:
            elapsed = at - before[1]
            if elapsed.min() >= 0.0 and elapsed.max() <= self.timeout:
                new = elapsed > 0.0
                qdd = before[2].copy()  # of joints that this message does not report
                qdd[new] = (qd - before[0])[new] / elapsed[new]
        self._rates = None if qd is None else (qd, at, qdd)
        return qdd

    def accelerate(self, link: str, acceleration: ArrayLike, stamp: int, now: float) -> None:
        """Take the proper acceleration (3,) in m/s^2 that an imu on a link measures.

        A stamp that does not advance is no new measurement. Raises UnknownBodyError; ModelError for
        a link that is fixed to neither base nor sensor, ArgumentError for numbers that cannot be
        true.
        """
        fall = -checks.numbers("acceleration", acceleration, (3,))
        frame, before = self.model.frames[link], self._imu
        length, (least, most) = float(np.linalg.norm(fall)), FALLS[frame.body == GROUND]
        if not least <= length <= most:
            raise ArgumentError(
                f"acceleration has a length of {length:.3g} m/s^2; must be {least:g} to {most:g}"
            )
        if before is not None and now - before[3] > self.timeout:
            before = None
        if before is not None and stamp and stamp <= before[2]:
            return
        if frame.body == GROUND:
            fall = frame.placement[:3, :3] @ fall
            if before is not None and before[1] is None:
                fall = before[0] + (fall - before[0]) * -math.expm1((before[3] - now) / IMU_TIME)
            at = None
        else:
            C = self._in_sensor(link)
            fall, at = C[:3, :3] @ fall, C[:3, 3]
        self._imu = fall, at, stamp, now

    def motion(self, now: float) -> SensorMotion | Rejection:
        """Return the present motion, or the reason why it is unknown."""
        if self._latest is None or now - self._latest[1] > self.timeout:
            return Rejection("no_motion", f"no joint positions within {self.timeout:g} s")
        if self.missing:
            return Rejection("no_motion", f"inertial forces need {self.missing}")
        motion = self._latest[0]
        if not self.use_imu:
            return motion
        if self._imu is None or now - self._imu[3] > self.timeout:
            return Rejection("no_motion", f"no imu within {self.timeout:g} s")
        fall, r, _, _ = self._imu
        w, alpha, R = motion.rate, motion.acceleration, motion.pose[:3, :3]
        if r is not None:  # it measures the acceleration of its own place
            return motion._replace(fall=fall + np.cross(alpha, r) + np.cross(w, np.cross(w, r)))
        return motion._replace(fall=motion.fall + R.T @ (fall - self.gravity))


def moved(W: FloatArray, C: FloatArray) -> FloatArray:
    """Return a wrench (6,) in another frame, in which the present one has the pose C (4, 4)."""
    moment, force = C[:3, :3] @ W[:3], C[:3, :3] @ W[3:]
    return np.concatenate([moment + so3.hat(C[:3, 3]) @ force, force])
