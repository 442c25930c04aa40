# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What is filled and published is what somebody hears."""

from __future__ import annotations

import time
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from readings import reading
from sensor_msgs.msg import JointState

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.outputs import Outputs
from mbs_dynamics.ros.dynamics.robot import Results, Robot
from mbs_dynamics.ros.dynamics_node import DynamicsNode

pytestmark = pytest.mark.usefixtures("ros")

PATIENCE = 120.0


def waits(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_topics_without_subscribers_are_not_filled():
    node = DynamicsNode()
    model = mbs.Model.from_urdf(robot_path("arm7"))
    robot = Robot(model, DynamicsSettings(publish_energy=True, publish_gravity_torques=True))
    outputs = Outputs(node)
    outputs.arrange(robot)
    results = robot.evaluate(reading(np.full(7, 0.3), np.zeros(7)))

    def filled():
        return [message for _, message in outputs.filled(Time(sec=1), results, Contact())]

    assert filled() == []
    heard = node.create_subscription(JointState, "~/gravity_torques", lambda _: None, 10)
    waits(filled)
    (message,) = filled()
    np.testing.assert_array_equal(message.effort, results.gravity_torques)
    node.destroy_subscription(heard)
    waits(lambda: not filled())
    node.destroy_node()


class PublishersOnly:
    """What stands in for a node: its publishers, each of which has a subscriber."""

    def __init__(self):
        self.topics = {}

    def advertise(self, declared, topic):
        made = SimpleNamespace(topic=topic, get_subscription_count=lambda: 1)
        self.topics[topic] = declared
        return made

    def destroy_publisher(self, publisher):
        del self.topics[publisher.topic]


NOTHING = {
    item.name: False
    for item in fields(DynamicsSettings)
    if item.name.startswith("publish_") and item.default
}
TOPICS = {
    "publish_gravity_torques": ["~/gravity_torques", "~/gravity_torques_throttle"],
    "publish_bias_torques": ["~/bias_torques"],
    "publish_twists": ["~/twist/link7", "~/twist/tool"],
    "publish_jacobians": ["~/jacobian/link7", "~/jacobian/tool"],
    "publish_mass_matrix": ["~/mass_matrix"],
    "publish_energy": ["~/energy"],
    "publish_external_torques": ["~/external_torques", "~/external_torques_throttle"],
    "publish_tool_wrench": ["~/tool_wrench", "~/tool_wrench_throttle"],
    "publish_velocities": ["~/velocity/link7", "~/velocity/tool"],
    "publish_center_of_mass": ["~/center_of_mass"],
    "publish_markers": ["~/markers"],
}


def test_publishers_are_those_that_the_settings_ask_for():
    assert set(TOPICS) == {
        x.name for x in fields(DynamicsSettings) if x.name.startswith("publish_")
    } - {"publish_desired_torques"}  # of the feed-forward
    model = mbs.Model.from_urdf(robot_path("arm7"))
    node = PublishersOnly()
    outputs = Outputs(node)
    for wanted, topics in TOPICS.items():
        asked = {**NOTHING, wanted: True, "bodies": ("link7", "tool")}
        outputs.arrange(Robot(model, DynamicsSettings(**asked)))
        assert sorted(node.topics) == topics
    outputs.arrange(Robot(model, DynamicsSettings(**NOTHING)))
    assert node.topics == {}


def test_wrenches_of_joints_are_those_on_the_links_that_they_move():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    robot = Robot(model, DynamicsSettings(**NOTHING, joint_wrenches=("joint6", "joint2")))
    outputs = Outputs(PublishersOnly())
    outputs.arrange(robot)
    results = robot.evaluate(reading(np.full(7, 0.3), np.full(7, 0.2)))
    messages = outputs.filled(Time(sec=1), results, Contact())
    assert [publisher.topic for publisher, _ in messages] == [
        "~/joint_wrench/joint6",
        "~/joint_wrench/joint2",
    ]
    W = mbs.joint_wrenches(model, np.full(7, 0.3), np.full(7, 0.2), np.zeros(7))
    for (_, message), link in zip(messages, ("link6", "link2"), strict=True):
        assert message.header.frame_id == link
        force = message.wrench.force
        expected = W[model.body_names.index(link), 3:]
        np.testing.assert_allclose([force.x, force.y, force.z], expected, atol=1e-9)


def test_external_torques_are_published_for_the_joints_that_have_them():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    outputs = Outputs(PublishersOnly())
    asked = {**NOTHING, "publish_external_torques": True, "publish_tool_wrench": True}
    outputs.arrange(Robot(model, DynamicsSettings(**asked)))
    contact = SimpleNamespace(joints=(), torques=None, wrench=None)
    assert outputs.filled(Time(sec=1), Results(None, None, None, ()), contact) == []
    contact.joints, contact.torques = ("joint2", "joint5"), np.array([1.5, -2.5])
    contact.wrench = SimpleNamespace(W=np.arange(6.0))
    (_, torques), (_, wrench) = outputs.filled(Time(sec=1), Results(None, None, None, ()), contact)
    assert list(torques.name) == ["joint2", "joint5"]
    np.testing.assert_array_equal(torques.effort, [1.5, -2.5])
    assert wrench.header.frame_id == Robot(model, DynamicsSettings(**asked)).tool_body
    assert (wrench.wrench.torque.y, wrench.wrench.force.z) == (1.0, 5.0)
    none = Results(None, None, None, ())
    shown = outputs.filled(Time(sec=1), none, contact, display=True)
    assert [publisher.topic for publisher, _ in shown] == [
        "~/external_torques",
        "~/external_torques_throttle",
        "~/tool_wrench",
        "~/tool_wrench_throttle",
    ]
    assert shown[0][1] is shown[1][1]


def test_messages_hold_what_was_computed():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    robot = Robot(model, DynamicsSettings(**dict.fromkeys(TOPICS, True), bodies=("link7", "tool")))
    outputs = Outputs(PublishersOnly())
    outputs.arrange(robot)
    q, qd = np.full(7, 0.3), np.full(7, 0.2)
    results = robot.evaluate(reading(q, qd))
    ready = outputs.filled(Time(sec=1), results, Contact(), display=True)
    messages = {publisher.topic: one for publisher, one in ready}
    assert sorted(messages) == sorted(
        topic
        for name, topics in TOPICS.items()
        if name not in ("publish_external_torques", "publish_tool_wrench", "publish_markers")
        for topic in topics
    )
    close = np.testing.assert_allclose
    close(messages["~/gravity_torques"].effort, mbs.gravity_torques(model, q), atol=1e-12)
    bias = mbs.inverse_dynamics(model, q, qd, np.zeros(7))
    close(messages["~/bias_torques"].effort, bias, atol=1e-12)
    close(messages["~/mass_matrix"].data, mbs.mass_matrix(model, q).ravel(), atol=1e-12)
    energies = [mbs.kinetic_energy(model, q, qd), mbs.potential_energy(model, q)]
    close(messages["~/energy"].data[:2], energies, atol=1e-12)
    for body in ("link7", "tool"):
        J = mbs.jacobian(model, q, body, representation="hybrid")
        V = J @ qd
        twist = messages[f"~/twist/{body}"].twist
        close([twist.angular.x, twist.angular.y, twist.angular.z], V[:3], atol=1e-12)
        close([twist.linear.x, twist.linear.y, twist.linear.z], V[3:], atol=1e-12)
        found = np.reshape(messages[f"~/jacobian/{body}"].data, (6, 7))
        close(found, np.vstack([J[3:], J[:3]]), atol=1e-12)  # linear part first


def test_publishers_are_made_anew_after_they_were_cleared():
    robot, node = (
        Robot(mbs.Model.from_urdf(robot_path("arm7")), DynamicsSettings()),
        PublishersOnly(),
    )
    outputs = Outputs(node)
    outputs.arrange(robot)
    before = set(node.topics)
    outputs.clear()
    assert node.topics == {}
    outputs.arrange(robot)
    assert set(node.topics) == before != set()
