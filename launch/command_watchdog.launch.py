# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the watchdog that deactivates an effort controller whose commands have stopped.

Run it on the computer of the controller manager, and not in the launch file of the commander.

ros2 launch mbs_dynamics command_watchdog.launch.py position_controller:=arm_controller
"""

from __future__ import annotations

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.ros import launching
from mbs_dynamics.ros.compensation.interface import COMMAND_WATCHDOG_NODE

PARAMETERS = COMMAND_WATCHDOG_NODE.parameters


def nodes(given: launching.Given) -> list[Node]:
    parameters: dict[str, object] = {
        one.name: given.on(one.name) if one.type == "bool" else given[one.name]
        for one in PARAMETERS
    }
    parameters |= given.number("command_timeout")
    return [given.started(COMMAND_WATCHDOG_NODE.node, [], parameters)]


def generate_launch_description() -> LaunchDescription:
    arguments = []
    for one in PARAMETERS:
        about = f"{one.description}{one.unit and f' In {one.unit}.'}"
        if one.type == "bool":
            default = "true" if one.default else "false"
            arguments.append(launching.BooleanArgument(one.name, about, default))
        else:
            arguments.append(launching.argument(one.name, str(one.default))(about))
    namespace = "Namespace of the node and of a controller manager with a relative name."
    return launching.launch_file(__file__, namespace, arguments, nodes)
