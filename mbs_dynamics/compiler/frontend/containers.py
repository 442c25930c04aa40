# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Containers of results of loops, with their layout in memory: per row, per pair, per column."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler.frontend import domains
from mbs_dynamics.compiler.frontend.domains import COLUMN, GROUND, LAST, OWN, PARENT, ROW, WITHIN
from mbs_dynamics.compiler.frontend.graph import NUMBER, Symbol
from mbs_dynamics.compiler.frontend.loops import INWARD, Loops, NoLoopNest, Row, Scope, is_ground
from mbs_dynamics.compiler.frontend.series import Series
from mbs_dynamics.compiler.ir.nodes import SCRATCH, Buffer, Index, index, table


class Number(NamedTuple):
    """An entry of a layout that is the same number in all rows, and is not stored."""

    value: float


class Layout(NamedTuple):
    """How values are stored: their form, and for each entry a number or the index of a variable.

    Entries that always are equal, as in symmetric matrices, are one variable.
    """

    form: Any
    """The shape of an array and the order of the series in it, or a class and its fields' forms."""
    entries: tuple[Number | int, ...]

    @classmethod
    def of(cls, form: Any, entries: Sequence[Any]) -> Layout:
        """Return the layout of a value, given apart; see :func:`taken_apart`."""
        return cls(form, _indexed(x.id if isinstance(x, Symbol) else Number(x) for x in entries))

    def joined(self, other: Layout) -> Layout:
        """Return the layout of values of both, which have the same form."""
        pairs = zip(self.entries, other.entries, strict=True)
        return Layout(
            self.form, _indexed(x if x == y and isinstance(x, Number) else (x, y) for x, y in pairs)
        )

    @property
    def size(self) -> int:
        return 1 + max((k for k in self.entries if isinstance(k, int)), default=-1)

    def variables(self, entries: Sequence[Any]) -> list[Any]:
        values = {k: x for k, x in zip(self.entries, entries, strict=True) if isinstance(k, int)}
        return [values[k] for k in range(self.size)]

    def value(self, variables: Sequence[Any]) -> Any:
        entries = (variables[k] if isinstance(k, int) else k.value for k in self.entries)
        return _put_together(self.form, iter(entries))


def _indexed(keys: Iterator[Hashable]) -> tuple[Number | int, ...]:
    """Return numbers unchanged, and other keys by their order of first occurrence."""
    order: dict[Hashable, int] = {}
    return tuple(k if isinstance(k, Number) else order.setdefault(k, len(order)) for k in keys)


def taken_apart(value: Any, order: int = 0) -> tuple[Any, list[Any]]:
    """Return the form of a value and its entries, of series at least of this order."""
    if is_dataclass(value):
        parts = [taken_apart(getattr(value, each.name)) for each in fields(value)]
        return (type(value), tuple(form for form, _ in parts)), [x for _, xs in parts for x in xs]
    array = np.asarray(value, dtype=object)
    entries = list(array.flat)
    orders = [x.order for x in entries if isinstance(x, Series)]
    if orders or order:
        order = max([order, *orders])
        series = [x.c if isinstance(x, Series) else (x, *[0.0] * order) for x in entries]
        entries = [x for coefficients in series for x in coefficients]
    if not all(isinstance(x, (Symbol, *NUMBER)) for x in entries):
        raise NoLoopNest
    return (array.shape, order), [x if isinstance(x, Symbol) else float(x) for x in entries]


def _put_together(form: Any, entries: Iterator[Any]) -> Any:
    """Return the value of a form from its entries."""
    shape, rest = form
    if isinstance(shape, type):
        return shape(*[_put_together(part, entries) for part in rest])
    array = np.empty(shape, dtype=object)
    for at in np.ndindex(shape):
        array[at] = Series([next(entries) for _ in range(rest + 1)]) if rest else next(entries)
    return array[()]


