# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Branches: values that are needed under a condition alone are computed only where it holds.

A program computes both values between which it selects. Where one of them takes many operations
that nothing else needs, such as a control law that is not in force, code for one state skips them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

LEAST = 500
"""Operations that depend on a condition from which on they are skipped where it does not hold."""

MOST = 3
"""Largest number of conditions of an operation that is skipped where none of them holds."""

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
    for most in (MOST, 1):
        needed = _conditions(body, most)
        try:
            place = _places(body, needed)
        except CycleError:  # two conditions depend on values that either of them needs
            continue
        if needed:
            return [*_parts(body, needed, place)]
        break
    return [Part([x for x in body if type(x) is not ir.Check])]


def _conditions(body: Sequence[ir.Statement], most: int) -> dict[int, frozenset[int]]:
    """Return for values that are not always needed the conditions of which one must hold."""
    selects = [x for x in body if type(x) is ir.Let and x.op == ops.SELECT]
    kept = {condition for x in selects if type(condition := x.args[0]) is int}
    while True:
        needed = _needed(body, kept, most)
        count = Counter(condition for each in needed.values() for condition in each)
        worth = {condition for condition in kept if count[condition] >= LEAST}
        if worth == kept:
            return {value: each for value, each in needed.items() if each}
        kept = worth


def _needed(body: Sequence[ir.Statement], kept: set[int], most: int) -> dict[int, frozenset[int]]:
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
            needed[value] = together if len(together) <= most else ALWAYS
    return needed


def _parts(
    body: Sequence[ir.Statement],
    needed: Mapping[int, frozenset[int]],
    place: Mapping[int, int],
) -> Iterator[Part]:
    new = 1 + max(x.value for x in body if isinstance(x, (ir.Let, ir.Load)))
    loads = {x.value: x for x in body if type(x) is ir.Load}
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

    Parts of one number, with other conditions each, are independent. Raises CycleError if there is
    no such order.
    """
    computed = {x.value: x.args for x in body if type(x) is ir.Let}
    before = {
        value: [k for k in (*args, *needed.get(value, ALWAYS)) if type(k) is int and k in computed]
        for value, args in computed.items()
    }
    place: dict[int, int] = {}
    for value in TopologicalSorter(before).static_order():
        own = needed.get(value, ALWAYS)
        each = [place[k] + (needed.get(k, ALWAYS) != own) for k in before[value]]
        place[value] = max(each, default=0)
    return place
