# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the node that removes bias and weight of the tool from the readings of a wrist sensor.

ros2 launch mbs_dynamics wrench_compensation.launch.py sensor_frame:=tool0
"""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from mbs_dynamics.ros import launching

NODE = "wrench_compensation_node"
ABOUT = {
    "sensor_frame": "Link of the force-torque sensor. Empty: as in params_file.",
    "calibration_file": "YAML file of bias and tool. Empty: as in params_file.",
}


def nodes(context):
    return launching.node_of_robot(context, NODE, *ABOUT)


def generate_launch_description():
    return LaunchDescription(
        [
            *launching.parameter_arguments(NODE, file="wrench_compensation.yaml"),
            *launching.robot_arguments(),
            *launching.arguments(**ABOUT),
            OpaqueFunction(function=nodes),
        ]
    )
