# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``view``, which shows robots in the browser, and ``demo``, which needs ROS 2."""

from __future__ import annotations

import argparse
from typing import Any

from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import MOTION_DATA, Command, initial_state, recording_in, remark
from mbs_dynamics.errors import ArgumentError, missing_extra
from mbs_dynamics.model.urdf_xml import text_of
from mbs_dynamics.view import PageOptions, play, show


def add_commands(commands: Any) -> None:
    """Add the commands to the parser's subcommands."""
    purpose = "show a robot in the browser, on this machine only"
    view = Command(
        commands, "view", _view, purpose, "arm7 --motion fall.csv --layers torques,twist"
    )
    view.robot(nargs="?")
    view.part()
    view.state()
    text = "folder of packages for package:// URIs, or such a package"
    several: dict[str, Any] = {"action": "append", "default": []}
    view.file("--package-path", text, metavar="FOLDER", **several)
    view.file("--motion", f"play {MOTION_DATA}")
    view.reading()
    view.add("--layers", "layers switched on, or 'all'", type=_names, metavar="NAME,...")
    view.page()
    view.flag("--dark", "show the page in dark mode")
    view.output("--write", "write the page as one .html file, and exit", (".html",))
    view.flag("--ros", "show the live robot of robot_description and joint_states")
    view.add("--namespace", "ROS namespace of the robot, with --ros", default="")

    purpose = "run a demonstration: nodes hold a simulated arm that is pushed and loaded"
    demo = Command(commands, "demo", _demo, purpose, "--robot arm.urdf")
    demo.robot("--robot", default="arm7")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _view(options: argparse.Namespace) -> int:
    if options.ros:
        return _live(options)
    if options.robot is None:
        raise ArgumentError("give a robot, or --ros for a live one")
    robot = Description(options)
    model = robot.drawn()
    q, qd = initial_state(model, options)
    if options.write is not None and options.port is None:
        options.port = 0
    page = robot.page(options, layers=options.layers, dark=options.dark)
    if options.motion is None:
        shown = show(model, q, qd, options=page)
    else:
        shown = play(model, recording_in(options.motion, options), options=page)
    remark(*shown.problems, kind="mbs-dynamics")
    if options.write is not None:
        shown.save(options.write)
        print(f"wrote {options.write}")
    else:
        shown.wait(browse=not options.no_browser)
    return 0


def _live(options: argparse.Namespace) -> int:
    given = ("robot", "xacro_args", "write", "motion", "q", "qd", "root", "tip", "floating_base")
    refused = [name for name in given if getattr(options, name)]
    if refused:
        raise ArgumentError(f"--ros shows a live robot and does not take {refused[0]!r}")
    try:
        from mbs_dynamics.ros.live_view import live_view
    except ImportError as error:
        raise missing_extra("--ros needs ROS 2, sourced or as wheels", "ros", error) from error
    page = PageOptions(
        packages=options.package_path,
        layers=options.layers,
        dark=options.dark,
        port=options.port,
    )
    return live_view(options.namespace, page, browse=not options.no_browser)


def _demo(options: argparse.Namespace) -> int:
    try:
        from mbs_dynamics.ros import demo
    except ImportError as error:
        purpose = "the demonstration needs ROS 2, sourced or as wheels"
        raise missing_extra(purpose, "ros", error) from error
    return demo.main(text_of(Description(options).urdf))
