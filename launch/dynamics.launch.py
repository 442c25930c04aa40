# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node.

ros2 launch mbs_dynamics dynamics.launch.py urdf:=arm.urdf.xacro xacro_args:="dof:=7"
"""

from __future__ import annotations

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(given: launching.Given) -> list[Node]:
    return launching.described_node(given, "dynamics_node", "representation", "algorithm")


def generate_launch_description() -> LaunchDescription:
    arguments = [
        *launching.parameter_arguments("dynamics_node", default="dynamics.yaml"),
        launching.argument(
            "representation", choices=["", "body_fixed", "spatial", "hybrid", "mixed", "auto"]
        )("Representation of twists and Jacobians. Empty: as in params_file."),
        launching.algorithm_argument(),
        *launching.urdf_arguments(),
        launching.time_argument(),
    ]
    namespace = "Namespace of the node and of the topics robot_description and joint_states."
    return launching.launch_file(__file__, namespace, arguments, nodes)
