# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the impedance control node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics impedance.launch.py params_file:=/path/to/my_arm.yaml
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from mbs_dynamics.ros import launching

NODE = "impedance_control_node"


def nodes(context):
    return launching.node_of_robot(context, NODE, "command_topic", "algorithm")


def generate_launch_description():
    return LaunchDescription(
        [
            *launching.parameter_arguments(NODE, file="impedance_control.yaml"),
            *launching.robot_arguments(),
            *launching.arguments(
                command_topic=launching.COMMAND_TOPIC, algorithm=launching.ALGORITHM
            ),
            launching.UDP,
            OpaqueFunction(function=nodes),
        ]
    )
