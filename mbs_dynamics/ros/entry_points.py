# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that start nodes. Without a ROS 2 that they can use, they say so and end.

With ``--help`` they print their parameters, and need no ROS.
"""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from dataclasses import fields

PACKAGE = __package__.partition(".")[0]

SETTINGS = {
    "command_watchdog_node": "compensation.command_watchdog:CommandWatchdogSettings",
    "dynamics_node": "dynamics.settings:DynamicsSettings",
    "gravity_compensation_node": "compensation.settings:GravityCompensationSettings",
    "simulator_node": "simulator.settings:SimulatorSettings",
}
"""Where the parameters of each node are."""

ABOUT = {
    "command_watchdog_node": "Deactivates an effort controller whose commands have stopped.",
    "dynamics_node": "Publishes torques, twists, Jacobians and contact forces of a robot.",
    "gravity_compensation_node": "Holds an arm up against gravity, once its service enables it.",
    "simulator_node": "Stands in for a robot: a URDF under forward dynamics in real time.",
}


def command_watchdog_node() -> int:
    """Run the node and return the exit code."""
    return _run("command_watchdog_node")


def dynamics_node() -> int:
    """Run the node and return the exit code."""
    return _run("dynamics_node")


def gravity_compensation_node() -> int:
    """Run the node and return the exit code."""
    return _run("gravity_compensation_node")


def simulator_node() -> int:
    """Run the node and return the exit code."""
    return _run("simulator_node")


def _run(node: str) -> int:
    """Run the main function of a node's module; 1 if ROS 2 is missing or too old."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(usage(node))
        return 0
    try:
        problem = _too_old()
        if problem is None:
            module = importlib.import_module(f"{__package__}.{node}")
            return int(module.main())
    except KeyboardInterrupt:  # while modules are imported
        return 0
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", PACKAGE):
            raise
        why, *_ = str(error).splitlines()
        problem = (
            f"the Python package {name} of ROS 2 was not found ({why}); source ROS 2 ('source "
            f"/opt/ros/jazzy/setup.bash'), or install its wheels: pip install '{PACKAGE}[ros]'"
        )
    print(f"{node}: {problem}", file=sys.stderr)
    return 1


def usage(node: str) -> str:
    """Return what a node is, how it is started, and its parameters."""
    module, _, name = SETTINGS[node].partition(":")
    kind = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    lines = [
        f"usage: ros2 run {PACKAGE} {node} --ros-args",
        "           [-p NAME:=VALUE ...] [--params-file FILE]",
        "",
        ABOUT[node],
        "",
        "parameters:",
    ]
    for item in fields(kind):
        by_joint = "each_default" in item.metadata
        default = item.metadata["each_default"] if by_joint else item.default
        shown = list(default) if isinstance(default, tuple) else default
        about = f"{item.metadata['description']} {item.metadata['constraints']}".strip()
        each = ".<joint>" if by_joint else ".<link>" if "by_link" in item.metadata else ""
        lines.append(f"  {item.name}{each} ({shown!r})")
        lines.append(textwrap.fill(about, 96, initial_indent="      ", subsequent_indent="      "))
    return "\n".join(lines)


def _too_old() -> str | None:
    """Return what is wrong with the version of ROS 2; None if nothing is."""
    from rclpy.node import Node

    if hasattr(Node, "add_post_set_parameters_callback"):
        return None
    name = os.environ.get("ROS_DISTRO", "").capitalize() or "of this version"
    return f"ROS 2 {name} is not supported; Jazzy or later is needed"
