# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops that are traced once for each kind of row, and stay loops in the code.

A function that loops over the bodies of a tree is traced with a *generic* row, one for each kind of
body: its constants are entries of tables, and what belongs to it or to its parent is loaded from
and stored to memory. So neither the trace nor the code grows with the tree. Data of the rows is
contiguous by row, so that loops over rows or columns access adjacent entries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend import domains
from mbs_dynamics.compiler.frontend.domains import COLUMN, GROUND, OTHER, OWN, PARENT, ROWS, Forest
from mbs_dynamics.compiler.frontend.graph import LOAD, Graph, Symbol
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import Buffer, Index, index

OUTWARD, INWARD = "outward", "inward"


class NoLoopNest(Exception):  # noqa: N818
    """A function cannot be traced with generic rows."""


class Row:
    """A generic row, with its role in an iteration; the iteration's own has a kind and a parent.

    The row of a root with several columns is that of the last one; ``shift`` leads to the others.
    """

    __slots__ = ("kind", "parent", "role", "shift")

    def __init__(
        self,
        role: str,
        kind: int | None = None,
        parent: Row | int | None = None,
        shift: int = 0,
    ) -> None:
        self.role, self.kind, self.parent, self.shift = role, kind, parent, shift

    @property
    def whole(self) -> Row:
        """The row of the root, of that of one of its columns."""
        return Row(self.role, self.kind, self.parent) if self.shift else self


def is_ground(i: Any) -> bool:
    """Return whether this is the ground, not a generic row; NoLoopNest if it is neither."""
    if isinstance(i, Row):
        return False
    if i != GROUND:
        raise NoLoopNest
    return True


class PerRow:
    """A sequence by generic rows, with entries computed on access."""

    def __init__(self, of: Callable[[Row], Any]) -> None:
        self._of = of

    def __getitem__(self, i: Any) -> Any:
        if not isinstance(i, Row):
            raise NoLoopNest
        return self._of(i)

    def mapped(self, function: Callable[..., Any], *others: PerRow) -> PerRow:
        """Return the sequence of a function's results for the entries of this one and others."""
        return PerRow(lambda i: function(self[i], *(x[i] for x in others)))


class Loop(NamedTuple):
    """A loop, with the operations of an iteration for each kind of row, or of any for None."""

    domain: str
    direction: str
    scopes: dict[int | None, Scope]
    of_head: bool = False
    """Whether the rows nearer to the root, in PAIRS, are that of the head instead of all others."""


class Scope(Graph):
    """The operations of one kind of row in one loop, or those before all loops."""

    def __init__(self, loops: Loops, loop: Loop) -> None:
        super().__init__()
        self.loops, self.loop = loops, loop
        self.local: dict[Any, Any] = {}
        """Values of containers as they are now, by container and roles."""

    def number(self, i: Any) -> Index:
        if not isinstance(i, Row):
            raise NoLoopNest
        if i.role == domains.LAST:
            return index(self.loops.forest.count - 1)
        of_pairs = self.loop.domain == domains.PAIRS
        numbers = domains.NUMBERS_OF_PAIRS if of_pairs else domains.NUMBERS
        if i.role not in numbers:
            raise NoLoopNest
        return index(numbers[i.role]) + i.shift

    def store(self, buffer: Buffer, at: Index, value: Any) -> None:
        """Note what is stored, after the loads of the present trace."""
        if isinstance(value, Symbol) and value.graph is not self:
            raise NoLoopNest
        self.stores[buffer, at] = value, len(self.nodes)

    def entry(self, name: str, k: int) -> Any:
        """Return an entry of an input, whatever the row."""
        return self.load(self.loops.before.inputs[name], index(k))

    def trigonometric(self, op: str, x: Symbol) -> Any:
        """Return the sine or cosine of a position, of which all are computed before this loop."""
        if x.op != LOAD or x.args[0].kind != ir.SCRATCH:
            raise NoLoopNest
        angles, at = x.args
        sines = self.loops.sines
        if angles not in sines:
            sines[angles] = {each: self.loops.new_values() for each in (ops.SIN, ops.COS)}
        return self.load(sines[angles][op], at)

    def adopted(self, x: Any) -> Any:
        """Return a symbol that is computed before all loops as one of this scope."""
        if not isinstance(x, Symbol) or x.graph is self:
            return x
        before = self.loops.before
        if x.graph is not before:
            raise NoLoopNest
        if x.op == LOAD:  # an input
            return self.load(*x.args)
        buffer = before.local.setdefault(x.id, Buffer(f"b{x.id}", ir.SCRATCH, 1))
        before.store(buffer, Index(), x)
        return self.load(buffer, Index())


