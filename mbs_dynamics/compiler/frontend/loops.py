# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops that are traced once for all that they run over, and stay loops in the code.

A function that loops over the bodies of a tree is traced with a *generic* body, one for each kind
of body: its constants are entries of tables, and what belongs to it or to its parent is loaded from
and stored to memory. So neither the trace nor the code grows with the tree. This module knows of no
bodies: loops run over the rows of a :class:`Forest`.

What the rows have stands side by side by row: so a loop over the rows that come after another one,
or over columns, goes through memory from one entry to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.domains import ALL, BEYOND
from mbs_dynamics.compiler.frontend.graph import INPUT, Graph, Symbol
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import Buffer, Index, Variable, index, table

LOAD, EQUAL = "load", "equal"
"""Operations of nodes that are loaded, from a buffer at an index, and of those that are one where
two indices are equal, else zero."""

OWN, PARENT, OUTER, EACH, LAST = "own", "parent", "outer", "each", "last"
"""A row stands for itself, for its parent, for a row that it comes after on the way outwards (in
loops over pairs), for a column (in loops over columns), or for the last row of all."""

UNKNOWN = "unknown"
"""A row of which nothing is known: what is asked of it raises :class:`Unsuitable`."""

ROWS, PAIRS, COLUMNS = "rows", "pairs", "columns"
"""Kinds of loops: over rows; over rows and those before them; over rows and, within, columns."""

OUTWARD, INWARD = "outward", "inward"

GROUND = -1
"""The parent of a root."""

ROW_NUMBER, PARENT_NUMBER, BEGIN, END, WITHIN = map(Variable, ("i", "p", "begin", "end", "k"))
"""What a procedure for a row is given, and the variable of the loop within."""

NUMBERS = {
    ROWS: {OWN: ROW_NUMBER, PARENT: PARENT_NUMBER},
    PAIRS: {OWN: WITHIN, OUTER: ROW_NUMBER},
    COLUMNS: {OWN: ROW_NUMBER, PARENT: PARENT_NUMBER, EACH: WITHIN},
}
"""The number of a row, in loops of each kind."""


class Unsuitable(Exception):  # noqa: N818
    """A function cannot be traced with generic rows."""


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
    def trees(self) -> NDArray[np.int64]:
        """Return (2, count), the first row of the tree that a row belongs to, and the end of it."""
        roots: list[int] = []
        for i, p in enumerate(self.parents):
            roots.append(i if p == GROUND else roots[p])
        first = np.array(roots, dtype=np.int64)
        return np.array([first, np.array(self.ends, dtype=np.int64)[first]])

    @property
    def is_chain(self) -> bool:
        """Whether each row comes after all before it."""
        return all(p == i - 1 for i, p in enumerate(self.parents))


class Scope(Graph):
    """The operations of one kind of row in one loop."""

    def __init__(self, loops: Loops, loop: Loop, kind: int) -> None:
        super().__init__()
        self.loops, self.loop, self.kind = loops, loop, kind
        self.local: dict[Any, Any] = {}
        """Values of containers as they are now, by container and rows."""
        self.stores: dict[tuple[Buffer, Index], tuple[Any, int]] = {}
        """What goes where, and how many nodes there were when that was said."""

    def number(self, i: Any) -> Index:
        """Return the number of a row."""
        if not isinstance(i, Member):
            raise Unsuitable
        if i.row == LAST:
            return index(self.loops.forest.count - 1)
        if i.row not in NUMBERS[self.loop.sort]:
            raise Unsuitable
        return index(NUMBERS[self.loop.sort][i.row])

    def load(self, buffer: Buffer, at: Index) -> Symbol:
        """Return the node of what is at an address when the iteration begins."""
        return self.node(LOAD, (buffer, at), (buffer, at))

    def store(self, buffer: Buffer, at: Index, value: Any) -> None:
        """Note what is stored when the iteration ends."""
        self.stores[buffer, at] = value, len(self.nodes)

    def sin(self, x: Symbol) -> Any:
        """Return sin(x), which is computed before all loops."""
        return -self.sin(x.args[0]) if x.op == ops.NEG else self.loops.trigonometric(self, x, 1)

    def cos(self, x: Symbol) -> Any:
        """Return cos(x), which is computed before all loops."""
        return self.cos(x.args[0]) if x.op == ops.NEG else self.loops.trigonometric(self, x, 2)

    def adopted(self, x: Any) -> Any:
        """Return a symbol of another graph, made of inputs and tables, as one of this."""
        if not isinstance(x, Symbol) or x.graph is self:
            return x
        if x.op == INPUT:
            name, k = x.args
            return self.load(self.loops.inputs[name], index(k))
        if x.op == LOAD:
            if x.args[0].kind == ir.SCRATCH:
                raise Unsuitable
            return self.load(*x.args)
        if x.op not in REBUILT:
            raise Unsuitable
        return REBUILT[x.op](*(self.adopted(arg) for arg in x.args))


