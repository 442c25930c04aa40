# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the watchdog that deactivates an effort controller whose commands have stopped.

Best on the computer of the controller manager, and not in the launch file of the commander.

ros2 launch mbs_dynamics command_watchdog.launch.py position_controller:=arm_controller
"""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch_ros.actions import Node

from mbs_dynamics.ros import launching

NAMES = ("command_topic", "effort_controller", "position_controller", "controller_manager")


def nodes(given: launching.Given) -> list[Node]:
    parameters = {name: given[name] for name in NAMES} | given.number("command_timeout")
    return [given.started("command_watchdog_node", [], parameters)]


def generate_launch_description() -> LaunchDescription:
    arguments = [
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
            description="Controller that is deactivated. Empty: the one that command_topic names.",
        ),
        DeclareLaunchArgument(
            "position_controller",
            default_value="",
            description="Controller that is activated in its place, to hold the arm. Empty: none.",
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
    ]
    return launching.launch_file(__file__, arguments, nodes)
