# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The driver of vector code: states in tiles of as many as a vector has lanes.

Arrays hold the entries of one state side by side. A vector body takes one entry of all states side
by side. So each tile is transposed on its way in and out, in registers, between the arrays and a
scratch area that stays in the first cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import DOUBLE, I32, I64, PTR, VOID, Pointer, Prototype
from mbs_dynamics.compiler.codegen.llvm_shared import BODY

TILE_PORT = builder.Struct.of_words(size=I64, scratch=Pointer(DOUBLE), order=Pointer(I32))
"""Data of the driver about each port: the number of entries; the address of its scratch area, with
room for at least ``lanes`` entries; and, for an output, the address of at least ``lanes`` integers:
where each entry stands in the scratch area, in bytes. Equal entries may stand there once."""

VECTOR = builder.Struct.of_words(
    function=BODY,
    inputs=I64,
    count=I64,
    guards=I64,
    scratch=Pointer(PTR),
    driver=PTR,
    ports=builder.Inline(TILE_PORT),
)
"""Vector code with its memory, which serves one call at a time: its function; the numbers of
inputs, of ports and of guards; the addresses of all scratch areas, and of one for the status of
each lane; the driver, for calls in machine code; and the ports."""

DRIVER = Prototype("", I64, Pointer(VECTOR), I64, Pointer(Pointer(DOUBLE)), Pointer(I64))
LOAD_TILE, STORE_TILE = (
    Prototype(f"mbs.{name}_tile", VOID, Pointer(TILE_PORT), Pointer(DOUBLE), I64)
    for name in ("load", "store")
)
MINIMUM = Prototype(builder.intrinsic("smin", I64), I64, I64, I64)


def emit_batch(lanes: int) -> str:
    """Return the IR of the driver of bodies with so many lanes."""
    return builder.module([driver(lanes), moves(LOAD_TILE, lanes), moves(STORE_TILE, lanes)])


def driver(lanes: int) -> builder.Function:
    """Return ``i64 mbs.batch(vector, states, pointers, strides)``.

    Its name ends with the number of lanes. It evaluates at least ``lanes`` states: remaining states
    at the end are evaluated together with previous ones again. ``pointers`` are those of state 0 in
    each port, ``strides`` the bytes from one state to the next (0: all share the same one). Returns
    what the loop over single states does (see :mod:`codegen.llvm_shared`).
    """
    f = builder.Function(
        Prototype(f"mbs.batch{lanes}", DRIVER.returns, *DRIVER.parameters), exported=True
    )
    vector, states, pointers, strides = f.parameters
    inputs, count, ports, scratch = vector.inputs, vector.count, vector.ports, vector.scratch
    with f.loop(inputs) as k, f.if_(strides[k] == 0):
        f.call(LOAD_TILE, ports[k], pointers[k], 0)
    numbers = scratch[count].to(Pointer(I32))
    final = states - lanes
    with f.loop(0, states, lanes) as tile:
        state = f.call(MINIMUM, tile, final)
        with f.loop(inputs) as k, f.if_(strides[k] != 0):
            f.call(LOAD_TILE, ports[k], pointers[k].byte(state * strides[k]), strides[k])
        status = f.call(vector.function, scratch)
        with f.if_(status != 0):
            with f.if_(status < 0):
                f.ret(-1)
            with f.loop(lanes) as lane, f.if_(numbers[lane] != 0):
                f.ret((state + lane) * vector.guards + numbers[lane].to(I64))
        with f.loop(inputs, count) as k:
            f.call(STORE_TILE, ports[k], pointers[k].byte(state * strides[k]), strides[k])
    f.ret(0)
    return f


def moves(prototype: Prototype, lanes: int) -> builder.Function:
    """Return ``void mbs.load_tile(port, states, stride)``: from the array to the scratch area.

    ``mbs.store_tile`` is the way back. It moves square blocks, in which each row is a state. If
    rows are longer than a vector, the last block ends where they do.
    """
    f = builder.Function(prototype)
    port, base, stride = f.parameters
    size, scratch, order = port.size, port.scratch, port.order
    kind = builder.vector(lanes, DOUBLE)
    rows = [base]
    for _ in range(lanes - 1):
        rows.append(rows[-1].byte(stride))

    def move(first: builder.Operand, mask: builder.Value | None = None) -> None:
        """Emit the move of the block that begins with this column."""
        starts = [row.at(first) for row in rows]
        if prototype is LOAD_TILE:
            column = scratch.to(Pointer(kind)).at(first)
            for k, entries in enumerate(_transposed([row.load(kind, mask) for row in starts])):
                column.at(k).store(entries)
            return
        places = [order.at(first)[k] for k in range(lanes)]
        columns = [scratch.byte(place.to(I64)).load(kind) for place in places]
        for row, entries in zip(starts, _transposed(columns), strict=True):
            row.store(entries, mask)

    with f.if_(size < lanes):
        move(0, f.first_lanes(size, lanes))
        f.ret()
    with f.loop(0, size, lanes) as k:
        move(f.call(MINIMUM, k, size - lanes))
    f.ret()
    return f


def _transposed(rows: Sequence[builder.Value]) -> list[builder.Value]:
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
