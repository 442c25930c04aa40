# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The topics on which the dynamics node publishes, and what goes out on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistStamped, VelocityStamped, WrenchStamped
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import MarkerArray

from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.markers import Markers
from mbs_dynamics.ros.dynamics.robot import Results, Robot
from mbs_dynamics.ros.dynamics.settings import DynamicsSettings
from mbs_dynamics.ros.joint_input import Reading
from mbs_dynamics.ros.messages import (
    EffortMessage,
    EnergyMessage,
    JacobianMessage,
    MatrixMessage,
    PointMessage,
    TwistMessage,
    VelocityMessage,
    WrenchMessage,
    topic_names,
)

MARKERS = "~/markers"

DEPTH = 10
"""Depth of the publishers' queues; they are reliable, so that any subscriber matches."""


class Outputs:
    """The publishers of one node. Those that a change of robot does not touch stay as they are."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}

    def arrange(self, robot: Robot) -> None:
        """Make the publishers and messages that this robot and its settings ask for."""
        settings, model = robot.settings, robot.model
        links = topic_names(robot.bodies)
        joints = topic_names(settings.joint_wrenches, "joint")
        topics = _plain_topics(settings)
        for body in robot.bodies:
            if settings.publish_twists:
                topics[f"~/twist/{links[body]}"] = TwistStamped
            if settings.publish_velocities:
                topics[f"~/velocity/{links[body]}"] = VelocityStamped
            if settings.publish_jacobians:
                topics[f"~/jacobian/{links[body]}"] = Float64MultiArray
        for joint in settings.joint_wrenches:
            topics[f"~/joint_wrench/{joints[joint]}"] = WrenchStamped
        self._advertise(topics)
        self._mass_matrix = MatrixMessage(model.joint_names)
        self._energies = {size: EnergyMessage(power=size == 3) for size in (2, 3)}
        prefix, rep = settings.frame_prefix, settings.body_representation
        self._root = root = prefix + robot.root
        self._gravity = EffortMessage(model.joint_names, root)
        self._bias = EffortMessage(model.joint_names, root)
        self._external = EffortMessage(model.joint_names, root)
        self._center_of_mass = PointMessage(root)
        self._tool_wrench = WrenchMessage(prefix + robot.tool_body)
        self._twists = [
            (f"~/twist/{links[body]}", TwistMessage(prefix + robot.twist_frame(body)))
            for body in robot.bodies
        ]
        self._velocities = [
            (
                f"~/velocity/{links[body]}",
                VelocityMessage(prefix + body, root, prefix + robot.velocity_frame(body)),
            )
            for body in robot.bodies
        ]
        self._jacobians = [
            (f"~/jacobian/{links[body]}", JacobianMessage(model.joint_names, body, rep))
            for body in robot.bodies
        ]
        self._markers = Markers(robot) if settings.publish_markers else None
        self._joint_wrenches = [
            (f"~/joint_wrench/{joints[joint]}", WrenchMessage(prefix + model.bodies[i].name))
            for joint, i in zip(settings.joint_wrenches, robot.wrench_bodies, strict=True)
        ]

    def _advertise(self, topics: dict[str, Any]) -> None:
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

    def filled(self, stamp: Time, results: Results) -> list[tuple[Any, Any]]:
        """Return publishers and the messages to publish with them, for topics that are heard."""
        ready = _Ready(self._publishers)
        if results.gravity_torques is not None:
            ready.add("~/gravity_torques", self._gravity.fill, stamp, results.gravity_torques)
        if results.bias_torques is not None:
            ready.add("~/bias_torques", self._bias.fill, stamp, results.bias_torques)
        if results.twists is not None:
            for (topic, twist), V in zip(self._twists, results.twists, strict=True):
                ready.add(topic, twist.fill, stamp, V)
        if results.velocities is not None:
            for (topic, velocity), V in zip(self._velocities, results.velocities, strict=True):
                ready.add(topic, velocity.fill, stamp, V)
        for (topic, jacobian), J in zip(self._jacobians, results.jacobians, strict=False):
            ready.add(topic, jacobian.fill, stamp, J)
        if results.center_of_mass is not None:
            ready.add("~/center_of_mass", self._center_of_mass.fill, stamp, results.center_of_mass)
        if results.mass_matrix is not None:
            ready.add("~/mass_matrix", self._mass_matrix.fill, stamp, results.mass_matrix)
        if results.energy is not None:
            ready.add("~/energy", self._energies[results.energy.size].fill, stamp, results.energy)
        if results.joint_wrenches is not None:
            for (topic, wrench), W in zip(
                self._joint_wrenches, results.joint_wrenches, strict=True
            ):
                ready.add(topic, wrench.fill, stamp, W)
        return ready.messages

    def filled_contact(self, stamp: Time, contact: Contact) -> list[tuple[Any, Any]]:
        """Return the same for what the momentum observer sees."""
        ready = _Ready(self._publishers)
        if contact.torques is not None:
            if tuple(self._external.message.name) != contact.joints:
                self._external = EffortMessage(contact.joints, self._root)
            ready.add("~/external_torques", self._external.fill, stamp, contact.torques)
        wrench = contact.wrench if ready.hears("~/tool_wrench") else None
        if wrench is not None:
            ready.add("~/tool_wrench", self._tool_wrench.fill, stamp, wrench.W)
        return ready.messages

    def draw(self, stamp: Time, reading: Reading, contact: Contact) -> None:
        """Publish markers, if somebody looks."""
        publisher = self._publishers.get(MARKERS)
        if publisher is None or self._markers is None or not publisher.get_subscription_count():
            return
        publisher.publish(self._markers.message(stamp, reading.q, reading.qd, contact.wrench))

    def clear(self) -> None:
        """Destroy all publishers."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
        self._publishers.clear()


class _Ready:
    """Messages that are filled, each only if its topic is published and somebody subscribes."""

    def __init__(self, publishers: dict[str, Publisher]) -> None:
        self._publishers = publishers
        self.messages: list[tuple[Any, Any]] = []

    def hears(self, topic: str) -> bool:
        """Return whether somebody hears what is published on a topic."""
        publisher = self._publishers.get(topic)
        return publisher is not None and publisher.get_subscription_count() > 0

    def add(self, topic: str, fill: Callable[..., Any], *values: Any) -> None:
        """Fill a message for a topic, if somebody hears it."""
        if self.hears(topic):
            self.messages.append((self._publishers[topic], fill(*values)))


def _plain_topics(settings: DynamicsSettings) -> dict[str, Any]:
    """Return the topics that are one of a kind, with their types."""
    wanted = {
        "~/gravity_torques": (settings.publish_gravity_torques, JointState),
        "~/bias_torques": (settings.publish_bias_torques, JointState),
        "~/mass_matrix": (settings.publish_mass_matrix, Float64MultiArray),
        "~/center_of_mass": (settings.publish_center_of_mass, PointStamped),
        MARKERS: (settings.publish_markers, MarkerArray),
        "~/energy": (settings.publish_energy, Float64MultiArray),
        "~/external_torques": (settings.publish_external_torques, JointState),
        "~/tool_wrench": (settings.publish_tool_wrench, WrenchStamped),
    }
    return {topic: kind for topic, (on, kind) in wanted.items() if on}
