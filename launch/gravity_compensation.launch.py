# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the gravity compensation node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics gravity_compensation.launch.py params_file:=/path/to/my_arm.yaml
"""

from __future__ import annotations

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(given: launching.Given) -> list[Node]:
    return launching.described_node(
        given, "gravity_compensation_node", "command_topic", "algorithm"
    )


def generate_launch_description() -> LaunchDescription:
    arguments = [
        *launching.arm_arguments("gravity_compensation_node", "gravity_compensation.yaml"),
        launching.time_argument(),
    ]
    namespace = "Namespace of the node and of robot_description, joint_states and imu."
    return launching.launch_file(__file__, namespace, arguments, nodes)
