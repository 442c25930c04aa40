# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results whose equal entries are stored once.

A symmetric matrix has each entry off its diagonal twice, and those of trees are zero between
branches. In vector code every entry takes a line of the cache: what is stored once leaves room for
what else is computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.compiler.ir.nodes import Buffer, Fill, Index, Operand, Statement, Store

Order = NDArray[np.int64]
"""For each entry of an output, its place among those that are stored."""


def deduplicated(program: Program) -> tuple[Program, list[Order]]:
    """Return a program that stores equal entries once, and the order of each output's entries."""
    module = program.module
    if program.in_loops:
        return program, [np.arange(output.size) for output in module.outputs]
    entries: dict[Buffer, list[Operand]] = {x: [0.0] * x.size for x in module.outputs}
    for x in module.body:
        if type(x) is Store and x.buffer in entries:
            entries[x.buffer][x.at.constant] = x.value
    places: dict[Buffer, dict[Any, int]] = {}
    orders: list[Order] = []
    for output, values in entries.items():
        place = places[output] = {}
        order = [place.setdefault(_key(x), len(place)) for x in values]
        orders.append(np.array(order, dtype=np.int64))
    outputs = {x: Buffer(x.name, x.kind, len(place)) for x, place in places.items()}
    body: list[Statement] = []
    done: set[tuple[Buffer, int]] = set()
    for x in module.body:
        if (type(x) is Store or type(x) is Fill) and x.buffer in entries:
            value = x.value if type(x) is Store else 0.0
            stored = outputs[x.buffer], places[x.buffer][_key(value)]
            if stored in done:
                continue
            done.add(stored)
            x = Store(stored[0], Index((), stored[1]), value)
        body.append(x)
    ports = tuple(Port(x.name, (x.size,)) for x in outputs.values())
    fewer = module._replace(outputs=tuple(outputs.values()), body=tuple(body))
    return replace(program, module=fewer, outputs=ports), orders


def _key(x: Operand) -> Any:
    """Return what tells entries apart: zeros of both signs, and the number 1.0 from the value 1."""
    return type(x), x, type(x) is float and np.signbit(x)
