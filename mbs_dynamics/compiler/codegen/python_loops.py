# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The plain-Python emitter of programs with loops: rows one by one, pairs and columns as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.loop_program import Home, LoopProgram, Step, Turn, columns_of
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMN,
    COLUMNS,
    EACH,
    ENTRY,
    INWARD,
    LAST,
    LOAD,
    OUTWARD,
    OWN,
    PAIRS,
    PARENT,
    ROW,
    ROWS,
    STATE,
    TABLE,
    Place,
)
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.frontend.spans import ALL, BEYOND

INFIX = {g.ADD: "+", g.SUB: "-", g.MUL: "*", g.LESS: "<", g.LESS_EQUAL: "<="}
CALL = {g.SQRT: "sqrt", g.ATAN2: "atan2", g.DIV: "quotient"}
OF_ARRAYS = {g.SQRT: "sqrts", g.ATAN2: "atan2s", g.DIV: "quotients", g.SELECT: "where"}
"""Functions of scalars, and of arrays."""


def emit_loops(program: Program) -> str:
    """Return the source of ``def <name>(<inputs>)``, of flat lists or arrays.

    It needs the names of :func:`namespace` and those of plain programs.
    """
    assert isinstance(program, LoopProgram)
    return "\n".join([*_Source(program).lines(), ""])


def namespace(program: Program) -> dict[str, Any]:
    """Return what the source of a program refers to: its numbers, and functions of arrays."""
    assert isinstance(program, LoopProgram)
    forest = program.forest
    names: dict[str, Any] = {
        "tables": [table.tolist() for table in program.tables],
        "parents": forest.parents,
        "kinds": forest.kinds,
        "ends": forest.ends,
        "trees": forest.trees.tolist(),
        "array": np.array,
        "zeros": np.zeros,
        "cells": as_strided,
        "place": _place,
        "homes": {
            **program.slot_homes,
            **{(number,): home for number, home in program.matrix_homes.items()},
        },
        "range": range,
        "enumerate": enumerate,
        "where": np.where,
        "quotients": np.divide,
        "sqrts": np.sqrt,
        "atan2s": np.arctan2,
        "numbers": program.numbers,
        "units": lambda i, first, last: (np.arange(first, last) == i) * 1.0,
    }
    names.update({f"places_{name}": value.tolist() for name, value in program.places.items()})
    for number, (direction, size) in program.blocks.items():
        columns, count = columns_of(direction, forest.parents)
        names[f"columns{number}"] = columns.tolist()
        names[f"shape{number}"] = count, size, forest.count
    return names


def _place(out: Any, home: Home, cells: Any, *places: Any) -> None:
    """Store a matrix (row, column, entry) in a flat output as its home says."""
    first, strides = home.first, home.strides
    at = [by * np.array(place, int) for by, place in zip(strides, places, strict=True)]
    out[first + np.add.outer(np.add.outer(at[0], at[1]), at[2])] = cells


