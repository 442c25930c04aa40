# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The reference of a law that moves a link, from its present pose towards targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.algorithms.verification import verified
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.control.environment import fixed_links
from mbs_dynamics.control.references import (
    SHARE,
    JointFollower,
    JointReference,
    JointTarget,
    Lag,
    PoseReference,
    PoseTarget,
    approached,
    length_of,
    slowed_by,
)
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.errors import ArgumentError, UnknownBodyError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model, without_payloads

MOST_STEPS, LARGEST_STEP = 60, 0.3
"""Steps of the search for positions that place a link, and their largest length in rad or m."""

LEADS = np.array([0.2] * 3 + [0.1] * 3)
"""(6,) largest leads of a reference in rad and m, if its law states none."""

HALT_TIME, AT_REST = 1.0, 0.01
"""Time in s in which a posture comes to rest, and velocity in rad/s or m/s of an arm at rest."""

HELD_OFF = np.array([0.05, 0.01])
"""Errors in rad and m from which on it is reported that a position limit keeps a link off."""

REACHED = 0.01, 1e-3
"""Errors in rad and m within which a pose is reached."""


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
            without_payloads(model),
        )
        self.apply(settings)
        self._C = self._target = np.eye(4)
        self._v = np.zeros((2, 3))
        self._at = -math.inf
        self._q = model.neutral()
        """(n,) the latest measured positions."""
        self._qd = np.zeros(model.n)
        """(n,) likewise, velocities."""
        self._halts_until = -math.inf
        """Until when the posture comes to rest at the latest."""
        self._lead, self._in_target = LEADS, False
        self._lag = Lag()

    def apply(self, settings: MotionSettings) -> None:
        """Use other limits."""
        self.joints.apply(settings)
        angular = settings.reference_angular_velocity, settings.reference_angular_acceleration
        linear = settings.reference_linear_velocity, settings.reference_linear_acceleration
        self._fastest, self._acceleration = np.array([angular, linear]).T[:, :, None]

    def use(self, law: Any, qd: FloatArray) -> None:
        """Lead the arm by no more than a law states: ``lead`` (6,) along its ``axes``.

        ``qd`` (n,) are the measured velocities, from which the posture comes to rest.
        """
        self._qd = qd
        lead = getattr(law, "lead", None)
        self._lead = LEADS if lead is None else lead
        self._in_target = getattr(law, "axes", "root") == "target"

    def begin(self, q: FloatArray, qd: FloatArray, now: float) -> None:
        """Start at a state (n,), and come to rest."""
        self._q, self._qd = q.copy(), np.zeros_like(qd)
        C, J = self._kinematics(q)
        self._C, self._at = C[0], now
        v = (J @ qd).reshape(2, 3)
        self._v = v * np.minimum(1.0, self._fastest / np.maximum(length_of(v), 1e-12))
        self.stop(now)

    def stop(self, now: float) -> None:
        """Come to rest within the limits, and stay there, the posture as well."""
        self.joints.begin(self._q, np.zeros(self._model.n), now)
        self._halts_until = now + HALT_TIME
        self._lag.restart()
        ahead = self._v * length_of(self._v) / (2.0 * SHARE * self._acceleration)
        self._target = self._moved(self._C, ahead)

    def aim(self, target: Any, q: FloatArray, now: float) -> None:
        """Go to a :class:`PoseTarget`; or prefer the posture of a :class:`JointTarget`.

        ``q`` (n,) are the measured positions. Raises ArgumentError for a pose that is none or that
        the arm cannot reach from there, and UnknownBodyError for a frame that is no fixed link.
        """
        if isinstance(target, JointTarget):
            self.joints.aim(target, q, now)
            self._halts_until = -math.inf
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
        self._lag.restart()
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
        self._q = q
        posture = self._halted(now) if now < self._halts_until else self.joints.at(q, now)
        e = self._error(self._C, self._target)
        if dt > 0.0 and (e.any() or self._v.any()):
            still = np.zeros_like(e)
            v, met = approached(e, self._v, still, self._fastest, self._acceleration, dt)
            off = self._error(self._kinematics(q)[0][0], self._C)
            share = self._share(off, v)
            most = self._fastest * share
            slower = length_of(v) > most
            v = np.where(slower, v * (most / np.maximum(length_of(v), 1e-12)), v)
            met = met & ~slower
            self._C = self._moved(self._C, np.where(met, e, v * dt))
            self._v = np.where(met, 0.0, v)
            if met.all():
                self._C = self._target
            waits = bool(((share < 0.1) & e.any(axis=1, keepdims=True)).any())
            self._report_lag(waits, off, now, "its reference, which waits")
        elif dt > 0.0 and self.joints.at_limits(q):
            off = self._error(self._kinematics(q)[0][0], self._C)
            self._report_lag(bool((length_of(off)[:, 0] > HELD_OFF).any()), off, now, "its target")
        return PoseReference(self._C, self._v.ravel(), posture.q, posture.qd)

    def _halted(self, now: float) -> JointReference:
        """Return the measured posture with the opposite velocity: nothing but brakes it."""
        still = np.zeros_like(self._q)
        self.joints.begin(self._q, still, now)
        if abs(self._qd).max() < AT_REST:
            self._halts_until = now
        return JointReference(self._q, -self._qd, still)

    def _share(self, off: FloatArray, v: FloatArray) -> FloatArray:
        """Return the shares (2, 1) of their speeds with which parts of the reference go on.

        ``off`` (2, 3) is from the measured pose to it. A part that returns is not slowed.
        """
        axes = self._C[:3, :3] if self._in_target else np.eye(3)
        ratio = (abs(off @ axes) / self._lead.reshape(2, 3)).max(axis=1, keepdims=True)
        leaves = (off * v).sum(axis=1, keepdims=True) > 0.0
        return np.where(leaves, slowed_by(ratio, np.ones((2, 1))), 1.0)

    def _report_lag(self, lags: bool, off: FloatArray, now: float, what: str) -> None:
        if not self._lag.due(lags, now):
            return
        angle, distance = length_of(off)[:, 0]
        at = self.joints.at_limits(self._q)
        why = f"; {', '.join(at)} at a position limit" if at else ""
        self.joints.remark = (
            f"{str(self._link)!r} is {distance:.3g} m and {angle:.3g} rad away from {what}{why}"
        )


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
