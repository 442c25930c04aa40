# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Containers of what loops compute: a value for each row, for each pair, for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler.frontend.graph import NUMBER, Symbol
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMN,
    EACH,
    GROUND,
    INWARD,
    LAST,
    OUTWARD,
    OWN,
    PARENT,
    ROWS,
    STATE,
    Address,
    Loops,
    Scope,
    Unsuitable,
)
from mbs_dynamics.compiler.frontend.series import Series


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
        self.first: int | None = None
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
        fields = self.fields()
        value = self.layout.built([scope.load(Address(STATE, s, 0, i.row)) for s in fields])
        scope.local[self, i.row] = value
        return value

    def __setitem__(self, i: Any, value: Any) -> None:
        scope = self.loops.scope
        if scope is None or scope.local.get((self, getattr(i, "row", None)), scope) is value:
            return
        if isinstance(i, int):
            return
        if scope.sort != ROWS:  # what does not depend on the order of the pairs
            raise Unsuitable
        self._assigned.add(i.kind)
        scope.local[self, i.row] = value
        leaves = self._conforming(value)
        assert self.layout is not None
        for s, x in zip(self.fields(), self.layout.variables(leaves), strict=True):
            scope.store(Address(STATE, s, 0, i.row), x)

    def _is_done_with(self, scope: Scope) -> bool:
        """Whether all rows have their values, from loops before this one."""
        own = {Address(STATE, s, 0, OWN) for s in self.fields()}
        forest = self.loops.forest
        done = self._assigned >= set(forest.kinds)
        return done and not own & scope.stores.keys()

    def fields(self) -> range:
        """The numbers of the values of a row that make one of this container."""
        assert self.layout is not None
        if self.first is None:
            self.first = self.loops.new_fields(self.layout.size)
        return range(self.first, self.first + self.layout.size)

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


class Matrix:
    """A scalar or several for each pair of rows, kept in memory or in an output."""

    def __init__(
        self,
        loops: Loops,
        strides: tuple[int, int, int],
        size: int,
    ) -> None:
        self.loops = loops
        self.number = len(loops.matrices)
        loops.matrices.append((*strides, size))

    def __getitem__(self, cell: tuple[Any, ...]) -> Any:
        scope, address = self._place(cell)
        if (self, address) not in scope.local:
            scope.local[self, address] = scope.load(address)
        return scope.local[self, address]

    def __setitem__(self, cell: tuple[Any, ...], value: Any) -> None:
        if isinstance(value, np.ndarray):
            for k, entry in enumerate(value):
                self._set_entry((*cell, k), entry)
            return
        scope, address = self._place(cell)
        scope.local[self, address] = value
        scope.store(address, value)

    def _set_entry(self, cell: tuple[Any, ...], value: Any) -> None:
        """Set an entry, unless it is the zero that it is at first."""
        scope, address = self._place(cell)
        if isinstance(value, Symbol) or value != 0.0 or address in scope.stores:
            self[cell] = value

    def _place(self, cell: tuple[Any, ...]) -> tuple[Scope, Address]:
        i, j, *k = cell
        scope = self.loops.scope
        if scope is None or isinstance(i, int) or isinstance(j, int):
            raise Unsuitable
        return scope, Address(CELL, self.number, k[0] if k else 0, i.row, j.row)


class Block:
    """A vector of ``size`` entries for each row and column, zero at first, for one direction.

    Inwards each row adds to that of its parent; outwards each follows from that of its parent. What
    rows are done with is written over.
    """

    def __init__(self, loops: Loops, size: int) -> None:
        self.loops, self.size = loops, size
        self.number = len(loops.blocks)
        loops.blocks[self.number] = OUTWARD, size

    def __getitem__(self, pair: tuple[Any, Any]) -> Any:
        scope = self.loops.scope
        i, k = pair
        if scope is None or getattr(k, "row", None) != EACH:
            raise Unsuitable
        if isinstance(i, int):
            return np.zeros(self.size)
        if (self, i.row) not in scope.local:
            places = [Address(COLUMN, self.number, x, i.row, EACH) for x in range(self.size)]
            array = np.empty(self.size, dtype=object)
            array[:] = [scope.load(address) for address in places]
            scope.local[self, i.row] = array
        return scope.local[self, i.row]

    def __setitem__(self, pair: tuple[Any, Any], value: Any) -> None:
        scope = self.loops.scope
        i, k = pair
        if scope is None or getattr(k, "row", None) != EACH:
            raise Unsuitable
        if isinstance(i, int):
            return
        self.loops.blocks[self.number] = INWARD if i.row == PARENT else OUTWARD, self.size
        scope.local[self, i.row] = value
        for x, entry in enumerate(value):
            scope.store(Address(COLUMN, self.number, x, i.row, EACH), entry)
