# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the impedance control node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics impedance.launch.py params_file:=/path/to/my_arm.yaml
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction
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
            launching.NAMESPACE,
            *launching.parameter_arguments("impedance_control_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            launching.COMMAND_TOPIC,
            launching.ALGORITHM,
            launching.UDP,
            OpaqueFunction(function=nodes),
        ]
    )
