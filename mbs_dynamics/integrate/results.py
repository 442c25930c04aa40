# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of simulations, with named arrays, and their files: .npz and .csv."""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError

# -- files -----------------------------------------------------------------------------------------

MOTIONS = (".npz", ".csv")
"""Kinds of files of motions."""

MOMENTUM_NAMES = ("Lx", "Ly", "Lz", "Px", "Py", "Pz")
"""The entries of the momentum, as a CSV file calls them."""

JOINTS = ("q", "qd", "qdd", "tau")
"""Arrays with an entry for each joint."""

ORDER = ("t", "C", "V", *JOINTS, "wrench", "kinetic", "potential", "momentum")
"""Of the columns of a CSV file."""


def _write(motion: Any, path: str | Path) -> None:
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


def _read(kind: Any, path: str | Path) -> dict[str, Any]:
    """Return the fields of a motion of this class from a file, events as a list of dicts."""
    source = _known(path)
    return _read_npz(kind, source) if source.suffix == ".npz" else _read_csv(kind, source)


def _arrays_of(path: str | Path) -> set[str]:
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
    if target.suffix not in MOTIONS:
        raise ArgumentError(f"path must end in {', '.join(MOTIONS)}; got {str(path)!r}")
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


# -- results ---------------------------------------------------------------------------------------


class Event(NamedTuple):
    """An event function was zero."""

    name: str
    t: float
    """When, in s."""
    q: FloatArray
    """(n,) positions then; of the joints beside a floating base; none of a body."""
    qd: FloatArray
    """(n,) rates then."""
    C: FloatArray | None = None
    """Pose or rotation of a body or floating base then; None where there is none."""
    V: FloatArray | None = None
    """Its body-fixed twist or angular velocity then."""
    member: tuple[int, ...] = ()
    """Which simulation of a batch it was."""


