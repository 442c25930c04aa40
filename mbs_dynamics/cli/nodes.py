# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``mbs-dynamics demo`` and ``mbs-dynamics replay``, which need ROS 2."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from mbs_dynamics.cli.options import Command
from mbs_dynamics.errors import BackendError


def add_commands(commands: Any) -> None:
    """Add both commands to the parser's subcommands."""
    purpose = "an arm held up against gravity, pushed and loaded, by nodes over DDS"
    demo = Command(commands, "demo", _demo, purpose)
    demo.file("--robot", "path of a URDF (default: the arm shipped here)")

    purpose = "write the output of dynamics_node for a recorded bag"
    again = Command(commands, "replay", _replay, purpose)
    again.file("robot", "path of a URDF")
    again.file("bag", ".db3, .mcap, or the folder of a bag")
    again.file("--out", ".mcap to write", required=True)
    again.file("--params-file", "parameters of dynamics_node, .yaml")
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME:=VALUE"}
    text = "a parameter of dynamics_node, such as publish_mass_matrix:=true"
    again.add("-p --param", text, **several)
    again.add("--joint-states", "topic in the bag", default="")


def _of_ros(module: str, purpose: str) -> Any:
    """Return a module that needs ROS 2, or raise BackendError."""
    try:
        return importlib.import_module(f"mbs_dynamics.ros.{module}")
    except ImportError as error:
        raise BackendError(
            f"{purpose} ({error}); source it, or install the extra 'ros' of this package"
        ) from error


def _demo(options: argparse.Namespace) -> int:
    return int(_of_ros("demo", "the demonstration needs ROS 2").main(robot=options.robot))


def _replay(options: argparse.Namespace) -> int:
    purpose = "replay is dynamics_node itself, and needs the messages of ROS 2"
    done = _of_ros("replay", purpose).replay(
        options.robot,
        options.bag,
        options.out,
        params_file=options.params_file,
        params=options.param,
        joint_states=options.joint_states,
    )
    print(f"{done.read} messages were replayed; wrote {options.out}:")
    for topic, count in sorted(done.written.items()):
        print(f"  {count:7} {topic}")
    return 0
