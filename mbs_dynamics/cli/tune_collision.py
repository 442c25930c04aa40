# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``tune-collision``, which finds thresholds from a free motion."""

from __future__ import annotations

import argparse
from typing import Any

from mbs_dynamics.cli.identify import Job, command_on
from mbs_dynamics.cli.options import remark, write_text
from mbs_dynamics.yaml_files import yaml_text


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "find collision thresholds from a recording of free motion"
    example = "arm.urdf run.csv --out thresholds.yaml"
    command = command_on(commands, "tune-collision", _run, purpose, example)
    command.file("recording", "a motion without contact, with velocities and efforts")
    command.output("--out", "file of thresholds to write, .yaml")


def _run(options: argparse.Namespace) -> int:
    job = Job(options)
    from mbs_dynamics.control.collision import tune
    from mbs_dynamics.identification.preparation import prepared

    stretches, remarks = prepared(job.read(options.recording), job.model)
    rows = tune(job.model, stretches)
    remark(*remarks)
    text = "# Thresholds of collisions, in N m or N\n" + yaml_text({"joints": rows})
    print(text, end="")
    write_text(options.out, text)
    return 0
