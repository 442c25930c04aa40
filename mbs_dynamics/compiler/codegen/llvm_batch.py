# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The driver of vector code: states in tiles of as many as a vector has lanes.

Arrays hold the entries of one state side by side. A vector body takes one entry of all states side
by side. So each tile is transposed on its way in and out, in registers, between the arrays and a
scratch area that stays in the first cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mbs_dynamics.compiler.codegen.builder import (
    DOUBLE,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    Inline,
    Pointer,
    Prototype,
    Struct,
    Value,
    module,
)
from mbs_dynamics.compiler.codegen.llvm_shared import BODY

TILE_PORT = Struct.of_words(size=I64, scratch=Pointer(DOUBLE), order=Pointer(I32))
"""What the driver knows of each port: the number of entries; the address of its scratch area, with
room for at least ``lanes`` entries; and, for an output, the address of at least ``lanes`` integers:
where each entry stands in the scratch area, in bytes. Equal entries may stand there once."""

VECTOR = Struct.of_words(
    function=BODY,
    inputs=I64,
    count=I64,
    guards=I64,
    scratch=Pointer(PTR),
    driver=PTR,
    ports=Inline(TILE_PORT),
)
"""Vector code with its memory, which serves one call at a time: its function; the numbers of
inputs, of ports and of guards; the addresses of all scratch areas, and of one for the status of
each lane; the driver, for calls in machine code; and the ports."""

DRIVER = Prototype("", I64, Pointer(VECTOR), I64, Pointer(Pointer(DOUBLE)), Pointer(I64))
LOAD_TILE = Prototype("mbs.load_tile", VOID, Pointer(TILE_PORT), Pointer(DOUBLE), I64)
STORE_TILE = Prototype("mbs.store_tile", VOID, Pointer(TILE_PORT), Pointer(DOUBLE), I64)

MINIMUM = Prototype("llvm.smin.i64", I64, I64, I64)


def emit_batch(lanes: int) -> str:
    """Return the IR of the driver of bodies with so many lanes."""
    return module([driver(lanes), load_tile(lanes), store_tile(lanes)])


def driver(lanes: int) -> Function:
    """Return ``i64 mbs.batch(vector, states, pointers, strides)``.

    Its name ends with the number of lanes. It evaluates at least ``lanes`` states: what is left
    over at the end is done again together with states before it. ``pointers`` are those of state 0
    in each port, ``strides`` the bytes from one state to the next (0: all share the same one).
    Returns what the loop over single states does (see :mod:`codegen.llvm_shared`).
    """
    f = Function(Prototype(f"mbs.batch{lanes}", DRIVER.returns, *DRIVER.parameters), exported=True)
    vector, states, pointers, strides = f.parameters
    inputs, count, ports, scratch = vector.inputs, vector.count, vector.ports, vector.scratch
    with f.loop(inputs) as k, f.if_(strides[k] == 0):
        entry = pointers[k]
        with f.loop(ports[k].size) as i, f.loop(lanes) as lane:
            ports[k].scratch[i * lanes + lane] = entry[i]
    numbers = scratch[count].to(Pointer(I32))
    final = states - lanes
    tile = f.variable(I64, 0)
    with f.forever() as tiles:
        state = tile.value
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
        tiles.leave_unless(state < final)
        tile.value = f.call(MINIMUM, state + lanes, final)
    f.ret(0)
    return f


def load_tile(lanes: int) -> Function:
    """Return ``void mbs.load_tile(port, states, stride)``: from the array to the scratch area."""
    vector = f"<{lanes} x {DOUBLE}>"
    name = f"llvm.masked.load.v{lanes}f64.p0"
    masked = Prototype(name, vector, PTR, I32, f"<{lanes} x {I1}>", vector)
    f = Function(LOAD_TILE)
    scratch = f.parameters[0].scratch.to(Pointer(vector))

    def load_entry(at: Value) -> None:
        scratch.store(at.load(vector, 8), 8 * lanes)

    def load_block(rows: Sequence[Value], first: Value, mask: Value | None) -> None:
        if mask is None:
            loaded = [row.load(vector, 8) for row in rows]
        else:
            others = Value(f, vector, "zeroinitializer")
            loaded = [f.call(masked, row, 8, mask, others) for row in rows]
        for k, column in enumerate(_transposed(f, loaded)):
            scratch.at(first).at(k).store(column, 8 * lanes)

    _move_tile(f, lanes, load_entry, load_block)
    return f


