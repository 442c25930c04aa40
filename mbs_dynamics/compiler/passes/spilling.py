# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Spilling: a value that is used again after many operations is stored, and loaded again.

Left to LLVM, long blocks take twice as long to compile, most of it for the registers, and are
slower. The loads and stores are volatile, else LLVM would see through them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mbs_dynamics.compiler.ir.nodes import (
    CONDITIONS,
    SCRATCH,
    Buffer,
    Index,
    Let,
    Load,
    Module,
    Statement,
    Store,
    operands_of,
    with_operands,
)
from mbs_dynamics.compiler.passes.slots import Slots
from mbs_dynamics.compiler.passes.strategy import FAR


def spilled(module: Module) -> Module:
    """Return a module that is one block, where uses that are far from the last one are reloads."""
    uses = _Uses(module)
    if not uses.far:
        return module
    return module._replace(body=tuple(_with_reloads(module, uses)))


class _Uses:
    """How far the uses of values are from one another, in operations and loads."""

    def __init__(self, module: Module) -> None:
        self.far: set[int] = set()
        """Values of which one use is far from the one before, or from the definition."""
        self.last: dict[int, int] = {}
        """By value the statement that uses it last."""
        used: dict[int, int] = {}
        conditions = set()
        for k, (now, x) in enumerate(_timed(module)):
            for value in operands_of(x):
                if type(value) is int:
                    if now - used[value] > FAR and value not in conditions:
                        self.far.add(value)
                    used[value], self.last[value] = now, k
            if isinstance(x, (Let, Load)):
                used[x.value], self.last[x.value] = now, k
                if type(x) is Let and x.op in CONDITIONS:
                    conditions.add(x.value)

    def spills(self, module: Module) -> tuple[dict[int, tuple[Buffer, Index]], Buffer]:
        """Return where each value can be loaded from again, and the memory of those not inputs."""
        slots, where = Slots(), {}
        for k, x in enumerate(module.body):
            slots.release(k)
            if type(x) is Let and x.value in self.far:
                where[x.value] = slots.taken(self.last[x.value])
        memory = Buffer("spills", SCRATCH, slots.size)
        places = {value: (memory, Index((), slot)) for value, slot in where.items()}
        for x in module.body:
            if type(x) is Load and x.value in self.far:
                places[x.value] = x.buffer, x.at
        return places, memory


def _timed(module: Module) -> Iterator[tuple[int, Statement]]:
    """Yield statements, and for each how many operations and loads there are so far."""
    now = 0
    for x in module.body:
        now += isinstance(x, (Let, Load))
        yield now, x


def _with_reloads(module: Module, uses: _Uses) -> Iterator[Statement]:
    places, memory = uses.spills(module)
    used: dict[int, int] = {}
    current: dict[int, int] = {}
    new = 1 + max(uses.last)
    for now, x in _timed(module):
        operands = operands_of(x)
        for value in operands:
            if value in uses.far and type(value) is int:
                if now - used[value] > FAR:
                    yield Load(new, *places[value], volatile=True)
                    current[value] = new
                    new += 1
                used[value] = now
        if current.keys().isdisjoint(operands):
            yield x
        else:
            yield with_operands(x, lambda value: current.get(value, value))
        if isinstance(x, (Let, Load)):
            used[x.value] = now
            if x.value in places and places[x.value][0] is memory:
                yield Store(*places[x.value], x.value, volatile=True)
