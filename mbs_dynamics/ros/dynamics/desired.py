# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From a desired point of a trajectory to a motion of the whole robot. Knows no ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.joint_input import LARGEST, Rejection


class Motion(NamedTuple):
    """Positions, velocities and accelerations, each (n,), in the order of the model."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


class DesiredInput:
    """Reads points whose joints are ``desired_joints`` (empty: all) of ``joint_names``."""

    def __init__(self, joint_names: Sequence[str], desired_joints: Sequence[str] = ()) -> None:
        self.names = tuple(desired_joints) or tuple(joint_names)
        self.places = [tuple(joint_names).index(name) for name in self.names]
        self._others = [name for name in joint_names if name not in self.names]
        self._n = len(joint_names)

    def read(
        self,
        positions: Sequence[float],
        velocities: Sequence[float],
        accelerations: Sequence[float],
        effort: Sequence[float],
        measured: FloatArray | None,
    ) -> Motion | Rejection:
        """Return the motion that a point asks for, or the reason to reject the point.

        A point that leaves out accelerations moves at constant velocities; one that leaves out
        velocities as well stands still. Joints that are not desired stand still at ``measured``
        (n,), None if no fresh measurement exists.
        """
        if len(effort):
            return Rejection(
                "effort",
                "the point has efforts: valid are points without, as they are what is computed",
            )
        if len(accelerations) and not len(velocities):
            return Rejection("velocity_length", "the point has accelerations but no velocities")
        if self._others and measured is None:
            return Rejection(
                "not_measured",
                f"no fresh joint_states say where the other joints are: {', '.join(self._others)}",
            )
        motion = Motion(*np.zeros((3, self._n)))
        if measured is not None:
            motion.q[:] = measured
        given = {"position": positions, "velocity": velocities, "acceleration": accelerations}
        for (what, values), x in zip(given.items(), motion, strict=True):
            if len(values) != len(self.names) and (len(values) or what == "position"):
                return Rejection(
                    f"{what}_length",
                    f"{len(self.names)} desired joints but {len(values)} {what} value(s)",
                )
            if len(values):
                x[self.places] = values
                bad = self._wild(what, values)
                if bad is not None:
                    return bad
        return motion

    def _wild(self, what: str, values: Sequence[float]) -> Rejection | None:
        for name, value in zip(self.names, values, strict=True):
            if not np.isfinite(value):
                return Rejection("not_finite", f"desired {what} is not finite: {name} = {value}")
            if abs(value) > LARGEST:
                return Rejection("too_large", f"desired {what} is too large: {name} = {value:g}")
        return None


Point = tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float]]
"""Positions, velocities, accelerations and efforts of a point."""


class DesiredTorques:
    """Answers desired points for one robot, and keeps count."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._joints = robot.model.joint_names
        own = DesiredInput(self._joints, robot.settings.desired_joints)
        self.names = own.names
        """The joints of points that come without names."""
        self._inputs: dict[tuple[str, ...], DesiredInput] = {(): own}
        self.answered = 0
        self.rejected = 0
        self.last_rejection = ""
        self._reported = 0

    def answers(
        self, names: Sequence[str], points: Sequence[Point], measured: FloatArray | None
    ) -> list[FloatArray] | Rejection:
        """Return for each point the torques of its joints in N m or N; see :class:`DesiredInput`.

        ``names`` are the joints of the points, ``desired_joints`` if there are none. One bad point
        is a reason to reject them all.
        """
        found = self._answers(names, points, measured)
        if isinstance(found, Rejection):
            self.rejected += 1
            self.last_rejection = found.reason
        else:
            self.answered += len(points)
        return found

    def _answers(
        self, names: Sequence[str], points: Sequence[Point], measured: FloatArray | None
    ) -> list[FloatArray] | Rejection:
        if not points:
            return Rejection("no_points", "the trajectory has no points")
        source = self._input(tuple(names))
        if isinstance(source, Rejection):
            return source
        motions = []
        for k, point in enumerate(points):
            motion = source.read(*point, measured)
            if isinstance(motion, Rejection):
                which = f"point {k}: " if len(points) > 1 else ""
                return motion._replace(reason=which + motion.reason)
            motions.append(motion)
        return [self.robot.torques_for(*motion)[source.places] for motion in motions]

    def _input(self, names: tuple[str, ...]) -> DesiredInput | Rejection:
        if names not in self._inputs:
            unknown = [name for name in names if name not in self._joints]
            if unknown:
                return Rejection(
                    "unknown_joint",
                    f"the robot has no joint {unknown[0]!r}; its joints are: "
                    + ", ".join(self._joints),
                )
            if len(set(names)) < len(names):
                return Rejection("duplicate_joints", f"a joint is named twice: {', '.join(names)}")
            self._inputs[names] = DesiredInput(self._joints, names)
        return self._inputs[names]

    def rejected_lately(self) -> int:
        """Return how many points were rejected since this was asked before."""
        lately, self._reported = self.rejected - self._reported, self.rejected
        return lately
