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

from mbs_dynamics.compiler.frontend.graph import Symbol
from mbs_dynamics.compiler.frontend.program import Port, Program

Order = NDArray[np.int64]
"""For each entry of an output, its place among those that are stored."""


def deduplicated(program: Program) -> tuple[Program, list[Order]]:
    """Return a program that stores equal entries once, and the order of each output's entries."""
    if program.in_loops:
        return program, [np.arange(port.size) for port in program.outputs]
    ports, values, orders = [], [], []
    for port, entries in zip(program.outputs, program.values, strict=True):
        places: dict[Any, int] = {}
        first: list[Symbol | float] = []
        order = np.empty(len(entries), dtype=np.int64)
        for k, x in enumerate(entries):
            # zeros of both signs are apart
            key = x.id if isinstance(x, Symbol) else (x, np.signbit(x))
            order[k] = places.setdefault(key, len(first))
            if order[k] == len(first):
                first.append(x)
        ports.append(Port(port.name, (len(first),)))
        values.append(tuple(first))
        orders.append(order)
    return replace(program, outputs=tuple(ports), values=tuple(values)), orders
