# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Spilling and outlining: a value that is used again much later is stored, and loaded again.

Without this pass, LLVM compiles long blocks in twice the time, most of it for the allocation of
registers, to slower code. Compile time also grows faster than the size of a function. Very large
blocks are therefore cut into chunks, procedures that are called in order; a value that is used in
another chunk is spilled as well. The loads and stores are volatile, else LLVM would remove them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.passes.branches import Part, parts_of


def spilled(
    module: ir.Module, far: int, chunk: int | None = None, *, branches: bool = False
) -> ir.Module:
    """Return a module of one block with reloads where a use is far from the previous one.

    ``far`` counts operations and loads. With ``chunk`` the result is calls of procedures of at most
    so many operations, and the checks; with ``branches``, procedures that are not needed under some
    condition are called only where it holds.
    """
    parts: list[Part] = []
    last: list[ir.Statement] = [*module.body]
    if chunk:
        last = [x for x in module.body if type(x) is ir.Check]
        whole = Part([x for x in module.body if type(x) is not ir.Check])
        for part in parts_of(module.body) if branches else [whole]:
            parts += [Part(x, part.condition) for x in _cut(part.statements, chunk)]
    calls = [ir.Call(f"chunk{k}", (), part.condition) for k, part in enumerate(parts)]
    spilling = _Spilling([*(x.statements for x in parts), [*calls, *last]], far)
    bodies = iter([tuple(spilling.part(k)) for k in range(len(parts))])
    body = [
        x._replace(body=next(bodies)) if type(x) is ir.Call else x
        for x in spilling.part(len(parts))
    ]
    return module._replace(body=tuple(body))


def _cut(body: Sequence[ir.Statement], size: int) -> Iterator[list[ir.Statement]]:
    """Yield parts of equally many operations, ``size`` at most."""
    operations = sum(type(x) is ir.Let for x in body)
    count = max(-(-operations // size), 1)
    part: list[ir.Statement] = []
    done = cut = 0
    for x in body:
        if type(x) is ir.Let:
            if done == operations * (cut + 1) // count:
                loads = [*itertools.takewhile(lambda x: type(x) is ir.Load, reversed(part))]
                yield part[: len(part) - len(loads)]  # they belong to the next part
                part, cut = loads[::-1], cut + 1
            done += 1
        part.append(x)
    yield part


class _Spilling:
    """Which values of a block are spilled, and where to."""

    def __init__(self, parts: Sequence[Sequence[ir.Statement]], far: int) -> None:
        self.far = far
        self.timed: list[list[tuple[int, ir.Statement]]] = []
        """The statements of each part, with operations and loads so far; parts are far apart."""
        now = 0
        for part in parts:
            now += far + 1
            times = []
            for x in part:
                now += isinstance(x, (ir.Let, ir.Load))
                times.append((now, x))
            self.timed.append(times)
        self.places: dict[int, tuple[ir.Buffer, int]] = {}
        """Where the values with a far use can be loaded from again."""
        self.memory = ir.Buffer("spills", ir.SCRATCH, 0)
        self.conditions: set[int] = set()
        self.used: dict[int, int] = {}
        """By value the time of the last use so far."""
        self.new = self._allocate()
        """The number of the next value."""

    def _allocate(self) -> int:
        """Give the values with a far use a place in memory up to their last use."""
        statements = [x for part in self.timed for x in part]
        far: set[int] = set()
        last: dict[int, int] = {}
        used: dict[int, int] = {}
        for k, (now, x) in enumerate(statements):
            for value in ir.operands_of(x):
                if type(value) is int:
                    if now - used[value] > self.far:
                        far.add(value)
                    used[value], last[value] = now, k
            if isinstance(x, (ir.Let, ir.Load)):
                used[x.value] = now
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        for k, (_, x) in enumerate(statements) if far else ():
            free += ending.pop(k, ())
            if type(x) is ir.Load and x.value in far and x.buffer.kind != ir.OUTPUT:
                self.places[x.value] = x.buffer, x.at
            elif isinstance(x, (ir.Let, ir.Load)) and x.value in far:
                if not free:
                    free.append(self.memory.size)
                    self.memory.size += 1
                ending.setdefault(last[x.value], []).append(free[-1])
                self.places[x.value] = self.memory, free.pop()
                if type(x) is ir.Let and ops.TABLE[x.op].is_condition:
                    self.conditions.add(x.value)
        return 1 + max(used, default=-1)

    def part(self, k: int) -> Iterator[ir.Statement]:
        """Yield the statements of a part, with stores and reloads of the values spilled."""
        current: dict[int, int] = {}
        """Reloaded value of each spilled one."""
        for now, x in self.timed[k]:
            operands = ir.operands_of(x)
            for value in operands:
                if type(value) is int and value in self.places:
                    if now - self.used[value] > self.far:
                        yield from self._reload(value)
                        current[value] = self.new - 1
                    self.used[value] = now
            yield x if current.keys().isdisjoint(operands) else ir.with_operands(x, current)
            if isinstance(x, (ir.Let, ir.Load)) and x.value in self.places:
                self.used[x.value] = now
                if self.places[x.value][0] is self.memory:
                    yield from self._spill(x.value)

    def _reload(self, value: int) -> Iterator[ir.Statement]:
        yield ir.Load(self.new, *self.places[value], volatile=True)
        self.new += 1
        if value in self.conditions:  # kept as one or zero
            yield ir.Let(self.new, ops.LESS, (0.0, self.new - 1))
            self.new += 1

    def _spill(self, value: int) -> Iterator[ir.Statement]:
        place = self.places[value]
        if value in self.conditions:
            yield ir.Let(self.new, ops.SELECT, (value, 1.0, 0.0))
            value, self.new = self.new, self.new + 1
        yield ir.Store(*place, value, volatile=True)
