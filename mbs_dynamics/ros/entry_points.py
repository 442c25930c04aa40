# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that start nodes, and the interface of each node by its name. No ROS is needed.

The commands need ROS 2 Jazzy or later, and end with exit code 1 and a message without ROS 2.
"""

from __future__ import annotations

import importlib
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbs_dynamics.ros.interface import Interface

PACKAGE = __package__.partition(".")[0]

INTERFACES = {
    "command_watchdog_node": "compensation.interface:COMMAND_WATCHDOG_NODE",
    "dynamics_node": "dynamics.interface:DYNAMICS_NODE",
    "gravity_compensation_node": "compensation.interface:GRAVITY_COMPENSATION_NODE",
    "impedance_control_node": "compensation.impedance:IMPEDANCE_CONTROL_NODE",
    "simulator_node": "simulator.interface:SIMULATOR_NODE",
    "teaching_node": "teaching.interface:TEACHING_NODE",
    "wrench_compensation_node": "wrench_compensation.interface:WRENCH_COMPENSATION_NODE",
}
"""Module and name of the interface of each node."""


def _run(node: str) -> int:
    """Run the main function of a node's module; 1 if ROS 2 is missing."""
    try:
        module = importlib.import_module(f"{__package__}.{node}")
        return int(module.main())
    except KeyboardInterrupt:  # while modules are imported
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would change the exit code
        return 0
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", PACKAGE):
            raise
        why, *_ = str(error).splitlines()
        print(
            f"{node}: the Python package {name} of ROS 2 was not found ({why}); source ROS 2 "
            "('source /opt/ros/jazzy/setup.bash'), or install its wheels: pip install "
            f"'{PACKAGE}[ros]'",
            file=sys.stderr,
        )
        return 1


command_watchdog_node = partial(_run, "command_watchdog_node")
dynamics_node = partial(_run, "dynamics_node")
gravity_compensation_node = partial(_run, "gravity_compensation_node")
impedance_control_node = partial(_run, "impedance_control_node")
simulator_node = partial(_run, "simulator_node")
teaching_node = partial(_run, "teaching_node")
wrench_compensation_node = partial(_run, "wrench_compensation_node")


def interface_of(node: str) -> Interface:
    """Return the parameters, topics and services of a node. Needs no ROS."""
    module, _, name = INTERFACES[node].partition(":")
    interface: Interface = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return interface
