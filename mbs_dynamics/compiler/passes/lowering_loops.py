# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs whose loops stayed loops as loop nests: where all stands in memory, and in which order.

What the rows of a forest have stands side by side by row: so a loop over the rows that come after
another one, or over columns, goes through memory from one entry to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.domains import ALL, BEYOND
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.loop_program import (
    LoopBody,
    LoopProgram,
    OutputBinding,
    Step,
    columns_of,
)
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMN,
    COLUMNS,
    EACH,
    ENTRY,
    INWARD,
    LAST,
    LOAD,
    OWN,
    PAIRS,
    PARENT,
    ROW,
    ROWS,
    STATE,
    TABLE,
    UNIT,
    Address,
)
from mbs_dynamics.compiler.ir.nodes import (
    INPUT,
    OUTPUT,
    SCRATCH,
    Buffer,
    Call,
    Check,
    Equal,
    Fill,
    For,
    Index,
    Let,
    Load,
    Module,
    Operand,
    Procedure,
    Statement,
    Store,
    Switch,
    Variable,
    constants,
    index,
    table,
)

LINE = 8
"""Doubles of a line of the cache."""

ROW_NUMBER, PARENT_NUMBER, BEGIN, END, WITHIN = map(Variable, ("i", "p", "begin", "end", "k"))
WIDE = (ROW_NUMBER, PARENT_NUMBER, BEGIN, END)


def lowered(program: LoopProgram, lanes: int = 1) -> Module:
    """Return a program as a loop nest, with memory laid out for so many states at a time."""
    return _Lowering(program, lanes).module()


def scratch_size(program: LoopProgram) -> int:
    """Return how many doubles of memory an evaluation needs beside inputs and outputs."""
    return sum(buffer.size for buffer in _Lowering(program, 1).memory if buffer.kind == SCRATCH)


