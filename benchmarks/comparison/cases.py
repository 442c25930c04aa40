# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Measured cases: mechanisms, functions and sizes of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from benchmarks.mechanisms import chain, urdf

COMPILE, ONE_STATE, BATCHES = PARTS = ("compile", "one-state", "batches")

ROBOT, SHORT, LARGE = "robot", "short chain", "large tree"
"""Kinds of mechanisms: SHORT has as few bodies as robots have, and the bounds of robots."""

ROBOTS = {
    "UR5": ("UR5", "tool0"),
    "Panda": ("Panda", "panda_hand"),
    "G1": ("G1", ""),
    "Talos": ("Talos", ""),
    "TIAGo": ("tiago_description/robots/tiago.urdf", ""),
}
"""Robots, or paths in example-robot-data, and last links; empty for all links."""

HUMANOIDS = ("G1", "Talos")
CHAINS = (30, 60)
TREE = 60
BATCH_SIZES = (64, 1000, 10_000)

FUNCTIONS = tuple(f.__name__ for f in mbs.ALGORITHMS)
"""The public algorithms. Those that the other revision lacks are not measured."""

CUBIC = ("christoffel_symbols", "forward_dynamics_derivatives", "linearize")
"""Functions that take O(n^3) operations."""

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
    return [*ROBOTS, *(f"chain of {n}" for n in CHAINS), f"binary tree of {TREE}"]


def choices() -> list[str]:
    """Return everything that ``--only`` takes."""
    return [*PARTS, *names_of_mechanisms(), *FUNCTIONS]


def mechanisms(folder: Path, *, quick: bool = False) -> list[Mechanism]:
    """Return the robots, the chains and a tree; files of the latter are written to a folder."""
    made = [
        Mechanism(name, ROBOT, {"urdf": str(urdf(source)), "tip": tip})
        for name, (source, tip) in ROBOTS.items()
    ]
    trees = {f"chain of {n}": list(range(-1, n - 1)) for n in CHAINS if not quick or n != 60}
    if not quick:
        trees[f"binary tree of {TREE}"] = [-1, *((i - 1) // 2 for i in range(1, TREE))]
    for name, parents in trees.items():
        path, bodies = folder / f"{name}.npz", chain(len(parents)).bodies
        homes = np.array([body.home_rel for body in bodies], dtype=float)
        inertias = np.array([body.inertia.matrix() for body in bodies], dtype=float)
        np.savez(path, parents=parents, homes=homes, inertias=inertias)
        kind = SHORT if len(parents) < 60 else LARGE
        made.append(Mechanism(name, kind, {"screws": str(path)}))
    return made
