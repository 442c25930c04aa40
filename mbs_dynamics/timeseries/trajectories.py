# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A trajectory_msgs/JointTrajectory as YAML, in the form of ``ros2 topic pub``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.timeseries.columns import column_name
from mbs_dynamics.timeseries.series import TimeSeries, TimeSeriesError
from mbs_dynamics.timeseries.tables import Columns
from mbs_dynamics.yaml_files import read_yaml_file, yaml_text

TRAJECTORIES = (".yaml", ".yml")
"""Endings of trajectory files."""

FIELDS = {"q": "positions", "qd": "velocities", "qdd": "accelerations"}
"""Fields of a point by quantity."""


def trajectory_yaml(series: TimeSeries, lead: float) -> str:
    """Return the rows of motion data as points; the point at t = 0 is due after ``lead`` s."""
    points = []
    known = {field: x for kind, field in FIELDS.items() if (x := getattr(series, kind)) is not None}
    for k, t in enumerate(series.t + lead):
        seconds, rest = divmod(round(1e9 * t), 10**9)
        point: dict[str, Any] = {"time_from_start": {"sec": seconds, "nanosec": rest}}
        for field, rows in known.items():
            point[field] = [round(float(x), 8) for x in rows[k]]
        points.append(point)
    return yaml_text({"joint_names": list(series.joints), "points": points})


def read_trajectory(path: Path) -> Columns:
    """Return the points of a JointTrajectory in a YAML file.

    Raises TimeSeriesError for other contents.
    """
    try:
        message = read_yaml_file(path)
    except ArgumentError as error:
        raise TimeSeriesError(str(error)) from error
    try:
        names = [str(name) for name in message["joint_names"]]
        points = message["points"]
        values = {"t": np.array([_seconds(point["time_from_start"]) for point in points])}
        for kind, field in FIELDS.items():
            if all(point.get(field) for point in points):
                rows = np.array([point[field] for point in points], dtype=float)
                columns = rows.reshape(len(points), len(names)).T
                values |= {
                    column_name(kind, name): column
                    for name, column in zip(names, columns, strict=True)
                }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TimeSeriesError(
            f"{path}: must be a JointTrajectory with joint_names, and points with time_from_start "
            f"and positions; {type(error).__name__}: {error}"
        ) from error
    return Columns(str(path), values)


def _seconds(duration: Mapping[str, Any]) -> float:
    return float(duration["sec"]) + 1e-9 * float(duration.get("nanosec", 0))
