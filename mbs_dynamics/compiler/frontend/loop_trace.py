# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tracing of functions whose loops stay loops, and the loop nests that they leave behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.containers import Matrix, Values
from mbs_dynamics.compiler.frontend.graph import Condition, Graph, Symbol
from mbs_dynamics.compiler.frontend.loop_ports import Assembled, Entries, Result, Texts
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
from mbs_dynamics.compiler.frontend.loops import (
    BEGIN,
    END,
    EQUAL,
    INWARD,
    LOAD,
    PAIRS,
    PARENT_NUMBER,
    ROW_NUMBER,
    ROWS,
    WITHIN,
    Angle,
    Forest,
    Loop,
    Loops,
    Scope,
    Unsuitable,
)
from mbs_dynamics.compiler.frontend.program import Port, Program, named_results
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import (
    INPUT,
    OUTPUT,
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
    constants,
    index,
    table,
    with_buffers,
)
from mbs_dynamics.errors import SingularError, TraceError

ATTEMPTS = 24
"""Each one finds at least one layout that was too narrow, in functions that can be traced so."""


def trace_loops(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    droppable: frozenset[str],
    forest: Forest,
    places: Mapping[str, Sequence[int]],
    rows: Mapping[str, str],
    columns: Collection[str],
    expand: Callable[[], Program],
) -> LoopProgram:
    """Call ``function(loops, **symbols)`` and return the loops that it leaves behind.

    ``places`` are numbers of the rows, and ``rows`` says for inputs that have entries for each row
    which of them are meant; inputs in ``columns`` have several such arrays below each other. The
    function returns a :class:`Result` or a mapping of names to such. Raises Unsuitable if it needs
    to know which row a row is.
    """
    ports = [Port(key, tuple(shape)) for key, shape in inputs.items()]
    buffers = {port.name: Buffer(port.name, INPUT, port.size) for port in ports}
    numbers = {key: np.array(value, dtype=np.int64) for key, value in places.items()}
    strides = {
        key: (by, 1 if key in columns else int(np.prod(inputs[key][1:])))
        for key, by in rows.items()
    }
    layouts: dict[int, Any] = {}
    for _ in range(ATTEMPTS):
        loops, top = Loops(forest, buffers, numbers, strides, layouts), Graph()
        symbols: dict[str, Any] = {}
        for key, shape in inputs.items():
            if key in columns:
                symbols[key] = [Entries(loops, key, (), k * shape[1]) for k in range(shape[0])]
            elif key in rows:
                symbols[key] = Entries(loops, key, shape[1:])
            else:
                symbols[key] = top.input(key, shape)
        try:
            result = function(loops, **symbols)
        except (SingularError, TraceError, Unsuitable, ZeroDivisionError):
            # of what was thought to be constant, too early
            if not loops.inferred:
                raise
        finally:
            loops.forget()
        if not loops.inferred:
            break
        layouts.update(loops.inferred)
    else:
        raise Unsuitable
    results, result_type = named_results(name, result)
    nest = _Nest(loops, results)
    body = nest.body()
    used = set(Module(name, (), (), body).buffers(INPUT))
    kept = [x for x in ports if x.name not in droppable or buffers[x.name] in used]
    module = Module(name, tuple(buffers[x.name] for x in kept), nest.outputs, body)
    return LoopProgram(module, forest, tuple(kept), nest.ports, nest.guards, expand, result_type)


