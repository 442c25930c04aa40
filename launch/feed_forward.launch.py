# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the dynamics node between a planner and a joint_trajectory_controller.

It adds the torques of each point as effort. The controller must command position and effort.

ros2 launch mbs_dynamics feed_forward.launch.py controller:=arm_controller
"""

from __future__ import annotations

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(given: launching.Given) -> list[Node]:
    return launching.described_node(
        given,
        "dynamics_node",
        "algorithm",
        fixed={"publish_desired_torques": True},
        remapped={
            "~/desired_trajectory": given["trajectories"],
            "~/desired_trajectory_torques": f"{given['controller']}/joint_trajectory",
        },
    )


def generate_launch_description() -> LaunchDescription:
    arguments = [
        launching.argument("trajectories", "planned_trajectory")(
            "Topic of trajectories without efforts; without a slash in front it is in "
            "the namespace."
        ),
        launching.argument("controller", "joint_trajectory_controller")(
            "Controller that receives them with efforts, on its topic ~/joint_trajectory."
        ),
        *launching.parameter_arguments("dynamics_node", default="dynamics.yaml"),
        launching.algorithm_argument(),
        *launching.urdf_arguments(),
        launching.time_argument(),
    ]
    namespace = "Namespace of the node, of the controller and of the topics."
    return launching.launch_file(__file__, namespace, arguments, nodes)
