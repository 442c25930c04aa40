# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of trajectories: motion data, messages as YAML, and bags of ROS 2. No ROS is needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.output_files import check_writable, write_at_once
from mbs_dynamics.timeseries.bags import mcap_written
from mbs_dynamics.timeseries.trajectories import trajectory_yaml

KINDS = (".csv", ".npz", ".yaml", ".mcap")

STATE, TRAJECTORY = "sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"

RATE = 100.0
"""Joint states per second in bags."""


def check_kind(option: str, path: Path) -> None:
    """Raise ArgumentError, naming the option, if no trajectory can be written to this path."""
    if path.suffix not in KINDS:
        raise ArgumentError(f"{option} {path}: must end in {', '.join(KINDS)}")
    check_writable(option, path)


def write_trajectory(option: str, path: Path, trajectory: Trajectory, lead: float) -> None:
    """Write a trajectory: ``.csv``, ``.npz``, ``.yaml`` or ``.mcap``.

    ``.csv`` and ``.npz`` are motion data: positions, rates and accelerations, sampled; ``.yaml`` is
    a JointTrajectory, as MoveIt and ``ros2 topic pub`` take it, whose first point is due after
    ``lead`` s; ``.mcap`` is a bag with that message on ``joint_trajectory``, and the same samples
    on ``joint_states``. All of them can be read as motion data.

    Raises ArgumentError, naming the option, for another name or place.
    """
    check_kind(option, path)
    end = trajectory.duration
    samples = trajectory.sampled(np.linspace(0.0, end, round(RATE * end) + 1))
    if path.suffix in (".csv", ".npz"):
        samples.write(path)
        return
    points = trajectory.sampled(trajectory.times - trajectory.times[0])
    if path.suffix == ".yaml":
        write_at_once(option, path, trajectory_yaml(points, lead))
        return
    with mcap_written(option, path) as (writer, store):
        kinds, names, none = store.types, list(trajectory.names), np.zeros(0)

        def write(topic: str, kind: str, messages: Iterable[tuple[float, Any]]) -> None:
            connection = writer.add_connection(topic, kind, typestore=store)
            for t, message in messages:
                writer.write(connection, round(1e9 * t), store.serialize_cdr(message, kind))

        def time(t: float, kind: str) -> Any:
            return kinds[f"builtin_interfaces/msg/{kind}"](*divmod(round(1e9 * t), 10**9))

        def header(t: float) -> Any:
            return kinds["std_msgs/msg/Header"](time(t, "Time"), "")

        point = kinds[f"{TRAJECTORY}Point"]
        each = [
            point(*trajectory.at(trajectory.times[0] + x), none, time(x + lead, "Duration"))
            for x in points.t
        ]
        message = kinds[TRAJECTORY](header(0.0), names, each)
        write("/joint_trajectory", TRAJECTORY, [(0.0, message)])
        states = ((x, trajectory.at(trajectory.times[0] + x)[:2]) for x in samples.t)
        messages = ((x, kinds[STATE](header(x), names, *row, none)) for x, row in states)
        write("/joint_states", STATE, messages)
