# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Frames in which pairs of bodies are combined, for matrices with an entry per pair."""

# ruff: noqa: D102 (methods are described once, in the base class)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation import formulas
from mbs_dynamics.representation.moves import IDENTITY, Operator, Representation


class CommonFrame:
    """The frames of the bodies themselves: wrenches are carried from body to body."""

    def __init__(self, rep: Representation) -> None:
        self.rep = rep
        self._carried: list[Any] = []

    def screws(self) -> Any:
        """Return the screws (6, k) of the joint of each body where pairs meet."""
        model = self.rep.model
        S = model.per_body()
        for i, _ in model.outward():
            S[i] = self.twist(i, self.rep.screw(i))
        return S

    def carried_inward(self, i: Any, *loads: Array) -> Iterator[tuple[Any, list[Array]]]:
        """Yield each body j between body i and the ground, with the loads of body i seen from j.

        Loads are wrenches (6, m), pure moments (3, m) and gyrations, given by the moves of body i.
        Pairs of screws and wrenches meet where :meth:`screws` are.
        """
        visited = self.inward_from(i, *[self.load(i, x) for x in loads])
        next(visited)
        yield from visited

    def inward_from(self, i: Any, *loads: Any) -> Iterator[tuple[Any, list[Any]]]:
        """Yield body i and each body between it and the ground, with loads given where pairs meet.

        They are seen from the yielded body.
        """
        model = self.rep.model
        while len(self._carried) < len(loads):  # containers: loops pass on nothing else
            self._carried.append(model.per_body())
        kept = self._carried[: len(loads)]
        for load, x in zip(kept, loads, strict=True):
            load[i] = x
        yield i, list(loads)
        for j, child in model.supporting(i):
            carry = self.transform(child)
            for load, x in zip(kept, loads, strict=True):
                load[i] = _carried(carry, load[i], x)
            yield j, [load[i] for load in kept]

    def transform(self, i: int) -> Operator:
        """Take a twist of the parent to body i; the transpose takes a wrench of body i back."""
        return self.rep.transform(i)

    def load(self, i: Any, load: Any) -> Any:
        """Return a load of body i, given by its moves, where pairs meet."""
        return load

    def twist(self, i: int, V: Array) -> Array:
        """Return a twist (6,) of body i, given by its moves, where pairs meet."""
        return V

    def outward(self) -> Callable[[int, Array, Array], tuple[Array, Array]]:
        """Return a function that carries a vector (3,) and a twist (6,) of a body outwards.

        It is called for the body and then for those beyond it, parents first, and returns both as
        seen from the body of the call.
        """
        carried: dict[int, tuple[Array, Array]] = {}

        def carry(j: int, turn: Array, V: Array) -> tuple[Array, Array]:
            parent = self.rep.model.parents[j]
            if parent in carried:
                to_body = self.transform(j)
                turn, V = to_body.rotated(carried[parent][0]), to_body @ carried[parent][1]
            carried[j] = turn, V
            return turn, V

        return carry


class GroundFrame(CommonFrame):
    """The inertial frame: each body takes its wrenches and twists there once, for all pairs."""

    def transform(self, i: int) -> Operator:
        return IDENTITY

    def load(self, i: Any, load: Any) -> Any:
        at = self.rep.from_ground(i)
        moved = isinstance(load, np.ndarray) and len(load) == 6
        return _carried(at, self.rep.in_one_frame(i, load) if moved else load, load)

    def twist(self, i: int, V: Array) -> Array:
        return self.rep.from_ground(i).undone(self.rep.in_one_frame(i, V))


def _carried(carry: Operator, load: Any, kind: Any) -> Any:
    """Return a load of the parent: a wrench or moment like ``kind``, or a gyration."""
    if not isinstance(kind, np.ndarray):
        return load.carried(carry)
    return carry.T @ load if len(kind) == 6 else carry.back(load)


def common_frame(rep: Representation) -> CommonFrame:
    """Return where the pairs of a model meet: in the bodies, or in the ground if it is deep."""
    deep = rep.carries and rep.model.mean_depth(2) > formulas.PAIRS_IN_GROUND
    return GroundFrame(rep) if deep else CommonFrame(rep)
