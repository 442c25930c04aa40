# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops that are traced once for all that they run over, and stay loops in the code.

A function that loops over the bodies of a tree is traced with a *generic* body, one for each kind
of body: its constants are entries of tables, and what belongs to it or to its parent is loaded from
and stored to memory. So neither the trace nor the code grows with the tree. This module knows of no
bodies: loops run over the rows of a :class:`Forest`.

A row of the forest stands for itself (OWN), for its parent (PARENT), for a row that it comes after
on the way outwards (OUTER, in loops over pairs), for a column (EACH, in loops over columns), or for
the last row of all (LAST), of what an earlier loop has made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Graph, Symbol

LOAD = "load"
"""Operation of a node that is loaded; its only argument is a :class:`Address`."""

OWN, PARENT, OUTER, EACH, LAST = "own", "parent", "outer", "each", "last"
STATE, TABLE, ROW, ENTRY, CELL, COLUMN = "state", "table", "row", "entry", "cell", "column"
UNIT = "unit"

ROWS, PAIRS, COLUMNS = "rows", "pairs", "columns"
"""Kinds of loops: over rows; over rows and those before them; over rows and, within, columns."""

OUTWARD, INWARD = "outward", "inward"

GROUND = -1
"""The parent of a root."""


class Unsuitable(Exception):  # noqa: N818
    """A function cannot be traced with generic rows."""


class Address(NamedTuple):
    """Where a value is."""

    space: str
    """STATE: a value of each row; TABLE: a constant of each row; ROW: entries of an input that
    belong to the row; ENTRY: an entry of an input; CELL: of a matrix; COLUMN: of a row's columns;
    UNIT: of the identity matrix."""
    name: Any
    """Number of the value, table, matrix or block of columns, or name of the input."""
    k: int = 0
    """Offset within the entries of a row, or index of an entry."""
    row: str = ""
    """Which row."""
    column: str = ""
    """Which column of a matrix, or of a row's columns."""


@dataclass(frozen=True, eq=False)
class Member:
    """A generic row, seen from an iteration; that of the iteration itself (OWN) is of one kind."""

    row: str
    kind: int | None = None
    parent: Any = None
    """The generic parent, or GROUND."""


@dataclass(frozen=True, eq=False)
class Forest:
    """What loops run over: rows in depth-first order, each with a kind; roots have own kinds."""

    parents: tuple[int, ...]
    kinds: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.parents)

    @property
    def ends(self) -> list[int]:
        """For each row the first one after it that is not beyond it."""
        ends = list(range(1, self.count + 1))
        for i in reversed(range(self.count)):
            p = self.parents[i]
            if p != GROUND:
                ends[p] = max(ends[p], ends[i])
        return ends

    @property
    def roots(self) -> list[int]:
        """For each row the root that it is beyond, or itself."""
        roots: list[int] = []
        for i, p in enumerate(self.parents):
            roots.append(i if p == GROUND else roots[p])
        return roots

    @property
    def trees(self) -> NDArray[np.int64]:
        """Return (2, count), the first row of the tree that a row belongs to, and the end of it."""
        roots = np.array(self.roots, dtype=np.int64)
        return np.array([roots, np.array(self.ends, dtype=np.int64)[roots]])

    @property
    def is_chain(self) -> bool:
        """Whether each row comes after all before it."""
        return all(p == i - 1 for i, p in enumerate(self.parents))


class Scope(Graph):
    """The operations of one kind of row in one loop."""

    def __init__(self, loops: Loops, sort: str = "") -> None:
        super().__init__()
        self.loops = loops
        self.sort = sort
        self.local: dict[Any, Any] = {}
        """Values of containers as they are now, by container and rows."""
        self.stores: dict[Address, tuple[Any, int]] = {}
        """What goes where, and how many nodes there were when that was said."""

    def load(self, address: Address) -> Symbol:
        """Return the node of what is at an address when the iteration begins."""
        return self.node(LOAD, (address,), (address,))

    def store(self, address: Address, value: Any) -> None:
        """Note what is stored when the iteration ends."""
        self.stores[address] = value, len(self.nodes)

    def sin(self, x: Symbol) -> Any:
        """Return sin(x), which is computed before all loops."""
        return -self.sin(x.args[0]) if x.op == g.NEG else self.loops.trigonometric(self, x, 1)

    def cos(self, x: Symbol) -> Any:
        """Return cos(x), which is computed before all loops."""
        return self.cos(x.args[0]) if x.op == g.NEG else self.loops.trigonometric(self, x, 2)

    def adopted(self, x: Any) -> Any:
        """Return a symbol of another graph, made of inputs and tables, as one of this."""
        if not isinstance(x, Symbol) or x.graph is self:
            return x
        if x.op == g.INPUT:
            return self.load(Address(ENTRY, *x.args))
        if x.op == LOAD:
            if x.args[0].space not in (TABLE, ROW, ENTRY):
                raise Unsuitable
            return self.load(x.args[0])
        if x.op not in REBUILT:
            raise Unsuitable
        return REBUILT[x.op](*(self.adopted(arg) for arg in x.args))


REBUILT: dict[str, Callable[..., Any]] = {
    g.ADD: lambda a, b: a + b,
    g.SUB: lambda a, b: a - b,
    g.MUL: lambda a, b: a * b,
    g.NEG: lambda a: -a,
}


@dataclass
class Loop:
    """A loop, with the operations of an iteration for each kind of row."""

    sort: str
    direction: str
    domain: str = ""
    """Of a loop over columns: see :meth:`Loops.columns`."""
    scopes: dict[int, Scope] = _field(default_factory=dict)


