# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Torques and servo goals of desired points and trajectories."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_states import LARGEST, wild_numbers
from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed
from mbs_dynamics.ros.dynamics.interface import DESIRED, DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.messages import joint_message, seconds_of
from mbs_dynamics.settings import check_once

if TYPE_CHECKING:
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

TORQUES, TRAJECTORY_TORQUES = "~/desired_torques", "~/desired_trajectory_torques"
GOALS, TRAJECTORY_GOALS = "~/servo_goals", "~/servo_trajectory"

ROUNDING = 1e-9
"""Relative tolerance on the distance between goal and desired position."""

RAMP = 1.0
"""Time in s in which servo goals begin to lead the first desired points, so that no arm jerks."""


class Desired(NamedTuple):
    """A desired point of some joints, and the torques that it takes."""

    places: list[int]
    """Coordinates of the joints that the point names."""
    state: FloatArray
    """Positions, velocities and accelerations (3, n) of the whole robot."""
    torques: FloatArray
    """(n,) in N m or N, by inverse dynamics."""


def desired_state(
    point: JointTrajectoryPoint,
    names: Sequence[str],
    joint_names: Sequence[str],
    measured: FloatArray | None,
) -> FloatArray:
    """Return positions, velocities and accelerations (3, n) of a robot at a point of some joints.

    A point without accelerations moves at constant velocities; one without velocities stands still.
    Other joints stand still at ``measured`` (n,), None if no fresh measurement exists. Raises
    ArgumentError for a point that cannot be used.
    """
    if len(point.effort):
        raise ArgumentError("the point has efforts; must be a point without, they are computed")
    if len(point.accelerations) and not len(point.velocities):
        raise ArgumentError("the point has accelerations but no velocities")
    others = [name for name in joint_names if name not in names]
    if others and measured is None:
        raise ArgumentError(f"no fresh joint_states of the other joints: {listed(others)}")
    state = np.zeros((3, len(joint_names)))
    if measured is not None:
        state[0] = measured
    places = [joint_names.index(name) for name in names]
    given = {"position": point.positions, "velocity": point.velocities}
    given["acceleration"] = point.accelerations
    for row, (what, values) in zip(state, given.items(), strict=True):
        if not len(values) and what != "position":
            continue
        if len(values) != len(names):
            raise ArgumentError(f"{len(names)} desired joints but {len(values)} {what} value(s)")
        if not math.hypot(*values) < LARGEST:  # nor is it for NaN
            raise ArgumentError(wild_numbers(f"desired {what}", names, values).reason)
        row[places] = values
    return state


def desired_points(
    robot: Robot,
    names: Sequence[str],
    points: Sequence[JointTrajectoryPoint],
    measured: FloatArray | None,
) -> list[Desired]:
    """Return the points of the joints ``names``; see :func:`desired_state`.

    Raises MbsError if one of them cannot be used.
    """
    joints = robot.model.joint_names
    if not points:
        raise ArgumentError("the trajectory has no points")
    UnknownJointError.check(names, joints)
    check_once("joint_names", "joint", names)
    places, desired = [joints.index(name) for name in names], []
    for k, point in enumerate(points):
        try:
            state = desired_state(point, names, joints, measured)
        except ArgumentError as error:
            raise ArgumentError(f"point {k}: {error}") from error
        desired.append(Desired(places, state, robot.torques_for(*state)))
    return desired


