# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A traced function whose loops have stayed loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMNS,
    EACH,
    INWARD,
    OUTER,
    OWN,
    PAIRS,
    ROWS,
    Forest,
    Place,
)
from mbs_dynamics.compiler.frontend.program import KIND, Operations, Program
from mbs_dynamics.compiler.frontend.spans import ALL, BEYOND, SINCE

PARTS = {
    (ROWS, OWN, OWN): {0},
    (PAIRS, OUTER, OWN): {1},
    (PAIRS, OWN, OUTER): {-1},
    (ALL, OWN, EACH): {-1, 0, 1},
    (SINCE, OWN, EACH): {0, 1},
    (SINCE, EACH, OWN): {-1, 0},
}
"""Parts of a matrix, on (0), above and below the diagonal, that a loop computes."""

Node = Symbol | Condition


class Store(NamedTuple):
    """What goes to a place, not before so many nodes have been evaluated."""

    place: Place
    value: Any
    after: int


@dataclass(frozen=True, eq=False)
class Turn:
    """What a turn of a loop does for one kind of row."""

    nodes: tuple[Node, ...]
    stores: tuple[Store, ...]

    @cached_property
    def signature(self) -> Any:
        """The same for turns that do the same."""
        order = {node.id: k for k, node in enumerate(self.nodes)}

        def name(x: Any) -> Any:
            return order[x.id] if isinstance(x, (Symbol, Condition)) else ("number", x)

        nodes = tuple((node.op, *(name(x) for x in node.args)) for node in self.nodes)
        return nodes, tuple((store.place, name(store.value)) for store in self.stores)


@dataclass(frozen=True, eq=False)
class Step:
    """A loop over rows, in the one direction or the other, with a turn for each kind."""

    sort: str
    direction: str
    span: str
    turns: Mapping[int, Turn]


class Home(NamedTuple):
    """Where in an output a container is kept, and what says where a row stands there."""

    port: str
    by: str
    across: str
    first: int
    """Index of the first entry in the flat output."""
    strides: tuple[int, int, int]
    """How far apart rows, columns and entries are."""


