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
from mbs_dynamics.output_files import expanded
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
    several: dict[str, Any] = {"action": "append", "default": []}
    text = "folder of packages for package:// URIs, or such a package"
    view.add("--package-path", text, type=expanded, metavar="FOLDER", **several)
    text = f"play {MOTION_DATA}; a second one is drawn as a ghost"
    view.file("--motion", text, **several)
    view.reading()
    view.add("--layers", "layers switched on, or 'all'", type=_names, metavar="NAME,...")
    view.page()
    view.flag("--dark", "show the page in dark mode")
    view.flag("--degrees", "show the sliders of angles in degrees")
    view.output("--write", "write the page as one .html file, and exit", (".html",))
    view.flag("--ros", "show the live robot of robot_description and joint_states")
    view.add("--namespace", "ROS namespace of the robot, with --ros", default="")

    purpose = "run a demonstration: nodes hold a simulated arm that is pushed and loaded"
    demo = Command(commands, "demo", _demo, purpose, "--robot arm.urdf")
    demo.robot("--robot", default="arm7")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _view(options: argparse.Namespace) -> int:
    for folder in options.package_path:
        if not folder.is_dir():
            raise ArgumentError(f"no folder {str(folder)!r} (--package-path)")
    if options.ros:
        return _live(options)
    if options.robot is None:
        raise ArgumentError("give a robot, or --ros for a live one")
    if len(options.motion) > 2:
        raise ArgumentError(f"--motion takes at most two files; got {len(options.motion)}")
    robot = Description(options)
    model = robot.drawn()
    motions = [recording_in(file, options) for file in options.motion]
    q, qd = initial_state(model, options)
    page = PageOptions(
        robot.source,
        packages=options.package_path,
        beside=robot.path,
        layers=options.layers,
        dark=options.dark,
        port=0 if options.write is not None and options.port is None else options.port,
        model_code=robot.code,
        report=_report,
    )
    if motions:
        shown = play(model, motions[0], ghost=(*motions, None)[1], options=page)
    else:
        start = q if options.q else None  # bent, if it is an arm
        shown = show(model, start, qd, degrees=options.degrees, options=page)
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
        report=_report,
    )
    return live_view(options.namespace, page, browse=not options.no_browser)


def _demo(options: argparse.Namespace) -> int:
    try:
        from mbs_dynamics.ros import demo
    except ImportError as error:
        purpose = "the demonstration needs ROS 2, sourced or as wheels"
        raise missing_extra(purpose, "ros", error) from error
    return demo.main(text_of(Description(options).urdf))


def _report(text: str) -> None:
    remark(text, kind="mbs-dynamics")
