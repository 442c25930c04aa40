# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint states in ROS bags: rosbag2 (SQLite and MCAP), also split or unfinished, and ROS 1."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import listed, missing_extra, shortened
from mbs_dynamics.timeseries.columns import column_name
from mbs_dynamics.timeseries.series import TimeSeriesError
from mbs_dynamics.timeseries.tables import Columns

BAGS = (".db3", ".mcap", ".bag")
"""Endings of files of bags."""

JOINT_STATE = "sensor_msgs/msg/JointState"

GAP = 5.0
"""Gap, in median periods, across which joints in separate messages are not interpolated."""

BACK = 1.0
"""Step back in time, in s, above which the clock was reset."""

MAGIC = b"\x89MCAP0\r\n"

FOOTER = b"\x02" + struct.pack("<QQQI", 20, 0, 0, 0) + MAGIC
"""The end of an MCAP file without an index: https://mcap.dev/spec."""

ROS1, ROS2 = "ROS1_NOETIC", "ROS2_JAZZY"


def read_bag(path: Path, topic: str = "") -> Columns:
    """Return the joint states in a bag as columns ``t``, ``q_<joint>``, ``qd_...``, ``tau_...``.

    ``path`` is a file, or the folder of a bag. Times are those of the headers, or times of
    reception if headers have none. Joints that arrive in separate messages are interpolated to the
    times of the joint with the most messages. A bag that the recorder did not close is read up to
    its last complete record. Raises TimeSeriesError for a bag that cannot be read or has no joint
    states, for several topics of joint states if ``topic`` is empty, and for another topic.
    """
    try:
        import rosbags  # noqa: F401
    except ImportError as error:
        raise missing_extra(f"{path}: bags need rosbags", "identify", error) from None
    notes: list[str] = []
    with TemporaryDirectory() as folder:
        try:
            messages = _messages(path, Path(folder), notes)
        except TimeSeriesError:
            raise
        except Exception as error:  # rosbags passes on errors of SQLite, LZ4, YAML and others
            raise TimeSeriesError(
                f"{path}: cannot be read as a bag: {shortened(str(error))}"
            ) from error
    topics = sorted({name for name, *_ in messages})
    if not topics or (topic and topic not in topics):
        more = "".join(f"; {note}" for note in notes)
        raise TimeSeriesError(f"{path}: topics with joint states are: {listed(topics)}{more}")
    if len(topics) > 1 and not topic:
        raise TimeSeriesError(f"{path}: choose one of {listed(topics)} by --topic")
    chosen = [(t, message) for name, t, message in messages if name == (topic or topics[0])]
    columns = joined(str(path), _tables(path, chosen))
    columns.notes[:0] = notes
    return columns


def _messages(path: Path, folder: Path, notes: list[str]) -> list[tuple[str, float, Any]]:
    """Return topics, times and messages of a bag, or of the files of an incomplete bag."""
    if not path.is_dir():
        return list(_read(path, folder, notes))
    if (path / "metadata.yaml").exists():
        try:
            return list(_read(path, folder, notes))
        except Exception:  # rosbags raises many kinds for an incomplete file
            notes.append("the bag is incomplete, as if the recorder was killed")
    else:
        notes.append("metadata.yaml is missing, as if the recorder was killed")
    files = sorted((x for x in path.iterdir() if x.suffix in BAGS), key=_numbers)
    if not files:
        raise TimeSeriesError(
            f"{path}: has neither metadata.yaml nor files {', '.join(BAGS)}; must be the folder "
            "of a bag"
        )
    notes.append(f"its files were read one by one: {listed(x.name for x in files)}")
    return [one for file in files for one in _read(file, folder, notes)]


def _numbers(path: Path) -> list[tuple[int, str]]:
    """Return a key that sorts file names by the numbers in them."""
    return [(int(x), "") if x.isdigit() else (-1, x) for x in re.split(r"(\d+)", path.name)]


def _read(path: Path, folder: Path, notes: list[str]) -> Iterator[tuple[str, float, Any]]:
    """Yield topic, time in s and message of the joint states in one bag or file.

    Message types are those of the ROS distribution, since definitions in bags may lack nested ones.
    """
    from rosbags import rosbag1, rosbag2
    from rosbags.typesys import Stores, get_typestore

    first = path.suffix == ".bag"
    source = path if first or path.is_dir() else _closed(path, folder, notes)
    reader: Any = rosbag1.Reader(source) if first else rosbag2.Reader(source)
    store = get_typestore(Stores[ROS1 if first else ROS2])
    parse = store.deserialize_ros1 if first else store.deserialize_cdr
    with reader:
        states = [one for one in reader.connections if one.msgtype == JOINT_STATE]
        if not states:
            return
        for connection, received, data in reader.messages(connections=states):
            message: Any = parse(data, JOINT_STATE)
            stamp = message.header.stamp
            yield (
                connection.topic,
                stamp.sec + 1e-9 * stamp.nanosec or 1e-9 * received,
                message,
            )


