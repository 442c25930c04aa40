# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of motions: .npz with all arrays by name, and .csv with a column for each entry."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError

KINDS = (".npz", ".csv")

MOMENTUM_NAMES = ("Lx", "Ly", "Lz", "Px", "Py", "Pz")
"""The entries of the momentum, as a CSV file calls them."""

JOINTS = ("q", "qd", "qdd", "tau")
"""Arrays with an entry for each joint."""

ORDER = ("t", "C", "V", *JOINTS, "wrench", "kinetic", "potential", "momentum")
"""Of the columns of a CSV file."""


def write(motion: Any, path: str | Path) -> None:
    """Write a motion into a file."""
    target = _known(path)
    if target.suffix == ".npz":
        np.savez_compressed(target, **_named(motion))
        return
    batch = motion.kinetic.shape[1:]
    if batch:
        raise ArgumentError(f"a CSV file takes one motion, not a batch {batch}")
    names = getattr(motion, "joint_names", ())
    size = motion.C.shape[-1] if hasattr(motion, "C") else 0
    columns = [_flat(motion, name) for name in _fields(type(motion))]
    with target.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_header(type(motion), list(names), size))
        writer.writerows([repr(float(x)) for x in row] for row in np.hstack(columns))


def read(kind: Any, path: str | Path) -> dict[str, Any]:
    """Return the fields of a motion of this class from a file, events as a list of dicts."""
    source = _known(path)
    return _read_npz(kind, source) if source.suffix == ".npz" else _read_csv(kind, source)


def arrays_of(path: str | Path) -> set[str]:
    """Return the names of the arrays in a file; none if it is no file of a motion."""
    source = _known(path)
    if source.suffix == ".csv":
        with source.open(newline="") as file:
            return {label.partition(":")[0] for label in next(csv.reader(file), [])}
    try:
        with np.load(source, allow_pickle=False) as data:
            return set(data)
    except (ValueError, zipfile.BadZipFile):
        return set()


