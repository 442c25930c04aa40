# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Readers of recordings: ROS 2 bags, tables of comma-separated values, and NumPy files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownNameError
from mbs_dynamics.files import expanded, read_arrays, read_table
from mbs_dynamics.identification.bags import BAGS, joint_states
from mbs_dynamics.identification.recording import Recording, RecordingError, merged
from mbs_dynamics.units import QUANTITIES, Meaning, commanded, meaning

JOINTS = ("joints", "joint_names")
"""Accepted names of the array of the names of joints."""

TABLES = (".csv", ".tsv", ".txt")
"""Kinds of files of tables."""


class UnknownColumnError(UnknownNameError, RecordingError, kind="column"):
    """A file has no column or array of this name."""


def read_recording(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    topic: str = "",
    timed: bool = True,
    torques: bool = True,
) -> Recording:
    """Return the recording in a file or in the folder of a bag.

    .db3, .mcap or a folder: a bag with sensor_msgs/JointState, on ``topic`` if there are several;
    other topics are ignored, and joints in several messages merged. A bag that was not closed is
    read as far as it goes, with a note. .csv, .tsv, .txt: a header,
    then numbers, separated by commas, semicolons, tabs or blanks; the columns are ``t``,
    ``q_<joint>``, ``tau_<joint>`` and, if there are velocities, ``qd_<joint>``; ``Time``,
    ``Position1``, ``Torque1`` and similar names are understood, units as in ``t [ms]`` are
    converted, and ``columns`` maps other names to these. Numbers in place of joint names count the
    joints of the model, whatever the order of the columns.
    .npz: arrays of the same names, and ``joints``.

    Without ``timed`` a table needs no time: its rows are still poses. Without ``torques`` a file
    needs none: they are NaN.

    Raises RecordingError for a file that cannot be read.
    """
    path = expanded(path)
    if not path.exists():
        raise RecordingError(f"{path}: there is no such file")
    kind, columns = path.suffix.lower(), columns or {}
    try:
        if path.is_dir() or kind in BAGS:
            _meanings([], columns)
            samples, notes = joint_states(path, topic)
            return merged(path.name, samples).noted(*notes)
        if kind in TABLES:
            return _read_csv(path, columns, timed, torques)
        if kind == ".npz":
            return _read_npz(path, columns, torques)
    except ArgumentError as error:
        raise RecordingError(str(error)) from error
    raise RecordingError(
        f"{path}: valid are .db3, .mcap, the folder of a bag, {', '.join(TABLES)} and .npz"
    )


def _meanings(names: list[str], columns: Mapping[str, str]) -> list[Meaning | None]:
    """Return the meanings of columns; those in ``columns`` must exist, and be valid."""
    for name, stated in columns.items():
        if name not in names:
            raise UnknownColumnError(name, names)
        if meaning(stated) is None:
            raise RecordingError(
                f"--columns {name}={stated}: valid is a meaning such as t, q_joint1, qd_joint1, "
                "tau_joint1, t[ms] or tau_joint1[kg cm]"
            )
    return [meaning(columns.get(name, name)) for name in names]


def _read_csv(path: Path, columns: Mapping[str, str], timed: bool, torques: bool) -> Recording:
    table = read_table(path)
    series: dict[str, dict[str, FloatArray]] = {"q": {}, "qd": {}, "tau": {}}
    names: dict[tuple[str, str], str] = {}
    time, named = None, ""
    meanings = _meanings(table.names, columns)
    measured = {one.joint for one in meanings if one is not None and one.quantity == "q"}
    order = sorted(range(len(meanings)), key=lambda k: table.names[k] not in columns)
    for k in order:  # those that were stated first
        one, name = meanings[k], table.names[k]
        if one is None or (one.joint and name not in columns and commanded(one.joint, measured)):
            continue
        if one.quantity == "t":
            values = one.factor * table.column(k)
            if time is None:
                time, named = values, name
            elif named not in columns and not _same_clock(time, values):
                raise RecordingError(
                    f"{path}: {named!r} and {name!r} are both times, and differ; choose one by "
                    f"--columns {named}=t"
                )
        elif one.joint not in series[one.quantity]:
            series[one.quantity][one.joint] = one.factor * table.column(k)
            names[one.quantity, one.joint] = name
        elif name in columns or names[one.quantity, one.joint] not in columns:
            other = names[one.quantity, one.joint]
            raise RecordingError(
                f"{path}: {other!r} and {name!r} are both {one.quantity} of {one.joint}; choose "
                f"one by --columns {other}={one.quantity}_{one.joint}"
            )
    if time is None and not timed:
        time = np.arange(len(table.rows), dtype=float)
    if not torques:
        unknown = np.full(len(table.rows), np.nan)
        series["tau"] = dict.fromkeys(series["q"], unknown) | series["tau"]
    efforts = [one for one in meanings if one is not None and one.quantity == "tau"]
    stated = bool(efforts) and all(one.stated for one in efforts)
    return replace(_assembled(path, time, series, table.names), torques_stated=stated)


