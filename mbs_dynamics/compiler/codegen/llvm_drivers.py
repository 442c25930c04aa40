# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Drivers, which evaluate many states by the function of a program; shared by all programs.

Code for one state is called with the addresses of that state's rows. Vector code expects the same
entry of all its states, one per lane, in consecutive memory. Its driver therefore transposes tiles
of states in registers, between the arrays and a scratch area that stays in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import (
    DOUBLE,
    I32,
    I64,
    PTR,
    VOID,
    Pointer,
    Prototype,
    Value,
)

BODY = Prototype("", I32, PTR)
"""Function of a program, for one state or several; the argument has the addresses of all ports."""

COUNTS = Pointer(I64)
DRIVER = Prototype("", I64, BODY, I64, Pointer(Pointer(DOUBLE)), COUNTS, COUNTS, I64, I64, I64)
"""``i64 f(body, states, pointers, strides, sizes, inputs, ports, guards)``.

``pointers`` are those of state 0 in each port, ``strides`` the bytes from one state to the next (0:
all share the same one), and ``sizes`` the numbers of entries of a state. Returns 0, or for the
first state i at which the guard k, counted from 1, fails, i times the number of guards, plus k; or
-1 if there is no memory.
"""

LOAD_TILE, STORE_TILE = (
    Prototype(f"mbs.{name}_tile", VOID, Pointer(DOUBLE), I64, Pointer(DOUBLE), I64)
    for name in ("load", "store")
)
MINIMUM = Prototype(builder.intrinsic("smin", I64), I64, I64, I64)


def driver_name(lanes: int) -> str:
    """Return the name of the driver of functions for ``lanes`` states at once."""
    return f"mbs.states{lanes}"


def emit_driver(lanes: int) -> str:
    """Return the IR of a :data:`DRIVER`."""
    prototype = Prototype(driver_name(lanes), DRIVER.returns, *DRIVER.parameters)
    f = builder.Function(prototype, exported=True)
    if lanes == 1:
        _one_by_one(f)
        return builder.module([f])
    _in_tiles(f, lanes)
    return builder.module([f, _moves(LOAD_TILE, lanes), _moves(STORE_TILE, lanes)])


def _one_by_one(f: builder.Function) -> None:
    body, states, pointers, strides, _, _, ports, guards = f.parameters
    now = f.array(PTR, ports)
    with f.loop(ports) as k:
        now[k] = pointers[k]
    with f.loop(states) as state:
        status = f.call(body, now)
        with f.if_(status != 0):
            f.ret(f.select(status < 0, -1, state * guards + status.to(I64)))
        with f.loop(ports) as k:
            now[k] = now[k].byte(strides[k])
    f.ret(0)


def _in_tiles(f: builder.Function, lanes: int) -> None:
    """Emit the evaluation of at least ``lanes`` states.

    A last group with fewer states than lanes is filled up with states that were evaluated before.
    """
    body, states, pointers, strides, sizes, inputs, ports, guards = f.parameters
    entries, areas = f.variable(I64, lanes), f.array(Pointer(DOUBLE), ports + 1)
    with f.loop(ports) as k:
        entries.value = entries.value + (sizes[k] + lanes) * lanes
    heap, memory = f.heap(entries.value * builder.WORD)
    with f.if_(heap == builder.NULL):
        f.ret(-1)
    area = f.variable(Pointer(DOUBLE), memory)
    with f.loop(ports) as k:
        areas[k] = area.value
        area.value = area.value.at((sizes[k] + lanes) * lanes)
    areas[ports] = area.value
    statuses = area.value.to(Pointer(I32))
    with f.loop(inputs) as k, f.if_(strides[k] == 0):
        f.call(LOAD_TILE, areas[k], sizes[k], pointers[k], 0)
    last = states - lanes
    with f.loop(0, states, lanes) as tile:
        state = f.call(MINIMUM, tile, last)
        with f.loop(inputs) as k, f.if_(strides[k] != 0):
            f.call(LOAD_TILE, areas[k], sizes[k], pointers[k].byte(state * strides[k]), strides[k])
        status = f.call(body, areas)
        with f.if_(status != 0):
            failed = f.variable(I64, -1)
            with f.if_(status > 0), f.loop(lanes) as k:
                lane = f.operand(lanes - 1, I64) - k  # from the last to the first
                with f.if_(statuses[lane] != 0):
                    failed.value = (state + lane) * guards + statuses[lane].to(I64)
            f.call(builder.FREE, heap)
            f.ret(failed.value)
        with f.loop(inputs, ports) as k:
            f.call(STORE_TILE, areas[k], sizes[k], pointers[k].byte(state * strides[k]), strides[k])
    f.call(builder.FREE, heap)
    f.ret(0)


def _moves(prototype: Prototype, lanes: int) -> builder.Function:
    """Return ``void mbs.load_tile(area, size, states, stride)``: from the array to the area.

    ``mbs.store_tile`` is the way back. It moves square blocks, in which each row is a state. If
    rows are longer than a vector, the last block ends where they do. An area has room for at least
    ``lanes`` entries.
    """
    f = builder.Function(prototype)
    area, size, base, stride = f.parameters
    kind = builder.vector(lanes, DOUBLE)
    columns = area.to(Pointer(kind))
    rows = [base]
    for _ in range(lanes - 1):
        rows.append(rows[-1].byte(stride))

    def move(first: builder.Operand, mask: Value | None = None) -> None:
        """Emit the move of the block that begins with this column."""
        starts = [row.at(first) for row in rows]
        block = columns.at(first)
        if prototype is LOAD_TILE:
            for k, entries in enumerate(_transposed([row.load(kind, mask) for row in starts])):
                block[k] = entries
        else:
            moved = _transposed([block[k] for k in range(lanes)])
            for row, entries in zip(starts, moved, strict=True):
                row.store(entries, mask)

    with f.if_(size < lanes):
        first_lanes = f"llvm.get.active.lane.mask.v{lanes}i1.i64"
        mask = Prototype(first_lanes, builder.vector(lanes, builder.I1), I64, I64)
        move(0, f.call(mask, 0, size))
        f.ret()
    with f.loop(0, size, lanes) as k:
        move(f.call(MINIMUM, k, size - lanes))
    f.ret()
    return f


def _transposed(rows: Sequence[Value]) -> list[Value]:
    """Emit the transposition of a square of vectors: pairs of rows swap parts, in log2 stages."""
    values, lanes, distance = list(rows), len(rows), 1
    while distance < lanes:
        first = [c if not c & distance else lanes + c - distance for c in range(lanes)]
        second = [c + distance if not c & distance else lanes + c for c in range(lanes)]
        for k in [k for k in range(lanes) if not k & distance]:
            a, b = values[k], values[k + distance]
            values[k], values[k + distance] = a.shuffled(b, first), a.shuffled(b, second)
        distance *= 2
    return values