class _Nest:
    """The loops as statements, of which those are left that results and checks need."""

    def __init__(self, loops: Loops, results: Mapping[str, Any]) -> None:
        self.loops, self.forest = loops, loops.forest
        self.count = loops.forest.count
        self.instead: dict[Buffer, tuple[Buffer, int]] = {}
        """Outputs in place of what is computed as it stands there."""
        self.copies: list[Statement] = []
        self.bound: dict[Buffer, None] = {}
        """What results are made of."""
        self.shared: dict[tuple[str, str], Procedure] = {}
        self.kinds = table("kinds", self.forest.kinds)
        parts = [self._result(key, value) for key, value in results.items()]
        self.ports, self.outputs = (tuple(x) for x in zip(*parts, strict=True))
        self.checks, self.guards = self._guards()

    # -- results ---------------------------------------------------------------------------------

    def _result(self, name: str, value: Any) -> tuple[Port, Buffer]:
        """Return an output, after noting what it is made of."""
        result: Any = np.asarray(value, dtype=object)[()]
        if isinstance(result, Assembled):
            parts, numbers = result.parts, result.numbers
        elif isinstance(result, Result):
            parts, numbers = ((0, result),), np.zeros(result.shape)
        else:
            raise Unsuitable
        port = Port(name, numbers.shape)
        out = Buffer(name, OUTPUT, port.size)
        begin, filled = len(self.copies), 0
        for first, part in parts:
            filled += self._values(out, first, part) if isinstance(part.of, Values) else 0
            filled += self._matrix(out, first, part) if isinstance(part.of, Matrix) else 0
        if filled != port.size:
            self.copies[begin:begin] = self._numbers(out, numbers.reshape(-1))
        return port, out

    def _values(self, out: Buffer, first: int, result: Result) -> int:
        """Note that values are a result; return how many entries there are."""
        values, (by_row, _, by_entry) = result.of, result.strides
        assert isinstance(values, Values)
        layout = values.layout
        if layout is None or layout.has_numbers or layout.size < len(layout.entries):
            raise Unsuitable
        buffers, i = values.buffers(), ROW_NUMBER
        in_place = self.loops.in_order(result.by) and out.size == self.count
        for k, buffer in enumerate(buffers):
            self.bound[buffer] = None
            if in_place:
                self.instead[buffer] = out, 0
            else:
                at = self.loops.placed(result.by, i) * by_row + first + k * by_entry
                copy = Load(0, buffer, index(i)), Store(out, at, 0)
                self.copies.append(For(i, Index(), index(self.count), copy))
        return len(buffers) * self.count

    def _matrix(self, out: Buffer, first: int, result: Result) -> int:
        """Note that a matrix is a result; return how many entries there are."""
        matrix, (by_row, by_column, by_entry) = result.of, result.strides
        assert isinstance(matrix, Matrix)
        if matrix.buffer in self.bound:
            raise Unsuitable
        self.bound[matrix.buffer] = None
        across = result.across or result.by
        in_order = self.loops.in_order(result.by) and self.loops.in_order(across)
        if in_order and out.size == matrix.buffer.size and matrix.strides == result.strides:
            self.instead[matrix.buffer] = out, 0
            return out.size
        i, k, count = ROW_NUMBER, WITHIN, index(self.count)
        there = self.loops.placed(result.by, i) * by_row + first
        there += self.loops.placed(across, k) * by_column
        copy: list[Statement] = []
        for entry in range(matrix.entries):
            here = matrix.at(index(i), index(k), entry)
            copy.append(Load(entry, matrix.buffer, here))
            copy.append(Store(out, there + entry * by_entry, entry))
        self.copies.append(For(i, Index(), count, (For(k, Index(), count, tuple(copy)),)))
        return matrix.buffer.size

    def _numbers(self, out: Buffer, numbers: NDArray[np.float64]) -> Iterator[Statement]:
        """Yield what fills an output that is put together, or of which only some rows are set."""
        yield Fill(out, 0, out.size)
        at = np.flatnonzero(numbers)
        if len(at):
            where, what = table(f"{out}.at", at), constants(f"{out}.numbers", numbers[at])
            copy = Load(0, what, index(WITHIN)), Store(out, index(where[WITHIN]), 0)
            yield For(WITHIN, Index(), index(len(at)), copy)

    def _guards(self) -> tuple[list[Statement], tuple[str, ...]]:
        """Return the checks of what must be positive, in the order in which rows are looked at."""
        checks: list[Statement] = []
        said: list[str] = []
        text: Any
        i = index(ROW_NUMBER)
        for loop in self.loops.steps:
            found = [list(scope.guards.values()) for scope in loop.scopes.values()]
            if not any(found):
                continue
            if loop.sort != ROWS or any(len(each) != 1 for each in found):
                raise Unsuitable
            buffer = self.loops.new_values()
            self.bound[buffer] = None
            for scope, ((excess, text),) in zip(loop.scopes.values(), found, strict=True):
                scope.store(buffer, i, excess)
                if not isinstance(text, Texts):
                    raise Unsuitable
            before, inward = len(said), loop.direction == INWARD
            status = i * -1 + (before + self.count) if inward else i + (before + 1)
            check = Load(0, buffer, i), Check(0, status)
            checks.append(For(ROW_NUMBER, Index(), index(self.count), check, backwards=inward))
            said += text.texts[::-1] if inward else text.texts
        return checks, tuple(said)

    # -- statements ------------------------------------------------------------------------------

    def body(self) -> tuple[Statement, ...]:
        """Return all statements."""
        for block in self.loops.blocks:
            block.place()
        needed = self._needed()
        body = [*self._zeros(needed)]
        body += self._over_rows(self.loops.hoisted, needed)
        body += [self._sines_and_cosines(angle) for angle in self.loops.angles]
        for loop in self.loops.steps:
            body += self._over_rows(loop, needed)
        return with_buffers([*body, *self.copies, *self.checks], self.instead)

    def _needed(self) -> set[Buffer]:
        """Return what has to be computed for results, checks and angles."""
        needed = {*self.bound, *(angle.value for angle in self.loops.angles)}
        loops = (*self.loops.steps, self.loops.hoisted)
        scopes = [scope for loop in loops for scope in loop.scopes.values()]
        before = -1
        while len(needed) != before:
            before = len(needed)
            for scope in scopes:
                nodes = _live_nodes(scope, needed)
                needed |= {node.args[0] for node in nodes if node.op == LOAD}
        return needed

    def _zeros(self, needed: set[Buffer]) -> Iterator[Statement]:
        """Yield what fills what may be read, or stays, without having been written."""
        buffers = [angle.value for angle in self.loops.angles]
        buffers += [block.buffer for block in self.loops.blocks if block.buffer in needed]
        for matrix in self.loops.matrices:
            complete = matrix.is_full or matrix.buffer not in self.bound
            if matrix.buffer in needed and not (self.forest.is_chain and complete):
                buffers.append(matrix.buffer)
        for buffer in buffers:
            yield Fill(buffer, 0, buffer.size)

    def _sines_and_cosines(self, angle: Angle) -> For:
        at = index(WITHIN)
        body = (
            Load(0, angle.value, at),
            Let(1, ops.SIN, (0,)),
            Let(2, ops.COS, (0,)),
            Store(angle.sine, at, 1),
            Store(angle.cosine, at, 2),
        )
        return For(WITHIN, Index(), index(self.count), body, parallel=True)

    def _over_rows(self, loop: Loop, needed: set[Buffer]) -> Iterator[Statement]:
        """Yield a loop over the rows, each of which does what its kind does."""
        arguments = self.loops.arguments(loop)
        calls = {}
        for kind, scope in loop.scopes.items():
            if statements := tuple(_statements(scope, needed)):
                calls[kind] = Call(self._procedure(loop.sort, statements), arguments)
        if not calls:
            return
        same = len({call.procedure for call in calls.values()}) == 1
        if loop.sort == PAIRS and not same:
            raise Unsuitable
        i, (body, *_) = ROW_NUMBER, calls.values()
        if loop.sort == PAIRS or (same and len(calls) == len(set(self.forest.kinds))):
            statement: Statement = body  # all kinds do the same
        else:
            cases = tuple((kind, (call,)) for kind, call in calls.items())
            statement = Switch(index(self.kinds[i]), cases)
        inward = loop.direction == INWARD
        yield For(i, Index(), index(self.count), (statement,), backwards=inward)

    def _procedure(self, sort: str, statements: tuple[Statement, ...]) -> Procedure:
        """Return what an iteration does; iterations that do the same share it."""
        key = sort, repr(statements)  # the number 1.0 equals the value 1
        if key not in self.shared:
            name = f"{sort}{len(self.shared)}"
            row = ROW_NUMBER, PARENT_NUMBER
            if sort == ROWS:
                self.shared[key] = Procedure(name, row, statements)
            else:
                within = For(WITHIN, index(BEGIN), index(END), statements, parallel=True)
                self.shared[key] = Procedure(name, (*row, BEGIN, END), (within,))
        return self.shared[key]


