# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``retime``, which makes a trajectory of a taught motion."""

from __future__ import annotations

import argparse
from typing import Any

from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import MOTION_DATA, Command, Pair, recording_in, remark
from mbs_dynamics.control.teaching import Demonstration, Rig
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.output_files import write_at_once
from mbs_dynamics.timeseries.tables import WRITTEN
from mbs_dynamics.timeseries.trajectories import TRAJECTORIES, trajectory_yaml


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "smooth a taught motion, and time it within the limits of an arm"
    example = "arm7 taught.csv --out trajectory.yaml --speed 0.5"
    command = Command(commands, "retime", _run, purpose, example)
    command.robot()
    command.file("recording", MOTION_DATA)
    command.output(
        "--out",
        "trajectory to write: .yaml of a JointTrajectory, .csv or .npz",
        (*WRITTEN, ".yaml"),
        required=True,
    )
    timing = command.parser.add_mutually_exclusive_group()
    text = "speed relative to the taught one (default: 1)"
    timing.add_argument("--speed", type=float, default=1.0, help=text)
    text = "use the largest speed within the limits"
    timing.add_argument("--fastest", action="store_true", help=text)
    text = "joints to play (default: all)"
    command.add("--joints", text, nargs="+", default=(), metavar="JOINT")
    command.numbers(
        ("--tolerance", "tolerance of smoothing, rad or m", 0.002),
        ("--velocity", "largest share of the velocity limits", 0.8),
        ("--acceleration", "largest acceleration, rad/s^2 or m/s^2", 20.0),
        ("--torque", "largest share of the effort limits", 0.8),
        ("--lead", "time to reach the first point, for .yaml, s", 5.0),
    )
    text = "load in kg, with its centre of mass in m in the frame of the link"
    kind = Pair(_mass_and_com, "LINK=MASS or LINK=MASS,X,Y,Z", named=True)
    form = "LINK=MASS[,X,Y,Z]"
    command.add("--load", text, type=kind, action="append", default=[], metavar=form)
    command.gravity()
    command.reading()
    command.part()


def _mass_and_com(text: str) -> list[float]:
    numbers = [float(x) for x in text.split(",")]
    if len(numbers) not in (1, 4):
        raise ValueError
    return numbers


def _run(options: argparse.Namespace) -> int:
    model = Description(options).model()
    for link, (mass, *com) in options.load:
        model = model.with_payload(link, mass, com or (0.0, 0.0, 0.0))
    shares = {name: getattr(options, name) for name in ("velocity", "acceleration", "torque")}
    rig = Rig(model, options.joints, **shares)
    recording = recording_in(options.recording, options)
    if options.recording.suffix in TRAJECTORIES:  # few points, with polynomials between them
        recording = Trajectory.of(recording).sampled()
    taught = Demonstration(rig, recording.of(model), tolerance=options.tolerance)
    trajectory = taught.fastest() if options.fastest else taught.as_taught(options.speed)
    if options.out.suffix in WRITTEN:
        trajectory.sampled().write(options.out)
    else:
        points = trajectory.sampled(trajectory.times - trajectory.times[0])
        write_at_once("--out", options.out, trajectory_yaml(points, options.lead))
    print(
        f"wrote {options.out}: {trajectory.duration:.3f} s, taught in {taught.knots[-1]:.3f} s, "
        f"within {taught.deviation:.2g} of the recorded positions"
    )
    largest, what = taught.largest_speed
    print(f"the taught timing is valid at up to {largest:.3g} times its speed, by {what}")
    remark("collisions are not checked; try it slowly, or in simulation", kind="warning")
    return 0
