# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sines and cosines, several at once.

Vector code takes about as long for eight angles as for one. So those of angles that depend on no
sine come first, then those of angles that depend on the first, and so on. All go to memory, and
each is loaded before its first use.
"""

from __future__ import annotations

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops


def with_sines_together(module: ir.Module, width: int) -> ir.Module:
    """Return a module that is one block, with sines and cosines of up to ``width`` angles at once.

    The block is in stages: operations that angles depend on, then the sines of these angles. Angles
    of one stage depend on no sine or cosine but those of earlier stages. The last stage is what no
    angle depends on.
    """
    stages, sines = _stages(module)
    memory = ir.Buffer("sines", ir.SCRATCH, 0)
    body: list[ir.Statement] = []
    loads: dict[ir.Operand, ir.Load] = {}
    """Loads of sines, by value, that no statement has used yet."""
    for statements, of_stage in zip(stages, sines, strict=True):
        for x in statements:
            for value in ir.operands_of(x):
                if value in loads and type(value) is int:
                    body.append(loads.pop(value))
            body.append(x)
        angles = list(dict.fromkeys(x.args[0] for x in of_stage))
        places: dict[tuple[ir.Operand, str], int] = {}
        for k in range(0, len(angles), width):
            group = tuple(angles[k : k + width])
            body += [loads.pop(x) for x in group if x in loads]
            body.append(ir.Sines(memory, memory.size, group, width))
            for place, angle in enumerate(group, memory.size):
                places[angle, ops.SIN], places[angle, ops.COS] = place, place + width
            memory.size += 2 * width
        for x in of_stage:
            at = places[x.args[0], x.op]
            # else LLVM searches for better places, in four times the compile time for a chain of 30
            loads[x.value] = ir.Load(x.value, memory, at, volatile=True)
    return module._replace(body=tuple(body)) if memory.size else module


def _is_sine(x: ir.Let) -> bool:
    return x.op in (ops.SIN, ops.COS) and type(x.args[0]) is int


def _stages(module: ir.Module) -> tuple[list[list[ir.Statement]], list[list[ir.Let]]]:
    """Return the statements of each stage, and the sines and cosines that come after them."""
    depth: dict[int, int] = {}
    """Number of sines that each value depends on in succession."""
    for x in module.body:
        if type(x) is ir.Let:
            before = max([depth[k] for k in x.args if type(k) is int], default=0)
            depth[x.value] = before + _is_sine(x)
        elif type(x) is ir.Load:
            depth[x.value] = 0
    last = max(depth.values(), default=0)
    stage = dict.fromkeys(depth, last)
    """Stage of each value: that of the first angle that depends on it, or the last stage."""
    for x in reversed(module.body) if last else ():
        if type(x) is ir.Let:
            if _is_sine(x):
                stage[x.value] = depth[x.value] - 1
            for k in x.args:
                if type(k) is int and stage[x.value] < stage[k]:
                    stage[k] = stage[x.value]
    stages: list[list[ir.Statement]] = [[] for _ in range(last + 1)]
    sines: list[list[ir.Let]] = [[] for _ in range(last + 1)]
    for x in module.body:
        if type(x) is ir.Let and _is_sine(x):
            sines[stage[x.value]].append(x)
            stage[x.value] += 1  # from which on it can be stored
        elif isinstance(x, (ir.Let, ir.Load, ir.Store)) and type(x.value) is int:
            stages[stage[x.value]].append(x)
        else:
            stages[last if type(x) is ir.Check else 0].append(x)
    return stages, sines
