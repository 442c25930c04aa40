# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What a simulation returns, with named arrays, and how it is saved."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError

MOMENTUM_NAMES = ("Lx", "Ly", "Lz", "Px", "Py", "Pz")
"""The entries of the momentum, as a CSV file calls them."""


class Event(NamedTuple):
    """An event function was zero."""

    name: str
    t: float
    """When, in s."""
    q: FloatArray
    """(n,) positions then."""
    qd: FloatArray
    """(n,) rates then."""


@dataclass(frozen=True, eq=False, repr=False)
class Motion:
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

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        last = f"to {self.t[-1]:g} s" if len(self) else "empty"
        return f"<Motion {self.q.shape}, {last}, {self.method}>"

    @property
    def energy(self) -> FloatArray:
        """(N, ...) kinetic and potential energy."""
        return self.kinetic + self.potential

    @property
    def power(self) -> FloatArray:
        """(N, ...) power of the motors."""
        product: FloatArray = np.sum(self.tau * self.qd, axis=-1)
        return product

    def save(self, path: str | Path) -> None:
        """Write a file ``.npz`` with all arrays by name, or ``.csv`` with a column for each entry.

        CSV has no events, and no batches. Raises ArgumentError for another kind of file, or a batch
        into CSV.
        """
        target = _known(path)
        if target.suffix == ".npz":
            times = [event.t for event in self.events]
            shape = (-1, *self.q.shape[1:])
            np.savez_compressed(
                target,
                **{name: getattr(self, name) for name in ARRAYS},
                joint_names=np.array(self.joint_names),
                method=np.array(self.method),
                event_names=np.array([event.name for event in self.events], dtype=str),
                event_t=np.array(times),
                event_q=np.array([event.q for event in self.events]).reshape(shape),
                event_qd=np.array([event.qd for event in self.events]).reshape(shape),
            )
            return
        if self.q.ndim != 2:
            raise ArgumentError(f"a CSV file takes one motion, not a batch {self.q.shape[1:-1]}")
        columns = [self.t[:, None], self.q, self.qd, self.qdd, self.tau]
        columns += [self.kinetic[:, None], self.potential[:, None], self.momentum]
        with target.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(_header(self.joint_names))
            writer.writerows([repr(float(x)) for x in row] for row in np.hstack(columns))

    @classmethod
    def load(cls, path: str | Path) -> Motion:
        """Return what :meth:`save` wrote; ArgumentError, naming the file, if it is something else.

        Raises FileNotFoundError where there is none.
        """
        source = _known(path)
        return _load_npz(source) if source.suffix == ".npz" else _load_csv(source)


ARRAYS = tuple(field.name for field in fields(Motion) if field.type == "FloatArray")
"""The fields that are arrays."""


def _known(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix not in (".npz", ".csv"):
        raise ArgumentError(f"path must end in .npz or .csv; got {str(path)!r}")
    return target


def _header(joint_names: Sequence[str]) -> list[str]:
    states = [f"{what}:{name}" for what in ("q", "qd", "qdd", "tau") for name in joint_names]
    return ["t", *states, "kinetic", "potential", *MOMENTUM_NAMES]


def _load_npz(source: Path) -> Motion:
    try:
        with np.load(source, allow_pickle=False) as file:
            data: dict[str, Any] = dict(file)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ArgumentError(f"{source} is no .npz file of a motion: {error}") from error
    wanted = (*ARRAYS, "joint_names", "method", "event_names", "event_t", "event_q", "event_qd")
    missing = [name for name in wanted if name not in data]
    if missing:
        raise ArgumentError(f"{source} is no file of a motion: it has no {', '.join(missing)}")
    arrays = {name: data[name] for name in ARRAYS}
    _check_shapes(source, arrays, len(data["joint_names"]))
    rows = zip(*(data[f"event_{x}"] for x in ("names", "t", "q", "qd")), strict=True)
    return Motion(
        **arrays,
        joint_names=tuple(map(str, data["joint_names"])),
        events=tuple(Event(str(name), float(t), q, qd) for name, t, q, qd in rows),
        method=str(data["method"]),
    )


def _load_csv(source: Path) -> Motion:
    with source.open(newline="") as file:
        rows = list(csv.reader(file))
    names = [x[2:] for x in rows[0] if x.startswith("q:")] if rows else []
    if not rows or rows[0] != _header(names):
        raise ArgumentError(f"{source} is no file of a motion: its first line is not the header")
    n, width = len(names), len(rows[0])
    wrong = [k for k, row in enumerate(rows, 1) if len(row) != width]
    if wrong:
        raise ArgumentError(f"{source}, line {wrong[0]}: there must be {width} numbers")
    try:
        data = np.array(rows[1:], dtype=float).reshape(-1, width)
    except ValueError as error:
        raise ArgumentError(f"{source}: {error}") from error
    t, q, qd, qdd, tau, kinetic, potential, momentum = np.split(
        data, np.cumsum([1, n, n, n, n, 1, 1]), axis=1
    )
    scalars = t[:, 0], kinetic[:, 0], potential[:, 0]
    return Motion(scalars[0], q, qd, qdd, tau, *scalars[1:], momentum, tuple(names))


def _check_shapes(source: Path, arrays: dict[str, Any], n: int) -> None:
    lead = np.shape(arrays["q"])[:-1]
    states = dict.fromkeys(("q", "qd", "qdd", "tau"), (*lead, n))
    valid = {**states, "kinetic": lead, "potential": lead, "momentum": (*lead, 6), "t": lead[:1]}
    for name, array in arrays.items():
        if array.shape != valid[name] or array.dtype != np.float64:
            raise ArgumentError(
                f"{source}: {name} is {array.dtype} {array.shape}; valid is float64 {valid[name]}"
            )
