# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics calibrate``: zeros of joints and placements of links."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.cli.options import Command, recording_in, robot_file
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.lie import se3
from mbs_dynamics.output_files import check_writable

TIP = "calibrated tip"
"""Name of the frame at --offset from the link."""


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "find zeros of joints from postures in which the tip touched one point"
    command = Command(commands, "calibrate", _calibrate, purpose)
    command.parser.epilog = (
        "example: mbs-dynamics calibrate arm.urdf touches.csv --tip tool --offset 0 0 0.1 "
        "--out calibrated.urdf"
    )
    command.add("robot", "path of a URDF, or the name of a robot shipped here: arm7")
    command.file("postures", "positions of the joints: .csv with q_<joint>, a row for each posture")
    command.add("--tip", "link that touches, is measured, or holds", required=True)
    axes = ("X", "Y", "Z")
    text = "place of the tip in the frame of the link, m (default: its origin)"
    command.add("--offset", text, type=float, nargs=3, metavar=axes)
    text = "the point that was touched, m, in the frame of the root link, if it is known"
    command.add("--point", text, type=float, nargs=3, metavar=axes)
    text = "poses of the link were measured: columns x, y, z, qx, qy, qz, qw, in the root link"
    command.flag("--measured", text)
    text = "they are poses of a marker on the link in the frame of a camera, anywhere"
    command.flag("--camera", text)
    command.add("--holds", "link of another arm that the link held in all postures")
    command.flag("--placements", "find the placements of links as well: takes many postures")
    command.file("--out", "URDF to write")
    command.file("--json", "write the figures as JSON")
    command.reading()


def _calibrate(options: argparse.Namespace) -> int:
    try:
        from mbs_dynamics import identification
    except ImportError as error:
        raise MbsError(
            f"calibration needs SciPy ({error}): install the extra 'identify' of this package"
        ) from error
    for name in ("out", "json"):
        if (path := getattr(options, name)) is not None:
            check_writable(f"--{name}", path)
    asked = {"--point": options.point, "--measured": options.measured or options.camera,
             "--holds": options.holds}  # fmt: skip
    several = [name for name, value in asked.items() if value]
    if len(several) > 1:
        raise ArgumentError(f"{' and '.join(several)} exclude each other; give one")
    path = robot_file(options.robot)
    model, tip = mbs.Model.from_urdf(path), options.tip
    if options.offset:
        model, tip = model.with_frame(TIP, tip, se3.pose(np.eye(3), options.offset)), TIP
    postures = recording_in(options.postures, options, timed=False)
    placements = options.placements
    if options.measured or options.camera:
        result = identification.calibrate_poses(
            model, postures, tip, camera=options.camera, placements=placements
        )
    elif options.holds:
        result = identification.calibrate_hold(
            model, postures, options.holds, tip, placements=placements
        )
    else:
        result = identification.calibrate_touches(
            model, postures, tip, point=options.point, placements=placements
        )
    _print(result)
    if options.json is not None:
        shown = ("zeros", "deviations", "unobservable", "before", "after", "outliers")
        figures = {name: getattr(result, name) for name in shown}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if not result.better:
        print(
            "mbs-dynamics: the description fits the postures as well: no URDF is written",
            file=sys.stderr,
        )
        return 1
    if options.out is not None:
        options.out.write_bytes(identification.calibrated_urdf(path, result))
        print(f"wrote {options.out}")
    return 0


def _print(result: Any) -> None:
    print("zeros, to be added to the readings of the joints:")
    print(f"{'joint':24}{'rad or m':>12}{'degrees':>10}{'standard error':>16}")
    for name, zero in result.zeros.items():
        if name in result.unobservable:
            print(f"{name:24}{'not observable: stays as it is':>38}")
            continue
        turns = result.model.joint(name).turns
        degrees = f"{math.degrees(zero):.3f}" if turns else ""
        print(f"{name:24}{zero:12.5f}{degrees:>10}{result.deviations[name]:16.2g}")
    before, after = 1e3 * result.before, 1e3 * result.after
    print(f"distance of the postures, rms: {before:.3g} mm before, {after:.3g} mm after")
    if result.outliers:
        rows = ", ".join(str(row + 1) for row in result.outliers)
        print(f"left out, as they contradict the others: rows {rows}")
