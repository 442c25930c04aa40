# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Readers of recordings: ROS 2 bags, tables of comma-separated values, and NumPy files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.recording import Recording, RecordingError, merged

JOINT_STATE = "sensor_msgs/msg/JointState"

QUANTITIES = {
    "t": ("t", "time", "times", "timestamp", "timestamps", "stamp"),
    "q": ("q", "position", "positions", "pos", "joint_positions", "joint_position", "actual_q"),
    "qd": (
        *("qd", "dq", "velocity", "velocities", "vel"),
        *("joint_velocities", "joint_velocity", "actual_qd"),
    ),
    "tau": (
        *("tau", "torque", "torques", "effort", "efforts"),
        *("joint_torques", "joint_torque", "joint_efforts", "joint_effort", "actual_tau"),
    ),
}
"""Accepted names of the quantities of a recording, in lower case."""


def read_recording(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    topic: str = "",
    timed: bool = True,
) -> Recording:
    """Return the recording in a file or in the folder of a bag.

    .db3, .mcap or a folder: a bag with sensor_msgs/JointState, on ``topic`` if there are several;
    other topics are ignored, and joints in several messages merged. .csv: a header, then numbers;
    the columns are ``t``, ``q_<joint>``, ``tau_<joint>`` and, if there are velocities,
    ``qd_<joint>``; ``Time``, ``Position1``, ``Torque1`` and similar names are understood, and
    ``columns`` maps other names to these.
    .npz: arrays of the same names, and ``joints``.

    Without ``timed`` a .csv needs no time: its rows are still poses.

    Raises RecordingError for a file that cannot be read.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise RecordingError(f"{path}: there is no such file")
    kind = path.suffix.lower()
    if path.is_dir() or kind in (".db3", ".mcap"):
        return merged(path.name, _joint_states(path, topic))
    if kind == ".csv":
        return _read_csv(path, columns or {}, timed)
    if kind == ".npz":
        return _read_npz(path, columns or {})
    raise RecordingError(f"{path}: valid are .db3, .mcap, the folder of a bag, .csv and .npz")


def _joint_states(
    path: Path, topic: str
) -> Iterator[tuple[float, dict[str, tuple[float, float, float]]]]:
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise RecordingError(
            f"{path}: bags need the package rosbags ({error}): extra 'identify'"
        ) from None
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
            states = [one for one in reader.connections if one.msgtype == JOINT_STATE]
            topics = sorted({one.topic for one in states})
            if not topics or (topic and topic not in topics):
                listed = ", ".join(topics) or "none"
                raise RecordingError(f"{path}: topics with joint states are: {listed}")
            chosen = [one for one in states if one.topic == (topic or topics[0])]
            if len(topics) > 1 and not topic:
                raise RecordingError(f"{path}: choose one of the topics {', '.join(topics)}")
            for connection, when, data in reader.messages(connections=chosen):
                message: Any = reader.deserialize(data, connection.msgtype)
                yield _sample(message, when)
    except (AnyReaderError, OSError, ValueError) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"{path}: cannot be read as a bag: {error}") from error


def _sample(message: Any, received: int) -> tuple[float, dict[str, tuple[float, float, float]]]:
    """Return time and values by joint of a JointState; NaN for missing values."""
    stamp = message.header.stamp
    t = stamp.sec + 1e-9 * stamp.nanosec or 1e-9 * received
    count = len(message.name)
    rows = [
        field if len(field) == count else np.full(count, np.nan)
        for field in (message.position, message.velocity, message.effort)
    ]
    return t, {name: values for name, *values in zip(message.name, *rows, strict=True)}  # type: ignore[misc]


def _read_csv(path: Path, columns: Mapping[str, str], timed: bool) -> Recording:
    with path.open(encoding="utf-8-sig") as file:
        line = file.readline()
        between = max(",;\t", key=line.count)
        header = [word.strip().strip('"') for word in line.split(between)]
        try:
            table = np.genfromtxt(file, delimiter=between, ndmin=2)
        except ValueError as error:
            raise RecordingError(f"{path}: is no table of numbers: {error}") from error
    if table.shape[1] != len(header) or not len(table):
        raise RecordingError(f"{path}: {len(header)} names but {table.shape[1]} columns of numbers")
    found: dict[str, dict[str, FloatArray]] = {"q": {}, "qd": {}, "tau": {}}
    time: FloatArray | None = None
    for name, column in zip(header, table.T, strict=True):
        quantity, joint = _meaning(columns.get(name, name))
        if quantity == "t" and not joint and time is None:
            time = column
        elif quantity in found and joint and joint not in found[quantity]:
            found[quantity][joint] = column
    if time is None and not timed:
        time = np.arange(len(table), dtype=float)
    return _assembled(path, time, found)


def _meaning(name: str) -> tuple[str, str]:
    """Return the quantity and the joint that the name of a column denotes."""
    for quantity, words in QUANTITIES.items():
        if name.lower() in words:
            return quantity, ""
        for word in words:
            match = re.fullmatch(rf"{word}[_.\[]?(.+?)\]?", name, re.IGNORECASE)
            if match and (name[len(word)] in "_.[" or match[1].isdigit()):
                return quantity, match[1]
    for quantity, words in QUANTITIES.items():  # joint1_pos
        for word in words if quantity != "t" else ():
            match = re.fullmatch(rf"(.+)[_.]{word}", name, re.IGNORECASE)
            if match:
                return quantity, match[1]
    return "", ""


def _assembled(
    path: Path, time: FloatArray | None, found: Mapping[str, Mapping[str, FloatArray]]
) -> Recording:
    """Return the recording of columns by quantity and joint."""
    joints = list(found["q"])
    lacking = [name for name in joints if name not in found["tau"]]
    if time is None or not joints or lacking:
        what = (
            "time"
            if time is None
            else f"torques of {', '.join(lacking)}"
            if joints
            else "positions"
        )
        raise RecordingError(
            f"{path}: has no {what}; columns are t, q_<joint>, tau_<joint> and, if there are "
            "velocities, qd_<joint>, or are mapped to these by --columns"
        )
    q, tau = (np.stack([found[one][name] for name in joints], axis=1) for one in ("q", "tau"))
    qd = None
    if all(name in found["qd"] for name in joints):
        qd = np.stack([found["qd"][name] for name in joints], axis=1)
    plain = all(name.isdigit() for name in joints)  # numbers in place of names
    return Recording(path.name, () if plain else tuple(joints), time, q, tau, qd)


def _read_npz(path: Path, columns: Mapping[str, str]) -> Recording:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {columns.get(name, name): file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path}: is no file of NumPy: {error}") from error
    lower = {name.lower(): array for name, array in arrays.items()}
    found = {
        quantity: next((lower[word] for word in words if word in lower), None)
        for quantity, words in QUANTITIES.items()
    }
    for name in ("t", "q", "tau"):
        if found[name] is None:
            raise RecordingError(
                f"{path}: has no {name!r}; its arrays are {', '.join(arrays)}; valid are "
                + ", ".join(QUANTITIES[name])
            )
    given = {name: np.asarray(x, float) for name, x in found.items() if x is not None}
    t, q = np.ravel(given["t"]), given["q"]
    for name in ("q", "qd", "tau"):
        shape = given.get(name, q).shape
        if len(shape) != 2 or shape != (len(t), q.shape[-1]):
            raise RecordingError(f"{path}: {name} is {shape}; valid is ({len(t)}, joints) for all")
    names = tuple(str(name) for name in lower.get("joints", lower.get("joint_names", ())))
    if names and len(names) != q.shape[1]:
        raise RecordingError(f"{path}: {len(names)} names for {q.shape[1]} joints")
    return Recording(path.name, names, t, q, given["tau"], given.get("qd"))
