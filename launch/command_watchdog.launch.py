# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the watchdog that deactivates an effort controller whose commands have stopped.

Best on the computer of the controller manager, and not in the launch file of the commander.

ros2 launch mbs_dynamics command_watchdog.launch.py position_controller:=arm_controller
"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

NAMES = ("command_topic", "effort_controller", "position_controller", "controller_manager")
ARGUMENTS = ("namespace", *NAMES, "command_timeout")


def command_watchdog_node(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    parameters: dict[str, object] = {
        name: ParameterValue(given[name], value_type=str) for name in NAMES
    }
    parameters["command_timeout"] = float(given["command_timeout"])
    return [
        Node(
            package="mbs_dynamics",
            executable="command_watchdog_node",
            name="command_watchdog_node",
            namespace=given["namespace"],
            parameters=[parameters],
            output="screen",
        )
    ]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the node and, unless it begins with a slash, of the "
                "controller manager.",
            ),
            DeclareLaunchArgument(
                "command_topic",
                default_value="/forward_effort_controller/commands",
                description="Topic of the commands to watch; without a slash in front it is in "
                "the namespace.",
            ),
            DeclareLaunchArgument(
                "effort_controller",
                default_value="",
                description="Controller that is deactivated. Empty: the one that command_topic "
                "names.",
            ),
            DeclareLaunchArgument(
                "position_controller",
                default_value="",
                description="Controller that is activated in its place, to hold the arm. Empty: "
                "none.",
            ),
            DeclareLaunchArgument(
                "controller_manager",
                default_value="controller_manager",
                description="Name of the controller manager.",
            ),
            DeclareLaunchArgument(
                "command_timeout",
                default_value="1.0",
                description="Seconds of silence under torque after which the controller is "
                "deactivated.",
            ),
            OpaqueFunction(function=command_watchdog_node),
        ]
    )