def _live_nodes(scope: Scope, needed: set[Buffer]) -> list[Symbol | Condition]:
    """Return the nodes of what is stored in buffers that are needed."""
    live = bytearray(len(scope.nodes))
    for (buffer, _), (value, _) in scope.stores.items():
        if buffer in needed and isinstance(value, Symbol):
            if value.graph is not scope:
                raise Unsuitable
            live[value.id] = 1
    for node in reversed(scope.nodes):
        if live[node.id] and node.op not in (LOAD, EQUAL):
            for x in node.args:
                if type(x) is not float:
                    live[x.id] = 1
    return [node for node in scope.nodes if live[node.id]]


def _statements(scope: Scope, needed: set[Buffer]) -> Iterator[Statement]:
    """Yield what an iteration does: in a loop within, loads come before all stores."""
    values: dict[int, int] = {}

    def operand(x: Any) -> Operand:
        return values[x.id] if isinstance(x, (Symbol, Condition)) else float(x)

    def statement(node: Symbol | Condition) -> Statement:
        value = values[node.id] = len(values)
        if node.op == LOAD:
            return Load(value, *node.args)
        if node.op == EQUAL:
            return Equal(value, *node.args)
        return Let(value, node.op, tuple(operand(x) for x in node.args))

    nodes = _live_nodes(scope, needed)
    stores = [
        (after, buffer, at, value)
        for (buffer, at), (value, after) in scope.stores.items()
        if buffer in needed
    ]
    stores.sort(key=lambda store: store[0])
    within = scope.loop.sort != ROWS
    if within:
        nodes.sort(key=lambda node: node.op not in (LOAD, EQUAL))
    for node in nodes:
        while not within and stores and stores[0][0] <= node.id:
            _, buffer, at, value = stores.pop(0)
            yield Store(buffer, at, operand(value))
        yield statement(node)
    for _, buffer, at, value in stores:
        yield Store(buffer, at, operand(value))
