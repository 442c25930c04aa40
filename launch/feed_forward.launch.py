# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node between a planner and a joint_trajectory_controller.

It adds the torques of each point as effort. The controller must command position and effort.

ros2 launch mbs_dynamics feed_forward.launch.py controller:=arm_controller
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from mbs_dynamics.ros import launching


def nodes(context):
    controlled = [LaunchConfiguration("controller"), "/joint_trajectory"]
    topics = [
        ("~/desired_trajectory", LaunchConfiguration("trajectories")),
        ("~/desired_trajectory_torques", controlled),
    ]
    return launching.node_of_robot(
        context,
        "dynamics_node",
        "algorithm",
        fixed={"publish": ["desired_torques"]},
        remappings=topics,
    )


def generate_launch_description():
    return LaunchDescription(
        [
            *launching.parameter_arguments("dynamics_node", file="dynamics.yaml"),
            *launching.robot_arguments(),
            *launching.arguments(algorithm=launching.ALGORITHM),
            DeclareLaunchArgument(
                "trajectories",
                default_value="planned_trajectory",
                description="Topic of trajectories without efforts.",
            ),
            DeclareLaunchArgument(
                "controller",
                default_value="joint_trajectory_controller",
                description="Controller that receives them with efforts.",
            ),
            OpaqueFunction(function=nodes),
        ]
    )