class Values:
    """A value for each row, in place of a list. What is stored to the ground is discarded."""

    def __init__(self, loops: Loops, ground: Any = None, number: Any = None) -> None:
        self.loops, self.ground = loops, ground
        self.number = next(loops.containers) if number is None else number
        self.layout: Layout | None = loops.layouts.get(self.number)
        self.of_head: Values | None = None
        """A value of the head that has another form than those of all other rows."""
        self._buffers: list[Buffer] = []
        self._assigned: set[int | None] = set()

    def __getitem__(self, i: Any) -> Any:
        scope = self.loops.scope
        if is_ground(i):
            return np.vectorize(scope.adopted, otypes=[object])(self.ground)
        if self.of_head and i.kind == self.loops.forest.head_kind:
            return self.of_head[i]
        key = self, i.role, i.shift
        if key not in scope.local:
            if i.role == OWN and self._assigned.isdisjoint((i.kind, None)):
                return None
            if self.layout is None or (i.role == LAST and not self._is_complete(scope)):
                raise NoLoopNest
            row = scope.number(i)
            loaded = [scope.load(buffer, row) for buffer in self.buffers()]
            scope.local[key] = self.layout.value(loaded)
        return scope.local[key]

    def __setitem__(self, i: Any, value: Any) -> None:
        scope = self.loops.scope
        if is_ground(i) or scope.local.get((self, i.role, i.shift), scope) is value:
            return
        if i.kind is not None and i.kind == self.loops.forest.head_kind and not self._fits(value):
            self.of_head = self.of_head or Values(self.loops, number=(self.number, "head"))
            self.of_head[i] = value
            return
        if scope.loop.domain != domains.ROWS:  # what does not depend on the order of the pairs
            raise NoLoopNest
        self._assigned.add(i.kind)
        scope.local[self, i.role, i.shift] = value
        variables = self._variables(value)
        row = scope.number(i)
        for buffer, x in zip(self.buffers(), variables, strict=True):
            scope.store(buffer, row, x)

    def _fits(self, value: Any) -> bool:
        """Whether a value of the head has the form of those of other rows, if these are known."""
        if self.layout is None or isinstance(self.number, tuple):
            return True
        forms = [taken_apart(x)[0] for x in _forms(value)]
        return self.layout.form in forms

    def _is_complete(self, scope: Scope) -> bool:
        """Whether all rows have their values, from loops before this one."""
        stored = {buffer for buffer, _ in scope.stores}
        done = self._assigned >= set(self.loops.forest.kinds)
        return done and stored.isdisjoint(self.buffers())

    def buffers(self) -> list[Buffer]:
        """Return the buffers of the variables of the rows."""
        assert self.layout is not None
        if not self._buffers:
            self._buffers = [self.loops.new_values() for _ in range(self.layout.size)]
        return self._buffers

    def _variables(self, value: Any) -> list[Any]:
        """Return which entries of a value are stored; note a wider layout if it does not fit."""
        form, entries = taken_apart(value)
        layout = self.layout = self.layout or Layout.of(form, entries)
        if form != layout.form:  # an operator to be stored as a matrix, numbers as series
            value = _forms(value)[-1]
            _, order = layout.form
            form, entries = taken_apart(value, order if isinstance(order, int) else 0)
        own = Layout.of(form, entries)
        wide = layout.joined(own) if form == layout.form else own
        if wide != layout:
            known = self.loops.inferred.get(self.number, wide)
            self.loops.inferred[self.number] = known.joined(wide) if known.form == form else wide
        if form != layout.form:
            return [0.0] * layout.size
        return layout.variables(entries)


def _forms(value: Any) -> list[Any]:
    """Return a value, and after it the matrix of an operator."""
    return [value, value.matrix()] if hasattr(value, "matrix") else [value]


PARTS = {
    (domains.ROWS, OWN, OWN): {0},
    (domains.PAIRS, domains.OTHER, OWN): {1},
    (domains.PAIRS, OWN, domains.OTHER): {-1},
    (domains.ALL, OWN, COLUMN): {-1, 0, 1},
    (domains.SINCE, OWN, COLUMN): {0, 1},
    (domains.SINCE, COLUMN, OWN): {-1, 0},
}
"""Parts of a matrix, on (0), above and below the diagonal, that a loop computes."""


class Matrix:
    """A number (1, 1) or a column for each pair of rows, zero at first, in memory or an output.

    Each entry of the vectors is a matrix of its own, or they are ``adjacent``.
    """

    def __init__(self, loops: Loops, entries: int = 1, *, adjacent: bool = False) -> None:
        n = loops.forest.count
        self.loops, self.entries, self.adjacent = loops, entries, adjacent
        self.columns = n - loops.forest.before if adjacent else n
        """Number of columns; if adjacent, the head has one."""
        self.strides = (self.columns * entries, entries, 1) if adjacent else (n, 1, n * n)
        """From one row, column or entry to the next."""
        size = n * self.columns * entries
        self.buffer = Buffer(f"m{len(loops.pairs_and_columns)}", SCRATCH, size)
        self.is_result = False
        self._parts: set[int] = set()
        self._is_sparse = False
        loops.pairs_and_columns.append(self)

    @property
    def shows_zeros(self) -> bool:
        """Whether entries that no loop stores may be read, or are part of a result."""
        partial = self.is_result and len(self._parts) < 3
        return partial or self._is_sparse or not self.loops.forest.is_chain

    def at(self, row: Index, column: Index) -> list[Index]:
        by_row, by_column, by_entry = self.strides
        return [row * by_row + column * by_column + k * by_entry for k in range(self.entries)]

    def __getitem__(self, pair: tuple[Any, Any]) -> Any:
        scope, key, at = self._address(pair)
        if key not in scope.local:
            loaded = [scope.load(self.buffer, x) for x in at]
            columns = len(self.loops.columns_of(pair[1]))
            scope.local[key] = np.array(loaded, dtype=object).reshape(-1, columns)
        return scope.local[key]

    def __setitem__(self, pair: tuple[Any, Any], value: Any) -> None:
        scope, key, at = self._address(pair)
        scope.local[key] = value
        self._parts |= PARTS.get((scope.loop.domain, *key[1:]), set())
        for x, entry in zip(at, np.asarray(value, dtype=object).flat, strict=True):
            if isinstance(entry, Symbol) or entry != 0.0 or (self.buffer, x) in scope.stores:
                scope.store(self.buffer, x, entry)
            else:  # which is there at first
                self._is_sparse = True

    def _address(self, pair: tuple[Any, Any]) -> tuple[Scope, tuple[Any, ...], list[Index]]:
        scope, (i, j) = self.loops.scope, pair
        rows, columns = ([scope.number(x) for x in self.loops.columns_of(y)] for y in (i, j))
        if self.adjacent:
            column = columns[-1] + -self.loops.forest.before
            at = [x for row in rows for x in self.at(row, column)]
        else:
            pairs = [self.at(row, column) for row in rows for column in columns]
            at = [x for entries in zip(*pairs, strict=True) for x in entries]
        return scope, (self, i.role, j.role), at


