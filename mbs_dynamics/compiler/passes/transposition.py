# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Stores down the columns of square matrices, made along rows and mirrored afterwards.

A vector that is stored down a column touches as many lines of the cache as it has lanes, which
takes ten times as long as along a row. What a parallel loop stores below the diagonal is mostly
what it stores above, or could as well stand above the diagonal of another matrix first.
"""

from __future__ import annotations

from mbs_dynamics.compiler.ir.nodes import (
    SCRATCH,
    Buffer,
    Call,
    Fill,
    For,
    Index,
    Mirror,
    Module,
    Procedure,
    Statement,
    Store,
    Variable,
    calling,
    walk,
)


def transposed(module: Module) -> Module:
    """Return the module with such stores along rows, and each followed by a :class:`Mirror`."""
    instead: dict[Procedure, Procedure] = {}
    after: dict[Procedure, list[Mirror]] = {}
    for procedure in module.procedures:
        mirrors: list[Mirror] = []
        within = tuple(
            _along_rows(x, mirrors) if isinstance(x, For) and x.parallel else x
            for x in procedure.body
        )
        instead[procedure], after[procedure] = procedure.with_body(within), mirrors
    every = {mirror.source: mirror for mirrors in after.values() for mirror in mirrors}
    partly_zero = {x.buffer for x in module.body if isinstance(x, Fill)}
    body: list[Statement] = [
        Fill(above, 0, above.size)
        for above, mirror in every.items()
        if above is not mirror.target and mirror.target in partly_zero
    ]
    for statement in module.body:
        body += calling([statement], instead)
        called = {x.procedure: None for x in walk([statement]) if isinstance(x, Call)}
        mirrors = [mirror for procedure in called for mirror in after[procedure]]
        body += {(x.target, x.target_first): x for x in mirrors}.values()
    return module._replace(body=tuple(body))


def _along_rows(loop: For, mirrors: list[Mirror]) -> For:
    """Return a loop that stores along rows, and add the mirrors that make up for it."""
    k = loop.variable
    along = {(x.buffer, x.at): x.value for x in loop.body if isinstance(x, Store)}
    body: list[Statement] = []
    for statement in loop.body:
        if isinstance(statement, Store) and statement.at.factor(k) > 1:
            square = _square(statement, k)
            if square is not None:
                row, size, first = square
                at = Index(((row, size), (k, 1)), first)
                if along.get((statement.buffer, at)) == statement.value:
                    mirrors.append(Mirror(statement.buffer, first, statement.buffer, first, size))
                    continue
                above = Buffer(f"{statement.buffer}.{first}.above", SCRATCH, size**2)
                body.append(Store(above, Index(((row, size), (k, 1))), statement.value))
                mirrors.append(Mirror(above, 0, statement.buffer, first, size))
                continue
        body.append(statement)
    return loop._replace(body=tuple(body))


def _square(store: Store, k: Variable) -> tuple[Variable, int, int] | None:
    """Return the row, the size and the first entry of the square of which it fills a column."""
    size, rest = store.at.factor(k), store.at.without(k)
    if len(rest.terms) != 1:
        return None
    (row, factor), first = rest.terms[0], rest.constant
    if not isinstance(row, Variable) or factor != 1 or first + size**2 > store.buffer.size:
        return None
    return (row, size, first) if first % size**2 == 0 else None
