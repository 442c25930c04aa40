# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loop fission: a module with parallel loops in two, what does without them and what needs them.

In batches the first module takes several states at once, one per lane of a vector; that is what its
loops over rows lack. The second one takes state by state, and fills the lanes with the iterations
of its parallel loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from mbs_dynamics.compiler.ir.nodes import (
    INPUT,
    OUTPUT,
    SCRATCH,
    Buffer,
    Call,
    Fill,
    For,
    Index,
    Load,
    Module,
    Procedure,
    Statement,
    Store,
    calling,
    index,
    walk,
    with_buffers,
)

BETWEEN = "between"
"""Name of the buffer with what the second module takes from the first."""


class Divided(NamedTuple):
    """Two modules, of which the last output of the first is the last input of the second."""

    rows: Module
    wide: Module


def divided(module: Module) -> Divided | None:
    """Return a module in two, or None where that cannot be or leaves nothing to the first one."""
    accesses = [_accesses(x) for x in module.body]
    wide = _wide(accesses)
    shared = {x for k in wide for x in accesses[k].written}
    first: list[Statement] = []
    second: list[Statement] = []
    for k, statement in enumerate(module.body):
        if k in wide:
            second.append(statement)
        elif accesses[k].written & shared:
            parts = _without_stores(statement, shared)
            if parts is None:
                return None
            first.append(parts[0])
            second.append(parts[1])
        else:
            first.append(statement)
    if not second or not any(isinstance(x, For) for x in first):
        return None
    written = {x: None for statement in first for x in _accesses(statement).order}
    read = {x for statement in second for x in _accesses(statement).read}
    between = [x for x in written if x in read]
    if any(x.kind != SCRATCH for x in between):
        return None
    first_entries = itertools.accumulate((x.size for x in between), initial=0)
    places = dict(zip(between, first_entries, strict=False))
    size = sum(x.size for x in between)
    out, into = (Buffer(BETWEEN, kind, size) for kind in (OUTPUT, INPUT))
    rows = with_buffers(first, {x: (out, k) for x, k in places.items()})
    last = with_buffers(second, {x: (into, k) for x, k in places.items()})
    of_rows, of_wide = (
        tuple(x for x in module.outputs if (x in shared) is wanted) for wanted in (False, True)
    )
    return Divided(
        Module(f"{module.name}.rows", module.inputs, (*of_rows, out), rows),
        Module(f"{module.name}.wide", (*module.inputs, into), of_wide, last),
    )


class _Accesses(NamedTuple):
    """Buffers that a statement reads and writes, and all that it writes in order."""

    read: set[Buffer]
    written: set[Buffer]
    order: tuple[Buffer, ...]
    is_wide: bool
    """Whether there is a parallel loop in a procedure that is called."""


def _accesses(statement: Statement) -> _Accesses:
    every = _with_procedures([statement])
    order = dict.fromkeys(x.buffer for x in every if isinstance(x, (Store, Fill)))
    return _Accesses(
        {x.buffer for x in every if isinstance(x, Load)},
        set(order),
        tuple(order),
        any(isinstance(x, For) and x.parallel for x in every if x is not statement),
    )


def _with_procedures(body: Sequence[Statement]) -> list[Statement]:
    """Return statements, those within, and those of the procedures that they call."""
    found: list[Statement] = []
    for statement in walk(body):
        found.append(statement)
        if isinstance(statement, Call):
            found += _with_procedures(statement.procedure.body)
    return found


def _wide(accesses: Sequence[_Accesses]) -> set[int]:
    """Return the numbers of the statements that have to be in the second module.

    Those with parallel loops; those that read what such have written before, or write over what
    such have read; and those that write nothing but what such write.
    """
    wide = {k for k, x in enumerate(accesses) if x.is_wide}
    while True:
        more, written = set(wide), {x for k in wide for x in accesses[k].written}
        for k, x in enumerate(accesses):
            before = [accesses[j] for j in wide if j < k]
            reads = any(x.read & other.written for other in before)
            overwrites = any(x.written & other.read for other in before)
            if reads or overwrites or (x.written and x.written <= written):
                more.add(k)
        if more == wide:
            return wide
        wide = more


def _without_stores(
    statement: Statement, shared: set[Buffer]
) -> tuple[Statement, Statement] | None:
    """Return a loop over rows that keeps what it stores in some buffers as values of the rows.

    And the loop that moves these values to the buffers.
    """
    if not isinstance(statement, For) or statement.end.terms:
        return None
    kept: dict[tuple[Buffer, Index], Buffer] = {}
    first: dict[Procedure, Procedure] = {}
    second: dict[Procedure, Procedure] = {}
    for call in walk([statement]):
        if not isinstance(call, Call):
            continue
        row = index(call.procedure.parameters[0])
        body: list[Statement] = []
        moved: list[Statement] = []
        if call.arguments[0] != index(statement.variable):
            return None
        for x in call.procedure.body:
            if not isinstance(x, Store) or x.buffer not in shared:
                body.append(x)
            elif isinstance(x.value, float):
                moved.append(x)
            else:
                name = f"{x.buffer}.row{len(kept)}"
                new = Buffer(name, SCRATCH, statement.end.constant)
                to = kept.setdefault((x.buffer, x.at), new)
                body.append(Store(to, row, x.value))
                number = len(moved)
                moved += [Load(number, to, row), x._replace(value=number)]
        first[call.procedure] = call.procedure.with_body(tuple(body))
        name = f"{call.procedure.name}.moves"
        second[call.procedure] = Procedure(name, call.procedure.parameters, tuple(moved))
    loops = (calling([statement], instead) for instead in (first, second))
    (rows,), (wide,) = loops
    return rows, wide