def store_tile(lanes: int) -> Function:
    """Return ``void mbs.store_tile(port, states, stride)``: from the scratch area to the array."""
    vector = f"<{lanes} x {DOUBLE}>"
    name = f"llvm.masked.store.v{lanes}f64.p0"
    masked = Prototype(name, VOID, vector, PTR, I32, f"<{lanes} x {I1}>")
    f = Function(STORE_TILE)
    port = f.parameters[0]
    scratch, order = port.scratch, port.order

    def placed(at: Value) -> Value:
        return scratch.byte(at[0].to(I64)).load(vector, 8 * lanes)

    def store_entry(at: Value) -> None:
        at.store(placed(order), 8)

    def store_block(rows: Sequence[Value], first: Value, mask: Value | None) -> None:
        columns = [placed(order.at(first).at(k)) for k in range(lanes)]
        for row, stored in zip(rows, _transposed(f, columns), strict=True):
            if mask is None:
                row.store(stored, 8)
            else:
                f.call(masked, stored, row, 8, mask)

    _move_tile(f, lanes, store_entry, store_block)
    return f


def _move_tile(
    f: Function,
    lanes: int,
    move_entry: Callable[[Value], None],
    move_block: Callable[[Sequence[Value], Value, Value | None], None],
) -> None:
    """Emit the moves of a tile: square blocks of rows, or a vector if states have one entry each.

    ``move_block`` moves the columns of rows that a mask selects, or all, and is given the number of
    the first one. The last block of a row that is longer than a vector ends where the row does.
    """
    port, base, stride = f.parameters
    size = port.size
    with f.block() as tile:
        with f.if_((size == 1) & (stride == 8)):
            move_entry(base)
            tile.leave()
        rows = [base]
        for _ in range(lanes - 1):
            rows.append(rows[-1].byte(stride))
        with f.if_(size < lanes):
            move_block(rows, f.operand(0, I64), _first_lanes(f, lanes, size))
            tile.leave()
        first, last = f.variable(I64, 0), size - lanes
        with f.forever() as blocks:
            k = first.value
            move_block([row.at(k) for row in rows], k, None)
            blocks.leave_unless(k < last)
            first.value = f.call(MINIMUM, k + lanes, last)
    f.ret()


def _first_lanes(f: Function, lanes: int, count: Value) -> Value:
    """Emit the mask of so many lanes, the first ones."""
    words = f"<{lanes} x i64>"
    one = f.new(words, f"insertelement {words} poison, {count}, i64 0")
    every = f"shufflevector {one}, {words} poison, <{lanes} x i32> zeroinitializer"
    numbers = ", ".join(f"i64 {k}" for k in range(lanes))
    bits = f"icmp sgt {f.new(words, every)}, <{numbers}>"
    return f.new(f"<{lanes} x i1>", bits)


def _transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
    """Emit the transposition of a square of vectors: pairs of rows swap parts, in log2 stages."""
    values, lanes, kind = list(rows), len(rows), rows[0].kind
    distance = 1
    while distance < lanes:
        first = [c if not c & distance else lanes + c - distance for c in range(lanes)]
        second = [c + distance if not c & distance else lanes + c for c in range(lanes)]
        for k in [k for k in range(lanes) if not k & distance]:
            pair = f"{values[k]}, {values[k + distance]}"
            for row, mask in ((k, first), (k + distance, second)):
                order = ", ".join(f"i32 {c}" for c in mask)
                values[row] = f.new(kind, f"shufflevector {pair}, <{lanes} x i32> <{order}>")
        distance *= 2
    return values