class _Lowering:
    """The buffers of a program, and its statements."""

    def __init__(self, program: LoopProgram, lanes: int) -> None:
        self.program, self.forest = program, program.forest
        self.count = self.forest.count
        self.inputs = {x.name: Buffer(x.name, INPUT, x.size) for x in program.inputs}
        self.outputs = {x.name: Buffer(x.name, OUTPUT, x.size) for x in program.outputs}
        line = max(LINE // lanes, 1)
        self.stride = line * (-(-self.count // line) | 1)
        """From one vector of columns to the next, in an odd number of lines of the cache."""
        self.of_rows = table("parents", self.forest.parents)
        self.kinds = table("kinds", self.forest.kinds)
        self.ends = table("ends", self.forest.ends)
        self.roots, self.tree_ends = map(table, ("roots", "tree.ends"), self.forest.trees)
        self.places = {name: table(name, numbers) for name, numbers in program.places.items()}
        self.constants = [constants(f"c{k}", x) for k, x in enumerate(program.tables)]
        self.values = [self._value(field) for field in range(program.fields)]
        self.matrices = [self._matrix(number) for number in range(len(program.matrices))]
        self.blocks: dict[int, tuple[Buffer, Buffer]] = {}
        for number, (direction, size) in program.blocks.items():
            where, rows = columns_of(direction, self.forest.parents)
            block = Buffer(f"columns{number}", SCRATCH, rows * size * self.stride)
            self.blocks[number] = block, table(f"columns{number}.at", where)
        self.memory = [*self.values, *self.matrices, *(x for x, _ in self.blocks.values())]
        self.shared: dict[Any, Procedure] = {}

    def _value(self, field: int) -> Buffer:
        if field in self.program.value_bindings and self.program.value_in_place(field):
            return self.outputs[self.program.value_bindings[field].port]
        return Buffer(f"v{field}", SCRATCH, self.count)

    def _matrix(self, number: int) -> Buffer:
        homes = self.program.matrix_bindings
        if number in homes and self.program.matrix_in_place(number):
            return self.outputs[homes[number].port]
        return Buffer(f"m{number}", SCRATCH, self.program.matrices[number][3])

    def module(self) -> Module:
        """Return the program."""
        program = self.program
        body = [*self._zeros()]
        if program.angles:
            body += self._rows(Step(ROWS, "", ALL, program.hoisted))
            for first in program.angles:
                body.append(self._sines_and_cosines(first))
        for step in program.steps:
            body += self._rows(step)
        body += [*self._outputs(), *self._checks()]
        inputs, outputs = tuple(self.inputs.values()), tuple(self.outputs.values())
        return Module(program.name, inputs, outputs, tuple(body))

    # -- before and after ------------------------------------------------------------------------

    def _zeros(self) -> Iterator[Statement]:
        """Yield what fills what may be read, or stays, without having been written."""
        program = self.program
        for first in program.angles:
            yield Fill(self.values[first], 0, self.count)
        for block, _ in self.blocks.values():
            yield Fill(block, 0, block.size)
        for number, (*_, size) in enumerate(program.matrices):
            partly = not (self.forest.is_chain and program.fills(number))
            if self.matrices[number].kind != OUTPUT:
                partly = number in program.matrix_bindings or not self.forest.is_chain
            if partly:
                yield Fill(self.matrices[number], 0, size)

    def _sines_and_cosines(self, first: int) -> For:
        angle, sine, cosine = self.values[first : first + 3]
        at = index(WITHIN)
        body = (
            Load(0, angle, at),
            Let(1, g.SIN, (0,)),
            Let(2, g.COS, (0,)),
            Store(sine, at, 1),
            Store(cosine, at, 2),
        )
        return For(WITHIN, Index(), index(self.count), body, parallel=True)

    def _outputs(self) -> Iterator[Statement]:
        """Yield copies of outputs in which rows stand in another order than here."""
        program = self.program
        yield from self._numbers()
        i, k, count = ROW_NUMBER, WITHIN, index(self.count)
        for field, binding in program.value_bindings.items():
            if self.values[field].kind == SCRATCH:
                to = self._placed(binding.by, i) * binding.strides[0] + binding.first
                copy = (
                    Load(0, self.values[field], index(i)),
                    Store(self.outputs[binding.port], to, 0),
                )
                yield For(i, Index(), count, copy)
        for number, binding in program.matrix_bindings.items():
            if self.matrices[number].kind == SCRATCH:
                within = For(k, Index(), count, tuple(self._copies(number, binding)))
                yield For(i, Index(), count, (within,))

    def _copies(self, number: int, binding: OutputBinding) -> Iterator[Statement]:
        """Yield the copies of the entries that a matrix has for a row and a column."""
        by_row, by_column, by_entry, _ = self.program.matrices[number]
        i, k = index(ROW_NUMBER), index(WITHIN)
        here = i * by_row + k * by_column
        there = self._placed(binding.by, i) * binding.strides[0] + binding.first
        there += self._placed(binding.across, k) * binding.strides[1]
        for entry in range(self.program.entries(number)):
            yield Load(entry, self.matrices[number], here + entry * by_entry)
            yield Store(self.outputs[binding.port], there + entry * binding.strides[2], entry)

    def _placed(self, by: str, row: Variable | Index) -> Index:
        """Return the number of a row in inputs and outputs."""
        return index(row) if self.program.in_order(by) else index(self.places[by][row])

    def _numbers(self) -> Iterator[Statement]:
        """Yield what fills outputs that are put together, or of which only some rows are set."""
        program = self.program
        homes = [(x.port, program.matrices[k][3]) for k, x in program.matrix_bindings.items()]
        homes += [(x.port, self.count) for x in program.value_bindings.values()]
        for port in program.outputs:
            if sum(size for name, size in homes if name == port.name) == port.size:
                continue
            out = self.outputs[port.name]
            yield Fill(out, 0, port.size)
            numbers = program.numbers.get(port.name, np.zeros(0))
            at = np.flatnonzero(numbers)
            if len(at):
                where, what = table(f"{out}.at", at), constants(f"{out}.numbers", numbers[at])
                copy = (Load(0, what, index(WITHIN)), Store(out, index(where[WITHIN]), 0))
                yield For(WITHIN, Index(), index(len(at)), copy)

    def _checks(self) -> Iterator[Statement]:
        i = index(ROW_NUMBER)
        for k, (field, direction) in enumerate(self.program.guard_fields):
            inward, before = direction == INWARD, k * self.count
            status = index(before + self.count) + i * -1 if inward else i + (before + 1)
            body = Load(0, self.values[field], i), Check(0, status)
            yield For(ROW_NUMBER, Index(), index(self.count), body, backwards=inward)

    # -- loops -----------------------------------------------------------------------------------

    def _rows(self, step: Step) -> Iterator[Statement]:
        """Yield a loop over the rows, each of which does what its kind does."""
        i = ROW_NUMBER
        arguments = [index(i), index(self.of_rows[i])]
        if step.sort == PAIRS:
            arguments += [index(i) + 1, index(self.ends[i])]
        elif step.sort == COLUMNS:
            arguments.append(index(self.roots[i]) if step.domain == ALL else index(i))
            arguments.append(index((self.ends if step.domain == BEYOND else self.tree_ends)[i]))
        calls = {
            kind: Call(self._procedure(step.sort, loop_body), tuple(arguments))
            for kind, loop_body in step.loop_bodies.items()
            if loop_body.stores
        }
        if not calls:
            return
        body: Statement = Switch(
            index(self.kinds[i]), tuple((kind, (call,)) for kind, call in calls.items())
        )
        if step.sort == PAIRS or (
            len({x.procedure for x in calls.values()}) == 1
            and len(calls) == len(set(self.forest.kinds))
        ):
            body = next(iter(calls.values()))  # all kinds do the same
        yield For(i, Index(), index(self.count), (body,), backwards=step.direction == INWARD)

    def _procedure(self, sort: str, loop_body: LoopBody) -> Procedure:
        """Return what an iteration does; iterations that do the same share it."""
        key = sort, loop_body.signature
        if key not in self.shared:
            lane = {ROWS: "", PAIRS: OWN, COLUMNS: EACH}[sort]
            body = tuple(_Iteration(self, loop_body, lane).statements())
            if lane:
                body = (For(WITHIN, index(BEGIN), index(END), body, parallel=True),)
            name = f"{sort}{len(self.shared)}"
            self.shared[key] = Procedure(name, WIDE if lane else WIDE[:2], body)
        return self.shared[key]


class _Iteration:
    """The statements of one iteration; ``lane`` is the row that a loop within counts."""

    def __init__(self, lowering: _Lowering, loop_body: LoopBody, lane: str) -> None:
        self.of, self.program, self.loop_body, self.lane = (
            lowering,
            lowering.program,
            loop_body,
            lane,
        )
        self.numbers: dict[int, int] = {}

    def statements(self) -> Iterator[Statement]:
        """Yield them: in a loop within, loads come before all stores."""
        stores = sorted(self.loop_body.stores, key=lambda store: store.after)
        nodes = list(self.loop_body.nodes)
        if self.lane:
            nodes.sort(key=lambda node: node.op != LOAD)
        for node in nodes:
            while not self.lane and stores and stores[0].after <= node.id:
                yield self._store(*stores.pop(0)[:2])
            yield self._node(node)
        for store in stores:
            yield self._store(*store[:2])

    def _node(self, node: Symbol | Condition) -> Statement:
        value = self.numbers[node.id] = len(self.numbers)
        if node.op != LOAD:
            return Let(value, node.op, tuple(self._operand(x) for x in node.args))
        address = node.args[0]
        if address.space == UNIT:
            return Equal(value, self._row(address.row), self._row(address.column))
        return Load(value, *self._address(address))

    def _store(self, address: Address, value: Any) -> Store:
        return Store(*self._address(address, writing=True), self._operand(value))

    def _operand(self, x: Any) -> Operand:
        return self.numbers[x.id] if isinstance(x, (Symbol, Condition)) else float(x)

    def _row(self, row: str) -> Index:
        """Return the number of a row."""
        if row in (self.lane, EACH):
            return index(WITHIN)
        if row == LAST:
            return index(self.of.count - 1)
        return index(PARENT_NUMBER if row == PARENT else ROW_NUMBER)

    def _address(self, address: Address, *, writing: bool = False) -> tuple[Buffer, Index]:
        of, row = self.of, self._row(address.row)
        if address.space == STATE:
            return of.values[address.name], row
        if address.space == TABLE:
            return of.constants[address.name], row
        if address.space == ENTRY:
            return of.inputs[address.name], index(address.k)
        if address.space == ROW:
            by, stride = self.program.rows[address.name]
            return of.inputs[address.name], of._placed(by, row) * stride + address.k
        if address.space == CELL:
            by_row, by_column, by_entry, _ = self.program.matrices[address.name]
            at = row * by_row + self._row(address.column) * by_column + address.k * by_entry
            return of.matrices[address.name], at
        assert address.space == COLUMN
        block, where = of.blocks[address.name]
        _, size = self.program.blocks[address.name]
        which = 0 if address.row == OWN else 1 + writing
        first = index(where[index(ROW_NUMBER) * 3 + which]) * (size * of.stride)
        return block, first + address.k * of.stride + index(WITHIN)
