# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Containers of what loops compute: a value for each row, for each pair, for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.domains import ALL, SINCE
from mbs_dynamics.compiler.frontend.graph import NUMBER, Symbol
from mbs_dynamics.compiler.frontend.loops import (
    EACH,
    GROUND,
    INWARD,
    LAST,
    OUTER,
    OUTWARD,
    OWN,
    PAIRS,
    PARENT,
    ROW_NUMBER,
    ROWS,
    WITHIN,
    Loops,
    Scope,
    Unsuitable,
)
from mbs_dynamics.compiler.frontend.series import Series
from mbs_dynamics.compiler.ir.nodes import SCRATCH, TABLE, Buffer, Index, index


class OfSeries(NamedTuple):
    """The form of series and of arrays of them: all entries as series of one order."""

    shape: tuple[int, ...] | None
    order: int

    def leaves(self, entries: Sequence[Any]) -> list[Any]:
        """Return the coefficients of entries, which may be series or not."""
        grown = [x.c if isinstance(x, Series) else (x, *[0.0] * self.order) for x in entries]
        return [c for x in grown for c in x]


class Layout(NamedTuple):
    """How a value is taken apart: which entries are numbers, and which ones are the same."""

    form: Any
    """None for a scalar, the shape of an array, OfSeries of series, or a class and the forms of its
    fields."""
    entries: tuple[float | int, ...]
    """For each entry the number (float) that it always is, or the index (int) of its variable."""

    @property
    def key(self) -> Any:
        """What tells layouts apart: to compare them as they are takes 1.0 for the variable 1."""
        return self.form, repr(self.entries)

    @property
    def has_numbers(self) -> bool:
        """Whether an entry always is the same number."""
        return any(isinstance(k, float) for k in self.entries)

    @property
    def size(self) -> int:
        """Number of variables."""
        return 1 + max((k for k in self.entries if isinstance(k, int)), default=-1)

    def variables(self, leaves: Sequence[Any]) -> list[Any]:
        """Return what of the entries is stored."""
        values: list[Any] = [0.0] * self.size
        for k, leaf in zip(self.entries, leaves, strict=True):
            if isinstance(k, int):
                values[k] = leaf
        return values

    def built(self, values: Sequence[Any]) -> Any:
        """Return the value with these variables."""
        leaves = [values[k] if isinstance(k, int) else k for k in self.entries]
        return _together(self.form, leaves)[0]


def _apart(value: Any) -> tuple[Any, list[Any]]:
    """Return the form of a value and its entries."""
    if isinstance(value, (Symbol, Series, *NUMBER, np.ndarray)):
        shape = value.shape if isinstance(value, np.ndarray) else None
        leaves: list[Any] = list(np.asarray(value).flat)
        form: Any = shape
        if orders := [x.order for x in leaves if isinstance(x, Series)]:
            form = OfSeries(shape, max(orders))
            leaves = form.leaves(leaves)
        return form, [x if isinstance(x, Symbol) else float(x) for x in leaves]
    if is_dataclass(value):
        parts = [_apart(getattr(value, each.name)) for each in fields(value)]
        form = type(value), tuple(part for part, _ in parts)
        return form, [leaf for _, each in parts for leaf in each]
    raise Unsuitable


