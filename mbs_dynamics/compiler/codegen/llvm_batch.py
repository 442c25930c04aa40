# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The driver of vector code: states in tiles of as many as a vector has lanes.

Arrays hold the entries of one state side by side, or one entry of all states. A vector body takes
the second within a tile. So each tile is transposed on its way in and out, in registers, between
the arrays and a scratch area that stays in the first cache.
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
    Pointer,
    Prototype,
    Struct,
    Value,
    module,
)
from mbs_dynamics.compiler.codegen.llvm_shared import BODY
from mbs_dynamics.compiler.codegen.vectors import first_lanes, transposed

BATCH_PORT = Struct.of_words(
    address=Pointer(DOUBLE),
    by_state=I64,
    by_entry=I64,
    size=I64,
    scratch=Pointer(DOUBLE),
    order=Pointer(I32),
)
"""What the driver's table says of each port: the address of the first entry of state 0, the bytes
from one state to the next (0: constant), and from one entry to the next, the number of entries, and
the address of its scratch area, with room for at least ``lanes`` entries. ``order`` is, for an
output, the address of at least ``lanes`` integers: where each entry stands in the scratch area, in
bytes. Equal entries may stand there once."""

DRIVER = Prototype("", I64, BODY, I64, I64, Pointer(BATCH_PORT), I64, I64, Pointer(PTR), I64)
LOAD_TILE = Prototype("mbs.load_tile", VOID, Pointer(BATCH_PORT), I64)
STORE_TILE = Prototype("mbs.store_tile", VOID, Pointer(BATCH_PORT), I64)

MINIMUM = Prototype("llvm.smin.i64", I64, I64, I64)


def emit_batch(lanes: int) -> str:
    """Return the IR of the driver of bodies with so many lanes."""
    return module([driver(lanes), load_tile(lanes), store_tile(lanes)])


def driver(lanes: int) -> Function:
    """Return ``i64 mbs.batch(function, first, last, table, inputs, ports, pointers, guards)``.

    Its name ends with the number of lanes. It evaluates the states from ``first`` to ``last`` - 1,
    at least ``lanes`` of them: what is left over at the end is done again together with states
    before it. ``pointers`` are the addresses of the scratch areas, and of one for the status of
    each lane. Returns what the loop over single states does (see :mod:`codegen.llvm_shared`).
    """
    f = Function(Prototype(f"mbs.batch{lanes}", DRIVER.returns, *DRIVER.parameters), exported=True)
    function, first, last, table, inputs, ports, pointers, guards = f.parameters
    numbers = pointers[ports].to(Pointer(I32))
    final = last - lanes
    tile = f.variable(I64, first)
    with f.forever() as tiles:
        state = tile.value
        with f.loop(inputs) as k:
            f.call(LOAD_TILE, table[k], state)
        status = f.call(function, pointers)
        with f.if_(status != 0):
            with f.if_(status < 0):
                f.ret(-1)
            with f.loop(lanes) as lane, f.if_(numbers[lane] != 0):
                f.ret((state + lane) * guards + numbers[lane].to(I64))
        with f.loop(inputs, ports) as k:
            f.call(STORE_TILE, table[k], state)
        tiles.leave_unless(state < final)
        tile.value = f.call(MINIMUM, state + lanes, final)
    f.ret(0)
    return f


def load_tile(lanes: int) -> Function:
    """Return ``void mbs.load_tile(port, state)``: from the array to the scratch area."""
    vector = f"<{lanes} x {DOUBLE}>"
    name = f"llvm.masked.load.v{lanes}f64.p0"
    masked = Prototype(name, vector, PTR, I32, f"<{lanes} x {I1}>", vector)
    f = Function(LOAD_TILE)
    scratch = f.parameters[0].scratch.to(Pointer(vector))

    def load_entry(at: Value, entry: Value) -> None:
        scratch.at(entry).store(at.load(vector, 8), 8 * lanes)

    def load_block(rows: Sequence[Value], first: Value, mask: Value | None) -> None:
        if mask is None:
            loaded = [row.load(vector, 8) for row in rows]
        else:
            others = Value(f, vector, "zeroinitializer")
            loaded = [f.call(masked, row, 8, mask, others) for row in rows]
        for k, column in enumerate(transposed(f, loaded)):
            scratch.at(first).at(k).store(column, 8 * lanes)

    _move_tile(f, lanes, load_entry, load_block)
    return f


def store_tile(lanes: int) -> Function:
    """Return ``void mbs.store_tile(port, state)``: from the scratch area to the array."""
    vector = f"<{lanes} x {DOUBLE}>"
    name = f"llvm.masked.store.v{lanes}f64.p0"
    masked = Prototype(name, VOID, vector, PTR, I32, f"<{lanes} x {I1}>")
    f = Function(STORE_TILE)
    port = f.parameters[0]
    scratch, order = port.scratch, port.order

    def placed(at: Value) -> Value:
        return scratch.byte(at[0].to(I64)).load(vector, 8 * lanes)

    def store_entry(at: Value, entry: Value) -> None:
        at.store(placed(order.at(entry)), 8)

    def store_block(rows: Sequence[Value], first: Value, mask: Value | None) -> None:
        columns = [placed(order.at(first).at(k)) for k in range(lanes)]
        for row, stored in zip(rows, transposed(f, columns), strict=True):
            if mask is None:
                row.store(stored, 8)
            else:
                f.call(masked, stored, row, 8, mask)

    _move_tile(f, lanes, store_entry, store_block)
    return f


def _move_tile(
    f: Function,
    lanes: int,
    move_entry: Callable[[Value, Value], None],
    move_block: Callable[[Sequence[Value], Value, Value | None], None],
) -> None:
    """Emit the moves of a tile: vectors of one entry of all states, or square blocks of rows.

    ``move_block`` moves the columns of rows that a mask selects, or all, and is given the number of
    the first one. The last block of a row that is longer than a vector ends where the row does.
    """
    port, state = f.parameters
    by_state, by_entry, size = port.by_state, port.by_entry, port.size
    with f.block() as tile:
        tile.leave_if(by_state == 0)
        base = port.address.byte(state * by_state)
        with f.if_(by_entry != 8):
            with f.loop(size) as k:
                move_entry(base.byte(k * by_entry), k)
            tile.leave()
        rows = [base]
        for _ in range(lanes - 1):
            rows.append(rows[-1].byte(by_state))
        with f.if_(size < lanes):
            move_block(rows, f.operand(0, I64), first_lanes(f, lanes, size))
            tile.leave()
        first, last = f.variable(I64, 0), size - lanes
        with f.forever() as blocks:
            k = first.value
            move_block([row.at(k) for row in rows], k, None)
            blocks.leave_unless(k < last)
            first.value = f.call(MINIMUM, k + lanes, last)
    f.ret()