class FeedForward:
    """The topics of desired motions, while the settings ask for them.

    Servos move to the goals: they follow from desired points alone, so that nothing is sent unless
    a point is received, and a point that is refused moves nothing.

    ``attempt`` calls a function, and logs and reports that a message is refused if it raises
    MbsError; ``in_force`` returns the present robot; ``measured`` the latest positions (n,), None
    if they are stale.
    """

    def __init__(
        self,
        node: Any,
        attempt: Callable[[str, Callable[[], object]], object],
        in_force: Callable[[], Robot | None],
        measured: Callable[[], FloatArray | None],
    ) -> None:
        self._node, self._attempt = node, attempt
        self._in_force, self._measured = in_force, measured
        self._subscriptions: list[Any] = []
        self._publishers: dict[str, Any] = {}
        self._began: float | None = None
        """When servo goals began to lead desired points, in s."""

    def restart(self) -> None:
        """Begin with another robot."""
        self._began = None

    def listen(self, settings: DynamicsSettings, active: bool) -> None:
        """Create the topics that the settings ask for in an active node, or destroy them."""
        topics: list[str] = []
        if active and settings.asks(DESIRED):
            topics += [TORQUES, TRAJECTORY_TORQUES]
        if active and settings.servos_file:
            topics += [GOALS, TRAJECTORY_GOALS]
        if topics == [*self._publishers]:
            return
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        while self._publishers:
            self._node.destroy_publisher(self._publishers.popitem()[1])
        if topics:
            self._publishers = {topic: self._node.advertise(topic) for topic in topics}
            self._subscriptions = [
                self._node.subscribe("~/desired", self._on_point),
                self._node.subscribe("~/desired_trajectory", self._on_trajectory),
            ]

    def _on_point(self, message: JointTrajectoryPoint) -> None:
        self._attempt("desired", lambda: self._answer_point(message))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        self._attempt("desired", lambda: self._answer_trajectory(message))

    def _answer_point(self, message: JointTrajectoryPoint) -> None:
        robot, names, (desired,) = self._desired((), [message])
        if TORQUES in self._publishers:
            tau, stamp = desired.torques[desired.places], self._node.stamp_now()
            self._publishers[TORQUES].publish(joint_message(stamp, names, effort=tau))
        if GOALS in self._publishers:
            goals = self._goals(robot, desired)
            self._publishers[GOALS].publish(Float64MultiArray(data=goals.tolist()))

    def _answer_trajectory(self, message: JointTrajectory) -> None:
        robot, _, motion = self._desired(message.joint_names, message.points)
        pairs = list(zip(message.points, motion, strict=True))
        if TRAJECTORY_TORQUES in self._publishers:
            for point, desired in pairs:
                point.effort = array("d", desired.torques[desired.places].tobytes())
            self._publishers[TRAJECTORY_TORQUES].publish(message)
        if TRAJECTORY_GOALS in self._publishers:
            for point, desired in pairs:
                goals = self._goals(robot, desired, seconds_of(point.time_from_start))
                point.positions = array("d", goals.tobytes())
                point.effort = array("d")
            self._publishers[TRAJECTORY_GOALS].publish(message)

    def _desired(
        self, names: Sequence[str], points: Sequence[JointTrajectoryPoint]
    ) -> tuple[Robot, Sequence[str], list[Desired]]:
        """Return the robot, the joints of points, and these points. Raises MbsError."""
        robot = self._in_force()
        if robot is None:
            raise ArgumentError("there is no model yet")
        names = names or robot.settings.desired_joints or robot.model.joint_names
        return robot, names, desired_points(robot, names, points, self._measured())

    def _goals(self, robot: Robot, desired: Desired, after: float = 0.0) -> FloatArray:
        """Return the servo goals (k,) in rad or m of a point that is due in ``after`` s.

        They begin at the desired points, and lead them by the whole sag after RAMP. Limited goals
        are logged.
        """
        arm, names, now = robot.servos, robot.model.joint_names, self._node.steady_time()
        assert arm is not None
        self._began = now if self._began is None else self._began
        share = min(1.0, max(0.0, now + after - self._began) / RAMP)
        q, qd, _ = desired.state
        goals = arm.goals(q, qd, torques=desired.torques, share=share)
        most = share * arm.most * (1.0 - ROUNDING)
        limited = [names[k] for k in desired.places if 0.0 < most[k] <= abs(goals[k] - q[k])]
        if limited:
            self._node.warn(
                "servo goals",
                f"the servos of {listed(limited)} sag by more than their goals may lead: their "
                "torques exceed the effort limit, or their stiffness is too low",
            )
        return goals[desired.places]