def _together(form: Any, leaves: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Return the value of a form that begins these entries, and the entries that are left."""
    if form is None:
        return leaves[0], leaves[1:]
    if isinstance(form, OfSeries):
        step, count = form.order + 1, int(np.prod(form.shape or ()))
        series = np.empty(count, dtype=object)
        series[:] = [Series(leaves[k * step : (k + 1) * step]) for k in range(count)]
        value = series[0] if form.shape is None else series.reshape(form.shape)
        return value, leaves[count * step :]
    if form and isinstance(form[0], type):
        parts = []
        for part in form[1]:
            value, leaves = _together(part, leaves)
            parts.append(value)
        return form[0](*parts), leaves
    size = int(np.prod(form))
    array = np.empty(size, dtype=object)
    array[:] = leaves[:size]
    return array.reshape(form), leaves[size:]


def _layout(value: Any) -> Layout:
    form, leaves = _apart(value)
    return Layout(form, _numbered([x if isinstance(x, float) else x.id for x in leaves]))


def _numbered(keys: Sequence[Any]) -> tuple[float | int, ...]:
    """Return numbers (float) as they are, and for other keys in which order they first come."""
    order: dict[Any, int] = {}
    return tuple(k if isinstance(k, float) else order.setdefault(k, len(order)) for k in keys)


def _common(a: Layout, b: Layout) -> Layout:
    """Return the layout of values of both: the same where both say so.

    The number 1.0 is not the variable 1, which only their texts tell apart.
    """
    keys = [
        x if isinstance(x, float) and isinstance(y, float) and x == y else (repr(x), repr(y))
        for x, y in zip(a.entries, b.entries, strict=True)
    ]
    return Layout(a.form, _numbered(keys))


class Values:
    """A value for each row, in place of a list. What goes to the ground is let go.

    If it is ``whole``, entries that are numbers or the same in all rows are stored all the same.
    """

    def __init__(self, loops: Loops, ground: Any = None, *, whole: bool = False) -> None:
        self.loops = loops
        self.ground = ground
        self.whole = whole
        self.number = loops.new_container()
        self.layout: Layout | None = loops.layouts.get(self.number)
        self._buffers: list[Buffer] = []
        self._assigned: set[int | None] = set()

    def __getitem__(self, i: Any) -> Any:
        scope = self.loops.scope
        if scope is None:
            raise Unsuitable
        if isinstance(i, int):
            if i != GROUND:
                raise Unsuitable
            return np.vectorize(scope.adopted, otypes=[object])(self.ground)
        if (self, i.row) in scope.local:
            return scope.local[self, i.row]
        if i.row == OWN and i.kind not in self._assigned:
            return None
        if self.layout is None or (i.row == LAST and not self._is_done_with(scope)):
            raise Unsuitable
        row = scope.number(i)
        value = self.layout.built([scope.load(buffer, row) for buffer in self.buffers()])
        scope.local[self, i.row] = value
        return value

    def __setitem__(self, i: Any, value: Any) -> None:
        scope = self.loops.scope
        if scope is None or scope.local.get((self, getattr(i, "row", None)), scope) is value:
            return
        if isinstance(i, int):
            return
        if scope.loop.sort != ROWS:  # what does not depend on the order of the pairs
            raise Unsuitable
        self._assigned.add(i.kind)
        scope.local[self, i.row] = value
        leaves = self._conforming(value)
        assert self.layout is not None
        row = scope.number(i)
        for buffer, x in zip(self.buffers(), self.layout.variables(leaves), strict=True):
            scope.store(buffer, row, x)

    def _is_done_with(self, scope: Scope) -> bool:
        """Whether all rows have their values, from loops before this one."""
        stored = {buffer for buffer, _ in scope.stores}
        done = self._assigned >= set(self.loops.forest.kinds)
        return done and stored.isdisjoint(self.buffers())

    def buffers(self) -> list[Buffer]:
        """Return where the variables of the rows are."""
        assert self.layout is not None
        if not self._buffers:
            self._buffers = [self.loops.new_values() for _ in range(self.layout.size)]
        return self._buffers

    def _conforming(self, value: Any) -> list[Any]:
        """Return the entries of a value; note it if the layout is too narrow for them."""
        layout = self.layout = self.layout or self._layout(value)
        form, leaves = _apart(value)
        if isinstance(layout.form, OfSeries) and form == layout.form.shape:
            form, leaves = layout.form, layout.form.leaves(leaves)
        elif isinstance(form, OfSeries) and layout.form == form.shape:
            self.loops.inferred[self.number] = self._layout(value)
            return [0.0] * len(layout.entries)
        if form != layout.form and hasattr(value, "matrix"):
            value = value.matrix()
            form, leaves = _apart(value)
        if form != layout.form:  # an operator of a more general kind
            narrow = layout.built([0.0] * layout.size)
            if not hasattr(narrow, "matrix"):
                raise Unsuitable
            self.loops.inferred[self.number] = self._layout(value)
            return [0.0] * len(layout.entries)
        wide = _common(layout, _layout(value))
        if wide.key != layout.key:
            known = self.loops.inferred.get(self.number)
            same = known is not None and known.form == wide.form
            self.loops.inferred[self.number] = _common(known, wide) if same and known else wide
        return leaves

    def _layout(self, value: Any) -> Layout:
        layout = _layout(value)
        return Layout(layout.form, tuple(range(len(layout.entries)))) if self.whole else layout


PARTS = {
    (ROWS, OWN, OWN): {0},
    (PAIRS, OUTER, OWN): {1},
    (PAIRS, OWN, OUTER): {-1},
    (ALL, OWN, EACH): {-1, 0, 1},
    (SINCE, OWN, EACH): {0, 1},
    (SINCE, EACH, OWN): {-1, 0},
}
"""Parts of a matrix, on (0), above and below the diagonal, that a loop computes."""


class Matrix:
    """A scalar or several for each pair of rows, zero at first, kept in memory or in an output.

    ``strides`` say how far apart rows, columns and entries are.
    """

    def __init__(self, loops: Loops, strides: tuple[int, int, int], entries: int) -> None:
        self.loops, self.strides, self.entries = loops, strides, entries
        size = loops.forest.count**2 * entries
        self.buffer = Buffer(f"m{len(loops.matrices)}", SCRATCH, size)
        self._parts: set[tuple[int, int]] = set()
        loops.matrices.append(self)

    @property
    def is_full(self) -> bool:
        """Whether all of it is computed, if rows form a chain."""
        return len(self._parts) == 3 * self.entries

    def at(self, row: Index, column: Index, entry: int) -> Index:
        """Return where an entry of a cell is."""
        by_row, by_column, by_entry = self.strides
        return row * by_row + column * by_column + entry * by_entry

    def __getitem__(self, cell: tuple[Any, ...]) -> Any:
        scope, key, at = self._address(cell)
        if key not in scope.local:
            scope.local[key] = scope.load(self.buffer, at)
        return scope.local[key]

    def __setitem__(self, cell: tuple[Any, ...], value: Any) -> None:
        if isinstance(value, np.ndarray):
            for k, entry in enumerate(value):
                self._set_entry((*cell, k), entry)
            return
        scope, key, at = self._address(cell)
        i, j, *_ = cell
        parts = PARTS.get((scope.loop.domain or scope.loop.sort, i.row, j.row), ())
        self._parts |= {(key[-1], part) for part in parts}
        scope.local[key] = value
        scope.store(self.buffer, at, value)

    def _set_entry(self, cell: tuple[Any, ...], value: Any) -> None:
        """Set an entry, unless it is the zero that it is at first."""
        scope, _, at = self._address(cell)
        if isinstance(value, Symbol) or value != 0.0 or (self.buffer, at) in scope.stores:
            self[cell] = value

    def _address(self, cell: tuple[Any, ...]) -> tuple[Scope, tuple[Any, ...], Index]:
        i, j, *rest = cell
        entry = rest[0] if rest else 0
        scope = self.loops.scope
        if scope is None:
            raise Unsuitable
        at = self.at(scope.number(i), scope.number(j), entry)
        return scope, (self, i.row, j.row, entry), at


LINE = 8
"""Doubles of a line of the cache."""


class Block:
    """A vector of ``size`` entries for each row and column, zero at first, for one direction.

    Inwards each row adds to that of its parent; outwards each follows from that of its parent. What
    rows are done with is written over.
    """

    def __init__(self, loops: Loops, size: int) -> None:
        self.loops, self.size = loops, size
        self.direction = OUTWARD
        count, number = loops.forest.count, len(loops.blocks)
        self.stride = LINE * (-(-count // LINE) | 1)
        """From one vector of columns to the next, in an odd number of lines of the cache."""
        self.buffer = Buffer(f"columns{number}", SCRATCH, 0)
        self._at = Buffer(f"columns{number}.at", TABLE, 3 * count, np.zeros(3 * count, np.int64))
        loops.blocks.append(self)

    def place(self) -> None:
        """Say where the columns of each row are, once the direction is known."""
        where, rows = columns_of(self.direction, self.loops.forest.parents)
        self._at.data = where.reshape(-1)
        self.buffer.size = rows * self.size * self.stride

    def __getitem__(self, pair: tuple[Any, Any]) -> Any:
        scope, i = self._of(pair)
        if isinstance(i, int):
            return np.zeros(self.size)
        if (self, i.row) not in scope.local:
            array = np.empty(self.size, dtype=object)
            which = 0 if i.row == OWN else 1
            array[:] = [scope.load(self.buffer, self._address(which, x)) for x in range(self.size)]
            scope.local[self, i.row] = array
        return scope.local[self, i.row]

    def __setitem__(self, pair: tuple[Any, Any], value: Any) -> None:
        scope, i = self._of(pair)
        if isinstance(i, int):
            return
        self.direction = INWARD if i.row == PARENT else OUTWARD
        scope.local[self, i.row] = value
        which = 0 if i.row == OWN else 2
        for x, entry in enumerate(value):
            scope.store(self.buffer, self._address(which, x), entry)

    def _of(self, pair: tuple[Any, Any]) -> tuple[Scope, Any]:
        """Return the scope and the row."""
        scope = self.loops.scope
        i, k = pair
        if scope is None or getattr(k, "row", None) != EACH:
            raise Unsuitable
        return scope, i

    def _address(self, which: int, entry: int) -> Index:
        """Return where an entry is of a row (0), or of its parent to be read (1) or written (2)."""
        first = index(self._at[index(ROW_NUMBER) * 3 + which]) * (self.size * self.stride)
        return first + entry * self.stride + index(WITHIN)


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
