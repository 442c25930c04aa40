# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the node that removes bias and weight of the tool from the readings of a wrist sensor.

ros2 launch mbs_dynamics wrench_compensation.launch.py sensor_frame:=tool0
"""

from __future__ import annotations

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.ros import launching


def nodes(given: launching.Given) -> list[Node]:
    return launching.described_node(
        given, "wrench_compensation_node", "sensor_frame", "calibration_file"
    )


def generate_launch_description() -> LaunchDescription:
    arguments = [
        *launching.parameter_arguments(
            "wrench_compensation_node", default="wrench_compensation.yaml"
        ),
        launching.argument("sensor_frame")(
            "Link of the force-torque sensor. Empty: as in params_file."
        ),
        launching.argument("calibration_file")(
            "JSON file that keeps bias and tool. Empty: as in params_file."
        ),
        *launching.urdf_arguments(),
        launching.time_argument(),
    ]
    namespace = "Namespace of the node and of robot_description, joint_states, wrench and imu."
    return launching.launch_file(__file__, namespace, arguments, nodes)
