# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results whose equal entries are stored once.

A symmetric matrix has each entry off its diagonal twice, and those of trees are zero between
branches. In vector code every entry takes a line of the cache: storing it once leaves room for
intermediate values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.compiler.ir.nodes import Buffer, Statement, Store

Order = NDArray[np.int64]
"""For each entry of an output, its place among those that are stored."""


def deduplicated(program: Program) -> tuple[Program, list[Order]]:
    """Return a program that stores equal entries once, and the order of each output's entries."""
    module = program.module
    outputs = {x: Buffer(x.name, x.kind, 0) for x in module.outputs}
    orders = {x: np.zeros(x.size, dtype=np.int64) for x in module.outputs}
    places: dict[Any, int] = {}
    body: list[Statement] = []
    for x in module.body:
        if type(x) is Store and x.buffer in outputs:
            # 0.0 is not -0.0, and the number 1.0 not the value 1
            zero = type(x.value) is float and np.signbit(x.value)
            output, key = outputs[x.buffer], (x.buffer, type(x.value), x.value, zero)
            if key not in places:
                places[key] = output.size
                body.append(Store(output, output.size, x.value))
                output.size += 1
            orders[x.buffer][x.at] = places[key]
        else:
            body.append(x)
    ports = tuple(Port(x.name, (x.size,)) for x in outputs.values())
    fewer = module._replace(outputs=tuple(outputs.values()), body=tuple(body))
    return replace(program, module=fewer, outputs=ports), list(orders.values())
