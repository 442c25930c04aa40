# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node.

ros2 launch mbs_dynamics dynamics.launch.py urdf:=arm.urdf.xacro xacro_args:="dof:=7"
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from mbs_dynamics.ros import launching


def nodes(context):
    return launching.node_of_robot(context, "dynamics_node", "representation", "algorithm")


def generate_launch_description():
    about = "Representation of twists and Jacobians. Empty: as in params_file."
    return LaunchDescription(
        [
            *launching.parameter_arguments("dynamics_node", file="dynamics.yaml"),
            *launching.robot_arguments(),
            *launching.arguments(representation=about, algorithm=launching.ALGORITHM),
            OpaqueFunction(function=nodes),
        ]
    )
