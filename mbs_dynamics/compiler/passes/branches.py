# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Branches: values that are needed under a condition alone are computed only where it holds.

A program computes both values between which it selects. Where one of them takes many operations
that nothing else needs, such as a control law that is not in force, code for one state skips them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

LEAST = 500
"""Operations that depend on a condition from which on they are skipped where it does not hold."""

MOST = 3
"""Conditions of an operation from which on it is not skipped."""

ALWAYS: frozenset[int] = frozenset()
"""The conditions of what is always needed."""


class Part(NamedTuple):
    """Statements that run one after the other."""

    statements: list[ir.Statement]
    condition: int | None = None
    """The value under which they run; None: always."""


def parts_of(body: Sequence[ir.Statement]) -> list[Part]:
    """Return the statements of a block as parts in a valid order, without the checks.

    Without a condition worth it there is one part, in the order of the block.
    """
    needed = _conditions(body)
    if needed:
        return [*_parts(body, needed)]
    return [Part([x for x in body if type(x) is not ir.Check])]


def _conditions(body: Sequence[ir.Statement]) -> dict[int, frozenset[int]]:
    """Return for values that are not always needed the conditions of which one must hold."""
    selects = [x for x in body if type(x) is ir.Let and x.op == ops.SELECT]
    kept = {condition for x in selects if type(condition := x.args[0]) is int}
    while True:
        needed = _needed(body, kept)
        count = Counter(condition for each in needed.values() for condition in each)
        worth = {condition for condition in kept if count[condition] >= LEAST}
        if worth == kept:
            return {value: each for value, each in needed.items() if each}
        kept = worth


def _needed(body: Sequence[ir.Statement], kept: set[int]) -> dict[int, frozenset[int]]:
    """Return the conditions of each value, from the last to the first, among those ``kept``."""
    needed: dict[int, frozenset[int]] = {}
    for x in reversed(body):
        own = needed.get(x.value, ALWAYS) if type(x) is ir.Let else ALWAYS
        for k, value in enumerate(ir.operands_of(x)):
            if type(value) is not int:
                continue
            each = own
            if type(x) is ir.Let and x.op == ops.SELECT and k == 1 and not own:
                each = frozenset(kept & {x.args[0]})
            before = needed.get(value)
            together = each if before is None else before | each if before and each else ALWAYS
            needed[value] = together if len(together) <= MOST else ALWAYS
    return needed


def _parts(body: Sequence[ir.Statement], needed: Mapping[int, frozenset[int]]) -> Iterator[Part]:
    new = 1 + max(x.value for x in body if isinstance(x, (ir.Let, ir.Load)))
    loads = {x.value: x for x in body if type(x) is ir.Load}
    place = _places(body, needed)
    groups: dict[tuple[int, frozenset[int]], list[ir.Statement]] = {}
    for x in body:
        if type(x) is ir.Let:
            groups.setdefault((place[x.value], needed.get(x.value, ALWAYS)), []).append(x)
        elif type(x) is ir.Store:
            last = place.get(x.value, 0) if type(x.value) is int else 0
            groups.setdefault((last, ALWAYS), []).append(x)
    either: dict[frozenset[int], int] = {}
    pending = dict(loads)
    for (_, own), statements in sorted(groups.items(), key=lambda x: (x[0][0], sorted(x[0][1]))):
        if len(own) > 1 and own not in either:
            first, *others = sorted(own)
            ors: list[ir.Statement] = []
            for other in others:
                ors.append(ir.Let(new, ops.OR, (first, other)))
                first, new = new, new + 1
            either[own] = first
            yield Part(ors)
        condition = either.get(own) or next(iter(own), None)
        part: list[ir.Statement] = []
        for x in statements:
            for value in ir.operands_of(x):
                if type(value) is int and value in pending:
                    part.append(pending.pop(value))
            part.append(x)
        yield Part(part, condition)


def _places(body: Sequence[ir.Statement], needed: Mapping[int, frozenset[int]]) -> dict[int, int]:
    """Return by value the number of the part that computes it, after those of its operands.

    Parts of one number, with other conditions each, are independent.
    """
    place = {x.value: 0 for x in body if type(x) is ir.Let}
    settled = False
    while not settled:  # a condition may come later in the trace than what it decides on
        settled = True
        for x in body:
            if type(x) is not ir.Let:
                continue
            own = needed.get(x.value, ALWAYS)
            before = [k for k in (*x.args, *own) if type(k) is int and k in place]
            least = max([place[k] + (needed.get(k, ALWAYS) != own) for k in before], default=0)
            if least > place[x.value]:
                place[x.value], settled = least, False
    return place
