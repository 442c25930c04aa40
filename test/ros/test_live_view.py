# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The source of scenes of a running robot: its messages, and those that cannot be right."""

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("viser")

import rclpy
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from waiting import wait_until

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.live_view import Live, LiveView
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.page import Page

TEXT = robot_path("arm7").read_text()
ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])


@pytest.fixture
def viewed(ros):
    """Yield a node that views a robot, and one that publishes it."""
    node, robot = LiveView("/left"), rclpy.create_node("robot", namespace="/left")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    yield node, robot, executor
    executor.shutdown()
    robot.destroy_node()
    node.destroy_node()


def state(q, stamp=1):
    message = JointState(name=list(ARM.joint_names), position=list(q))
    message.header.stamp.sec = stamp
    return message


def test_the_scene_shows_the_published_state(viewed):
    node, robot, executor = viewed
    description = robot.create_publisher(String, "robot_description", LATCHED)
    states = robot.create_publisher(JointState, "joint_states", 10)
    description.publish(String(data=TEXT))
    node.show(ARM)
    page = Page(ARM, PageOptions(TEXT, port=0))
    live = Live(page, node)
    assert live.scene("tool", "hybrid") is None

    def publish():
        states.publish(state(Q))
        executor.spin_once(timeout_sec=0.1)

    wait_until(lambda: node.state and node.description, publish)
    assert node.description == TEXT
    assert live.due()
    np.testing.assert_array_equal(live.scene("tool", "hybrid").q, Q)
    page.close()


def test_bad_messages_change_nothing_and_are_reported(viewed):
    node, _, _ = viewed
    node.show(ARM)
    node._on_state(state(Q))
    bad = Q.copy()
    bad[2] = np.nan
    node._on_state(state(bad, stamp=2))
    assert "joint3" in node.fault
    np.testing.assert_array_equal(node.state[0], Q)
    node._on_state(state(Q + 0.1, stamp=3))
    assert node.fault == ""
