# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the gravity compensation node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics gravity_compensation.launch.py params_file:=/path/to/my_arm.yaml
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

ARGUMENTS = ("namespace", "params_file", "urdf", "command_topic", "use_sim_time")


def description(path: Path) -> str:
    """Return the URDF in a file; a .xacro is expanded."""
    if path.suffix == ".xacro":
        import xacro  # needed for such files only

        return str(xacro.process_file(str(path)).toxml())
    return path.read_text(encoding="utf-8")


def gravity_compensation_node(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    parameters: list[object] = [given["params_file"]]
    if given["command_topic"]:
        parameters.append({"command_topic": given["command_topic"]})
    if given["urdf"]:
        # as a str: launch would read the XML as YAML
        text = ParameterValue(description(Path(given["urdf"])), value_type=str)
        parameters.append({"robot_description": text, "robot_description_file": ""})
    parameters.append({"use_sim_time": given["use_sim_time"] == "true"})
    return [
        Node(
            package="mbs_dynamics",
            executable="gravity_compensation_node",
            name="gravity_compensation_node",
            namespace=given["namespace"],
            parameters=parameters,
            output="screen",
        )
    ]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("mbs_dynamics")
    defaults = PathJoinSubstitution([share, "config", "gravity_compensation.yaml"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the node and of the topics robot_description, "
                "joint_states and imu.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=defaults,
                description="YAML file with the node's parameters: joints, compensates_itself and "
                "limits. The default is for the shipped arm, and cannot be enabled as it is.",
            ),
            DeclareLaunchArgument(
                "urdf",
                default_value="",
                description="Path of a URDF, or of a .xacro that becomes one. Empty: the topic "
                "robot_description is used, as robot_state_publisher publishes it.",
            ),
            DeclareLaunchArgument(
                "command_topic",
                default_value="",
                description="Topic of the commands; without a slash in front it is in the "
                "namespace. Empty: as in params_file.",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                choices=["true", "false"],
                description="Whether the stamps of the node are those of /clock.",
            ),
            OpaqueFunction(function=gravity_compensation_node),
        ]
    )
