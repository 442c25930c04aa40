# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics export``: algorithms of a robot as C files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.c_export import export_c
from mbs_dynamics.cli.options import Command, robot
from mbs_dynamics.errors import UnknownAlgorithmError


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "write algorithms of a robot as C99 without dependencies beyond math.h"
    export = Command(commands, "export", _export, purpose)
    export.add("robot", "path or name, as for info")
    text = "algorithms, such as gravity_torques,inverse_dynamics,jacobian"
    export.add("--functions", text, type=_functions, required=True, metavar="NAME,...")
    folder: dict[str, Any] = {"dest": "output", "required": True, "metavar": "FOLDER"}
    export.file("--out --output", "folder for the .c and the .h file", **folder)
    export.add("--prefix", "first part of all names in C (default: the robot's name)")
    text = "of all numbers (default: double)"
    export.add("--precision", text, choices=("double", "single"), default="double")
    export.algorithm()
    export.flag("--wrenches", "applied wrenches are an argument as well")


def _export(options: argparse.Namespace) -> int:
    asked = {name: getattr(options, name) for name in ("body", "representation", "wrenches")}
    written = export_c(
        robot(options.robot),
        options.functions,
        options.output,
        prefix=options.prefix,
        precision=options.precision,
        **{name: value for name, value in asked.items() if value},
    )
    print("\n".join(map(str, written)))
    return 0


def _functions(text: str) -> list[Callable[..., Any]]:
    try:
        return [algorithm_of(name.strip()) for name in text.split(",")]
    except UnknownAlgorithmError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
