# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the watchdog that deactivates an effort controller whose commands have stopped.

Run it on the computer of the controller manager, and not in the launch file of the commander.

ros2 launch mbs_dynamics command_watchdog.launch.py position_controller:=arm_controller
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from mbs_dynamics.ros.compensation.interface import COMMAND_WATCHDOG_NODE

TYPES = {"bool": bool, "double": float, "string": str}


def generate_launch_description():
    arguments, parameters = [], {}
    for one in COMMAND_WATCHDOG_NODE.parameters:
        about = f"{one.description}{one.unit and f' In {one.unit}.'}"
        arguments.append(
            DeclareLaunchArgument(one.name, default_value=str(one.default), description=about)
        )
        value = LaunchConfiguration(one.name)
        parameters[one.name] = ParameterValue(value, value_type=TYPES[one.type])
    about = "Namespace of the node and of a controller manager with a relative name."
    arguments.append(DeclareLaunchArgument("namespace", default_value="", description=about))
    node = Node(
        package="mbs_dynamics",
        executable="command_watchdog_node",
        namespace=LaunchConfiguration("namespace"),
        parameters=[parameters],
        output="screen",
    )
    return LaunchDescription([*arguments, node])
