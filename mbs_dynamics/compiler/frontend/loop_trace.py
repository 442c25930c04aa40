# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tracing of functions whose loops stay loops, into loop nests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend import domains
from mbs_dynamics.compiler.frontend.containers import Matrix, Values, taken_apart
from mbs_dynamics.compiler.frontend.domains import BEGIN, END, PARENT_ROW, ROW, ROWS, WITHIN, Forest
from mbs_dynamics.compiler.frontend.graph import LOAD, Symbol
from mbs_dynamics.compiler.frontend.loops import INWARD, OUTWARD, Loop, Loops, NoLoopNest, PerRow
from mbs_dynamics.compiler.frontend.lowering import hoisted, live_nodes, lowered
from mbs_dynamics.compiler.frontend.program import Port, Program, named_results
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir.nodes import Buffer, Index, Statement, index
from mbs_dynamics.errors import SingularError, TraceError

ATTEMPTS = 24
"""Each one finds at least one layout that was too narrow, in functions that can be traced so."""


@dataclass(frozen=True, eq=False)
class Result:
    """An output: numbers or vectors for rows, or a matrix, with rows in some order."""

    of: Values | PerRow | Matrix
    order: str
    """Name of the order in which rows stand in the output."""
    count: int
    """How many rows the output has, some of which may be no rows of the loops: these are zero."""
    columns: str = ""
    """The order of the columns of a matrix, if it is another one."""
    by_row: bool = False
    """Whether the entries of the vector of a row are adjacent, or those of all rows."""

    def __len__(self) -> int:
        raise NoLoopNest  # of what takes its rows one by one

    def __getitem__(self, i: Any) -> Any:
        if isinstance(self.of, Matrix):
            raise NoLoopNest
        return self.of[i]

    @property
    def shape(self) -> tuple[int, int]:
        """Of a matrix."""
        of: Any = self.of
        return self.count, of.entries * of.columns if of.adjacent else self.count

    def mapped(self, function: Callable[[Any], Any]) -> Result:
        """Return the result with a function applied to the values of the rows."""
        return replace(self, of=PerRow(lambda i: function(self[i])))


