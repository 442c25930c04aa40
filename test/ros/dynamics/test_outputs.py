# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers and messages of dynamics_node follow from the declared outputs."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import PUBLISHED, DynamicsSettings
from mbs_dynamics.ros.dynamics.outputs import OUTPUTS
from mbs_dynamics.ros.dynamics.publishers import Outputs
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.messages import wrench_of
from mbs_dynamics.ros.node_base import message_type

pytestmark = pytest.mark.usefixtures("ros")

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
Q, QD = np.full(7, 0.3), np.full(7, 0.2)
EACH = {one.name: one for one in OUTPUTS if one.name != "base_wrench"}  # with a floating base


class PublishersOnly:
    """A stand-in for a node: its publishers, each of which has a subscriber."""

    def __init__(self):
        self.topics, self.sent = {}, {}

    def advertise(self, declared, topic):
        self.topics[topic] = declared
        return SimpleNamespace(
            topic=topic,
            get_subscription_count=lambda: 1,
            publish=lambda message: self.sent.update({topic: message}),
        )

    def destroy_publisher(self, publisher):
        del self.topics[publisher.topic]


def arranged(**asked):
    """Return a robot under these settings, its outputs and their node."""
    settings = DynamicsSettings(**{"bodies": ("tool", "link7"), "publish": ()} | asked)
    robot, node = Robot(MODEL, settings), PublishersOnly()
    outputs = Outputs(node)
    outputs.arrange(robot)
    return robot, outputs, node


@pytest.mark.parametrize("name", EACH)
def test_an_output_alone_has_its_topics_and_messages_of_its_type(name):
    one = EACH[name]
    joints = {"joint_wrenches": ("joint6", "flange_joint")}
    asked = joints if name == "joint_wrenches" else {"publish": (name,)}
    robot, outputs, node = arranged(**asked)
    owners = {"<body>": ("link7", "tool"), "<joint>": ("joint6", "flange_joint")}
    group, _, placeholder = one.topic.partition("/")
    topics = [f"~/{group}/{owner}" for owner in owners.get(placeholder, ())] or [f"~/{group}"]
    assert sorted(node.topics) == sorted(topics)
    torques = ("joint2", "joint5"), np.ones(2)
    contact = {"external_torques": torques, "tool_wrench": np.arange(6.0)}
    for qd, known in ((QD, True), (None, one.observed or not one.needs_velocity)):
        node.sent.clear()
        outputs.publish(Time(sec=1), {**robot.evaluate(Q, qd), **contact})
        assert node.sent.keys() == (set(topics) if known else set())
        assert {type(message) for message in node.sent.values()} <= {message_type(one.type)}
    outputs.arrange(Robot(MODEL, DynamicsSettings(publish=())))
    assert node.topics == {}


def test_messages_hold_the_results_in_their_frames_and_none_is_formed_without_subscriber():
    joints = {"joint6": "link6", "flange_joint": "flange"}
    robot, outputs, node = arranged(publish=PUBLISHED, joint_wrenches=tuple(joints))
    outputs.publish(Time(sec=1), robot.evaluate(Q, QD))
    messages = node.sent
    close = np.testing.assert_allclose
    close(messages["~/mass_matrix"].data, mbs.mass_matrix(MODEL, Q).ravel(), atol=1e-12)
    energies = [mbs.kinetic_energy(MODEL, Q, QD), mbs.potential_energy(MODEL, Q)]
    close(messages["~/energy"].data, energies, atol=1e-12)
    W = mbs.joint_wrenches(MODEL, Q, QD, np.zeros(7), joints=list(joints))
    for expected, (joint, link) in zip(W, joints.items(), strict=True):
        message = messages[f"~/joint_wrench/{joint}"]
        assert message.header.frame_id == link
        close(wrench_of(message), expected, atol=1e-9)
    node.sent.clear()  # nobody subscribes any more
    for publisher in outputs._publishers.values():
        publisher.get_subscription_count = lambda: 0
    outputs.publish(Time(sec=1), robot.evaluate(Q, QD))
    assert node.sent == {}