def _known(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix not in KINDS:
        raise ArgumentError(f"path must end in {', '.join(KINDS)}; got {str(path)!r}")
    return target


def _fields(kind: Any) -> list[str]:
    """Return the arrays of a class in the order of the columns of a CSV file."""
    return [name for name in ORDER if name in kind.arrays()]


# -- .npz ------------------------------------------------------------------------------------------


def _named(motion: Any) -> dict[str, Any]:
    """Return all that a file has, by name."""
    kind, events = type(motion), motion.events
    named = {name: getattr(motion, name) for name in kind.arrays()}
    if hasattr(motion, "joint_names"):
        named["joint_names"] = np.array(motion.joint_names, dtype=str)
    named["method"] = np.array(motion.method)
    named["event_names"] = np.array([event.name for event in events], dtype=str)
    named["event_t"] = np.array([event.t for event in events])
    named["event_member"] = np.array([event.member for event in events], dtype=int).reshape(
        len(events), motion.kinetic.ndim - 1
    )
    for name in _states(kind):
        shape = motion.kinetic.ndim
        core = getattr(motion, name).shape[shape:]
        rows = np.array([getattr(x, name) for x in events])
        named[f"event_{name}"] = rows.reshape(len(events), *core)
    return named


def _states(kind: Any) -> list[str]:
    """Return the fields of events that motions of a class have."""
    return [name for name in ("q", "qd", "C", "V") if name in kind.arrays()]


def _read_npz(kind: Any, source: Path) -> dict[str, Any]:
    try:
        with np.load(source, allow_pickle=False) as file:
            data: dict[str, Any] = dict(file)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ArgumentError(f"{source} is no .npz file of a motion: {error}") from error
    states = [f"event_{name}" for name in _states(kind)]
    joints = ["joint_names"] if "q" in kind.arrays() else []
    wanted = (*kind.arrays(), *joints, "method", "event_names", "event_t", *states)
    missing = [name for name in wanted if name not in data]
    if missing:
        raise ArgumentError(f"{source} is no file of a motion: it has no {', '.join(missing)}")
    given = {name: data[name] for name in kind.arrays()}
    _check_shapes(kind, source, given, len(data["joint_names"]) if joints else 0)
    if joints:
        given["joint_names"] = tuple(map(str, data["joint_names"]))
    return {**given, "method": str(data["method"]), "events": _events(kind, data)}


def _events(kind: Any, data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of the events in a file; those of a batch say which simulation it was."""
    count = len(data["event_t"])
    members = data.get("event_member", np.zeros((count, 0), dtype=int))
    none = np.zeros((count, 0))
    states: dict[str, Any] = {"q": none, "qd": none}
    states |= {name: data[f"event_{name}"] for name in _states(kind)}
    return [
        {
            "name": str(data["event_names"][k]),
            "t": float(data["event_t"][k]),
            "member": tuple(map(int, members[k])),
            **{name: array[k] for name, array in states.items()},
        }
        for k in range(count)
    ]


def _check_shapes(kind: Any, source: Path, arrays: dict[str, Any], n: int) -> None:
    lead = np.shape(arrays["kinetic"])
    size = np.shape(arrays["C"])[-1] if "C" in arrays else 4
    valid = {name: (*lead, *shape) for name, shape in kind.shapes(n, size).items()}
    valid["t"] = lead[:1]
    for name, array in arrays.items():
        if array.shape != valid[name] or array.dtype != np.float64:
            raise ArgumentError(
                f"{source}: {name} is {array.dtype} {array.shape}; valid is float64 {valid[name]}"
            )


# -- .csv ------------------------------------------------------------------------------------------


def _labels(name: str, joints: list[str], size: int) -> list[str]:
    """Return the names of the columns of an array."""
    if name in JOINTS:
        return [f"{name}:{joint}" for joint in joints]
    if name == "C":  # the last row of a pose is known
        return [f"C:{i}{j}" for i in range(3) for j in range(size)]
    dim = 3 if size == 3 else 6
    if name == "momentum":
        return list(MOMENTUM_NAMES[:dim])
    if name in ("V", "wrench"):
        parts = ("wx", "wy", "wz", "vx", "vy", "vz")
        if name == "wrench":
            parts = ("tx", "ty", "tz", "fx", "fy", "fz")
        return [f"{name}:{part}" for part in parts[:dim]]
    return [name]


def _header(kind: Any, joints: list[str], size: int) -> list[str]:
    return [label for name in _fields(kind) for label in _labels(name, joints, size)]


def _flat(motion: Any, name: str) -> FloatArray:
    array = getattr(motion, name)
    if name == "C":
        array = array[:, :3]
    flat: FloatArray = array.reshape(len(array), -1)
    return flat


def _read_csv(kind: Any, source: Path) -> dict[str, Any]:
    with source.open(newline="") as file:
        rows = list(csv.reader(file))
    head = rows[0] if rows else []
    joints = [x[2:] for x in head if x.startswith("q:")]
    size = 3 if sum(x.startswith("C:") for x in head) == 9 else 4
    if not head or head != _header(kind, joints, size):
        raise ArgumentError(f"{source} is no file of a motion: its first line is not the header")
    wrong = [k for k, row in enumerate(rows, 1) if len(row) != len(head)]
    if wrong:
        raise ArgumentError(f"{source}, line {wrong[0]}: there must be {len(head)} numbers")
    try:
        data = np.array(rows[1:], dtype=float).reshape(-1, len(head))
    except ValueError as error:
        raise ArgumentError(f"{source}: {error}") from error
    given: dict[str, Any] = {}
    shapes, begun = kind.shapes(len(joints), size), 0
    for name in _fields(kind):
        width = len(_labels(name, joints, size))
        part = data[:, begun : begun + width]
        begun += width
        if name == "C" and size == 4:
            last = np.tile([0.0, 0.0, 0.0, 1.0], (len(part), 1))
            part = np.hstack([part, last])
        given[name] = part.reshape(len(part), *shapes[name])
    if "q" in shapes:
        given["joint_names"] = tuple(joints)
    return given
