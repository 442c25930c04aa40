# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a floating base from odometry or an inertial sensor. No ROS is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie import so3
from mbs_dynamics.model.coordinates import QUATERNION_TOLERANCE
from mbs_dynamics.model.model import Model


class BaseState(NamedTuple):
    """Pose and twist of a base."""

    q: FloatArray
    """(7,) x, y, z in m, and the unit quaternion x, y, z, w."""
    qd: FloatArray
    """(6,) body-fixed twist, angular part first, in rad/s and m/s."""


class BaseInput:
    """The latest state of the base of a model, its first body.

    Odometry states the pose of the root link in ``frame``, and its twist in the root link. An
    inertial sensor on the base states orientation and angular rate alone: the origin of the base is
    then taken to be at rest at zero. Fresh odometry takes precedence. Times are in s.
    """

    def __init__(self, model: Model, frame: str, prefix: str = "") -> None:
        self.frame, self.base = frame, prefix + model.body_names[0]
        self._placements = {
            prefix + name: each.placement[:3, :3]
            for name, each in model.frames.items()
            if each.body == 0
        }
        self._latest: tuple[BaseState, float] | None = None
        self._odometry = -math.inf

    def odometry(
        self,
        frame: str,
        child_frame: str,
        pose: Sequence[float],
        twist: Sequence[float],
        received: float,
    ) -> None:
        """Use a pose (7,) and a twist (6,), angular part first, that was ``received`` at a time.

        Raises ArgumentError for another frame, and for numbers that are no pose and twist.
        """
        if frame != self.frame or child_frame != self.base:
            raise ArgumentError(
                f"it is that of {child_frame!r} in {frame!r}; must be that of the root link "
                f"{self.base!r} in the frame of the parameter odom_frame, {self.frame!r}"
            )
        self._store(np.array(pose, dtype=float), np.array(twist, dtype=float), received)
        self._odometry = received

    def imu(
        self, frame: str, quaternion: Sequence[float], rate: Sequence[float], received: float,
        stale_timeout: float,
    ) -> None:  # fmt: skip
        """Use orientation and angular rate (3,) of a sensor, without fresh odometry.

        Raises ArgumentError for a frame that is not fixed to the base, and for invalid numbers.
        """
        if frame and frame not in self._placements:
            listed = ", ".join(self._placements)
            raise ArgumentError(f"its frame is {frame!r}; valid: those fixed to the base: {listed}")
        if received - self._odometry <= stale_timeout:
            return
        turn = self._placements.get(frame, np.eye(3))
        x = np.array(quaternion, dtype=float)
        if abs(np.linalg.norm(x) - 1.0) <= QUATERNION_TOLERANCE:
            x = np.asarray(so3.to_quaternion(so3.from_quaternion(x) @ turn.T))
        omega = turn @ np.array(rate, dtype=float)
        zero = np.zeros(3)
        self._store(np.concatenate([zero, x]), np.concatenate([omega, zero]), received)

    def _store(self, q: FloatArray, qd: FloatArray, received: float) -> None:
        if not (np.isfinite(q).all() and np.isfinite(qd).all()):
            raise ArgumentError("it has numbers that are not finite")
        length = float(np.linalg.norm(q[3:]))
        if abs(length - 1.0) > QUATERNION_TOLERANCE:
            raise ArgumentError(f"its orientation is {q[3:].tolist()}; must be a unit quaternion")
        q[3:] /= length
        self._latest = BaseState(q, qd), received

    def state(self, now: float, stale_timeout: float) -> BaseState | None:
        """Return the latest state; None if it is older than ``stale_timeout`` in s."""
        if self._latest is None or now - self._latest[1] > stale_timeout:
            return None
        return self._latest[0]
