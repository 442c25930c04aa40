# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the node that removes bias and weight of the tool from the readings of a wrist sensor.

ros2 launch mbs_dynamics wrench_compensation.launch.py sensor_frame:=tool0
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from mbs_dynamics.ros import launching


def nodes(context):
    return launching.node_of_robot(
        context, "wrench_compensation_node", "sensor_frame", "calibration_file"
    )


def generate_launch_description():
    default = launching.installed("config", "wrench_compensation.yaml")
    return LaunchDescription(
        [
            launching.NAMESPACE,
            *launching.parameter_arguments("wrench_compensation_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            DeclareLaunchArgument(
                "sensor_frame",
                default_value="",
                description="Link of the force-torque sensor. Empty: as in params_file.",
            ),
            DeclareLaunchArgument(
                "calibration_file",
                default_value="",
                description="YAML file of bias and tool. Empty: as in params_file.",
            ),
            OpaqueFunction(function=nodes),
        ]
    )
