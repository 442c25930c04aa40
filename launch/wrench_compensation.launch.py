# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the node that removes bias and weight of the tool from the readings of a wrist sensor.

ros2 launch mbs_dynamics wrench_compensation.launch.py sensor_frame:=tool0
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(context):
    urdf = launching.description(context)
    names = "sensor_frame", "calibration_file", "use_sim_time"
    given = launching.parameters(context, *names)
    started = [
        Node(
            package="mbs_dynamics",
            executable="wrench_compensation_node",
            namespace=LaunchConfiguration("namespace"),
            parameters=[*given, *launching.described(urdf)],
            output="screen",
        )
    ]
    if launching.asked(context, "robot_state_publisher"):
        started.append(launching.state_publisher(context, urdf))
    return launching.checked(context, started)


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
                description="JSON file of bias and tool. Empty: as in params_file.",
            ),
            OpaqueFunction(function=nodes),
        ]
    )
