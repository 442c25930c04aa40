# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulation returns, with named arrays: of joints, of a body, of a floating mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import motion_files

MOTIONS = motion_files.KINDS
"""Kinds of files of motions."""


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
        motion_files.write(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Return what :meth:`save` wrote; ArgumentError, naming the file, if it is something else.

        Raises FileNotFoundError where there is none.
        """
        given = motion_files.read(cls, path)
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
    found = motion_files.arrays_of(path)
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