class Loops:
    """What a traced function does, as loops. There is one scope at a time, that of the loop."""

    def __init__(self, forest: Forest, layouts: Mapping[int, Any]) -> None:
        self.forest = forest
        kinds = np.array(forest.kinds)
        self._of_kind = {kind: kinds == kind for kind in set(forest.kinds)}
        self.layouts = layouts
        """Layouts of containers, by number, as an earlier attempt found them."""
        self.inferred: dict[int, Any] = {}
        """Layouts that the next attempt needs."""
        self.scope: Scope | None = None
        self.steps: list[Loop] = []
        self.tables: list[NDArray[np.float64]] = []
        self.fields = 0
        self.hoisted: dict[int, Scope] = {}
        """What computes the angles of each kind of row."""
        self.angles: list[int] = []
        """The first of three values each: an angle, its sine and its cosine."""
        self.matrices: list[tuple[int, int, int, int]] = []
        """For each matrix how far apart rows, columns and entries of a cell are, and its size."""
        self.blocks: dict[int, tuple[str, int]] = {}
        """For each block of columns the direction in which it goes, and its number of entries."""
        self.containers = 0
        self._known: dict[bytes, int] = {}
        self._angles: dict[int, list[Any]] = {}
        self._nested: dict[tuple[int, int], Loop] = {}
        self._count = 0

    def forget(self) -> None:
        """Let go of what only the traced function needs.

        There are arrays of symbols in it. NumPy hides what is in arrays from the garbage collector,
        so that cycles through them would never be freed.
        """
        for loop in self.steps:
            for scope in loop.scopes.values():
                scope.local.clear()
        for scope in self.hoisted.values():
            scope.local.clear()

    # -- loops -----------------------------------------------------------------------------------

    def rows(self, direction: str) -> Iterator[tuple[Member, Any]]:
        """Yield a generic row of each kind and its parent, roots first."""
        if self.scope is not None:
            raise Unsuitable
        loop = Loop(ROWS, direction)
        self.steps.append(loop)
        pairs = dict(zip(self.forest.kinds, self.forest.parents, strict=True))
        for kind in sorted(pairs, key=lambda kind: pairs[kind] != GROUND):
            parent = GROUND if pairs[kind] == GROUND else Member(PARENT)
            self.scope, self._count = Scope(self, ROWS), 0
            loop.scopes[kind] = self.scope
            yield Member(OWN, kind, parent), parent
        self.scope = None

    def pairs(self, i: Member) -> Iterator[Member]:
        """Yield a generic row that row i comes after; the loop runs when that around it is done."""
        if i.parent == GROUND:
            self._count += 1
            return
        outer = self.scope
        loop = self._inner(PAIRS, "")
        loop.scopes[i.kind or 0] = self.scope = Scope(self, PAIRS)
        yield Member(OUTER)
        self.scope = outer

    def columns(self, i: Member, domain: str) -> Iterator[Member]:
        """Yield a generic column within the present loop, which is done before this one runs.

        There are as many columns as rows. ``domain`` says which: ALL those of the same tree, that
        of row i and those of the rows that come after it (BEYOND), or those of its tree from that
        of row i on (SINCE).
        """
        outer = self.scope
        loop = self._inner(COLUMNS, domain)
        loop.scopes[i.kind or 0] = self.scope = Scope(self, COLUMNS)
        yield Member(EACH)
        self.scope = outer

    def _inner(self, sort: str, domain: str) -> Loop:
        """Return the loop within the present one, the same for all kinds of rows."""
        around = next(loop for loop in reversed(self.steps) if loop.sort == ROWS)
        key = id(around), self._count
        self._count += 1
        if key not in self._nested:
            self._nested[key] = Loop(sort, around.direction, domain)
            self.steps.append(self._nested[key])
        return self._nested[key]

    # -- values ----------------------------------------------------------------------------------

    def table(self, values: Sequence[float] | NDArray[np.float64], i: Member) -> Any:
        """Return the constant of a row: a number if all rows of its kind have the same."""
        assert self.scope is not None
        column = np.asarray(values, dtype=np.float64)
        mine = column if i.kind is None else column[self._of_kind[i.kind]]
        if (mine == mine[0]).all():
            return float(mine[0])
        number = self._known.setdefault(column.tobytes(), len(self.tables))
        if number == len(self.tables):
            self.tables.append(column)
        return self.scope.load(Address(TABLE, number, 0, i.row))

    def input(self, port: str, k: int, i: Member) -> Symbol:
        """Return an entry of an input that belongs to a row."""
        assert self.scope is not None
        return self.scope.load(Address(ROW, port, k, i.row))

    def unit(self, i: Member, k: Member) -> Symbol:
        """Return an entry of the identity matrix."""
        assert self.scope is not None
        return self.scope.load(Address(UNIT, 0, 0, i.row, k.row))

    def new_fields(self, count: int) -> int:
        """Return the first number of so many new values of each row."""
        self.fields += count
        return self.fields - count

    def new_container(self) -> int:
        """Return the number of a container; the same in every attempt."""
        self.containers += 1
        return self.containers - 1

    def trigonometric(self, scope: Scope, x: Symbol, which: int) -> Symbol:
        """Return the sine (1) or cosine (2) of an angle that follows from inputs and tables."""
        kind = next((k for loop in self.steps for k, s in loop.scopes.items() if s is scope), None)
        if kind is None:
            raise Unsuitable
        hoisted = self.hoisted.setdefault(kind, Scope(self))
        angle = hoisted.adopted(x)
        known = self._angles.setdefault(kind, [])
        if all(angle is not other for other in known):
            known.append(angle)
        order = next(k for k, other in enumerate(known) if other is angle)
        if order == len(self.angles):
            self.angles.append(self.new_fields(3))
        first = self.angles[order]
        hoisted.store(Address(STATE, first, 0, OWN), angle)
        return scope.load(Address(STATE, first + which, 0, OWN))
