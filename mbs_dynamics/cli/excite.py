# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``excite``, which plans a motion for ``identify``."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Any

from mbs_dynamics.cli.identify import Job
from mbs_dynamics.cli.options import Command, remark, write_text
from mbs_dynamics.progress import Progress
from mbs_dynamics.timeseries.tables import WRITTEN
from mbs_dynamics.timeseries.trajectories import TRAJECTORIES


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "plan a motion that excites the parameters of an arm"
    example = "arm7 --duration 20 --out excitation.csv --trajectory excitation.yaml"
    command = Command(commands, "excite", _excite, purpose, example)
    command.robot()
    command.gravity()
    command.output("--out", ".csv or .npz to write", WRITTEN, required=True)
    text = "JointTrajectory to write, as .yaml, with an approach from any position"
    command.output("--trajectory", text, TRAJECTORIES)
    command.numbers(
        ("--duration", "duration, s", 20.0),
        ("--rate", "samples per second", 100.0),
        ("--position", "largest share of the position ranges", 0.9),
        ("--velocity", "largest share of the velocity limits", 0.5),
        ("--acceleration", "largest acceleration, rad/s^2 or m/s^2", 3.0),
        ("--torque", "largest share of the effort limits", 0.8),
    )
    text = "box in which the origin of a frame stays, m, in the frame of the root link"
    form = "FRAME:xmin,xmax,ymin,ymax,zmin,zmax"
    command.add("--box", text, nargs="+", default=[], metavar=form)


def _excite(options: argparse.Namespace) -> int:
    job = Job(options)
    identification, model = job.identification, job.model
    limits = identification.MotionLimits(
        options.position,
        options.velocity,
        options.acceleration,
        options.torque,
        tuple(identification.box_of(text, model.frames) for text in options.box),
    )
    with closing(Progress(100.0, what="planning the motion ", unit="%")) as progress:
        excitation = identification.plan_excitation(
            model,
            options.duration,
            limits=limits,
            rate=options.rate,
            progress=lambda share: progress.update(100.0 * share),
        )
    excitation.motion.write(options.out)
    seconds, condition = excitation.motion.t[-1], excitation.condition
    print(f"wrote {options.out}: {seconds:g} s, condition number {condition:.4g}")
    if options.trajectory is not None:
        write_text(options.trajectory, excitation.to_trajectory())
    remark("collisions are not checked; try it slowly, or in simulation", kind="warning")
    return 0
