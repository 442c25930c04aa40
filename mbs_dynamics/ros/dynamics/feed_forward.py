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
from mbs_dynamics.control.joint_states import LARGEST, Rejection, wild_numbers
from mbs_dynamics.errors import listed, quoted
from mbs_dynamics.ros.dynamics.interface import DESIRED, DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.messages import joint_message, seconds_of
from mbs_dynamics.ros.performance import InputStatistics

if TYPE_CHECKING:
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

TORQUES, TRAJECTORY_TORQUES = "~/desired_torques", "~/desired_trajectory_torques"
GOALS, TRAJECTORY_GOALS = "~/servo_goals", "~/servo_trajectory"

ROUNDING = 1e-9
"""Relative tolerance on the distance between goal and desired position."""

RAMP = 1.0
"""Time in s in which servo goals begin to lead the first desired points, so that no arm jerks."""

Point = tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float]]
"""Positions, velocities, accelerations and efforts of a point."""


def desired_state(
    point: Point, names: Sequence[str], joint_names: Sequence[str], measured: FloatArray | None
) -> FloatArray | Rejection:
    """Return positions, velocities and accelerations (3, n) of a robot at a point of some joints.

    A point without accelerations moves at constant velocities; one without velocities stands still.
    Other joints stand still at ``measured`` (n,), None if no fresh measurement exists. A Rejection
    says why the point cannot be used.
    """
    *given, efforts = point
    if len(efforts):
        message = "the point has efforts; must be a point without, since they are computed"
        return Rejection("effort", message)
    if len(given[2]) and not len(given[1]):
        return Rejection("velocity_length", "the point has accelerations but no velocities")
    others = [name for name in joint_names if name not in names]
    if others and measured is None:
        message = f"no fresh joint_states of the other joints: {listed(others)}"
        return Rejection("not_measured", message)
    state = np.zeros((3, len(joint_names)))
    if measured is not None:
        state[0] = measured
    places = [joint_names.index(name) for name in names]
    for what, values, row in zip(
        ("position", "velocity", "acceleration"), given, state, strict=True
    ):
        if len(values) != len(names) and (len(values) or what == "position"):
            message = f"{len(names)} desired joints but {len(values)} {what} value(s)"
            return Rejection(f"{what}_length", message)
        if len(values):
            row[places] = values
            if not math.hypot(*values) < LARGEST:  # nor is it for NaN
                return wild_numbers(f"desired {what}", names, values)
    return state


class Answer(NamedTuple):
    """A desired point of the joints that it names."""

    places: list[int]
    """Their coordinates."""
    state: FloatArray
    """Positions, velocities and accelerations (3, n) of the whole robot."""
    torques: FloatArray
    """(n,) in N m or N, by inverse dynamics."""


def answers_to(
    robot: Robot, names: Sequence[str], points: Sequence[Point], measured: FloatArray | None
) -> list[Answer] | Rejection:
    """Return an answer to each point of the joints ``names``; see :func:`desired_state`.

    One bad point rejects them all.
    """
    joints = robot.model.joint_names
    if not points:
        return Rejection("no_points", "the trajectory has no points")
    unknown = [name for name in names if name not in joints]
    if unknown:
        message = f"the robot has no joint {quoted(unknown[0])}; its joints are: {listed(joints)}"
        return Rejection("unknown_joint", message)
    if len(set(names)) < len(names):
        return Rejection("duplicate_joints", f"a joint is named twice: {listed(names)}")
    places, answers = [joints.index(name) for name in names], []
    for k, point in enumerate(points):
        state = desired_state(point, names, joints, measured)
        if isinstance(state, Rejection):
            which = f"point {k}: " if len(points) > 1 else ""
            return state._replace(reason=which + state.reason)
        answers.append(Answer(places, state, robot.torques_for(*state)))
    return answers


