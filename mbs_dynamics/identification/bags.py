# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint states in bags of ROS 2; a bag whose recorder was killed is read as far as it goes.

A recorder that ends writes ``metadata.yaml`` and, in MCAP, an index at the end of each file. If
they are missing, records are read one after the other, by the specification of MCAP
(https://mcap.dev/spec), or rows of SQLite, until the first that is not whole.
"""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from struct import unpack_from
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.errors import MbsError, listed, shortened
from mbs_dynamics.files import LARGEST
from mbs_dynamics.identification.recording import RecordingError

JOINT_STATE = "sensor_msgs/msg/JointState"

BAGS = (".mcap", ".db3")
"""Kinds of files of a bag."""

MAGIC = b"\x89MCAP0\r\n"

SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 3, 4, 5, 6, 15
"""Kinds of records of MCAP."""

CHUNK_HEAD = 28
"""Bytes of times, size and checksum before the compression of a chunk."""

Sample = tuple[float, dict[str, tuple[float, float, float]]]
"""A time in s, and position, velocity and effort by joint."""


class Serialized(NamedTuple):
    """A joint state as it is stored."""

    topic: str
    received: int
    """Time in ns."""
    data: bytes


def joint_states(path: Path, topic: str) -> tuple[list[Sample], tuple[str, ...]]:
    """Return the samples of the joint states in a bag, and notes on what is missing.

    ``path`` is a file or a folder. Raises RecordingError for files that hold no joint states, for
    several topics with joint states if ``topic`` is empty, and for a topic without.
    """
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise RecordingError(
            f"{path}: bags need the package rosbags ({error}): extra 'identify'"
        ) from None
    store = get_typestore(Stores.ROS2_JAZZY)
    notes: list[str] = []
    try:
        if path.is_dir() and not (path / "metadata.yaml").exists():
            notes.append("metadata.yaml is missing, as if the recorder was killed")
            messages = _of_files(path, store, notes)
        else:
            messages = _of_files_or_whole(path, store, notes)
        topics = sorted({one.topic for one in messages})
        if not topics or (topic and topic not in topics):
            shown = ", ".join(topics) or "none"
            raise RecordingError(f"{path}: topics with joint states are: {shown}")
        if len(topics) > 1 and not topic:
            raise RecordingError(f"{path}: choose one of the topics {', '.join(topics)}")
        chosen = (one for one in messages if one.topic == (topic or topics[0]))
        samples = [
            _sample(store.deserialize_cdr(one.data, JOINT_STATE), one.received) for one in chosen
        ]
    except MbsError:
        raise
    except Exception as error:  # whatever SQLite, LZ4, YAML and others raise on damaged bytes
        raise RecordingError(f"{path}: cannot be read as a bag: {shortened(str(error))}") from error
    return samples, tuple(notes)


def _of_files_or_whole(path: Path, store: Any, notes: list[str]) -> list[Serialized]:
    """Return the joint states of a bag, if it is not whole those of its files."""
    try:
        return list(_of_whole(path, store))
    except Exception:
        if not path.is_dir():
            return _of_file(path, store, notes)
        notes.append("the bag is not whole, as if the recorder was killed")
        return _of_files(path, store, notes)


def _of_files(folder: Path, store: Any, notes: list[str]) -> list[Serialized]:
    """Return the joint states of all files in a folder, each as far as it goes."""
    files = sorted((x for x in folder.iterdir() if x.suffix in BAGS), key=_numbered)
    if not files:
        raise RecordingError(
            f"{folder}: has neither metadata.yaml nor files {' or '.join(BAGS)}; valid is the "
            "folder of a bag"
        )
    messages = []
    for file in files:
        try:
            messages += list(_of_whole(file, store))
        except Exception:
            messages += _of_file(file, store, notes)
    notes.append(f"read instead: {listed([file.name for file in files])}")
    return messages


def _numbered(path: Path) -> list[tuple[int, str]]:
    """Return a key that sorts names by the numbers in them."""
    return [(int(x), "") if x.isdigit() else (-1, x) for x in re.split(r"(\d+)", path.name)]


def _of_whole(path: Path, store: Any) -> Iterator[Serialized]:
    """Yield the joint states of a bag, or of one of its files, that the recorder has closed."""
    from rosbags.highlevel import AnyReader

    with AnyReader([path], default_typestore=store) as reader:
        states = [one for one in reader.connections if one.msgtype == JOINT_STATE]
        if states:
            for connection, when, data in reader.messages(connections=states):
                yield Serialized(connection.topic, when, data)


def _of_file(path: Path, store: Any, notes: list[str]) -> list[Serialized]:
    """Return the joint states of a file that was not closed, and note how far it goes."""
    read = _of_mcap if path.suffix == ".mcap" else _of_sqlite
    messages = []
    for message in read(path):
        try:
            store.deserialize_cdr(message.data, JOINT_STATE)
        except Exception:  # the last one may be damaged
            break
        messages.append(message)
    if not messages:
        raise RecordingError(
            f"{path}: cannot be read as a bag: it was not closed, and no joint states precede its "
            "end"
        )
    notes.append(f"{path.name} was not closed: {len(messages)} joint states up to its end are read")
    return messages


def _of_sqlite(path: Path) -> Iterator[Serialized]:
    """Yield the joint states of a database until the first page that is damaged."""
    rows = (
        "select topics.name, messages.timestamp, messages.data from messages join topics "
        "on messages.topic_id = topics.id where topics.type = ? order by messages.id"
    )
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        database.text_factory = lambda data: data.decode(errors="replace")
        try:
            database.execute("pragma writable_schema = on")  # also a file that is cut is read
            for row in database.execute(rows, (JOINT_STATE,)):
                yield Serialized(*row)
        except sqlite3.DatabaseError:
            return


def _of_mcap(path: Path) -> Iterator[Serialized]:
    """Yield the joint states of a file until the first record that is not whole."""
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        return
    schemas: dict[int, str] = {}
    channels: dict[int, str] = {}  # those with joint states
    for kind, record in _records(data[len(MAGIC) :]):
        if kind == SCHEMA:
            (number,) = unpack_from("<H", record)
            schemas[number] = _text(record, 2)
        elif kind == CHANNEL:
            number, schema = unpack_from("<HH", record)
            if schemas.get(schema) == JOINT_STATE:
                channels[number] = _text(record, 4)
        elif kind == MESSAGE:
            number, _, received, _ = unpack_from("<HIQQ", record)
            if number in channels:
                yield Serialized(channels[number], received, record[22:])


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of whole records, with those in chunks."""
    at = 0
    while at + 9 <= len(data):
        kind, size = unpack_from("<BQ", data, at)
        record = data[at + 9 : at + 9 + size]
        if kind == CHUNK and len(record) > CHUNK_HEAD:
            compression = _text(record, CHUNK_HEAD)
            begin = CHUNK_HEAD + 4 + len(compression) + 8
            yield from _records(_decompressed(compression, record[begin:]))
        elif kind == DATA_END:
            return
        elif len(record) == size:
            yield kind, record
        at += 9 + size


def _text(record: bytes, at: int) -> str:
    (size,) = unpack_from("<I", record, at)
    return record[at + 4 : at + 4 + size].decode(errors="replace")


def _decompressed(compression: str, data: bytes) -> bytes:
    """Return the content of a chunk, as far as its data go."""
    if not compression:
        return data
    if compression == "lz4":
        decompressor = importlib.import_module("lz4.frame").LZ4FrameDecompressor()
    else:
        try:
            module = importlib.import_module("compression.zstd")
        except ImportError:
            module = importlib.import_module("backports.zstd")
        decompressor = module.ZstdDecompressor()
    content: bytes = decompressor.decompress(data, max_length=LARGEST)
    return content


def _sample(message: Any, received: int) -> Sample:
    """Return time and values by joint of a JointState; NaN for missing values."""
    stamp = message.header.stamp
    t = stamp.sec + 1e-9 * stamp.nanosec or 1e-9 * received
    count = len(message.name)
    rows = [
        field if len(field) == count else np.full(count, np.nan)
        for field in (message.position, message.velocity, message.effort)
    ]
    return t, {name: values for name, *values in zip(message.name, *rows, strict=True)}  # type: ignore[misc]
