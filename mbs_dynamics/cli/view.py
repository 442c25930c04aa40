# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics view``: a robot, a motion or a live robot in the browser."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from mbs_dynamics.cli.options import (
    MOTION_DATA,
    Command,
    initial_state,
    model_code,
    recording_in,
    robot_file,
    robot_of,
    robot_source,
)
from mbs_dynamics.errors import ArgumentError, BackendError

if TYPE_CHECKING:
    from mbs_dynamics.view.playback import Playback
    from mbs_dynamics.view.posing import Posing


def add_commands(commands: Any) -> None:
    """Add the subcommand."""
    view = Command(commands, "view", _view, "show a robot in the browser, on this machine only")
    view.robot(nargs="?")
    view.part()
    view.state()
    several: dict[str, Any] = {"action": "append", "default": []}
    text = "folder of packages for package:// URIs, or such a package"
    view.file("--package-path", text, metavar="FOLDER", **several)
    text = f"play {MOTION_DATA}; a second one is drawn as a ghost"
    view.file("--motion", text, **several)
    view.reading()
    view.add("--layers", "layers switched on, or 'all'", type=_names, metavar="NAME,...")
    view.page()
    view.flag("--dark", "dark mode")
    view.flag("--degrees", "sliders of angles in degrees")
    view.file("--write", "write the page as one .html file, and exit")
    view.flag("--ros", "show the live robot of robot_description and joint_states")
    view.add("--namespace", "ROS namespace of the robot, with --ros", default="")


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
    from mbs_dynamics.view.opening import (
        announce,
        check_html,
        open_page,
        until_interrupt,
        write_html,
    )
    from mbs_dynamics.view.playback import Playback
    from mbs_dynamics.view.posing import Posing

    if options.write is not None:
        check_html("--write", options.write)
    path = robot_file(options.robot)
    model = robot_of(options)
    motions = [recording_in(file, options) for file in options.motion]
    opened = open_page(
        model,
        robot_source(path, options.xacro_args),
        beside=path,
        packages=options.package_path,
        model_code=model_code(path, options),
        port=0 if options.write is not None and options.port is None else options.port,
        dark=options.dark,
        report=_report,
    )
    page = opened.page
    source: Posing | Playback
    with closing(page):
        page.choose(options.layers)
        if motions:
            ghost = motions[1] if len(motions) > 1 else None
            parts = opened.appearance.parts
            source = Playback(page, opened.drawn, motions[0], ghost=ghost, parts=parts)
        else:
            q, qd = initial_state(model, options)
            start = q if options.q else None  # bent, if it is an arm
            source = Posing(page, model, start, qd, degrees=options.degrees)
        if options.write is not None:
            write_html(page, source, options.write)
            print(f"wrote {options.write}")
            return 0
        page.refresh(source)
        if isinstance(source, Playback):
            source.play()
        with until_interrupt():
            announce(page, browse=not options.no_browser)
            page.run(source)
    return 0


def _live(options: argparse.Namespace) -> int:
    given = ("robot", "xacro_args", "write", "motion", "q", "qd", "root", "tip", "floating_base")
    refused = [name for name in given if getattr(options, name)]
    if refused:
        raise ArgumentError(f"--ros shows a live robot and does not take {refused[0]!r}")
    try:
        from mbs_dynamics.ros.live_view import live_view
    except ImportError as error:
        raise BackendError(
            f"--ros needs ROS 2 ({error}); source it, or install the extra 'ros' of this package"
        ) from error
    return live_view(
        options.namespace,
        packages=options.package_path,
        port=options.port,
        browse=not options.no_browser,
        dark=options.dark,
        chosen=options.layers,
    )


def _report(text: str) -> None:
    print(f"mbs-dynamics: {text}", file=sys.stderr)
