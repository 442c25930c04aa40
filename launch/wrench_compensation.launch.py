# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the node that removes bias and weight of the tool from the readings of a wrist sensor.

ros2 launch mbs_dynamics wrench_compensation.launch.py params:="{sensor_frame: tool0}"
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from mbs_dynamics.ros import launching


def nodes(context):
    return launching.node_of_robot(context, "wrench_compensation_node")


def generate_launch_description():
    default = launching.installed("config", "wrench_compensation.yaml")
    return LaunchDescription(
        [
            launching.NAMESPACE,
            *launching.parameter_arguments("wrench_compensation_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            OpaqueFunction(function=nodes),
        ]
    )
