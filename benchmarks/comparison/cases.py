# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Measured cases: mechanisms, functions and sizes of batches."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mbs_dynamics as mbs

COMPILE, ONE_STATE, BATCHES, START = PARTS = ("compile", "one-state", "batches", "start")

ROBOT, SHORT, LARGE = "robot", "short chain", "large tree"
"""Kinds of mechanisms: SHORT has as few bodies as robots have, and the bounds of robots."""

URDFS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
    "Panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", ""),
    "Talos": ("talos_data/robots/talos_reduced.urdf", ""),
    "TIAGo": ("tiago_description/robots/tiago.urdf", ""),
}
"""Path in example-robot-data and last link, if not all links are wanted."""

HUMANOIDS = ("G1", "Talos")
CHAINS = (30, 60, 100, 200)
TREE = 100
BATCH_SIZES = (64, 1000, 10_000)

ADDED = (
    "center_of_mass_jacobian",
    "center_of_mass_jacobian_rate",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "difference",
    "displaced",
    "dynamically_consistent_inverse",
    "null_space_projector",
    "operational_space_bias",
    "operational_space_inertia",
    "pose",
    "position_rates",
)
"""Algorithms that older revisions lack."""

FUNCTIONS = tuple(f.__name__ for f in mbs.ALGORITHMS if f.__name__ not in ADDED)
"""The public algorithms that both revisions have."""

CUBIC = ("christoffel_symbols",)
"""Functions with O(n^3) results."""

MOST_USED = (
    "forward_kinematics",
    "jacobian",
    "inverse_dynamics",
    "gravity_torques",
    "mass_matrix",
    "inverse_mass_matrix",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
)


@dataclass(frozen=True)
class Mechanism:
    """A mechanism, and what a worker builds it from."""

    name: str
    kind: str
    description: Mapping[str, Any]


@dataclass(frozen=True)
class Subject:
    """A function with its options."""

    function: str
    representation: str = ""

    @property
    def label(self) -> str:
        """Its name in the tables."""
        return ", ".join(filter(None, (self.function, self.representation)))

    @property
    def options(self) -> dict[str, str]:
        """Further arguments of ``compile``, beside the required ones."""
        return {"representation": self.representation} if self.representation else {}


@dataclass(frozen=True)
class Job:
    """One function of one mechanism, with what is measured of it."""

    mechanism: Mechanism
    subject: Subject
    compiled: bool
    one_state: bool
    batches: Sequence[int] = ()


@dataclass(frozen=True)
class Selection:
    """Selection of cases by the command line."""

    quick: bool = False
    only: Sequence[str] = ()

    def wants(self, name: str, among: Sequence[str]) -> bool:
        """Whether a name is chosen; all are where none of its kind is named."""
        named = [x for x in self.only if x in among]
        return not named or name in named

    def wants_start(self) -> bool:
        """Whether the start of a process is measured: if named, or if nothing is."""
        return not self.only or START in self.only

    def jobs(self, mechanisms: Sequence[Mechanism]) -> Iterator[Job]:
        """Yield what there is to measure, one mechanism after the other."""
        for mechanism in mechanisms:
            if self.wants(mechanism.name, names_of_mechanisms()):
                yield from filter(None, (self._job(mechanism, x) for x in subjects()))

    def _job(self, mechanism: Mechanism, subject: Subject) -> Job | None:
        if not self.wants(subject.function, FUNCTIONS):
            return None
        compiled = self.wants(COMPILE, PARTS) and not subject.representation
        timed = not self.quick or (subject.function in MOST_USED and not subject.representation)
        one_state = timed and self.wants(ONE_STATE, PARTS)
        sizes: Sequence[int] = ()
        if timed and mechanism.kind == ROBOT and self.wants(BATCHES, PARTS):
            sizes = BATCH_SIZES[:-1] if self.quick else BATCH_SIZES
        if not timed and mechanism.name != "Panda":  # of which all functions have one bound
            return None
        if not (compiled or one_state or sizes):
            return None
        return Job(mechanism, subject, compiled, one_state, sizes)


def subjects() -> Iterator[Subject]:
    """Yield every function, and the Jacobian in further frames."""
    for function in FUNCTIONS:
        yield Subject(function)
        if function == "jacobian":
            yield Subject(function, "spatial")
            yield Subject(function, "hybrid")


def names_of_mechanisms() -> list[str]:
    """Return what can be chosen."""
    return [*URDFS, *(f"chain of {n}" for n in CHAINS), f"binary tree of {TREE}"]


def choices() -> list[str]:
    """Return everything that ``--only`` takes."""
    return [*PARTS, *names_of_mechanisms(), *FUNCTIONS]


def mechanisms(*, quick: bool = False) -> list[Mechanism]:
    """Return the robots, the chains and a tree.

    Raises FileNotFoundError if example-robot-data does not contain a robot.
    """
    found = [
        Mechanism(name, ROBOT, {"urdf": _urdf(below), "tip": tip})
        for name, (below, tip) in URDFS.items()
    ]
    for n in CHAINS:
        kind = SHORT if n < 60 else LARGE
        if not quick or n != 60:
            found.append(Mechanism(f"chain of {n}", kind, {"parents": list(range(-1, n - 1))}))
    if not quick:
        parents = [-1, *((i - 1) // 2 for i in range(1, TREE))]
        found.append(Mechanism(f"binary tree of {TREE}", LARGE, {"parents": parents}))
    return found


def _urdf(below: str) -> str:
    try:
        distribution = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        raise FileNotFoundError("the robots need example-robot-data (pip install it)") from None
    found = [file for file in distribution.files or () if str(file).endswith(below)]
    if not found:
        raise FileNotFoundError(f"example-robot-data {distribution.version} has no {below}")
    return str(Path(str(distribution.locate_file(found[0]))))