def _same_clock(first: FloatArray, second: FloatArray) -> bool:
    """Return whether two columns of times differ by a constant only."""
    apart = second - first
    return bool(np.ptp(apart) <= 0.01 * np.ptp(first))


def _assembled(
    path: Path,
    time: FloatArray | None,
    series: Mapping[str, Mapping[str, FloatArray]],
    names: list[str],
) -> Recording:
    """Return the recording of columns by quantity and joint."""
    joints = list(series["q"])
    lacking = [name for name in joints if name not in series["tau"]]
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
            "velocities, qd_<joint>, or are mapped to these by --columns; the file has "
            f"{', '.join(names)[:300]}"
        )
    plain = all(name.isdigit() for name in joints)  # numbers in place of names
    if plain:
        joints.sort(key=int)
        numbers = [int(name) for name in joints]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > 1:
            raise RecordingError(
                f"{path}: its joints have the numbers {', '.join(joints)}; valid are 1, 2, 3, ..., "
                "or 0, 1, 2, ..., without gaps, or names of joints"
            )
    q, tau = (np.stack([series[one][name] for name in joints], axis=1) for one in ("q", "tau"))
    qd = None
    notes: tuple[str, ...] = ()
    measured = [name for name in joints if name in series["qd"]]
    if measured:
        unknown = np.full(len(time), np.nan)
        qd = np.stack([series["qd"].get(name, unknown) for name in joints], axis=1)
        without = ", ".join(name for name in joints if name not in measured)
        notes = (f"no velocities of {without}",) if without else ()
    return Recording(path.name, () if plain else tuple(joints), time, q, tau, qd, notes)


def _read_npz(path: Path, columns: Mapping[str, str], torques: bool) -> Recording:
    named: list[str] = []

    def wanted(name: str) -> bool:
        named.append(name)
        return name in columns or name.lower() in JOINTS or _whole(name) is not None

    arrays = read_arrays(path, wanted)
    _meanings(named, columns)
    names = next((arrays.pop(name) for name in list(arrays) if name.lower() in JOINTS), ())
    given: dict[str, FloatArray] = {}
    sources: dict[str, str] = {}
    stated = False
    for name in sorted(arrays, key=lambda name: name not in columns):
        one = _whole(columns.get(name, name))
        if one is None:
            continue
        if one.quantity in given:
            if name not in columns and sources[one.quantity] in columns:
                continue
            raise RecordingError(
                f"{path}: {sources[one.quantity]!r} and {name!r} are both {one.quantity}; choose "
                f"one by --columns {name}={one.quantity}"
            )
        sources[one.quantity] = name
        if arrays[name].dtype.kind not in "fiu":
            raise RecordingError(f"{path}: {name} is {arrays[name].dtype}; valid are real numbers")
        stated = one.stated if one.quantity == "tau" else stated
        given[one.quantity] = one.factor * np.asarray(arrays[name], float)
    if not torques and "q" in given:
        given.setdefault("tau", np.full(given["q"].shape, np.nan))
    for quantity in ("t", "q", "tau"):
        if quantity not in given:
            raise RecordingError(
                f"{path}: has no {quantity!r}; its arrays are {', '.join(named)}; valid are "
                + ", ".join(QUANTITIES[quantity])
            )
    t, q = np.ravel(given["t"]), given["q"]
    for name in ("q", "qd", "tau"):
        shape = given.get(name, q).shape
        if len(shape) != 2 or shape != (len(t), q.shape[-1]):
            raise RecordingError(f"{path}: {name} is {shape}; valid is ({len(t)}, joints) for all")
    joints = tuple(str(name) for name in np.ravel(names))
    if joints and len(joints) != q.shape[1]:
        raise RecordingError(f"{path}: {len(joints)} names for {q.shape[1]} joints")
    found = Recording(path.name, joints, t, q, given["tau"], given.get("qd"))
    return replace(found, torques_stated=stated)


def _whole(name: str) -> Meaning | None:
    """Return the meaning of the name of an array of times, or of all joints."""
    stated = meaning(name)
    return stated if stated is not None and not stated.joint else None
