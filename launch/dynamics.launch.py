# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node.

ros2 launch mbs_dynamics dynamics.launch.py urdf:=arm.urdf.xacro xacro_args:="dof:=7"
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

from mbs_dynamics.ros import launching


def nodes(context):
    return launching.node_of_robot(context, "dynamics_node", "representation", "algorithm")


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
