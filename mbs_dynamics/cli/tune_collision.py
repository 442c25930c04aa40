# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``tune-collision``, which finds thresholds from a free motion."""

from __future__ import annotations

import argparse
from typing import Any

from mbs_dynamics.cli.identify import Job, command_on
from mbs_dynamics.cli.options import remark, write_json, write_text


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "find collision thresholds from a recording of free motion"
    example = "arm.urdf run.csv --out thresholds.yaml"
    command = command_on(commands, "tune-collision", _run, purpose, example)
    command.file("recording", "a motion without contact, with velocities and efforts")
    command.output("--out", "file of thresholds to write, .yaml")
    command.output("--json", "write the results as JSON")


def _run(options: argparse.Namespace) -> int:
    job = Job(options)
    from mbs_dynamics.control.collision import thresholds_yaml
    from mbs_dynamics.control.collision_tuning import tune
    from mbs_dynamics.identification.preparation import prepared

    stretches, remarks = prepared(job.read(options.recording), job.model)
    rows, notes = tune(job.model, stretches)
    remark(*remarks, *notes)
    print(f"{'thresholds, N m or N':24}{'sudden':>10}{'sustained':>11}{'at speeds of':>14}")
    for name, row in rows.items():
        sudden, sustained = row.impact + row.impact_speed, row.sustained + row.sustained_speed
        print(f"{name:24}{sudden:10.3g}{sustained:11.3g}{row.fastest:14.3g}")
    write_json(options.json, **{x: row._asdict() for x, row in rows.items()})
    write_text(options.out, thresholds_yaml(rows, options.recording.name))
    return 0