class Trajectory:
    """What all results of simulations have in common: N instants, energies, events, files.

    Arrays of a batch of simulations have its axes after the first.
    """

    t: FloatArray
    kinetic: FloatArray
    potential: FloatArray
    method: str
    events: tuple[Event, ...]

    def __len__(self) -> int:
        return len(self.t)

    @property
    def energy(self) -> FloatArray:
        """(N, ...) kinetic and potential energy."""
        return self.kinetic + self.potential

    def save(self, path: str | Path) -> None:
        """Write a file ``.npz`` with all arrays by name, or ``.csv`` with a column for each entry.

        CSV has no events, and no batches. Raises ArgumentError for another kind of file, or a batch
        into CSV.
        """
        _write(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Return what :meth:`save` wrote; ArgumentError, naming the file, if it is something else.

        Raises FileNotFoundError where there is none.
        """
        given = _read(cls, path)
        given["events"] = tuple(Event(**row) for row in given.get("events", ()))
        return cls(**given)

    @classmethod
    def arrays(cls) -> tuple[str, ...]:
        """Return the names of the fields that are arrays."""
        return tuple(x.name for x in fields(cls) if x.type == "FloatArray")  # type: ignore[arg-type]

    @classmethod
    def shapes(cls, n: int, size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes that follow N and the batch, for n joints and poses of ``size``."""
        dim = 3 if size == 3 else 6
        every = {
            **dict.fromkeys(("q", "qd", "qdd", "tau"), (n,)),
            **dict.fromkeys(("V", "wrench", "momentum"), (dim,)),
            "C": (size, size),
        }
        return {name: every.get(name, ()) for name in cls.arrays()}


@dataclass(frozen=True, eq=False, repr=False)
class Motion(Trajectory):
    """States over time, and what follows from them: N instants, n coordinates; SI units.

    Arrays of a batch of simulations have its axes after the first: q is (N, ..., n).
    """

    t: FloatArray
    """(N,) time."""
    q: FloatArray
    """(N, ..., n) positions."""
    qd: FloatArray
    """(N, ..., n) rates."""
    qdd: FloatArray
    """(N, ..., n) accelerations; NaN where there are none because the mass matrix is singular."""
    tau: FloatArray
    """(N, ..., n) motor torques; where they are held, those of the step that begins."""
    kinetic: FloatArray
    """(N, ...) kinetic energy."""
    potential: FloatArray
    """(N, ...) potential energy in the field of gravity."""
    momentum: FloatArray
    """(N, ..., 6) momentum of all bodies about the inertial origin, angular part first."""
    joint_names: tuple[str, ...]
    events: tuple[Event, ...] = ()
    method: str = ""

    def __repr__(self) -> str:
        last = f"to {self.t[-1]:g} s" if len(self) else "empty"
        return f"<Motion {self.q.shape}, {last}, {self.method}>"

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the motors."""
        product: FloatArray = np.sum(self.tau * self.qd, axis=-1)
        return product

    @classmethod
    def load(cls, path: str | Path) -> Motion:
        """Return what :meth:`save` wrote; see :meth:`Trajectory.load`."""
        found: Motion = super().load(path)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class BodyMotion(Trajectory):
    """The motion of a rigid body at N instants; arrays of a batch have its axes after the first."""

    t: FloatArray
    """(N,) time in s."""
    C: FloatArray
    """(N, ..., 4, 4) poses on SE(3), or (N, ..., 3, 3) rotations on SO(3)."""
    V: FloatArray
    """(N, ..., 6) body-fixed twists, or (N, ..., 3) angular velocities."""
    momentum: FloatArray
    """Spatial momenta, of the shape of V: about the inertial origin, or the fixed point. A scheme
    that integrates the momentum returns its own; else it is that of C and V."""
    kinetic: FloatArray
    """(N, ...) kinetic energy."""
    potential: FloatArray
    """(N, ...) potential energy."""
    method: str = ""
    events: tuple[Event, ...] = ()
    wrench: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Body-fixed wrenches that were applied beside the body's own, of the shape of V; where they
    are held, those of the step that begins."""

    def __post_init__(self) -> None:
        if not self.wrench.size:
            object.__setattr__(self, "wrench", np.zeros(np.shape(self.V)))

    def __repr__(self) -> str:
        return f"<BodyMotion {self.C.shape}, {self.method}>"

    @property
    def orthogonality(self) -> FloatArray:
        """(N, ...) largest entry of R^T R - I: how well the rotation is one."""
        return _orthogonality(self.C)

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the applied wrenches."""
        product: FloatArray = np.sum(self.wrench * self.V, axis=-1)
        return product

    @classmethod
    def load(cls, path: str | Path) -> BodyMotion:
        """Return what :meth:`save` wrote; see :meth:`Trajectory.load`."""
        found: BodyMotion = super().load(path)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class FloatingMotion(Trajectory):
    """The motion of a mechanism on a floating base at N instants, with m joints beside the base.

    Arrays of a batch of simulations have its axes after the first.
    """

    t: FloatArray
    """(N,) time in s."""
    C: FloatArray
    """(N, ..., 4, 4) pose of the base."""
    V: FloatArray
    """(N, ..., 6) body-fixed twist of the base."""
    q: FloatArray
    """(N, ..., m) positions of the joints."""
    qd: FloatArray
    """(N, ..., m) rates of the joints."""
    kinetic: FloatArray
    """(N, ...) kinetic energy."""
    potential: FloatArray
    """(N, ...) potential energy in the field of gravity."""
    momentum: FloatArray
    """(N, ..., 6) momentum of all bodies about the inertial origin, angular part first."""
    joint_names: tuple[str, ...]
    tau: FloatArray = field(default_factory=lambda: np.zeros(0))
    """(N, ..., m) torques of the joints; where they are held, those of the step that begins."""
    events: tuple[Event, ...] = ()
    method: str = ""

    def __post_init__(self) -> None:
        if not self.tau.size:
            object.__setattr__(self, "tau", np.zeros(np.shape(self.q)))

    def __repr__(self) -> str:
        last = f"to {self.t[-1]:g} s" if len(self) else "empty"
        return f"<FloatingMotion {self.q.shape}, {last}, {self.method}>"

    @property
    def orthogonality(self) -> FloatArray:
        """(N, ...) largest entry of R^T R - I: how well the rotation of the base is one."""
        return _orthogonality(self.C)

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the motors."""
        product: FloatArray = np.sum(self.tau * self.qd, axis=-1)
        return product

    @classmethod
    def load(cls, path: str | Path) -> FloatingMotion:
        """Return what :meth:`save` wrote; see :meth:`Trajectory.load`."""
        found: FloatingMotion = super().load(path)
        return found


def load_motion(path: str | Path) -> Motion | BodyMotion | FloatingMotion:
    """Return what the ``save`` of any of the three results wrote, as what it is.

    Raises ArgumentError, naming the file, if it is none; FileNotFoundError where there is none.
    """
    found = _arrays_of(path)
    if "C" not in found:
        return Motion.load(path)
    return BodyMotion.load(path) if "wrench" in found else FloatingMotion.load(path)


def _orthogonality(C: FloatArray) -> FloatArray:
    R = C[..., :3, :3]
    defect: FloatArray = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2))
    return defect


def checked_single(motion: Trajectory, what: str) -> None:
    """Raise ArgumentError for a batch."""
    batch = motion.kinetic.shape[1:]
    if batch:
        raise ArgumentError(f"{what} one motion, not a batch {batch}")