class LoopProgram(Program):
    """A program as loops. Its nodes are those of the same function traced without loops."""

    in_loops = True

    forest: Forest
    steps: tuple[Step, ...]
    early: Mapping[int, Turn]
    """What computes the angles of each kind of row, before all steps."""
    angles: tuple[int, ...]
    """The first of three values each, of every row: an angle, its sine, its cosine."""
    slots: int
    """Number of values of every row."""
    tables: tuple[NDArray[np.float64], ...]
    matrices: tuple[tuple[int, int, int, int], ...]
    blocks: Mapping[int, tuple[str, int]]
    places: Mapping[str, NDArray[np.int64]]
    """Numbers of the rows in inputs and outputs, by name; -1 for rows that are not in them."""
    rows: Mapping[str, tuple[str, int]]
    """For each input with entries of each row the name of these numbers, and how far the entries of
    the next number are."""
    slot_homes: Mapping[int, Home]
    matrix_homes: Mapping[int, Home]
    numbers: Mapping[str, NDArray[np.float64]]
    """Flat outputs of which some entries are numbers; these, and zeros elsewhere."""
    guard_slots: tuple[tuple[int, str], ...]
    """Values that must be positive in all rows, and in which direction rows are looked at."""

    def __init__(self, *, expand: Callable[[], Program], **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_expand", expand)

    @cached_property
    def expanded(self) -> Program:
        """The same function without loops."""
        expand: Callable[[], Program] = self._expand  # type: ignore[attr-defined]
        return expand()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the same function without loops."""
        return self.expanded.nodes

    @property
    def values(self) -> tuple[tuple[Symbol | float, ...], ...]:
        """The entries of the outputs of the same function without loops."""
        return self.expanded.values

    @property
    def operations(self) -> Operations:
        """How many operations of each kind one evaluation takes."""
        counts: dict[str, int] = {}
        loops = [(ALL, "", self.early), *((s.sort, s.span, s.turns) for s in self.steps)]
        for sort, span, turns in loops:
            for kind, turn in list(turns.items())[: 1 if sort == PAIRS else None]:
                times = sum(self.passes(sort, span, kind))
                for node in turn.nodes:
                    if node.op in KIND:
                        counts[KIND[node.op]] = counts.get(KIND[node.op], 0) + times
        trigonometric = 2 * len(self.angles) * self.forest.count
        return Operations(**{**counts, "trigonometric": trigonometric})

    @property
    def has_wide_loops(self) -> bool:
        """Whether there are loops over pairs or columns, of which lanes do several at once."""
        return any(step.sort != ROWS for step in self.steps)

    def fills(self, matrix: int) -> bool:
        """Whether all of a matrix is computed, if rows form a chain."""
        parts = set()
        for step in self.steps:
            for turn in step.turns.values():
                for place, *_ in turn.stores:
                    if (place.space, place.name) == (CELL, matrix):
                        key = step.span or step.sort, place.role, place.other
                        parts |= {(place.k, part) for part in PARTS.get(key, ())}
        return len(parts) == 3 * self.entries(matrix)

    def entries(self, matrix: int) -> int:
        """Return how many entries a cell of a matrix has."""
        return int(self.matrices[matrix][3] // max(self.forest.count**2, 1))

    def matrix_in_place(self, number: int) -> bool:
        """Whether a matrix is an output as it is, of this size and layout."""
        home, (*strides, size) = self.matrix_homes[number], self.matrices[number]
        port = next(port for port in self.outputs if port.name == home.port)
        in_order = self.in_order(home.by) and self.in_order(home.across)
        return in_order and port.size == size and tuple(strides) == home.strides

    def value_in_place(self, slot: int) -> bool:
        """Whether the values of all rows are an output as they are."""
        home = self.slot_homes[slot]
        port = next(port for port in self.outputs if port.name == home.port)
        return self.in_order(home.by) and port.size == self.forest.count

    def in_order(self, by: str) -> bool:
        """Whether rows stand in inputs and outputs where they stand here."""
        return bool((self.places[by] == np.arange(self.forest.count)).all())

    def passes(self, sort: str, span: str, kind: int) -> list[int]:
        """Return for each row of a kind how often the operations of a turn are done."""
        ends, count = self.forest.ends, self.forest.count
        if sort == PAIRS:
            return [ends[i] - i - 1 for i in range(count)]
        rows = [i for i in range(count) if self.forest.kinds[i] == kind]
        if sort != COLUMNS:
            return [1] * len(rows)
        if span == BEYOND:
            return [ends[i] - i for i in rows]
        first, end = self.forest.trees
        return [int(end[i] - (first[i] if span == ALL else i)) for i in rows]


def columns_of(direction: str, parents: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return where the columns of rows stand in a block, (count, 3), and how many places it has.

    For each row where its own are, where those of its parent are read, and where they are written.
    Place 0 holds zeros. Places are used again once a row is done with.
    """
    count = len(parents)
    places = np.zeros((count, 3), dtype=np.int64)
    home: dict[int, int] = {}
    free: list[int] = []
    top = 1

    def new() -> int:
        nonlocal top
        if free:
            return free.pop()
        top += 1
        return top - 1

    last = {p: i for i, p in enumerate(parents)}
    for i in reversed(range(count)) if direction == INWARD else range(count):
        p = parents[i]
        if direction == INWARD:
            own = home.pop(i, None)
            places[i, 0] = own or 0
            if p in home:
                places[i, 1:] = home[p]
                if own:
                    free.append(own)
            elif p >= 0:
                home[p] = own or new()
                places[i, 2] = home[p]
            elif own:
                free.append(own)
        else:
            places[i, 1] = home.get(p, 0)
            takes_over = p in home and last[p] == i
            home[i] = home[p] if takes_over else new()
            places[i, 0] = home[i]
            if i not in last:
                free.append(home[i])
    return places, top
