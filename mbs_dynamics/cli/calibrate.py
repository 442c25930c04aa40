# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands ``calibrate``, for zeros of joints, and ``calibrate-motors``, for their units."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.identify import Job
from mbs_dynamics.cli.options import Command, recording_in, remark, write_text
from mbs_dynamics.control.calibration import calibrate
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie import se3
from mbs_dynamics.yaml_files import read_yaml_file

TIP = "calibrated tip"
"""Name of the frame at --offset from the link."""


def add_commands(commands: Any) -> None:
    """Add the commands to the parser's subcommands."""
    purpose = "find zeros of joints from postures in which the tip touched one point"
    example = "arm.urdf touches.csv --tip tool --offset 0 0 0.1 --out calibrated.urdf"
    command = Command(commands, "calibrate", _calibrate, purpose, example)
    command.robot()
    command.file("postures", "positions of the joints: .csv with q_<joint>, a row for each posture")
    command.add("--tip", "link that touches, is measured, or holds", required=True)
    text = "place of the tip in the frame of the link, m (default: its origin)"
    command.add("--offset", text, type=float, nargs=3, metavar=("X", "Y", "Z"))
    text = "poses of the link were measured: columns x, y, z, qx, qy, qz, qw, in the root link"
    command.flag("--measured", text)
    text = "poses of a marker on the link were measured by a fixed camera at an unknown place"
    command.flag("--camera", text)
    command.add("--holds", "link of another arm that the link of --tip held in all postures")
    command.flag("--placements", "find the placements of links as well, from many postures")
    command.output("--out", "URDF to write")
    command.reading()

    purpose = "find signs and units of motors from still poses of an arm"
    example = "arm.urdf poses.csv --motors motors.yaml --out calibrated.yaml"
    command = Command(commands, "calibrate-motors", _calibrate_motors, purpose, example)
    command.robot()
    command.file(
        "poses",
        ".csv with a row for each pose: q_<joint>, and effort_<joint> in the unit of the drive, or "
        "raw_effort_<joint> as in the log of a guarded arm",
    )
    command.output("--out", "table of motors to write, .yaml", required=True)
    text = "table of motors to start from, .yaml: signs, units and gains"
    command.file("--motors", text)
    command.reading()
    command.gravity()
    command.part()


def _calibrate(options: argparse.Namespace) -> int:
    measured = options.measured or options.camera
    if measured and options.holds:
        raise ArgumentError("--measured or --camera, and --holds exclude each other")
    job, tip, placements = Job(options), options.tip, options.placements
    from mbs_dynamics import calibration

    model = job.model
    if options.offset:
        model, tip = model.with_frame(TIP, tip, se3.pose(np.eye(3), options.offset)), TIP
    postures = job.read(options.postures, timed=False)
    if measured:
        result = calibration.calibrate_poses(
            model, postures, tip, camera=options.camera, placements=placements
        )
    elif options.holds:
        result = calibration.calibrate_hold(
            model, postures, options.holds, tip, placements=placements
        )
    else:
        result = calibration.calibrate_touches(model, postures, tip, placements=placements)
    _print(result)
    if not result.better:
        text = "the description fits the postures as well: no URDF is written"
        remark(text, kind="mbs-dynamics")
        return 1
    if options.out is not None:
        job.write_urdf(calibration.calibrated_urdf(job.urdf, result))
    return 0


def _print(result: Any) -> None:
    print("zeros, to be added to the readings of the joints:")
    print(f"{'joint':24}{'rad or m':>12}{'degrees':>10}{'standard error':>16}")
    for name, zero in result.zeros.items():
        if name in result.unobservable:
            print(f"{name:24}{'not observable: unchanged':>38}")
            continue
        turns = result.model.joint(name).turns
        degrees = f"{math.degrees(zero):.3f}" if turns else ""
        print(f"{name:24}{zero:12.5f}{degrees:>10}{result.deviations[name]:16.2g}")
    before, after = 1e3 * result.before, 1e3 * result.after
    print(f"distance of the postures, rms: {before:.3g} mm before, {after:.3g} mm after")
    if result.outliers:
        rows = ", ".join(str(row + 1) for row in result.outliers)
        print(f"left out, since they contradict the others: rows {rows}")


def _calibrate_motors(options: argparse.Namespace) -> int:
    model = Description(options).model()
    start: dict[str, Any] = {}
    if options.motors is not None:
        Motors.read(options.motors, model)  # raises for an invalid table
        start = read_yaml_file(options.motors)
    poses = recording_in(options.poses, options, timed=False)
    calibration = calibrate(model, poses, start=start)
    remark(*calibration.notes)
    print(f"{calibration.poses} different poses")
    print(f"{'joint':24}{'sign':>5}{'feedback per N m':>26}")
    for one in calibration.joints:
        print(f"{one.joint:24}{one.sign:5d}{one.feedback:18.4g} +- {100.0 * one.error:.1f} %")
    for name, why in calibration.unseen.items():
        print(f"{name}: {why}")
    if not calibration.joints:
        remark("the poses determine no joint: no table is written", kind="mbs-dynamics")
        return 1
    write_text(options.out, calibration.yaml(start, options.poses.name))
    return 0