class Loops:
    """Loops recorded from a traced function. One scope is open at a time, that of the loop.

    ``places`` say where each row stands in inputs and outputs, by the name of an order of rows.
    """

    def __init__(
        self,
        forest: Forest,
        places: Mapping[str, Sequence[int]],
        layouts: Mapping[int, Any],
    ) -> None:
        self.forest = forest
        self._kinds = np.array(forest.kinds)
        self._places = {name: _place(name, x) for name, x in places.items()}
        self.layouts = layouts
        """Layouts of containers, by number, as an earlier attempt inferred them."""
        self.inferred: dict[int, Any] = {}
        """Layouts that the next attempt needs."""
        self.before = Scope(self, Loop(ROWS, OUTWARD, {}))
        """Scope of all inputs and of values that do not depend on rows."""
        self.steps: list[Loop] = []
        self.sines: dict[Buffer, dict[str, Buffer]] = {}
        """For buffers of angles the buffers of their sines and cosines."""
        self.pairs_and_columns: list[Any] = []
        """Containers of values for pairs of rows, or rows and columns."""
        self.containers, self._values = itertools.count(), itertools.count()
        """Numbers of containers, the same in every attempt, and of values."""
        self._constants: dict[bytes, Buffer] = {}
        self._nested: dict[tuple[int, int], Loop] = {}
        self._scope: Scope | None = None
        self._count = 0

    @property
    def scope(self) -> Scope:
        """The scope of the present loop; NoLoopNest outside of all."""
        if self._scope is None:
            raise NoLoopNest
        return self._scope

    def forget(self) -> None:
        """Release data that only the traced function needs.

        NumPy hides the contents of arrays from the garbage collector, so that cycles through arrays
        of symbols would never be freed.
        """
        for loop in self.steps:
            for scope in loop.scopes.values():
                scope.local.clear()

    def rows(self, direction: str) -> Iterator[tuple[Row, Row | int]]:
        """Yield a generic row of each kind and its parent, roots first."""
        if self._scope is not None:
            raise NoLoopNest
        loop = Loop(ROWS, direction, {})
        self.steps.append(loop)
        parents = dict(zip(self.forest.kinds, self.forest.parents, strict=True))
        for kind in sorted(parents, key=lambda kind: parents[kind] != GROUND):
            parent = GROUND if parents[kind] == GROUND else Row(PARENT)
            self._scope = loop.scopes[kind] = Scope(self, loop)
            self._count = 0
            yield Row(OWN, kind, parent), parent
        self._scope = None

    def every_row(self) -> Iterator[Row]:
        """Yield a generic row for all rows at once, each column of the head included."""
        loop = Loop(ROWS, OUTWARD, {})
        self.steps.append(loop)
        self._scope = loop.scopes[None] = Scope(self, loop)
        yield Row(OWN)
        self._scope = None

    def columns_of(self, i: Row) -> list[Row]:
        """Return the rows of the columns of a row: itself, unless it is the head."""
        if i.kind is None or i.kind != self.forest.head_kind:
            return [i]
        return [Row(i.role, i.kind, i.parent, k) for k in range(1 - self.forest.head, 1)]

    def within(self, i: Row, domain: str, *, of_head: bool = False) -> Iterator[Row]:
        """Yield a generic column, or for PAIRS a row that row i is beyond, or the head.

        The inner loop runs after the body of the outer one.
        """
        around = next(loop for loop in reversed(self.steps) if loop.domain == ROWS)
        key = id(around), self._count
        self._count += 1
        if domain == domains.PAIRS and i.parent == GROUND:
            return
        if key not in self._nested:
            self._nested[key] = Loop(domain, around.direction, {}, of_head)
            self.steps.append(self._nested[key])
        outer, loop = self._scope, self._nested[key]
        self._scope = loop.scopes[i.kind or 0] = Scope(self, loop)
        other = Row(OTHER, self.forest.head_kind if of_head else None)
        yield other if domain == domains.PAIRS else Row(COLUMN)
        self._scope = outer

    def table(self, values: Sequence[float] | NDArray[np.float64], i: Row) -> Any:
        """Return the constant of a row: a number if all rows of its kind have the same."""
        column = np.asarray(values, dtype=np.float64)
        if self.forest.head and i.kind == self.forest.head_kind:
            return float(column[self.forest.head - 1 + i.shift])
        mine = column if i.kind is None else column[self._kinds == i.kind]
        if (mine == mine[0]).all():
            return float(mine[0])
        return self.scope.load(self._constant(column), self.scope.number(i))

    def _constant(self, values: NDArray[Any]) -> Buffer:
        """Return the buffer of constants, the same for the same ones."""
        key = values.tobytes()
        if key not in self._constants:
            self._constants[key] = ir.constants(f"c{len(self._constants)}", values)
        return self._constants[key]

    def input(self, name: str, order: str, shape: tuple[int, ...] = (), first: int = 0) -> PerRow:
        """Return an input with an array of entries for each row, the part that begins at first."""
        size = math.prod(shape)

        def entries(i: Row) -> Any:
            at = self.place(order, self.scope.number(i)) * size + first
            array = np.empty(shape, dtype=object)
            array.flat[:] = [self.scope.load(self.before.inputs[name], at + k) for k in range(size)]
            return array[()]

        return PerRow(entries)

    def place(self, order: str, row: Index | ir.Variable) -> Index:
        """Return the position of a row in inputs and outputs."""
        numbers = self._places[order]
        return index(row) + numbers if isinstance(numbers, int) else index(numbers[row])

    def in_order(self, order: str, first: int = 0) -> bool:
        """Whether inputs and outputs have rows, from the first on, in the order of the loops."""
        return self._places[order] == -first

    def unit(self, i: Row, k: Row) -> Any:
        count = self.forest.count
        ones = self._constant(np.arange(1 - count, count) == 0)
        return self.scope.load(ones, self.scope.number(k) + self.scope.number(i) * -1 + (count - 1))

    def new_values(self) -> Buffer:
        return Buffer(f"v{next(self._values)}", ir.SCRATCH, self.forest.count)


def _place(name: str, places: Sequence[int]) -> int | Buffer:
    """Return the difference of a row's place and number, or a table of places."""
    first = places[0] if len(places) else 0
    return first if list(places) == [*range(first, first + len(places))] else ir.table(name, places)
