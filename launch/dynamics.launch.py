# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node.

ros2 launch mbs_dynamics dynamics.launch.py namespace:=left urdf:=/path/to/arm.urdf.xacro
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def description(path: Path) -> str:
    """Return the URDF in a file; a .xacro is expanded."""
    if path.suffix == ".xacro":
        import xacro  # needed for such files only

        return str(xacro.process_file(str(path)).toxml())
    return path.read_text(encoding="utf-8")


def dynamics_node(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {
        name: LaunchConfiguration(name).perform(context)
        for name in ("namespace", "params_file", "representation", "urdf")
    }
    parameters: list[object] = [given["params_file"]]
    if given["representation"]:
        parameters.append({"representation": given["representation"]})
    if given["urdf"]:
        # as a str: launch would read the XML as YAML
        text = ParameterValue(description(Path(given["urdf"])), value_type=str)
        parameters.append({"robot_description": text})
    return [
        Node(
            package="mbs_dynamics",
            executable="dynamics_node",
            name="dynamics_node",
            namespace=given["namespace"],
            parameters=parameters,
            output="screen",
        )
    ]


def generate_launch_description() -> LaunchDescription:
    defaults = PathJoinSubstitution([FindPackageShare("mbs_dynamics"), "config", "dynamics.yaml"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the node and of the topics robot_description and "
                "joint_states.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=defaults,
                description="YAML file with the node's parameters.",
            ),
            DeclareLaunchArgument(
                "representation",
                default_value="",
                choices=["", "body_fixed", "spatial", "hybrid", "mixed", "auto"],
                description="Representation of twists and Jacobians. Empty: as in params_file.",
            ),
            DeclareLaunchArgument(
                "urdf",
                default_value="",
                description="Path of a URDF, or of a .xacro that becomes one. Empty: the topic "
                "robot_description is used, as robot_state_publisher publishes it.",
            ),
            OpaqueFunction(function=dynamics_node),
        ]
    )
