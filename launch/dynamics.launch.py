# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node.

ros2 launch mbs_dynamics dynamics.launch.py urdf:=arm.urdf.xacro xacro_args:="dof:=7"
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(context):
    urdf = launching.description(context)
    given = launching.parameters(context, "representation", "algorithm", "use_sim_time")
    started = [
        Node(
            package="mbs_dynamics",
            executable="dynamics_node",
            namespace=LaunchConfiguration("namespace"),
            parameters=[*given, *launching.described(urdf)],
            output="screen",
        )
    ]
    if launching.asked(context, "robot_state_publisher"):
        started.append(launching.state_publisher(context, urdf))
    return launching.checked(context, started)


def generate_launch_description():
    default = launching.installed("config", "dynamics.yaml")
    return LaunchDescription(
        [
            launching.NAMESPACE,
            *launching.parameter_arguments("dynamics_node", default=default),
            *launching.ROBOT_ARGUMENTS,
            DeclareLaunchArgument(
                "representation",
                default_value="",
                description="Representation of twists and Jacobians. Empty: as in params_file.",
            ),
            launching.ALGORITHM,
            OpaqueFunction(function=nodes),
        ]
    )
