# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``export``: algorithms of a robot as C files, or a controller."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.bridges.controller_package import MODES, check_controller, export_controller
from mbs_dynamics.c_export import export_c
from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import Command
from mbs_dynamics.errors import ArgumentError, UnknownAlgorithmError
from mbs_dynamics.output_files import expanded


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "write algorithms of a robot, or a controller of ros2_control for it, as C99"
    example = "arm7 --functions gravity_torques,mass_matrix --out generated"
    export = Command(commands, "export", _export, purpose, example)
    text = "functions, or controller: a ROS package with a controller for this robot"
    export.add("what", text, nargs="?", choices=("functions", "controller"), default="functions")
    export.robot()
    text = "algorithms, such as gravity_torques,inverse_dynamics,jacobian"
    export.add("--functions", text, type=_functions, metavar="NAME,...")
    text = "folder for the .c and the .h file, or for the package, such as ~/ros2_ws/src"
    export.add("--out", text, type=expanded, required=True, metavar="FOLDER")
    export.add("--prefix", "first part of all names in C (default: the robot's name)")
    text = "precision of all numbers (default: double)"
    export.add("--precision", text, choices=("double", "single"), default="double")
    export.add("--body", "body or link of algorithms that take one")
    export.add(
        "--representation", "representation of twists and wrenches", choices=mbs.REPRESENTATIONS
    )
    export.flag("--wrenches", "make applied wrenches an argument")
    export.add("--name", "first part of the name of its package (default: the robot's name)")
    text = "joints that the controller commands, in this order (default: all)"
    export.add("--joints", text, nargs="+", default=[], metavar="JOINT")
    export.add("--link", "link that the mode cartesian moves (default: the tool)")
    text = "modes of the controller; one with fewer is faster (default: all)"
    export.add("--modes", text, nargs="+", default=MODES, choices=MODES)
    export.flag("--check", "only report whether the package in FOLDER is for this description")


def _export(options: argparse.Namespace) -> int:
    robot = Description(options)
    if options.what == "controller":
        return _export_controller(robot, options)
    if not options.functions:
        raise ArgumentError("--functions is missing; valid: names of algorithms")
    asked = {name: getattr(options, name) for name in ("body", "representation", "wrenches")}
    written = export_c(
        robot.model(),
        options.functions,
        options.out,
        prefix=options.prefix,
        precision=options.precision,
        **{name: value for name, value in asked.items() if value},
    )
    print("\n".join(map(str, written)))
    return 0


def _export_controller(robot: Description, options: argparse.Namespace) -> int:
    if not options.check:
        given = {"joints": options.joints, "link": options.link or "", "modes": options.modes}
        print(export_controller(robot.urdf, options.out, name=options.name or "", **given))
        return 0
    difference = check_controller(robot.urdf, options.out)
    print(difference or f"{options.out} is for this description")
    return 1 if difference else 0


def _functions(text: str) -> list[Callable[..., Any]]:
    try:
        return [algorithm_of(name.strip()) for name in text.split(",")]
    except UnknownAlgorithmError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
