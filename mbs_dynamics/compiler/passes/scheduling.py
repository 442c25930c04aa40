# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The order of operations, for register pressure: few values live at a time.

Traced recursions first go outward through all bodies, and then use what they have found. In
vector code that is more than fits in the first cache: matrices of humanoids have a thousand live
values.
"""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.ir.nodes import Check, Let, Load, Module, Statement, Store, operands_of
from mbs_dynamics.compiler.passes.strategy import FEWER_LIVE, MANY_LIVE


def scheduled(module: Module) -> Module:
    """Return a module that is one block, with one result after the other where that is better."""
    before = _most_live(module.body)
    if before <= MANY_LIVE:
        return module
    body = _result_by_result(module.body)
    return module._replace(body=body) if _most_live(body) < FEWER_LIVE * before else module


def _result_by_result(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the statements in the order in which results, as they were traced, need them."""
    defined = {x.value: k for k, x in enumerate(body) if isinstance(x, (Let, Load))}
    stores: dict[int, list[Statement]] = {}
    last = []
    ordered: list[Statement] = []
    for x in body:
        if type(x) is Check:
            stores.setdefault(x.value, [])
            last.append(x)
        elif type(x) is Store and type(x.value) is int:
            stores.setdefault(x.value, []).append(x)
        elif not isinstance(x, (Let, Load)):
            ordered.append(x)
    done: set[int] = set()
    for value in sorted(stores):
        new, left = [], [value]
        while left:
            value_needed = left.pop()
            if value_needed not in done:
                done.add(value_needed)
                k = defined[value_needed]
                new.append(k)
                left += [x for x in operands_of(body[k]) if type(x) is int]
        ordered += [body[k] for k in sorted(new)]
        ordered += stores[value]
    return (*ordered, *last)


def _most_live(body: Sequence[Statement]) -> int:
    """Return how many results of operations at most are yet to be used by others."""
    operations = [x for x in body if type(x) is Let]
    last = {
        value: now for now, x in enumerate(operations) for value in x.args if type(value) is int
    }
    ending = [0] * len(operations)
    for x in operations:
        if x.value in last:
            ending[last[x.value]] += 1
    most = live = 0
    for x, ends in zip(operations, ending, strict=True):
        live += x.value in last
        most = max(most, live)
        live -= ends
    return most
