# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What is filled and published is what somebody hears."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from rclpy.node import Node
from readings import reading
from sensor_msgs.msg import JointState

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.outputs import Outputs
from mbs_dynamics.ros.robot import Robot
from mbs_dynamics.ros.settings import Settings

pytestmark = pytest.mark.usefixtures("ros")

PATIENCE = 120.0


def waits(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_topics_without_subscribers_are_not_filled():
    node = Node("outputs_test")
    model = mbs.Model.from_urdf(robot_path("arm7"))
    robot = Robot(model, Settings(publish_energy=True, publish_gravity_torques=True))
    outputs = Outputs(node)
    outputs.arrange(robot)
    results = robot.evaluate(reading(np.full(7, 0.3), np.zeros(7)))

    def filled():
        return [message for _, message in outputs.filled(Time(sec=1), results)]

    assert filled() == []
    heard = node.create_subscription(JointState, "~/gravity_torques", lambda _: None, 10)
    waits(filled)
    (message,) = filled()
    np.testing.assert_array_equal(message.effort, results.gravity_torques)
    node.destroy_subscription(heard)
    waits(lambda: not filled())
    node.destroy_node()
