# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Spilling: a value that is used again after many operations is stored, and loaded again.

Left to LLVM, long blocks take twice as long to compile, most of it for the registers, and are
slower. The loads and stores are volatile, else LLVM would see through them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mbs_dynamics.compiler.ir.nodes import (
    SCRATCH,
    Buffer,
    Call,
    Index,
    Let,
    Load,
    Module,
    Statement,
    Store,
    calling,
    operands_of,
    with_operands,
)
from mbs_dynamics.compiler.ir.operations import CONDITIONS
from mbs_dynamics.compiler.passes.slots import Slots
from mbs_dynamics.compiler.passes.strategy import FAR

Block = tuple[Statement, ...]


def spilled(module: Module) -> Module:
    """Return a module where uses that are far from the last one are reloads.

    It is one block, or calls of procedures that are. All of them spill to the same memory.
    """
    own = _Uses(module.body)
    called = {x.procedure: _Uses(x.procedure.body) for x in module.body if isinstance(x, Call)}
    every = (own, *called.values())
    if not any(uses.far for uses in every):
        return module
    memory = Buffer("spills", SCRATCH, max(uses.spills for uses in every))
    instead = {x: x.with_body(_with_reloads(x.body, uses, memory)) for x, uses in called.items()}
    return module._replace(body=calling(_with_reloads(module.body, own, memory), instead))


class _Uses:
    """How far the uses of values are from one another, in operations and loads."""

    def __init__(self, block: Block) -> None:
        self.far: set[int] = set()
        """Values of which one use is far from the one before, or from the definition."""
        last: dict[int, int] = {}
        used: dict[int, int] = {}
        conditions = set()
        for k, (now, x) in enumerate(_timed(block)):
            for value in operands_of(x):
                if type(value) is int:
                    if now - used[value] > FAR and value not in conditions:
                        self.far.add(value)
                    used[value], last[value] = now, k
            if isinstance(x, (Let, Load)):
                used[x.value], last[x.value] = now, k
                if type(x) is Let and x.op in CONDITIONS:
                    conditions.add(x.value)
        slots = Slots()
        self.slots: dict[int, int] = {}
        """Places in memory of the values that are spilled; what was loaded is loaded again."""
        for k, x in enumerate(block):
            slots.release(k)
            if type(x) is Let and x.value in self.far:
                self.slots[x.value] = slots.taken(last[x.value])
        self.spills = slots.size


def _timed(block: Block) -> Iterator[tuple[int, Statement]]:
    """Yield statements, and for each how many operations and loads there are so far."""
    now = 0
    for x in block:
        now += isinstance(x, (Let, Load))
        yield now, x


def _with_reloads(block: Block, uses: _Uses, memory: Buffer) -> Block:
    return tuple(_reloading(block, uses, memory)) if uses.far else block


def _reloading(block: Block, uses: _Uses, memory: Buffer) -> Iterator[Statement]:
    places = {value: (memory, Index((), slot)) for value, slot in uses.slots.items()}
    used: dict[int, int] = {}
    current: dict[int, int] = {}
    new = 1 + max(x.value for x in block if isinstance(x, (Let, Load)))
    for now, x in _timed(block):
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
            if type(x) is Load:
                places[x.value] = x.buffer, x.at
            elif x.value in uses.slots:
                yield Store(*places[x.value], x.value, volatile=True)
