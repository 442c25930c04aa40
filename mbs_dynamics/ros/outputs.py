# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The topics on which the dynamics node publishes, and what goes out on them."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.ros.messages import EffortMessage, JacobianMessage, TwistMessage, topic_names
from mbs_dynamics.ros.robot import Results, Robot

DEPTH = 10
"""Depth of the publishers' queues; they are reliable, so that any subscriber matches."""


class Outputs:
    """The publishers of one node. Those that a change of robot does not touch stay as they are."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}

    def arrange(self, robot: Robot) -> None:
        """Make the publishers and messages that this robot and its settings ask for."""
        settings, joints = robot.settings, robot.model.joint_names
        names = topic_names(robot.bodies)
        topics: dict[str, Any] = {}
        if settings.publish_gravity_torques:
            topics["~/gravity_torques"] = JointState
        if settings.publish_bias_torques:
            topics["~/bias_torques"] = JointState
        for body in robot.bodies:
            if settings.publish_twists:
                topics[f"~/twist/{names[body]}"] = TwistStamped
            if settings.publish_jacobians:
                topics[f"~/jacobian/{names[body]}"] = Float64MultiArray
        for topic in set(self._publishers) - set(topics):
            self._node.destroy_publisher(self._publishers.pop(topic))
        for topic, kind in topics.items():
            if topic not in self._publishers:
                self._publishers[topic] = self._node.create_publisher(
                    kind,
                    topic,
                    DEPTH,
                    # each event handler costs the executor time on every message
                    event_callbacks=PublisherEventCallbacks(use_default_callbacks=False),
                )
        published = self._publishers.get
        self._gravity = (published("~/gravity_torques"), EffortMessage(joints))
        self._bias = (published("~/bias_torques"), EffortMessage(joints))
        self._twists = [
            (published(f"~/twist/{names[body]}"), TwistMessage(robot.twist_frame(body)))
            for body in robot.bodies
        ]
        self._jacobians = [
            (published(f"~/jacobian/{names[body]}"), JacobianMessage(joints))
            for body in robot.bodies
        ]

    def filled(self, stamp: Time, results: Results) -> list[tuple[Any, Any]]:
        """Return publishers and the messages to publish with them."""
        ready: list[tuple[Any, Any]] = []
        if results.gravity_torques is not None:
            publisher, effort = self._gravity
            ready.append((publisher, effort.fill(stamp, results.gravity_torques)))
        if results.bias_torques is not None:
            publisher, effort = self._bias
            ready.append((publisher, effort.fill(stamp, results.bias_torques)))
        if results.twists is not None:
            for (publisher, twist), V in zip(self._twists, results.twists, strict=True):
                ready.append((publisher, twist.fill(stamp, V)))
        for (publisher, jacobian), J in zip(self._jacobians, results.jacobians, strict=False):
            ready.append((publisher, jacobian.fill(J)))
        return ready

    def clear(self) -> None:
        """Destroy all publishers."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
        self._publishers.clear()