def servo_goals(robot: Robot, answer: Answer, share: float) -> tuple[FloatArray, list[str]]:
    """Return the servo goals (k,) in rad or m of the joints of a point, and limited joints.

    The goals lead the point by a ``share`` of the sag. Limited joints need a larger distance
    between goal and desired position than their limit.
    """
    arm, names = robot.servos, robot.model.joint_names
    assert arm is not None
    q, qd, _ = answer.state
    goals = arm.goals(q, qd, torques=answer.torques, share=share)
    most = share * arm.most * (1.0 - ROUNDING)
    limited = [names[k] for k in answer.places if 0.0 < most[k] <= abs(goals[k] - q[k])]
    return goals[answer.places], limited


class FeedForward:
    """The topics of desired motions, while the settings ask for them.

    Servos move to the goals: they follow from desired points alone, so that nothing is sent unless
    a point is received, and a point that is rejected moves nothing.

    ``in_force`` returns the present robot; ``measured`` the latest positions (n,), None if they
    are stale.
    """

    def __init__(
        self,
        node: Any,
        in_force: Callable[[], Robot | None],
        measured: Callable[[], FloatArray | None],
    ) -> None:
        self._node, self._in_force, self._measured = node, in_force, measured
        self._subscriptions: list[Any] = []
        self._publishers: dict[str, Any] = {}
        self.restart()

    def restart(self) -> None:
        """Begin with another robot."""
        self.statistics = InputStatistics(self._node.steady_time())
        """Statistics of desired points and trajectories."""
        self._began: float | None = None
        """When servo goals began to lead desired points, in s."""

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
        answered = self._answered("point", (), [message])
        if answered is None:
            return
        robot, names, (answer,) = answered
        if TORQUES in self._publishers:
            tau, stamp = answer.torques[answer.places], self._node.stamp_now()
            self._publishers[TORQUES].publish(joint_message(stamp, names, effort=tau))
        if GOALS in self._publishers:
            goals = self._goals(robot, answer)
            self._publishers[GOALS].publish(Float64MultiArray(data=goals.tolist()))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        answered = self._answered("trajectory", message.joint_names, message.points)
        if answered is None:
            return
        robot, _, answers = answered
        pairs = list(zip(message.points, answers, strict=True))
        if TRAJECTORY_TORQUES in self._publishers:
            for point, answer in pairs:
                point.effort = array("d", answer.torques[answer.places].tobytes())
            self._publishers[TRAJECTORY_TORQUES].publish(message)
        if TRAJECTORY_GOALS in self._publishers:
            for point, answer in pairs:
                goals = self._goals(robot, answer, seconds_of(point.time_from_start))
                point.positions = array("d", goals.tobytes())
                point.effort = array("d")
            self._publishers[TRAJECTORY_GOALS].publish(message)

    def _answered(
        self, what: str, names: Sequence[str], points: Sequence[JointTrajectoryPoint]
    ) -> tuple[Robot, Sequence[str], list[Answer]] | None:
        """Return the robot, the joints of points, and the answers to these.

        None, and a log line, if a point is rejected.
        """
        robot, begin = self._in_force(), self._node.steady_time()
        if robot is None:
            self._node.warn("desired", f"desired {what} rejected: there is no model yet")
            return None
        names = names or robot.settings.desired_joints or robot.model.joint_names
        asked = [(p.positions, p.velocities, p.accelerations, p.effort) for p in points]
        answers = answers_to(robot, names, asked, self._measured())
        if isinstance(answers, Rejection):
            self.statistics.rejected(answers)
            self._node.warn(f"desired {answers.kind}", f"desired {what} rejected: {answers.reason}")
            return None
        self.statistics.answered(begin, self._node.steady_time())
        return robot, names, answers

    def _goals(self, robot: Robot, answer: Answer, after: float = 0.0) -> FloatArray:
        """Return the servo goals (k,) of a point that is due in ``after`` s; log limited goals.

        They begin at the desired points, and lead them by the whole sag after RAMP.
        """
        now = self._node.steady_time()
        self._began = now if self._began is None else self._began
        share = min(1.0, max(0.0, now + after - self._began) / RAMP)
        goals, limited = servo_goals(robot, answer, share)
        if limited:
            self._node.warn(
                "servo goals",
                f"the servos of {listed(limited)} sag by more than their goals may lead: their "
                "torques exceed the effort limit, or their stiffness is too low",
            )
        return goals
