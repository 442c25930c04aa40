# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the controllers on mock hardware, which holds still whatever the torques are."""

from pathlib import Path

from launch import LaunchDescription
from launch_ros.actions import Node


def generate_launch_description() -> LaunchDescription:
    """Return the nodes."""
    share = Path(__file__).parent.parent
    description = {"robot_description": (share / "urdf" / "mock.urdf").read_text()}
    controllers = str(share / "config" / "ros2_controllers.yaml")
    return LaunchDescription(
        [
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                parameters=[description],
            ),
            Node(
                package="controller_manager",
                executable="ros2_control_node",
                parameters=[controllers],
                output="screen",
            ),
            Node(
                package="controller_manager",
                executable="spawner",
                arguments=[
                    "joint_state_broadcaster",
                    "holding_controller",
                    "--param-file",
                    controllers,
                ],
            ),
            Node(
                package="controller_manager",
                executable="spawner",
                arguments=["guarded_controller", "--inactive", "--param-file", controllers],
            ),
        ]
    )
