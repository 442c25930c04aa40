# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Writes reports and commands of motors as motion data, one row at a time."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, TextIO

import numpy as np

from mbs_dynamics.control.motors import Frame, MotorCommand, Motors
from mbs_dynamics.control.period.records import State
from mbs_dynamics.timeseries.columns import column_name


class Log:
    """A table of comma-separated values: a row for each step in which all motors have reported.

    :class:`~mbs_dynamics.timeseries.TimeSeries` reads it. Cells are empty where the frame of a
    joint was not used, or has no number; such rows are left out by the reader.

    Columns are ``t`` in s, ``q_<joint>``, ``qd_<joint>`` and ``tau_<joint>`` in SI units, and
    ``raw_position_<joint>``, ``raw_effort_<joint>`` and ``raw_command_<joint>`` in the units of the
    drive. Of two motors on one joint the raw columns are those of the first.
    """

    def __init__(self, stream: TextIO, motors: Motors) -> None:
        self._stream, self._coordinates = stream, list(motors.coordinates)
        self._stamps = [math.nan] * len(self._coordinates)
        """Stamps of the states in the latest row."""
        names = motors.joint_names
        self._motors = [
            next(row.motor for row in motors.motors if row.joint == name) for name in names
        ]
        kinds = ("q", "qd", "tau", "raw_position", "raw_effort", "raw_command")
        columns = [column_name(kind, name) for kind in kinds for name in names]
        csv.writer(stream, lineterminator="\n").writerow(["t", *columns])

    def write(
        self, t: float, s: State, frames: Sequence[Frame], commands: Sequence[MotorCommand]
    ) -> None:
        """Write a row, if all motors have reported; ``s`` is the state after these frames."""
        stamps = s.stamp[self._coordinates].tolist()
        used = [x == x != before for x, before in zip(stamps, self._stamps, strict=True)]
        self._stamps = stamps
        reported = {frame[0]: frame for frame in frames}
        taken = {command.motor: command.effort for command in commands}
        if not any(used) or not all(motor in reported for motor in self._motors):
            return
        rows = [reported[motor] for motor in self._motors]
        raw = [row[2] for row in rows], [row[4] for row in rows]
        efforts = [taken.get(motor, 0.0) for motor in self._motors]
        states = [np.where(used, row[self._coordinates], math.nan) for row in (s.q, s.qd, s.effort)]
        columns: list[Any] = [*states, *raw, efforts]
        cells = [_cell(x) for column in columns for x in column]
        self._stream.write(",".join([f"{t:.9f}", *cells]) + "\n")


def _cell(x: Any) -> str:
    """Return a number as text; empty if it is none."""
    return f"{x:.9g}" if isinstance(x, Real) and math.isfinite(x) else ""