class _Source:
    """The lines of the function."""

    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.count = program.forest.count

    def lines(self) -> Iterator[str]:
        program = self.program
        yield f"def {program.name}({', '.join(port.name for port in program.inputs)}):"
        for slot in range(program.slots):
            yield f"    m{slot} = [0.0] * {self.count}"
        for number, (*strides, size) in enumerate(program.matrices):
            yield f"    flat{number} = zeros({size})"
            shape = self.count, self.count, program.entries(number)
            apart = tuple(8 * by for by in strides)
            yield f"    c{number} = cells(flat{number}, {shape}, {apart})"
        for number in program.blocks:
            yield f"    b{number} = zeros(shape{number})"
        if program.angles:
            yield from self._loop(Step(ROWS, OUTWARD, ALL, program.early))
        for k in program.angles:
            yield f"    m{k + 1} = [sin(x) for x in m{k}]"
            yield f"    m{k + 2} = [cos(x) for x in m{k}]"
        for step in program.steps:
            yield from self._loop(step)
        for k, (slot, direction) in enumerate(program.guard_slots):
            rows = f"range({self.count})" + ("[::-1]" if direction == INWARD else "")
            yield f"    for k, i in enumerate({rows}):"
            yield f"        if not m{slot}[i] > 0.0: failed({k * self.count} + k)"
        yield from self._results()

    def _results(self) -> Iterator[str]:
        program = self.program
        names = {port.name: f"out{k}" for k, port in enumerate(program.outputs)}
        for port in program.outputs:
            with_numbers = port.name in program.numbers
            taken = f"numbers[{port.name!r}].copy()" if with_numbers else f"zeros({port.size})"
            yield f"    {names[port.name]} = {taken}"
        for number, home in program.matrix_homes.items():
            places = f"places_{home.by}, places_{home.across}, range({program.entries(number)})"
            yield f"    place({names[home.port]}, homes[{number},], c{number}, {places})"
        for slot, home in program.slot_homes.items():
            cells = f"array(m{slot}).reshape({self.count}, 1, 1)"
            places = f"places_{home.by}, (0,), (0,)"
            yield f"    place({names[home.port]}, homes[{slot}], {cells}, {places})"
        yield f"    return {', '.join(names.values())},"

    def _loop(self, step: Step) -> Iterator[str]:
        arrays = sorted(self._in_lanes(step)) if step.sort == PAIRS else []
        for slot in arrays:
            yield f"    a{slot} = array(m{slot})"
        rows = f"range({self.count})" + ("[::-1]" if step.direction == INWARD else "")
        yield f"    for i in {rows}:"
        yield "        p = parents[i]"
        if step.sort == PAIRS:
            yield "        k, e = i + 1, ends[i]"
        elif step.sort == COLUMNS:
            first = "trees[0][i]" if step.span == ALL else "i"
            yield f"        k, e = {first}, {'ends[i]' if step.span == BEYOND else 'trees[1][i]'}"
        turns: Mapping[int, Turn] = step.turns
        if step.sort == PAIRS:
            yield "        if k < e:"
            yield from self._turn(next(iter(turns.values())), OWN)
            return
        for kind, turn in turns.items():
            yield f"        if kinds[i] == {kind}:"
            yield from self._turn(turn, EACH if step.sort == COLUMNS else "")

    def _in_lanes(self, step: Step) -> set[int]:
        """Return the values that a loop over pairs takes as arrays."""
        loads = [x.args[0] for turn in step.turns.values() for x in turn.nodes if x.op == LOAD]
        return {place.name for place in loads if (place.space, place.role) == (STATE, OWN)}

    def _turn(self, turn: Turn, lane: str) -> Iterator[str]:
        margin = " " * 12
        stores = sorted(turn.stores, key=lambda store: store.after)
        nodes = sorted(turn.nodes, key=lambda node: bool(lane) and node.op != LOAD)
        for node in nodes:
            while not lane and stores and stores[0].after <= node.id:
                yield margin + self._stored(stores[0].place, stores.pop(0).value, lane)
            if node.op == LOAD:
                yield f"{margin}t{node.id} = {self._place(node.args[0], lane)}"
            else:
                yield f"{margin}t{node.id} = {_expression(node, bool(lane))}"
        for store in stores:
            yield margin + self._stored(store.place, store.value, lane)

    def _stored(self, place: Place, value: Any, lane: str) -> str:
        return f"{self._place(place, lane, writing=True)} = {_ref(value)}"

    def _place(self, place: Place, lane: str, *, writing: bool = False) -> str:
        row = self._row(place.role, lane)
        if place.space == STATE:
            return f"a{place.name}[{row}]" if place.role == lane else f"m{place.name}[{row}]"
        if place.space == TABLE:
            entry = f"tables[{place.name}][{row}]"
            return f"array({entry})" if place.role == lane else entry
        if place.space == ENTRY:
            return f"{place.name}[{place.k}]"
        if place.space == ROW:
            by, stride = self.program.rows[place.name]
            return f"{place.name}[places_{by}[{row}] * {stride} + {place.k}]"
        if place.space == CELL:
            rows = [self._row(x, lane) for x in (place.role, place.other)]
            return f"c{place.name}[{', '.join(rows)}, {place.k}]"
        if place.space == COLUMN:
            which = 0 if place.role == OWN else 1 + writing
            taken = f"b{place.name}[columns{place.name}[i][{which}], {place.k}, k:e]"
            return taken if writing else f"{taken}.copy()"
        return f"units({row}, k, e)"

    def _row(self, role: str, lane: str) -> str:
        if role in (lane, EACH):
            return "k:e"
        last = str(self.count - 1)
        return {PARENT: "p", LAST: last}.get(role, "i")


def _ref(x: Any) -> str:
    return f"t{x.id}" if isinstance(x, (Symbol, Condition)) else repr(float(x))


def _expression(node: Symbol | Condition, arrays: bool) -> str:
    args = [_ref(x) for x in node.args]
    if node.op == g.NEG:
        return f"-{args[0]}"
    if node.op in INFIX:
        return f"{args[0]} {INFIX[node.op]} {args[1]}"
    if node.op == g.SELECT and not arrays:
        return f"{args[1]} if {args[0]} else {args[2]}"
    return f"{(OF_ARRAYS if arrays else CALL)[node.op]}({', '.join(args)})"