LINE = 8
"""Doubles of a line of the cache."""


class Columns:
    """A matrix (size, 1) for each row and column, zero at first, for one direction.

    Inwards each row adds to that of its parent; outwards each follows from that of its parent. The
    memory of finished rows is reused.
    """

    def __init__(self, loops: Loops, size: int) -> None:
        self.loops, self.size = loops, size
        forest, name = loops.forest, f"columns{len(loops.pairs_and_columns)}"
        self.stride = LINE * (-(-forest.count // LINE) | 1)
        """From one entry to the next, an odd number of lines of the cache."""
        fields, count = fields_of(forest.parents)
        self.buffer = Buffer(name, SCRATCH, count * size * self.stride)
        loops.pairs_and_columns.append(self)
        last = {p: i for i, p in enumerate(forest.parents)}
        rows = list(enumerate(forest.parents))
        own = [field * size * self.stride for field in fields]
        parent = [0 if p == GROUND else own[p] for p in forest.parents]
        others = [0 if i == last[p] else parent[i] for i, p in rows]
        self._branches = any(others)
        self._first = {
            (OWN, False): table(f"{name}.own", own),
            (PARENT, False): table(f"{name}.parent", parent),
            # inwards nothing has been added yet to rows without children, and by last children
            (OWN, True): table(f"{name}.sum", [own[i] if i in last else 0 for i, _ in rows]),
            (PARENT, True): table(f"{name}.others", others),
        }

    def __getitem__(self, pair: tuple[Any, Any]) -> Any:
        scope, i = self._of(pair)
        if is_ground(i):
            return np.zeros((self.size, 1))
        key, inward = (self, i.role), scope.loop.direction == INWARD
        if key not in scope.local and inward and i.role == PARENT and not self._branches:
            return np.zeros((self.size, 1))  # of which this row is the only child
        if key not in scope.local:
            at = self._addresses(i.role, sums=inward)
            loaded = [scope.load(self.buffer, x) for x in at]
            scope.local[key] = np.array(loaded, dtype=object).reshape(-1, 1)
        return scope.local[key]

    def __setitem__(self, pair: tuple[Any, Any], value: Any) -> None:
        scope, i = self._of(pair)
        if not is_ground(i):
            scope.local[self, i.role] = value
            for at, entry in zip(self._addresses(i.role), np.asarray(value).flat, strict=True):
                scope.store(self.buffer, at, entry)

    def _of(self, pair: tuple[Any, Any]) -> tuple[Scope, Any]:
        """Return the scope and the row."""
        i, k = pair
        if not isinstance(k, Row) or k.role != COLUMN:
            raise NoLoopNest
        return self.loops.scope, i

    def _addresses(self, role: str, *, sums: bool = False) -> list[Index]:
        """Return the addresses of the entries; of sums, their present values."""
        first = index(self._first[role, sums][ROW]) + WITHIN
        return [first + k * self.stride for k in range(self.size)]


def fields_of(parents: Sequence[int]) -> tuple[list[int], int]:
    """Return the field of memory that holds the columns of each row, and the number of fields.

    Field 0 holds zeros. A last child takes over that of its parent, so that a chain has one. Fields
    are reused once a row and those beyond it are finished, in either direction.
    """
    last = {p: i for i, p in enumerate(parents)}
    fields: list[int] = []
    free: list[int] = []
    count = 1
    for i, p in enumerate(parents):
        if p != GROUND and last[p] == i:
            fields.append(fields[p])
        elif free:
            fields.append(free.pop())
        else:
            fields.append(count)
            count += 1
        if i not in last:
            free.append(fields[i])
    return fields, count
