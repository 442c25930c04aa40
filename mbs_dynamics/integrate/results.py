# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of simulations, with named arrays, and their files: .npz and .csv."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, shortened
from mbs_dynamics.files import read_arrays, read_table

MOTIONS = (".npz", ".csv")
"""Kinds of files of motions."""

MOMENTUM_NAMES = ("Lx", "Ly", "Lz", "Px", "Py", "Pz")
"""The entries of the momentum, as a CSV file calls them."""

ORDER = ("t", "q", "qd", "qdd", "tau", "kinetic", "potential", "momentum")
"""The arrays, in the order of the columns of a CSV file."""


def _known(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix not in MOTIONS:
        raise ArgumentError(f"path must end in {', '.join(MOTIONS)}; got {str(path)!r}")
    return target


@contextmanager
def _refused(source: Path) -> Iterator[None]:
    """Raise ArgumentError for any exception while a file is read."""
    try:
        yield
    except (ArgumentError, FileNotFoundError):
        raise
    except Exception as error:  # NumPy raises anything for arrays of other shapes
        cause = shortened(str(error) or type(error).__name__)
        raise ArgumentError(f"{source} is no {source.suffix} file of a motion: {cause}") from error


def _shapes(positions: Sequence[str], joints: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays, after the axes of time and batch."""
    n = (len(joints),)
    every = {"q": (len(positions),), "qd": n, "qdd": n, "tau": n, "momentum": (6,)}
    return {name: every.get(name, ()) for name in ORDER}


def _read_npz(source: Path) -> dict[str, Any]:
    """Return the fields of a motion, events as a list of dicts."""
    data = read_arrays(source)
    events = ("event_names", "event_t", "event_q", "event_qd")
    missing = [name for name in (*ORDER, "joint_names", "method", *events) if name not in data]
    if missing:
        raise ArgumentError(f"{source} is no file of a motion: it has no {', '.join(missing)}")
    joints = tuple(map(str, data["joint_names"]))
    positions = tuple(map(str, data.get("position_names", joints)))
    lead = np.shape(data["kinetic"])
    for name, shape in _shapes(positions, joints).items():
        valid, array = lead[:1] if name == "t" else (*lead, *shape), data[name]
        if array.shape != valid or array.dtype != np.float64:
            raise ArgumentError(
                f"{source}: {name} is {array.dtype} {array.shape}; valid is float64 {valid}"
            )
    count = len(data["event_t"])
    members = data.get("event_member", np.zeros((count, 0), dtype=int))
    event_list = [
        Event(
            str(data["event_names"][k]),
            float(data["event_t"][k]),
            data["event_q"][k],
            data["event_qd"][k],
            tuple(map(int, members[k])),
        )
        for k in range(count)
    ]
    return {
        **{name: data[name] for name in ORDER},
        "joint_names": joints,
        "position_names": positions,
        "method": str(data["method"]),
        "events": tuple(event_list),
    }


def _header(positions: Sequence[str], joints: Sequence[str]) -> list[str]:
    names = {"q": positions, **dict.fromkeys(("qd", "qdd", "tau"), joints)}
    labels: list[str] = []
    for name in ORDER:
        own = names.get(name)
        some = [name] if own is None else [f"{name}_{each}" for each in own]
        labels += MOMENTUM_NAMES if name == "momentum" else some
    return labels


def _read_csv(source: Path) -> dict[str, Any]:
    table = read_table(source)
    head = table.names
    positions, joints = ([x[len(k) :] for x in head if x.startswith(k)] for k in ("q_", "qd_"))
    if head != _header(positions, joints):
        raise ArgumentError(f"{source} is no file of a motion: its first line is not the header")
    data = np.stack([table.column(k) for k in range(len(head))], axis=1)
    given: dict[str, Any] = {"joint_names": tuple(joints), "position_names": tuple(positions)}
    begun = 0
    for name, shape in _shapes(positions, joints).items():
        width = math.prod(shape)
        given[name] = data[:, begun : begun + width].reshape(len(data), *shape)
        begun += width
    return given


class Event(NamedTuple):
    """A zero of an event function."""

    name: str
    t: float
    """Time in s."""
    q: FloatArray
    """(nq,) positions at t."""
    qd: FloatArray
    """(n,) rates at t."""
    member: tuple[int, ...] = ()
    """Index of the simulation in a batch."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Motion:
    """The motion of a model, the result of :func:`simulate`: N instants, energies, events, files.

    Units are SI. Arrays of a batch of simulations have its axes after the first.
    """

    t: FloatArray
    """(N,) time in s."""
    q: FloatArray
    """(N, ..., nq) positions in rad or m."""
    qd: FloatArray
    """(N, ..., n) rates in rad/s or m/s."""
    qdd: FloatArray
    """(N, ..., n) accelerations; NaN where the mass matrix is singular."""
    tau: FloatArray
    """(N, ..., n) motor torques in N m or N; if held, those of the step that begins."""
    kinetic: FloatArray
    """(N, ...) kinetic energy in J."""
    potential: FloatArray
    """(N, ...) potential energy in the field of gravity, in J."""
    momentum: FloatArray
    """(N, ..., 6) total momentum about the inertial origin, angular part first."""
    joint_names: tuple[str, ...]
    """Names of the n rates: those of the joints, with an index where a joint has several."""
    position_names: tuple[str, ...] = ()
    """Names of the nq positions; those of the rates if empty."""
    method: str = ""
    events: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        if not self.position_names:
            object.__setattr__(self, "position_names", self.joint_names)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        last = f"to {self.t[-1]:g} s" if len(self) else "empty"
        return f"<{type(self).__name__} {self.q.shape}, {last}, {self.method}>"

    @property
    def energy(self) -> FloatArray:
        """(N, ...) sum of kinetic and potential energy, in J."""
        return self.kinetic + self.potential

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the motors in W."""
        return np.asarray(np.sum(self.tau * self.qd, axis=-1))

    def save(self, path: str | Path) -> None:
        """Write a file ``.npz`` with all arrays by name, or ``.csv`` with a column for each entry.

        A CSV file contains no events. Raises ArgumentError for another kind of file, or for a batch
        and CSV.
        """
        target = _known(path)
        if target.suffix == ".npz":
            np.savez_compressed(target, **self._named())
            return
        checked_single(self, "a CSV file takes")
        columns = [getattr(self, name).reshape(len(self), -1) for name in ORDER]
        with target.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(_header(self.position_names, self.joint_names))
            writer.writerows([repr(float(x)) for x in row] for row in np.hstack(columns))

    def _named(self) -> dict[str, Any]:
        """Return the arrays of a file .npz by name."""
        named: dict[str, Any] = {name: getattr(self, name) for name in ORDER}
        for name in ("joint_names", "position_names"):
            named[name] = np.array(getattr(self, name), dtype=str)
        events = self.events
        named["method"] = np.array(self.method)
        named["event_names"] = np.array([event.name for event in events], dtype=str)
        named["event_t"] = np.array([event.t for event in events])
        members = np.array([event.member for event in events], dtype=int)
        named["event_member"] = members.reshape(len(events), self.kinetic.ndim - 1)
        for name in ("q", "qd"):
            rows = np.array([getattr(event, name) for event in events])
            named[f"event_{name}"] = rows.reshape(len(events), getattr(self, name).shape[-1])
        return named

    @classmethod
    def load(cls, path: str | Path) -> Motion:
        """Return the result that :meth:`save` wrote.

        Raises ArgumentError, naming the file, for other contents; FileNotFoundError.
        """
        source = _known(path)
        with _refused(source):
            return cls(**(_read_npz(source) if source.suffix == ".npz" else _read_csv(source)))


def load_motion(path: str | Path) -> Motion:
    """Return the result of a simulation from a file that its ``save`` wrote: Motion.load."""
    return Motion.load(path)


def is_motion(path: Path) -> bool:
    """Return whether a file of a kind in MOTIONS is one that ``save`` wrote.

    Raises ArgumentError for a file that cannot be read.
    """
    if not path.is_file():
        return False
    with _refused(path):
        names = read_table(path).names if path.suffix == ".csv" else read_arrays(path)
        return "kinetic" in names


def checked_single(motion: Motion, what: str) -> None:
    """Raise ArgumentError for a batch."""
    batch = motion.kinetic.shape[1:]
    if batch:
        raise ArgumentError(f"{what} one motion, not a batch {batch}")
