# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Feed-forward over ROS: desired points, trajectories and controller states, and their torques."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.dynamics.desired import DesiredTorques
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.dynamics.settings import DynamicsSettings
from mbs_dynamics.ros.joint_input import Rejection
from mbs_dynamics.ros.messages import EffortMessage

TORQUES, TRAJECTORY_TORQUES = "~/desired_torques", "~/desired_trajectory_torques"


def controller_state_type() -> Any:
    """Return control_msgs' JointTrajectoryControllerState; ArgumentError if it is missing."""
    try:
        return importlib.import_module("control_msgs.msg").JointTrajectoryControllerState
    except ImportError:
        raise ArgumentError(
            "controller_state needs the package control_msgs, which is not installed: "
            "apt install ros-$ROS_DISTRO-control-msgs"
        ) from None


def check_feed_forward(settings: DynamicsSettings) -> None:
    """Raise ArgumentError for settings that need a package that is not installed."""
    if settings.publish_desired_torques and settings.controller_state:
        controller_state_type()


class FeedForward:
    """The topics of desired motions, as long as somebody wants them answered.

    ``in_force`` returns the robot as it is now; ``measured`` the latest positions (n,), None if
    they are stale; ``warn`` logs a warning of a kind.
    """

    def __init__(
        self,
        node: Any,
        in_force: Callable[[], Robot | None],
        measured: Callable[[], FloatArray | None],
        warn: Callable[[str, str], None],
    ) -> None:
        self._node, self._in_force, self._measured, self._warn = node, in_force, measured, warn
        self.torques: DesiredTorques | None = None
        """What answers; None without a robot, or if nobody wants it."""
        self._subscriptions: list[Any] = []
        self._publishers: dict[str, Any] = {}
        self._messages: dict[tuple[str, ...], EffortMessage] = {}
        self._asked = ("", False)

    def adopt(self, robot: Robot | None) -> None:
        """Answer for another robot, or for none."""
        self._messages.clear()
        wanted = robot is not None and robot.settings.publish_desired_torques
        self.torques = DesiredTorques(robot) if wanted and robot is not None else None

    def listen(self, settings: DynamicsSettings, active: bool) -> None:
        """Have the topics that the settings ask for, in an active node."""
        asked = settings.controller_state, active and settings.publish_desired_torques
        if asked == self._asked:
            return
        self.close()
        self._asked = asked
        if not asked[1]:
            return
        make = self._node.create_publisher
        self._publishers = {
            TORQUES: make(JointState, TORQUES, 10),
            TRAJECTORY_TORQUES: make(JointTrajectory, TRAJECTORY_TORQUES, 10),
        }
        subscribe = self._node.create_subscription
        self._subscriptions = [
            subscribe(JointTrajectoryPoint, "~/desired", self._on_point, 10),
            subscribe(JointTrajectory, "~/desired_trajectory", self._on_trajectory, 10),
        ]
        if settings.controller_state:
            self._subscriptions.append(
                subscribe(
                    controller_state_type(),
                    settings.controller_state,
                    self._on_controller_state,
                    qos_profile_sensor_data,
                )
            )

    def close(self) -> None:
        """Have no topics."""
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        while self._publishers:
            self._node.destroy_publisher(self._publishers.popitem()[1])
        self._asked = ("", False)

    def _on_point(self, message: JointTrajectoryPoint) -> None:
        tau = self._answer("point", (), [message])
        if tau is not None and self.torques is not None:
            self._publish(self._node.stamp_now(), self.torques.names, tau[0])

    def _on_trajectory(self, message: JointTrajectory) -> None:
        tau = self._answer("trajectory", message.joint_names, message.points)
        if tau is None:
            return
        for point, efforts in zip(message.points, tau, strict=True):
            point.effort = array("d", efforts.tobytes())
        self._publishers[TRAJECTORY_TORQUES].publish(message)

    def _on_controller_state(self, message: Any) -> None:
        names = tuple(message.joint_names)
        desired = message.reference
        desired.effort = []  # what the controller commands, not what is asked
        tau = self._answer("controller state", names, [desired])
        if tau is not None:
            self._publish(message.header.stamp, names, tau[0])

    def _answer(
        self, what: str, names: Sequence[str], points: Sequence[JointTrajectoryPoint]
    ) -> list[FloatArray] | None:
        """Return the torques of points, or None, and a log line, if one is rejected."""
        robot = self._in_force()
        if self.torques is None or robot is None:
            self._warn("desired", f"desired {what} rejected: there is no model yet")
            return None
        self.torques.robot = robot  # under the gravity and loads of now
        asked = [(p.positions, p.velocities, p.accelerations, p.effort) for p in points]
        answers = self.torques.answers(names, asked, self._measured())
        if isinstance(answers, Rejection):
            self._warn(f"desired {answers.kind}", f"desired {what} rejected: {answers.reason}")
            return None
        return answers

    def _publish(self, stamp: Time, names: tuple[str, ...], tau: FloatArray) -> None:
        if names not in self._messages:
            self._messages[names] = EffortMessage(names)
        self._publishers[TORQUES].publish(self._messages[names].fill(stamp, tau))