class Assembled:
    """An output made of blocks side by side: results that are matrices, and those of numbers."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        blocks = [[np.asarray(x)[()] for x in row] for row in rows]
        zeros = [[np.zeros(x.shape) if isinstance(x, Result) else x for x in row] for row in blocks]
        whole = np.block(zeros)
        symbolic = np.vectorize(lambda x: isinstance(x, Symbol), otypes=[bool])(whole)
        self.symbols = {k: whole.flat[k] for k in np.flatnonzero(symbolic).tolist()}
        """Symbols, which are computed before all loops, by their indices in the flat output."""
        self.numbers: NDArray[np.float64] = np.where(symbolic, 0.0, whole).astype(np.float64)
        """The output with zeros in place of the results and symbols."""
        self.parts: list[tuple[int, Any]] = []
        """The results, each with the index of its first entry in the flat output."""
        tops = np.cumsum([0, *(row[0].shape[0] for row in zeros)])
        for top, row, known in zip(tops, blocks, zeros, strict=False):
            lefts = np.cumsum([0, *(x.shape[1] for x in known)])
            for left, x in zip(lefts, row, strict=False):
                if isinstance(x, Result):
                    self.parts.append((int(top * self.numbers.shape[1] + left), x))


def trace_loops(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    rows: Mapping[str, tuple[str, int]],
    places: Mapping[str, Sequence[int]],
    forest: Forest,
    *,
    name: str,
    droppable: frozenset[str],
) -> Program:
    """Call ``function(loops, **symbols)`` and return the traced loops.

    ``rows`` says for inputs with entries for each row in which order these are, and along which
    axis, and ``places`` where each row stands in inputs and outputs, by the name of an order. The
    function returns a :class:`Result`, an :class:`Assembled` or a mapping of names to such. Raises
    NoLoopNest if it depends on the number of a row.
    """
    layouts: dict[int, Any] = {}
    for _ in range(ATTEMPTS):
        loops = Loops(forest, places, layouts)
        symbols = {key: _symbols(loops, key, shape, rows) for key, shape in inputs.items()}
        try:
            named, result_type = named_results(name, function(loops, **symbols))
            outputs = [_output(loops, key, value) for key, value in named.items()]
        except (SingularError, TraceError, NoLoopNest, ZeroDivisionError, ValueError):
            # of what was thought to be constant, or to have the form of the head, too early
            if not loops.inferred:
                raise
        finally:
            loops.forget()
        if not loops.inferred:
            break
        layouts.update(loops.inferred)
    else:
        raise NoLoopNest
    body, guards = _Nest(loops).body(outputs)
    used = ir.Module(name, (), (), body).buffers(ir.INPUT)
    buffers = loops.before.inputs
    kept = [key for key in inputs if key not in droppable or buffers[key] in used]
    given = tuple(buffers[key] for key in kept)
    return Program(
        ir.Module(name, given, tuple(x.buffer for x in outputs), body),
        tuple(Port(key, tuple(inputs[key])) for key in kept),
        tuple(x.port for x in outputs),
        tuple(guards),
        result_type,
        in_loops=True,
    )


def _symbols(
    loops: Loops, name: str, shape: tuple[int, ...], rows: Mapping[str, tuple[str, int]]
) -> Any:
    symbols = loops.before.input(name, shape)
    if name not in rows:
        return symbols
    order, axis = rows[name]
    if axis == 0:
        return loops.input(name, order, shape[1:])
    return [loops.input(name, order, first=k * shape[1]) for k in range(shape[0])]


class Output(NamedTuple):
    """An output, with its statements before and after all loops."""

    port: Port
    buffer: Buffer
    before: Sequence[Statement] = ()
    after: Sequence[Statement] = ()


def _output(loops: Loops, name: str, value: Any) -> Output:
    """Return an output; values of the rows are stored there by a further loop."""
    result: Any = np.asarray(value, dtype=object)[()]
    symbols: dict[int, Any] = {}
    if isinstance(result, Assembled):
        parts, numbers, symbols = result.parts, result.numbers, result.symbols
        width = numbers.shape[1]
        strides = [(width, x.of.entries if x.of.adjacent else 1, 1) for _, x in parts]
    elif not isinstance(result, Result):
        raise NoLoopNest
    elif not isinstance(result.of, Matrix):
        return _of_rows(loops, name, result)
    else:
        matrix, n, size = result.of, result.count, result.of.entries
        matrix.is_result = True
        strides, shape = [(n, 1, n * n)], (n, n) if size == 1 else (size, n, n)
        if matrix.adjacent:
            strides, shape = [(result.shape[1], size, 1)], result.shape
        first = loops.forest.count - matrix.columns
        in_order = loops.in_order(result.order) and loops.in_order(
            result.columns or result.order, first
        )
        buffer = matrix.buffer
        if in_order and n == loops.forest.count and buffer.kind == ir.SCRATCH:
            buffer.name, buffer.kind = name, ir.OUTPUT
            return Output(Port(name, shape), buffer)
        parts, numbers = [(0, result)], np.zeros(shape)
    out = Buffer(name, ir.OUTPUT, numbers.size)
    for k, x in symbols.items():
        loops.before.store(out, Index((), k), x)
    pairs = zip(parts, strides, strict=True)
    copies = [_copy(loops, part, each, out, first) for (first, part), each in pairs]
    filled: int = sum(part.of.buffer.size for _, part in parts)
    before = _numbers(out, numbers) if filled < out.size else []
    return Output(Port(name, numbers.shape), out, before, copies)


def _of_rows(loops: Loops, name: str, result: Result) -> Output:
    out = Buffer(name, ir.OUTPUT, 0)
    for own, _ in loops.rows(OUTWARD):
        for i in [own] if result.by_row else loops.columns_of(own):
            (shape, *_), entries = taken_apart(result[i])
            at = loops.place(result.order, loops.scope.number(i))
            by_row, by_entry = (len(entries), 1) if result.by_row else (1, result.count)
            for k, entry in enumerate(entries):
                loops.scope.store(out, at * by_row + k * by_entry, entry)
    numbers = np.zeros((result.count, *shape) if result.by_row else (*shape, result.count))
    out.size = numbers.size
    rows = loops.forest.count - loops.forest.before * result.by_row
    before = _numbers(out, numbers) if result.count > rows else []
    return Output(Port(name, numbers.shape), out, before)


def _numbers(out: Buffer, numbers: NDArray[np.float64]) -> list[Statement]:
    """Return statements that fill an output with numbers, mostly zeros."""
    at = np.flatnonzero(numbers)
    where, what = ir.table(f"{out}.at", at), ir.constants(f"{out}.numbers", numbers.flat[at])
    copy = ir.Load(0, what, index(WITHIN)), ir.Store(out, index(where[WITHIN]), 0)
    others = [ir.For(WITHIN, Index(), index(len(at)), copy)] if len(at) else []
    return [ir.Fill(out, 0, out.size), *others]


def _copy(
    loops: Loops, result: Result, strides: tuple[int, int, int], out: Buffer, first: int
) -> Statement:
    """Return statements that copy a matrix to a part of an output, in the order of the output."""
    matrix, (by_row, by_column, by_entry) = result.of, strides
    assert isinstance(matrix, Matrix)
    matrix.is_result = True
    there = loops.place(result.order, ROW) * by_row + first
    column = index(WITHIN) + (loops.forest.count - matrix.columns)
    there += loops.place(result.columns or result.order, column) * by_column
    copy: list[Statement] = []
    for k, here in enumerate(matrix.at(index(ROW), index(WITHIN))):
        copy += [ir.Load(k, matrix.buffer, here), ir.Store(out, there + k * by_entry, k)]
    count, columns = index(loops.forest.count), index(matrix.columns)
    return ir.For(ROW, Index(), count, (ir.For(WITHIN, Index(), columns, tuple(copy)),))


class _Nest:
    """The loops as statements, reduced to those that outputs and checks need."""

    def __init__(self, loops: Loops) -> None:
        self.loops, self.forest = loops, loops.forest
        self.count = index(loops.forest.count)
        self.kinds = ir.table("kinds", self.forest.kinds)
        self.shared: dict[tuple[str, str], ir.Procedure] = {}

    def body(self, outputs: Sequence[Output]) -> tuple[tuple[Statement, ...], list[str]]:
        """Return all statements, and the messages of failed checks by status."""
        checks, messages = self._checks()
        after = [statement for x in outputs for statement in x.after] + checks
        read = {x.buffer for x in ir.walk(after) if isinstance(x, ir.Load)}
        self.needed = self._needed({*read, *(x.buffer for x in outputs)})
        body = [statement for x in outputs for statement in x.before]
        body += [ir.Fill(x, 0, x.size) for x in self._zeros() if x in self.needed]
        if before := lowered(self.loops.before, self.needed):
            body.append(ir.Call(ir.Procedure("before", (), before), ()))
        for loop in self.loops.steps:
            body += self._over_rows(loop)
            stored = {buffer for scope in loop.scopes.values() for buffer, _ in scope.stores}
            angles = [x for x in self.loops.sines if x in stored and x in self.needed]
            body += map(self._sines, angles)
        return (*body, *after), messages

    def _checks(self) -> tuple[list[Statement], list[str]]:
        """Return the checks of values that must be positive, in the order of the rows."""
        checks: list[Statement] = []
        messages: list[str] = []

        def check(buffer: Buffer, at: int, text: str) -> None:
            checks.append(ir.Load(len(messages), buffer, index(at)))
            checks.append(ir.Check(len(messages), len(messages) + 1))
            messages.append(text)

        for loop in self.loops.steps:
            head, others = self._of_head_and_others(loop.scopes)
            guards = [list(scope.guards.values()) for scope in others.values()]
            buffer = self.loops.new_values()
            at_rows: list[tuple[Buffer, int, str]] = []
            if any(guards):
                if loop.domain != ROWS or any(len(each) != 1 for each in guards):
                    raise NoLoopNest
                for scope, ((excess, _),) in zip(others.values(), guards, strict=True):
                    scope.store(buffer, index(ROW), excess)
                texts = enumerate(guards[0][0][1])
                at_rows = [(buffer, row, text) for row, text in texts if row >= self.forest.head]
            at_head: list[tuple[Buffer, int, str]] = []
            for scope in head.values():
                for excess, text in list(scope.guards.values()):
                    own = Buffer(f"{buffer}.{len(at_head)}", ir.SCRATCH, 1)
                    scope.store(own, Index(), excess)
                    at_head.append((own, 0, text))
            inward = loop.direction == INWARD
            for each in [*at_rows[::-1], *at_head] if inward else [*at_head, *at_rows]:
                check(*each)
        return checks, messages

    def _of_head_and_others(self, of: Mapping[int | None, Any]) -> tuple[dict[Any, Any], ...]:
        """Return the operations of the head's kind, and those of all others."""
        head = self.forest.head_kind
        mine = {kind: x for kind, x in of.items() if kind is not None and kind == head}
        return mine, {kind: x for kind, x in of.items() if kind not in mine}

    def _needed(self, needed: set[Buffer]) -> set[Buffer]:
        """Return the operations that these buffers need."""
        scopes = [scope for loop in self.loops.steps for scope in loop.scopes.values()]
        before = -1
        while len(needed) != before:
            before = len(needed)
            for scope in (*scopes, self.loops.before):
                nodes = live_nodes(scope, needed)
                needed |= {node.args[0] for node in nodes if node.op == LOAD}
            for angles, of in self.loops.sines.items():
                needed |= set() if needed.isdisjoint(of.values()) else {angles, *of.values()}
        return needed

    def _zeros(self) -> Iterator[Buffer]:
        """Yield fills of entries that are read, or are results, without having been written."""
        for container in self.loops.pairs_and_columns:
            if not isinstance(container, Matrix) or container.shows_zeros:
                yield container.buffer

    def _sines(self, angles: Buffer) -> Statement:
        at, of = index(WITHIN), self.loops.sines[angles]
        body: tuple[Statement, ...] = (
            ir.Load(0, angles, at),
            *(ir.Let(k, op, (0,)) for k, op in enumerate(of, 1)),
            *(ir.Store(buffer, at, k) for k, buffer in enumerate(of.values(), 1)),
        )
        return ir.For(WITHIN, Index(), self.count, body, parallel=True)

    def _over_rows(self, loop: Loop) -> Iterator[Statement]:
        """Yield a loop over the rows, with the operations of the kind of each."""
        arguments = self.forest.arguments(loop.domain)
        calls: dict[int | None, ir.Call] = {}
        blocks: dict[int | None, tuple[Statement, ...]] = {}
        for kind, scope in loop.scopes.items():
            if statements := lowered(scope, self.needed, loads_first=loop.domain != ROWS):
                procedure = self._procedure(loop.domain, statements)
                given = tuple(arguments[x] for x in procedure.parameters)
                calls[kind] = ir.Call(procedure, given)
                blocks[kind] = statements
        head, inward = self.forest.head, loop.direction == INWARD
        at_head, others = self._of_head_and_others(calls)
        if loop.domain == domains.PAIRS:  # of which all kinds beyond the other row do the same
            if len({call.procedure for call in calls.values()}) > 1:
                raise NoLoopNest
            at_head, others = (calls, {}) if loop.of_head else ({}, calls)
        parts = [
            ir.For(ROW, index(head - 1), index(head), (call,)) for call in [*at_head.values()][:1]
        ]
        if others:
            kinds = {*self.forest.kinds[head:]}
            every = None in others or loop.domain == domains.PAIRS or others.keys() == kinds
            begin = Index() if None in others else index(head)
            kind, call = next(iter(others.items()))
            body: tuple[Statement, ...] = (call,)
            parallel = False
            if not every or len({call.procedure for call in others.values()}) > 1:
                cases = tuple((kind, (call,)) for kind, call in others.items())
                body = (ir.Switch(index(self.kinds[ROW]), cases),)
            elif loop.domain == ROWS and _is_elementwise(blocks[kind]):
                body, parallel = blocks[kind], True
            backwards = inward and not parallel
            parts.append(ir.For(ROW, begin, self.count, body, backwards, parallel))
        yield from parts[::-1] if inward else parts

    def _procedure(self, domain: str, statements: tuple[Statement, ...]) -> ir.Procedure:
        """Return the procedure of an iteration, which equal iterations share."""
        key = domain, repr(statements)  # the number 1.0 equals the value 1
        if key not in self.shared:
            name = f"{domain}{len(self.shared)}"
            if domain != ROWS:
                loop = ir.For(WITHIN, index(BEGIN), index(END), statements, parallel=True)
                statements = hoisted(loop)
            indices = [at for x in ir.walk(statements) for at in ir.indices_of(x)]
            used: set[ir.Variable] = set().union(*(at.variables for at in indices))
            parameters = tuple(x for x in (ROW, PARENT_ROW, BEGIN, END) if x in used)
            self.shared[key] = ir.Procedure(name, parameters, statements)
        return self.shared[key]


def _is_elementwise(body: Sequence[Statement]) -> bool:
    """Whether iterations over rows read and write entries of their own rows alone."""
    read = {x.buffer for x in body if isinstance(x, ir.Load)}
    written = {x.buffer for x in body if isinstance(x, ir.Store)}
    entries = [at for x in body for at in ir.indices_of(x)]
    return read.isdisjoint(written) and all(x.variables == {ROW} and x.factor(ROW) for x in entries)
