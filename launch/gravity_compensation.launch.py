# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the gravity compensation node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics gravity_compensation.launch.py params_file:=/path/to/my_arm.yaml
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from mbs_dynamics.ros import launching


def nodes(context):
    return launching.node_of_robot(
        context, "gravity_compensation_node", "command_topic", "algorithm"
    )


def generate_launch_description():
    default = launching.installed("config", "gravity_compensation.yaml")
    return LaunchDescription(
        [
            launching.NAMESPACE,
            *launching.parameter_arguments("gravity_compensation_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            launching.COMMAND_TOPIC,
            launching.ALGORITHM,
            launching.UDP,
            OpaqueFunction(function=nodes),
        ]
    )