REBUILT: dict[str, Callable[..., Any]] = {
    ops.ADD: lambda a, b: a + b,
    ops.SUB: lambda a, b: a - b,
    ops.MUL: lambda a, b: a * b,
    ops.NEG: lambda a: -a,
}


@dataclass
class Loop:
    """A loop, with the operations of an iteration for each kind of row."""

    sort: str
    direction: str = OUTWARD
    domain: str = ""
    """Of a loop over columns: see :meth:`Loops.columns`."""
    scopes: dict[int, Scope] = _field(default_factory=dict)


class Angle(NamedTuple):
    """An angle of each row, its sine and its cosine."""

    value: Buffer
    sine: Buffer
    cosine: Buffer


class Loops:
    """What a traced function does, as loops. There is one scope at a time, that of the loop.

    ``inputs`` are buffers by name. For inputs that have entries for each row, ``places`` says where
    they begin: which of these numbers of the rows are meant, and how far apart they are.
    """

    def __init__(
        self,
        forest: Forest,
        inputs: Mapping[str, Buffer],
        places: Mapping[str, NDArray[np.int64]],
        rows: Mapping[str, tuple[str, int]],
        layouts: Mapping[int, Any],
    ) -> None:
        self.forest, self.inputs, self.rows_of = forest, inputs, rows
        kinds = np.array(forest.kinds)
        self._of_kind = {kind: kinds == kind for kind in set(forest.kinds)}
        roots, ends_of_trees = forest.trees
        self._tables = (
            table("parents", forest.parents),
            table("ends", forest.ends),
            table("roots", roots),
            table("tree.ends", ends_of_trees),
        )
        self._places = {name: table(name, x) for name, x in places.items()}
        self._in_order = {
            name for name, x in places.items() if (x == np.arange(forest.count)).all()
        }
        self.layouts = layouts
        """Layouts of containers, by number, as an earlier attempt found them."""
        self.inferred: dict[int, Any] = {}
        """Layouts that the next attempt needs."""
        self.scope: Scope | None = None
        self.steps: list[Loop] = []
        self.hoisted = Loop(ROWS)
        """What computes the angles of each kind of row, before all steps."""
        self.angles: list[Angle] = []
        self.matrices: list[Any] = []
        self.blocks: list[Any] = []
        self.containers = 0
        self._values = 0
        self._known: dict[bytes, Buffer] = {}
        self._angles: dict[int, list[Any]] = {}
        self._nested: dict[tuple[int, int], Loop] = {}
        self._count = 0

    def forget(self) -> None:
        """Let go of what only the traced function needs.

        There are arrays of symbols in it. NumPy hides what is in arrays from the garbage collector,
        so that cycles through them would never be freed.
        """
        for loop in (*self.steps, self.hoisted):
            for scope in loop.scopes.values():
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
            self.scope, self._count = Scope(self, loop, kind), 0
            loop.scopes[kind] = self.scope
            yield Member(OWN, kind, parent), parent
        self.scope = None

    def pairs(self, i: Member) -> Iterator[Member]:
        """Yield a generic row that row i comes after; the loop runs when that around it is done."""
        if i.parent == GROUND:
            self._count += 1
            return
        with_outer = self.scope
        self.scope = self._inner(PAIRS, "", i)
        yield Member(OUTER)
        self.scope = with_outer

    def columns(self, i: Member, domain: str) -> Iterator[Member]:
        """Yield a generic column within the present loop, which is done before this one runs.

        There are as many columns as rows. ``domain`` says which: ALL those of the same tree, that
        of row i and those of the rows that come after it (BEYOND), or those of its tree from that
        of row i on (SINCE).
        """
        with_outer = self.scope
        self.scope = self._inner(COLUMNS, domain, i)
        yield Member(EACH)
        self.scope = with_outer

    def _inner(self, sort: str, domain: str, i: Member) -> Scope:
        """Return the scope of row i in a loop within the present one, the same for all kinds."""
        around = next(loop for loop in reversed(self.steps) if loop.sort == ROWS)
        key = id(around), self._count
        self._count += 1
        if key not in self._nested:
            self._nested[key] = Loop(sort, around.direction, domain)
            self.steps.append(self._nested[key])
        kind = i.kind or 0
        scope = self._nested[key].scopes[kind] = Scope(self, self._nested[key], kind)
        return scope

    # -- values ----------------------------------------------------------------------------------

    def table(self, values: Sequence[float] | NDArray[np.float64], i: Member) -> Any:
        """Return the constant of a row: a number if all rows of its kind have the same."""
        assert self.scope is not None
        column = np.asarray(values, dtype=np.float64)
        mine = column if i.kind is None else column[self._of_kind[i.kind]]
        if (mine == mine[0]).all():
            return float(mine[0])
        key = column.tobytes()
        if key not in self._known:
            self._known[key] = ir.constants(f"c{len(self._known)}", column)
        return self.scope.load(self._known[key], self.scope.number(i))

    def input(self, port: str, k: int, i: Member) -> Symbol:
        """Return an entry of an input that belongs to a row."""
        assert self.scope is not None
        by, stride = self.rows_of[port]
        at = self.placed(by, self.scope.number(i)) * stride + k
        return self.scope.load(self.inputs[port], at)

    def placed(self, by: str, row: Index | Variable) -> Index:
        """Return the number of a row in inputs and outputs."""
        return index(row) if self.in_order(by) else index(self._places[by][row])

    def in_order(self, by: str) -> bool:
        """Whether rows stand in inputs and outputs where they stand here."""
        return by in self._in_order

    def unit(self, i: Member, k: Member) -> Symbol:
        """Return an entry of the identity matrix."""
        assert self.scope is not None
        pair = self.scope.number(i), self.scope.number(k)
        return self.scope.node(EQUAL, pair, pair)

    def new_values(self) -> Buffer:
        """Return memory for a value of each row."""
        self._values += 1
        return Buffer(f"v{self._values - 1}", ir.SCRATCH, self.forest.count)

    def new_container(self) -> int:
        """Return the number of a container; the same in every attempt."""
        self.containers += 1
        return self.containers - 1

    def trigonometric(self, scope: Scope, x: Symbol, which: int) -> Symbol:
        """Return the sine (1) or cosine (2) of an angle that follows from inputs and tables."""
        if scope.loop is self.hoisted or scope.loop.sort == PAIRS:
            raise Unsuitable
        if scope.kind not in self.hoisted.scopes:
            self.hoisted.scopes[scope.kind] = Scope(self, self.hoisted, scope.kind)
        hoisted = self.hoisted.scopes[scope.kind]
        angle = hoisted.adopted(x)
        known = self._angles.setdefault(scope.kind, [])
        if all(angle is not other for other in known):
            known.append(angle)
        order = next(k for k, other in enumerate(known) if other is angle)
        if order == len(self.angles):
            self.angles.append(Angle(self.new_values(), self.new_values(), self.new_values()))
        row = index(ROW_NUMBER)
        hoisted.store(self.angles[order].value, row, angle)
        return scope.load(self.angles[order][which], row)

    # -- what an iteration is given --------------------------------------------------------------

    def arguments(self, loop: Loop) -> tuple[Index, ...]:
        """Return its row, the parent, and which rows or columns a loop within runs over."""
        i = index(ROW_NUMBER)
        parent, end, root, end_of_tree = (index(x[i]) for x in self._tables)
        if loop.sort == ROWS:
            return i, parent
        if loop.sort == PAIRS:
            return i, parent, i + 1, end
        begin = root if loop.domain == ALL else i
        return i, parent, begin, end if loop.domain == BEYOND else end_of_tree
