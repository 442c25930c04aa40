# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the impedance control node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics impedance.launch.py params_file:=/path/to/my_arm.yaml
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(context):
    urdf = launching.description(context)
    given = launching.parameters(context, "command_topic", "algorithm", "use_sim_time")
    started = [
        Node(
            package="mbs_dynamics",
            executable="impedance_control_node",
            namespace=LaunchConfiguration("namespace"),
            parameters=[*given, *launching.described(urdf)],
            output="screen",
        )
    ]
    if launching.asked(context, "robot_state_publisher"):
        started.append(launching.state_publisher(context, urdf))
    return launching.checked(context, started)


def generate_launch_description():
    default = launching.installed("config", "impedance_control.yaml")
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the node, robot_description and joint_states.",
            ),
            *launching.parameter_arguments("impedance_control_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            DeclareLaunchArgument(
                "command_topic",
                default_value="",
                description="Topic of the commands. Empty: as in params_file.",
            ),
            launching.ALGORITHM,
            launching.UDP,
            OpaqueFunction(function=nodes),
        ]
    )
