# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of still poses, as drives report them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model
from mbs_dynamics.output_files import expanded
from mbs_dynamics.timeseries.columns import Meaning, UnknownColumnError, parsed, unit_factor
from mbs_dynamics.timeseries.tables import read_csv

STILL = 0.02
"""Largest velocity of a joint in a still pose, in rad/s or m/s."""

RAW = "raw_"
"""Prefix of columns in the units of drives."""


@dataclass
class Poses:
    """Still poses (N,) by joint, as they were recorded."""

    q: dict[str, FloatArray] = field(default_factory=dict)
    """Positions of the joints in rad or m, with the zero and direction of the model."""
    positions: dict[str, FloatArray] = field(default_factory=dict)
    """Positions that drives report."""
    efforts: dict[str, FloatArray] = field(default_factory=dict)
    """Efforts that drives report."""
    commands: dict[str, FloatArray] = field(default_factory=dict)
    """Efforts that drives were commanded."""
    position_per_radian: dict[str, float] = field(default_factory=dict)
    """Units of ``positions`` that were stated, in units for a rad or m."""


def read_poses(
    path: str | Path,
    model: Model,
    start: Motors | None = None,
    columns: Mapping[str, str] = {},
) -> Poses:
    """Return the poses in a table of text, a row for each.

    Columns are ``q_<joint>``, positions of joints in rad or m, or ``position_<joint>``, those that
    drives report; ``effort_<joint>`` or ``tau_<joint>``, efforts that drives report, in any unit;
    and, if torques were commanded, ``command_<joint>``. Units of positions may follow in brackets.
    Motors of the table ``start`` may be named in place of joints, and ``raw_`` may precede the
    names of what drives report and take. Rows in which a velocity ``qd_<joint>`` exceeds 0.02 rad/s
    or m/s are left out. ``columns`` are such names by the names of columns in the file.

    Raises ArgumentError for a file that cannot be read or has no such columns; FileNotFoundError.
    """
    table = read_csv(expanded(path))
    joints = {name: name for name in model.joint_names}
    if start is not None:
        joints |= {str(motor.motor): motor.joint for motor in start.motors}
    poses, still = Poses(), np.ones(len(table), bool)
    values: dict[str, FloatArray]
    taken: dict[tuple[str, str], str] = {}
    for name in columns:
        if name not in table.values:
            raise UnknownColumnError(name, table.values)
    names = [(name, columns.get(name, name)) for name in table.values]
    for in_file, name in sorted(names, key=lambda pair: not pair[1].startswith(RAW)):
        column = _meaning(name.removeprefix(RAW))
        if column is None or column.joint not in joints:
            continue
        kind, own, factor = column.kind, joints[column.joint], 1.0
        if kind == "qd":
            still &= ~(np.abs(column.factor * table.numbers(in_file)) > STILL)
            continue
        values = getattr(poses, kind)
        if own in values:
            if not taken[kind, own].startswith(RAW) or name.startswith(RAW):
                raise ArgumentError(f"{path}: {taken[kind, own]!r} and {name!r} are both {kind}")
            continue
        if kind == "q":
            factor = column.factor
        elif kind == "positions" and column.factor != 1.0:
            poses.position_per_radian[own] = 1.0 / column.factor
        values[own], taken[kind, own] = factor * table.numbers(in_file), name
    if not poses.efforts or not (poses.q or poses.positions):
        what = "efforts" if poses.q or poses.positions else "positions"
        raise ArgumentError(
            f"{path}: has no {what} of joints; valid: columns q_<joint> or position_<joint>, "
            f"and effort_<joint>, with joints {listed(joints)}; the file has {listed(table.values)}"
        )
    for values in (poses.q, poses.positions, poses.efforts, poses.commands):
        for own in values:
            values[own] = values[own][still]
    return poses


def _meaning(name: str) -> Meaning | None:
    """Return the meaning of a column, with a field of Poses as quantity; None for others."""
    command = re.fullmatch(r"(?:command|cmd)[_. ](.+?)(?:\s*[\[(].*)?", name, re.IGNORECASE)
    if command:
        return Meaning("commands", command[1])
    unit = re.fullmatch(r"(.+?)\s*[\[(]([^\[\]()]*)[\])]", name)
    column = parsed(unit[1]) if unit else Meaning("")
    if unit and column.joint and column.kind in ("q", "tau"):  # of a drive, which may have ticks
        factor = unit_factor("q", unit[2]) if column.kind == "q" else 1.0
        column = column._replace(factor=factor or 1.0)
    else:
        column = parsed(name)
    if not column.kind or column.kind in ("t", "qdd"):
        return None
    if column.kind == "q":
        return column if re.match("q", name, re.IGNORECASE) else column._replace(kind="positions")
    return column if column.kind == "qd" else column._replace(kind="efforts", factor=1.0)
