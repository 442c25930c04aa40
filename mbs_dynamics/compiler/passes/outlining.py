# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Outlining: a block too large for one function, cut into procedures that are called in order.

The time that a compiler takes for a function grows faster than the function. So a large block is
cut into chunks, consecutive and of equal size. A value that is used beyond its chunk is spilled:
the chunk that computes it stores it in scratch memory, and each chunk that uses it loads it from
there. A place in memory is used again after the chunk of the last use, never within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import (
    SCRATCH,
    Buffer,
    Call,
    Check,
    Index,
    Let,
    Load,
    Module,
    Procedure,
    Statement,
    Store,
    operands_of,
)
from mbs_dynamics.compiler.passes.slots import Slots


def outlined(module: Module, size: int) -> Module:
    """Return a module that is one block as calls of procedures of at most so many operations.

    Its checks stay where they are, at its end.
    """
    return _Outlining(module, size).module()


class _Outlining:
    """The chunks of a module, and which values go from one to another."""

    def __init__(self, module: Module, size: int) -> None:
        self.whole = module
        checks: list[Statement] = [x for x in module.body if type(x) is Check]
        chunks = _cut([x for x in module.body if type(x) is not Check], size)
        self.parts = [*chunks, checks]
        self.home: dict[int, int] = {}
        """By value the number of the part that defines it."""
        self.loaded: dict[int, Load] = {}
        """Loads, by the values that they define: each part that uses one loads it again."""
        self.conditions: set[int] = set()
        self.last: dict[int, int] = {}
        """By value the last other part that uses it."""
        for k, part in enumerate(self.parts):
            for x in part:
                for value in operands_of(x):
                    if type(value) is int and self.home[value] != k:
                        self.last[value] = k
                if isinstance(x, (Let, Load)):
                    self.home[x.value] = k
                if type(x) is Load:
                    self.loaded[x.value] = x
                elif type(x) is Let and x.op in ops.CONDITIONS:
                    self.conditions.add(x.value)
        self.new = 1 + max(self.home, default=-1)
        """The number of the next value."""
        self.slots = self._allocated()

    def _allocated(self) -> dict[int, tuple[Buffer, Index]]:
        """Return where values that are used by other parts stand in memory."""
        slots, where = Slots(), {}
        for k, part in enumerate(self.parts):
            for x in part:
                if type(x) is Let and x.value in self.last:
                    where[x.value] = slots.taken(self.last[x.value])
            slots.release(k)
        memory = Buffer("between", SCRATCH, slots.size)
        return {value: (memory, Index((), slot)) for value, slot in where.items()}

    def module(self) -> Module:
        """Return the module."""
        *chunks, checks = ([*self._chunk(k, part)] for k, part in enumerate(self.parts))
        procedures = (Procedure(f"chunk{k}", (), tuple(x)) for k, x in enumerate(chunks))
        return self.whole._replace(body=(*(Call(x, ()) for x in procedures), *checks))

    def _chunk(self, k: int, part: Sequence[Statement]) -> Iterator[Statement]:
        """Yield the statements of a part, with loads of what others have computed."""
        known: set[int] = set()
        for x in part:
            for value in operands_of(x):
                if type(value) is int and self.home[value] != k and value not in known:
                    known.add(value)
                    yield from self._reload(value)
            yield x
            if type(x) is Let and x.value in self.slots:
                yield from self._spill(x.value)

    def _reload(self, value: int) -> Iterator[Statement]:
        if value in self.loaded:
            yield self.loaded[value]
        elif value in self.conditions:
            yield Load(self.new, *self.slots[value])
            yield Let(value, ops.LESS, (0.0, self.new))
            self.new += 1
        else:
            yield Load(value, *self.slots[value])

    def _spill(self, value: int) -> Iterator[Statement]:
        if value in self.conditions:  # as one or zero
            yield Let(self.new, ops.SELECT, (value, 1.0, 0.0))
            value, at = self.new, self.slots[value]
            self.new += 1
            yield Store(*at, value)
        else:
            yield Store(*self.slots[value], value)


def _cut(body: Sequence[Statement], size: int) -> Iterator[list[Statement]]:
    """Yield consecutive parts of at most so many operations, of as many each as can be."""
    operations = sum(type(x) is Let for x in body)
    count = -(-operations // size)
    part: list[Statement] = []
    done = number = 0
    for x in body:
        if type(x) is Let:
            if done == operations * (number + 1) // max(count, 1):
                yield part
                part, number = [], number + 1
            done += 1
        part.append(x)
    yield part
