# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command of ``mbs-dynamics`` that finds signs and units of motors."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mbs_dynamics.cli_simulate import add_part, add_robot, robot_of
from mbs_dynamics.control.calibration import calibrate
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.control.poses import read_poses
from mbs_dynamics.files import check_writable


def add_motors(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    command = commands.add_parser(
        "calibrate-motors", help="find signs and units of motors from still poses of an arm"
    )
    add_robot(command)
    add = command.add_argument
    add(
        "poses", type=Path,
        help="table with a row for each pose, and columns q_<joint> or position_<joint or motor>, "
        "effort_<joint or motor>, and command_<joint or motor> if torques were commanded",
    )  # fmt: skip
    add("--out", type=Path, required=True, help="table of motors to write, .yaml")
    add("--motors", type=Path, help="table of motors to start from, .yaml: names, units and gains")
    add(
        "--signs", type=_sign, nargs="+", default=[], metavar="JOINT=SIGN",
        help="known signs: 1 if the position of the drive increases with that of the joint, or -1",
    )  # fmt: skip
    add(
        "--find-signs", action="store_true",
        help="find the signs of positions, whatever the table of --motors states",
    )  # fmt: skip
    add(
        "--gravity", type=float, nargs=3, metavar=("X", "Y", "Z"),
        help="free-fall acceleration in the axes of the root link, m/s^2 (default: 0 0 -9.81)",
    )  # fmt: skip
    add_part(command)
    command.set_defaults(run=_run)


def _sign(text: str) -> tuple[str, int]:
    joint, _, value = text.rpartition("=")
    if value not in ("1", "+1", "-1"):
        raise argparse.ArgumentTypeError(f"{text!r} is not JOINT=1 or JOINT=-1")
    return joint, int(value)


def _run(options: argparse.Namespace) -> int:
    check_writable("--out", options.out)
    model = robot_of(options)
    if options.gravity is not None:
        model = model.with_gravity(options.gravity)
    start = None if options.motors is None else Motors.read(options.motors, model)
    poses = read_poses(options.poses, model, start)
    signs = dict(options.signs)
    found = calibrate(model, poses, start=start, signs=signs, find_signs=options.find_signs)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{found.poses} different poses")
    print(f"{'joint':24}{'sign':>5}{'zero':>11}{'feedback per N m':>26}{'command per N m':>20}")
    for one in found.joints:
        feedback = f"{one.feedback:.4g} +- {100.0 * one.feedback_error:.1f} %"
        print(f"{one.joint:24}{one.sign:5d}{one.zero:11.4g}{feedback:>26}{one.command:20.4g}")
    for name, why in found.unseen.items():
        print(f"{name}: {why}")
    if not found.joints:
        print("mbs-dynamics: the poses show no joint: no table is written", file=sys.stderr)
        return 1
    options.out.write_text(found.yaml(start, options.poses.name), encoding="utf-8")
    print(f"wrote {options.out}")
    return 0
