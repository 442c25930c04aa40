# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command of ``mbs-dynamics`` that finds signs and units of motors."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mbs_dynamics.cli.options import Command, Pair, by_name, robot_of
from mbs_dynamics.control.calibration import calibrate
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.control.poses import read_poses
from mbs_dynamics.output_files import check_writable


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "find signs and units of motors from still poses of an arm"
    command = Command(commands, "calibrate-motors", _run, purpose)
    command.robot()
    command.file(
        "poses",
        "table with a row for each pose, and columns q_<joint> or position_<joint or motor>, "
        "effort_<joint or motor>, and command_<joint or motor> if torques were commanded",
    )
    text = "other names of columns, such as angle1=q_joint1 current1=effort_joint1"
    command.pairs("--columns", text, str, "NAME=MEANING", named=True)
    command.file("--out", "table of motors to write, .yaml", required=True)
    text = "table of motors to start from, .yaml: names, units and gains"
    command.file("--motors", text)
    text = "known signs: 1 if the position of the drive increases with that of the joint, or -1"
    kind = Pair({"1": 1, "+1": 1, "-1": -1}.__getitem__, "JOINT=1 or JOINT=-1", named=True)
    command.add("--signs", text, type=kind, nargs="+", default=[], metavar="JOINT=SIGN")
    text = "find the signs of positions, whatever the table of --motors states"
    command.flag("--find-signs", text)
    command.gravity()
    command.part()


def _run(options: argparse.Namespace) -> int:
    check_writable("--out", options.out)
    model = robot_of(options)
    start = None if options.motors is None else Motors.read(options.motors, model)
    columns = by_name("--columns", options.columns)
    poses = read_poses(options.poses, model, start, columns)
    signs = by_name("--signs", options.signs)
    calibration = calibrate(model, poses, start=start, signs=signs, find_signs=options.find_signs)
    for note in calibration.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{calibration.poses} different poses")
    print(f"{'joint':24}{'sign':>5}{'zero':>11}{'feedback per N m':>26}{'command per N m':>20}")
    for one in calibration.joints:
        feedback = f"{one.feedback:.4g} +- {100.0 * one.feedback_error:.1f} %"
        print(f"{one.joint:24}{one.sign:5d}{one.zero:11.4g}{feedback:>26}{one.command:20.4g}")
    for name, why in calibration.unseen.items():
        print(f"{name}: {why}")
    if not calibration.joints:
        print("mbs-dynamics: the poses show no joint: no table is written", file=sys.stderr)
        return 1
    options.out.write_text(calibration.yaml(start, options.poses.name), encoding="utf-8")
    print(f"wrote {options.out}")
    return 0
