# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics demo``, which needs ROS 2."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from mbs_dynamics.cli.options import Command
from mbs_dynamics.errors import BackendError


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "an arm held up against gravity, pushed and loaded, by nodes over DDS"
    demo = Command(commands, "demo", _demo, purpose)
    demo.file("--robot", "path of a URDF (default: the arm shipped here)")


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
