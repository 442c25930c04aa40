# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the impedance control node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics impedance.launch.py params_file:=/path/to/my_arm.yaml
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from mbs_dynamics.ros import launching


def nodes(context):
    return launching.node_of_robot(context, "impedance_control_node", "command_topic", "algorithm")


def generate_launch_description():
    default = launching.installed("config", "impedance_control.yaml")
    return LaunchDescription(
        [
            launching.NAMESPACE,
            *launching.parameter_arguments("impedance_control_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            launching.COMMAND_TOPIC,
            launching.ALGORITHM,
            launching.UDP,
            OpaqueFunction(function=nodes),
        ]
    )
