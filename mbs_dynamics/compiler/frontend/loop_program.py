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

from mbs_dynamics.compiler.frontend.domains import ALL, BEYOND, SINCE
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
    Address,
    Forest,
)
from mbs_dynamics.compiler.frontend.program import KIND, Operations, Program

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


class Assignment(NamedTuple):
    """What goes to an address, not before so many nodes have been evaluated."""

    address: Address
    value: Any
    after: int


@dataclass(frozen=True, eq=False)
class LoopBody:
    """What an iteration of a loop does for one kind of row."""

    nodes: tuple[Node, ...]
    stores: tuple[Assignment, ...]

    @cached_property
    def signature(self) -> Any:
        """The same for loop_bodies that do the same."""
        order = {node.id: k for k, node in enumerate(self.nodes)}

        def name(x: Any) -> Any:
            return order[x.id] if isinstance(x, (Symbol, Condition)) else ("number", x)

        nodes = tuple((node.op, *(name(x) for x in node.args)) for node in self.nodes)
        return nodes, tuple((store.address, name(store.value)) for store in self.stores)


@dataclass(frozen=True, eq=False)
class Step:
    """A loop over rows, in the one direction or the other, with a body for each kind."""

    sort: str
    direction: str
    domain: str
    loop_bodies: Mapping[int, LoopBody]


class OutputBinding(NamedTuple):
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
    hoisted: Mapping[int, LoopBody]
    """What computes the angles of each kind of row, before all steps."""
    angles: tuple[int, ...]
    """The first of three values each, of every row: an angle, its sine, its cosine."""
    fields: int
    """Number of values of every row."""
    tables: tuple[NDArray[np.float64], ...]
    matrices: tuple[tuple[int, int, int, int], ...]
    blocks: Mapping[int, tuple[str, int]]
    places: Mapping[str, NDArray[np.int64]]
    """Numbers of the rows in inputs and outputs, by name; -1 for rows that are not in them."""
    rows: Mapping[str, tuple[str, int]]
    """For each input with entries of each row the name of these numbers, and how far the entries of
    the next number are."""
    value_bindings: Mapping[int, OutputBinding]
    matrix_bindings: Mapping[int, OutputBinding]
    numbers: Mapping[str, NDArray[np.float64]]
    """Flat outputs of which some entries are numbers; these, and zeros elsewhere."""
    guard_fields: tuple[tuple[int, str], ...]
    """Values that must be positive in all rows, and in which direction rows are looked at."""

    def __init__(self, *, expand: Callable[[], Program], **attributes: Any) -> None:
        for name, value in attributes.items():
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
        loops = [(ALL, "", self.hoisted), *((s.sort, s.domain, s.loop_bodies) for s in self.steps)]
        for sort, domain, loop_bodies in loops:
            for kind, loop_body in list(loop_bodies.items())[: 1 if sort == PAIRS else None]:
                times = sum(self.passes(sort, domain, kind))
                for node in loop_body.nodes:
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
            for loop_body in step.loop_bodies.values():
                for address, *_ in loop_body.stores:
                    if (address.space, address.name) == (CELL, matrix):
                        key = step.domain or step.sort, address.row, address.column
                        parts |= {(address.k, part) for part in PARTS.get(key, ())}
        return len(parts) == 3 * self.entries(matrix)

    def entries(self, matrix: int) -> int:
        """Return how many entries a cell of a matrix has."""
        return int(self.matrices[matrix][3] // max(self.forest.count**2, 1))

    def matrix_in_place(self, number: int) -> bool:
        """Whether a matrix is an output as it is, of this size and layout."""
        binding, (*strides, size) = self.matrix_bindings[number], self.matrices[number]
        port = next(port for port in self.outputs if port.name == binding.port)
        in_order = self.in_order(binding.by) and self.in_order(binding.across)
        return in_order and port.size == size and tuple(strides) == binding.strides

    def value_in_place(self, field: int) -> bool:
        """Whether the values of all rows are an output as they are."""
        binding = self.value_bindings[field]
        port = next(port for port in self.outputs if port.name == binding.port)
        return self.in_order(binding.by) and port.size == self.forest.count

    def in_order(self, by: str) -> bool:
        """Whether rows stand in inputs and outputs where they stand here."""
        return bool((self.places[by] == np.arange(self.forest.count)).all())

    def passes(self, sort: str, domain: str, kind: int) -> list[int]:
        """Return for each row of a kind how often the operations of a loop body are done."""
        ends, count = self.forest.ends, self.forest.count
        if sort == PAIRS:
            return [ends[i] - i - 1 for i in range(count)]
        rows = [i for i in range(count) if self.forest.kinds[i] == kind]
        if sort != COLUMNS:
            return [1] * len(rows)
        if domain == BEYOND:
            return [ends[i] - i for i in rows]
        first, end = self.forest.trees
        return [int(end[i] - (first[i] if domain == ALL else i)) for i in rows]


def columns_of(direction: str, parents: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return where the columns of rows stand in a block, (count, 3), and how many places it has.

    For each row where its own are, where those of its parent are read, and where they are written.
    Field 0 holds zeros. Fields are used again once a row is done with.
    """
    count = len(parents)
    places = np.zeros((count, 3), dtype=np.int64)
    field: dict[int, int] = {}
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
            own = field.pop(i, None)
            places[i, 0] = own or 0
            if p in field:
                places[i, 1:] = field[p]
                if own:
                    free.append(own)
            elif p >= 0:
                field[p] = own or new()
                places[i, 2] = field[p]
            elif own:
                free.append(own)
        else:
            places[i, 1] = field.get(p, 0)
            takes_over = p in field and last[p] == i
            field[i] = field[p] if takes_over else new()
            places[i, 0] = field[i]
            if i not in last:
                free.append(field[i])
    return places, top