def _closed(path: Path, folder: Path, notes: list[str]) -> Path:
    """Return an MCAP file; if its end is missing, a copy of its complete records with an end."""
    with path.open("rb") as file:
        if path.suffix != ".mcap" or file.read(8) != MAGIC:
            return path
        file.seek(-8, 2)
        size = file.tell() + 8
        if file.read() == MAGIC:
            return path
        end = 8
        while True:
            file.seek(end)
            header = file.read(9)
            length = struct.unpack("<xQ", header)[0] if len(header) == 9 else size
            if header[:1] in (b"\x02", b"\x0f") or end + 9 + length > size:  # the data end
                break
            end += 9 + length
        file.seek(0)
        copy = folder / path.name
        copy.write_bytes(file.read(end) + FOOTER)
    notes.append(
        f"{path.name} was not closed: it is read up to its last complete record; `mcap recover` "
        "may find more"
    )
    return copy


def joined(source: str, tables: Mapping[str, FloatArray]) -> Columns:
    """Return the columns of joints that were reported at different times.

    ``tables`` have time, position, velocity and effort (N, 4) by joint, with NaN for unknown values
    and increasing times. Joints are interpolated to the times of the joint with the most rows.
    """
    notes: list[str] = []
    longest: FloatArray = max(tables.values(), key=len)[:, 0]
    apart = [name for name, x in tables.items() if not np.array_equal(x[:, 0], longest)]
    rare = [name for name in apart if not _covers(tables[name][:, 0], longest)]
    if apart != rare:
        notes.append("joints arrive in separate messages, and were interpolated")
    if rare:
        notes.append(f"left out, since they are not reported throughout: {listed(rare)}")
    used = {name: x for name, x in tables.items() if name not in rare}
    begin, end = max(x[0, 0] for x in used.values()), min(x[-1, 0] for x in used.values())
    both = (longest >= begin) & (longest <= end)
    t = longest[both]
    values: dict[str, Any] = {"t": t}
    for name, table in used.items():
        rows = _at(t, table) if name in apart else table[both, 1:]
        for kind, column in zip(("q", "qd", "tau"), rows.T, strict=True):
            if kind == "q" or not np.isnan(column).all():
                values[column_name(kind, name)] = column
    columns = Columns(source, values)
    columns.notes = notes
    return columns


def _tables(path: Path, messages: Sequence[tuple[float, Any]]) -> dict[str, FloatArray]:
    """Return time, position, velocity and effort (N, 4) by joint, in order of time."""
    groups: dict[tuple[str, ...], list[tuple[float, Any]]] = {}
    for when, message in messages:
        groups.setdefault(tuple(message.name), []).append((when, message))
    series: dict[str, list[FloatArray]] = {}
    for names, rows in groups.items():
        t = np.array([when for when, _ in rows])
        back = np.flatnonzero(np.diff(t) < -BACK)
        if len(back):
            raise TimeSeriesError(
                f"{path}: its clock goes back from {t[back[0]]:.9g} to {t[back[0] + 1]:.9g} s, as "
                "if a simulation was reset; must be a bag of one motion"
            )
        fields = []
        for field in ("position", "velocity", "effort"):
            values = [getattr(message, field) for _, message in rows]
            none = np.full(len(names), np.nan)
            fields.append(np.array([x if len(x) == len(names) else none for x in values]))
        for k, name in enumerate(names):
            series.setdefault(name, []).append(np.column_stack([t, *(x[:, k] for x in fields)]))
    tables = {name: np.concatenate(parts) for name, parts in series.items()}
    return {name: x[np.unique(x[:, 0], return_index=True)[1]] for name, x in tables.items()}


def _covers(t: FloatArray, times: FloatArray) -> bool:
    """Return whether the times t of a joint cover nearly all of ``times``."""
    most = 0.05 * (times[-1] - times[0])
    return bool(len(t) > 1 and t[0] - times[0] <= most and times[-1] - t[-1] <= most)


def _at(times: FloatArray, table: FloatArray) -> FloatArray:
    """Return the values (N, 3) of a joint at ``times``, with NaN in its gaps."""
    t = table[:, 0]
    rows = np.column_stack([np.interp(times, t, x) for x in table[:, 1:].T])
    steps = np.diff(t)
    after = np.clip(np.searchsorted(t, times), 1, len(t) - 1)
    rows[(steps > GAP * np.median(steps))[after - 1] & (times != t[after])] = np.nan
    return rows
