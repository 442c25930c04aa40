# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of simulations, with named arrays, and their files: .npz and .csv."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, shortened
from mbs_dynamics.files import read_arrays, read_table

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
    with _refused(source):
        return _read_npz(kind, source) if source.suffix == ".npz" else _read_csv(kind, source)


@contextmanager
def _refused(source: Path) -> Iterator[None]:
    """Raise ArgumentError for whatever is raised while a file is read."""
    try:
        yield
    except (ArgumentError, FileNotFoundError):
        raise
    except Exception as error:  # NumPy raises anything for arrays of other shapes
        said = shortened(str(error) or type(error).__name__)
        raise ArgumentError(f"{source} is no {source.suffix} file of a motion: {said}") from error


def _arrays_of(path: str | Path) -> set[str]:
    """Return the names of the arrays in a file."""
    source = _known(path)
    with _refused(source):
        if source.suffix == ".csv":
            return {label.partition(":")[0] for label in read_table(source).names}
        return set(read_arrays(source))


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
    data = read_arrays(source)
    states = [f"event_{name}" for name in _states(kind)]
    joints = ["joint_names"] if "q" in kind.arrays() else []
    wanted = (*_fields(kind), *joints, "method", "event_names", "event_t", *states)
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
    table = read_table(source)
    head = table.names
    joints = [x[2:] for x in head if x.startswith("q:")]
    size = 3 if sum(x.startswith("C:") for x in head) == 9 else 4
    if head != _header(kind, joints, size):
        raise ArgumentError(f"{source} is no file of a motion: its first line is not the header")
    data = np.stack([table.column(k) for k in range(len(head))], axis=1)
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
    """A zero of an event function."""

    name: str
    t: float
    """Time in s."""
    q: FloatArray
    """(n,) positions at t, without those of a floating base; empty for a body."""
    qd: FloatArray
    """(n,) rates at t."""
    C: FloatArray | None = None
    """Pose or rotation of a body or floating base at t; None for other results."""
    V: FloatArray | None = None
    """Its body-fixed twist or angular velocity at t."""
    member: tuple[int, ...] = ()
    """Index of the simulation in a batch."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trajectory:
    """Common part of all results of simulations: N instants, energies, events, files.

    Units are SI. Arrays of a batch of simulations have its axes after the first.
    """

    t: FloatArray
    """(N,) time in s."""
    kinetic: FloatArray
    """(N, ...) kinetic energy in J."""
    potential: FloatArray
    """(N, ...) potential energy in the field of gravity, in J."""
    momentum: FloatArray
    """(N, ..., 6) total momentum about the inertial origin, angular part first."""
    method: str = ""
    events: tuple[Event, ...] = ()

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        last = f"to {self.t[-1]:g} s" if len(self) else "empty"
        shape = getattr(self, "q", self.kinetic).shape
        return f"<{type(self).__name__} {shape}, {last}, {self.method}>"

    @property
    def energy(self) -> FloatArray:
        """(N, ...) sum of kinetic and potential energy, in J."""
        return self.kinetic + self.potential

    def save(self, path: str | Path) -> None:
        """Write a file ``.npz`` with all arrays by name, or ``.csv`` with a column for each entry.

        A CSV file contains no events. Raises ArgumentError for another kind of file, or for a batch
        and CSV.
        """
        _write(self, path)

    @classmethod
    def load(cls: type[T], path: str | Path) -> T:
        """Return the result that :meth:`save` wrote.

        Raises ArgumentError, naming the file, for other contents; FileNotFoundError.
        """
        given = _read(cls, path)
        given["events"] = tuple(Event(**row) for row in given.get("events", ()))
        return cls(**given)

    @classmethod
    def arrays(cls) -> tuple[str, ...]:
        """Return the names of the fields that are arrays."""
        return tuple(x.name for x in fields(cls) if x.type == "FloatArray")

    @classmethod
    def shapes(cls, n: int, size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes after N and the batch, for n joints and poses of ``size`` rows."""
        dim = 3 if size == 3 else 6
        every = {
            **dict.fromkeys(JOINTS, (n,)),
            **dict.fromkeys(("V", "wrench", "momentum"), (dim,)),
            "C": (size, size),
        }
        return {name: every.get(name, ()) for name in cls.arrays()}


T = TypeVar("T", bound=Trajectory)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Joints(Trajectory):
    """The part of joints, with n coordinates."""

    q: FloatArray
    """(N, ..., n) positions in rad or m."""
    qd: FloatArray
    """(N, ..., n) rates in rad/s or m/s."""
    tau: FloatArray
    """(N, ..., n) motor torques in N m or N; if held, those of the step that begins."""
    joint_names: tuple[str, ...]

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the motors in W."""
        return np.asarray(np.sum(self.tau * self.qd, axis=-1))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Pose(Trajectory):
    """The part of a body that moves freely."""

    C: FloatArray
    """(N, ..., 4, 4) poses, or (N, ..., 3, 3) rotations of a body on SO(3)."""
    V: FloatArray
    """(N, ..., 6) body-fixed twists, or (N, ..., 3) angular velocities."""

    @property
    def orthogonality(self) -> FloatArray:
        """(N, ...) largest entry of R^T R - I: the deviation of R from a rotation matrix."""
        R = self.C[..., :3, :3]
        return np.asarray(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2)))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Motion(_Joints):
    """The motion of a model in its coordinates: the result of :func:`simulate`."""

    qdd: FloatArray
    """(N, ..., n) accelerations; NaN where the mass matrix is singular."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BodyMotion(_Pose):
    """The motion of a rigid body: the result of :func:`simulate_body`.

    ``momentum`` has the shape of V: it is about the inertial origin, or the fixed point. Schemes
    that integrate the momentum return their own; otherwise it is that of C and V.
    """

    wrench: FloatArray
    """Body-fixed wrenches in addition to those of the body itself, of the shape of V; if held,
    those of the step that begins."""

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the applied wrenches in W."""
        return np.asarray(np.sum(self.wrench * self.V, axis=-1))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FloatingMotion(_Joints, _Pose):
    """The motion of a mechanism on a floating base: the result of :func:`simulate_floating`.

    C and V are those of the base; q, qd and tau of the n other joints.
    """


def load_motion(path: str | Path) -> Motion | BodyMotion | FloatingMotion:
    """Return a result of any kind from a file that its ``save`` wrote.

    Raises ArgumentError, naming the file, for other contents; FileNotFoundError.
    """
    found = _arrays_of(path)
    if "C" not in found:
        return Motion.load(path)
    return BodyMotion.load(path) if "wrench" in found else FloatingMotion.load(path)


def is_motion(path: Path) -> bool:
    """Return whether a file of a kind in MOTIONS is one that ``save`` wrote.

    Raises ArgumentError for a file that cannot be read.
    """
    return path.is_file() and "kinetic" in _arrays_of(path)


def check_joints(motion: Motion | FloatingMotion, joint_names: tuple[str, ...]) -> None:
    """Raise ArgumentError unless a model with these joints can have the motion."""
    names = joint_names[6 if isinstance(motion, FloatingMotion) else 0 :]
    if motion.joint_names != names:
        raise ArgumentError(
            f"the motion has the joints {', '.join(motion.joint_names)}; the model has "
            f"{', '.join(names)}"
        )


def checked_single(motion: Trajectory, what: str) -> None:
    """Raise ArgumentError for a batch."""
    batch = motion.kinetic.shape[1:]
    if batch:
        raise ArgumentError(f"{what} one motion, not a batch {batch}")
