# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sines and cosines, several at once.

Vector code takes about as long for eight angles as for one. So those of angles that depend on no
sine come first, then those of angles that depend on the first, and so on. All go to memory, and
each is loaded before its first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import (
    SCRATCH,
    Buffer,
    Check,
    Index,
    Let,
    Load,
    Module,
    Operand,
    Sines,
    Statement,
    Store,
    operands_of,
)


def with_sines_together(module: Module, width: int) -> Module:
    """Return a module that is one block with the sines and cosines of several angles at once.

    ``width`` is how many angles these may be. The block is in stages: what angles need, then all
    of their sines. Angles of one stage depend on no sine or cosine but those of the stages before.
    The last stage is what no angle needs.
    """
    stages, sines = _stages(module)
    groups = [list(_groups(found, width)) for found in sines]
    size = sum(2 * width * len(several) for several in groups)
    if not size:
        return module
    memory, first = Buffer("sines", SCRATCH, size), 0
    body: list[Statement] = []
    loads: dict[Operand, Load] = {}
    """Of sines that are not loaded yet."""
    for statements, found, several in zip(stages, sines, groups, strict=True):
        for x in statements:
            for value in operands_of(x):
                if value in loads and type(value) is int:
                    body.append(loads.pop(value))
            body.append(x)
        places: dict[tuple[Operand, str], int] = {}
        for angles in several:
            body += [loads.pop(k) for k in angles if k in loads]
            body.append(Sines(memory, first, tuple(angles), width))
            places.update({(x, ops.SIN): first + k for k, x in enumerate(angles)})
            places.update({(x, ops.COS): first + width + k for k, x in enumerate(angles)})
            first += 2 * width
        for x in found:
            at = Index((), places[x.args[0], x.op])
            # else LLVM takes four times as long for a chain of 30: it looks for a better place
            loads[x.value] = Load(x.value, memory, at, volatile=True)
    return module._replace(body=tuple(body))


def is_sine(x: Statement) -> bool:
    """Whether a statement computes a sine or a cosine, of an angle that is no number."""
    return type(x) is Let and x.op in (ops.SIN, ops.COS) and type(x.args[0]) is int


def _groups(sines: Sequence[Let], width: int) -> Iterator[Sequence[Operand]]:
    """Yield angles in groups, as many as can be."""
    angles = list(dict.fromkeys(x.args[0] for x in sines))
    for k in range(0, len(angles), width):
        yield angles[k : k + width]


def _stages(module: Module) -> tuple[list[list[Statement]], list[list[Let]]]:
    """Return the statements of each stage, and the sines and cosines that come after them."""
    depth: dict[int, int] = {}
    for x in module.body:
        if type(x) is Let:
            before = max([depth[k] for k in x.args if type(k) is int], default=0)
            depth[x.value] = before + is_sine(x)
        elif type(x) is Load:
            depth[x.value] = 0
    last = max(depth.values(), default=0)
    stage = _first_needed(module, depth, last)
    stages: list[list[Statement]] = [[] for _ in range(last + 1)]
    sines: list[list[Let]] = [[] for _ in range(last + 1)]
    for x in module.body:
        if type(x) is Let and is_sine(x):
            sines[stage[x.value]].append(x)
            stage[x.value] += 1  # from which on it can be stored
        elif isinstance(x, (Let, Load, Store)) and isinstance(x.value, int):
            stages[stage[x.value]].append(x)
        else:
            stages[last if type(x) is Check else 0].append(x)
    return stages, sines


def _first_needed(module: Module, depth: dict[int, int], last: int) -> dict[int, int]:
    """Return the stage of each value: that of the first angle that needs it, or the last."""
    stage = dict.fromkeys(depth, last)
    for x in reversed(module.body):
        if type(x) is Let:
            if is_sine(x):
                stage[x.value] = depth[x.value] - 1
            for k in x.args:
                if type(k) is int and stage[x.value] < stage[k]:
                    stage[k] = stage[x.value]
    return stage
