# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that start nodes. Without a ROS 2 that they can use, they say so and end."""

from __future__ import annotations

import importlib
import os
import sys

PACKAGE = __package__.partition(".")[0]


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
    try:
        problem = _too_old()
        if problem is None:
            module = importlib.import_module(f"{__package__}.{node}")
            return int(module.main())
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


def _too_old() -> str | None:
    """Return what is wrong with the version of ROS 2; None if nothing is."""
    from rclpy.node import Node

    if hasattr(Node, "add_post_set_parameters_callback"):
        return None
    name = os.environ.get("ROS_DISTRO", "").capitalize() or "of this version"
    return f"ROS 2 {name} is not supported; Jazzy or later is needed"
