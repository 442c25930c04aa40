# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The driver of vector code: states in tiles of as many as a vector has lanes.

Arrays hold the entries of one state side by side, or one entry of all states. A vector body wants
the second within a tile. So each tile is transposed on its way in and out, in registers, between
the arrays and a scratch area that stays in the first cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.codegen.llvm_body import PER_CALL, Body
from mbs_dynamics.compiler.codegen.llvm_prefetch import DISTANCE, LONG
from mbs_dynamics.compiler.codegen.llvm_shared import emit_sines_and_cosines

FIELDS = ("address", "by_state", "by_entry", "size", "scratch", "direct", "order")
"""What the driver's table says of each port, as 64-bit integers: the address of the first entry of
state 0, the bytes from one state to the next (0: constant), and from one entry to the next, the
number of entries, and the address of its scratch area, with room for at least ``lanes`` entries.
``direct`` is not 0 if the body writes results itself: what it finds in the scratch area are then
the addresses of the results of each state, and ``size`` is 0. ``order`` is the address of 32-bit
integers, at least ``lanes`` of them, for an output: where each entry stands in the scratch area, in
bytes. Equal entries may stand there once."""

POINT = """\
define internal void @mbs.point(ptr %port, i64 %i, ptr %results) nounwind {{
entry:
  %first = load ptr, ptr %port
  %next.at = getelementptr i64, ptr %port, i64 {by_state}
  %to.next = load i64, ptr %next.at
  %gap.at = getelementptr i64, ptr %port, i64 {by_entry}
  %gap = load i64, ptr %gap.at
  %in.rows = icmp eq i64 %gap, 8
  %here = mul i64 %i, %to.next
  %distance = select i1 %in.rows, i64 %here, i64 0
  %tile = getelementptr i8, ptr %first, i64 %distance
  store ptr %tile, ptr %results
  %direct.at = getelementptr i64, ptr %port, i64 {direct}
  %direct = load i64, ptr %direct.at
  %any = icmp ne i64 %direct, 0
  br i1 %any, label %begin, label %end
begin:
  %address = load ptr, ptr %port
  %by_state.at = getelementptr i64, ptr %port, i64 1
  %by_state = load i64, ptr %by_state.at
  %scratch.at = getelementptr i64, ptr %port, i64 {scratch}
  %scratch = load ptr, ptr %scratch.at
  br label %state
state:
  %k = phi i64 [ 0, %begin ], [ %next, %state ]
  %number = add i64 %i, %k
  %offset = mul i64 %number, %by_state
  %at = getelementptr i8, ptr %address, i64 %offset
  %to = getelementptr ptr, ptr %scratch, i64 %k
  store ptr %at, ptr %to
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, {lanes}
  br i1 %more, label %state, label %end
end:
  ret void
}}
"""
"""IR that tells a body where the results of a tile begin, which it may prefetch, and if it is to
write them itself, where those of each state are to stand. What is prefetched of results that do not
stand in rows is the same in all tiles, so that nothing is lost."""

DRIVER = """\
define i64 @mbs.batch(ptr %function, i64 %first, i64 %last, ptr %table, i64 %inputs, i64 %ports,
                      ptr %pointers, i64 %guards) nounwind {{
entry:
  %status.at.at = getelementptr ptr, ptr %pointers, i64 %ports
  %status.at = load ptr, ptr %status.at.at
  %final = sub i64 %last, {lanes}
  br label %tile
tile:
  %i = phi i64 [ %first, %entry ], [ %i.next, %advance ]
  br label %load
load:
  %p = phi i64 [ 0, %tile ], [ %p.next, %load ]
  %in = getelementptr [{fields} x i64], ptr %table, i64 %p
  call void @mbs.load(ptr %in, i64 %i)
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, %inputs
  br i1 %p.more, label %load, label %point
point:
  %w = phi i64 [ %inputs, %load ], [ %w.next, %point ]
  %w.next = add i64 %w, 1
  %w.port = getelementptr [{fields} x i64], ptr %table, i64 %w
  %w.output = sub i64 %w.next, %inputs
  %w.results = getelementptr ptr, ptr %status.at.at, i64 %w.output
  call void @mbs.point(ptr %w.port, i64 %i, ptr %w.results)
  %w.more = icmp slt i64 %w.next, %ports
  br i1 %w.more, label %point, label %run
run:
  %status = call i32 %function(ptr %pointers)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %store, label %failed
store:
  %o = phi i64 [ %inputs, %run ], [ %o.next, %store ]
  %out = getelementptr [{fields} x i64], ptr %table, i64 %o
  call void @mbs.store(ptr %out, i64 %i)
  %o.next = add i64 %o, 1
  %o.more = icmp slt i64 %o.next, %ports
  br i1 %o.more, label %store, label %stored
stored:
  %more = icmp slt i64 %i, %final
  br i1 %more, label %advance, label %end
advance:
  %i.whole = add i64 %i, {lanes}
  %i.next = call i64 @llvm.smin.i64(i64 %i.whole, i64 %final)
  br label %tile
failed:
  %lost = icmp slt i32 %status, 0
  br i1 %lost, label %empty, label %lanes
empty:
  ret i64 -1
lanes:
  %k = phi i64 [ 0, %failed ], [ %k.next, %search ]
  %number.at = getelementptr i32, ptr %status.at, i64 %k
  %number = load i32, ptr %number.at
  %found = icmp ne i32 %number, 0
  br i1 %found, label %say, label %search
search:
  %k.next = add i64 %k, 1
  br label %lanes
say:
  %state = add i64 %i, %k
  %before = mul i64 %state, %guards
  %guard = zext i32 %number to i64
  %where = add i64 %before, %guard
  ret i64 %where
end:
  ret i64 0
}}
declare i64 @llvm.smin.i64(i64, i64)
"""


def emit_batch(lanes: int) -> str:
    """Return the IR of the driver of bodies with so many lanes, and of their sines and cosines.

    ``i64 @mbs.batch(ptr function, i64 first, i64 last, ptr table, i64 inputs, i64 ports,
    ptr pointers, i64 guards)`` evaluates the states from ``first`` to ``last`` - 1, at least
    ``lanes`` of them: what is left over at the end is done again together with states before it.
    ``table`` has one row of :data:`FIELDS` per port, ``pointers`` the addresses of the scratch
    areas and of one for the status of each lane, and room for one of each output.
    It returns what the loop over single states does.
    """
    vector = f"<{lanes} x double>"
    return "".join(
        [
            "declare double @sin(double)\ndeclare double @cos(double)\n",
            emit_sines_and_cosines(lanes),
            emit_sines_and_cosines(PER_CALL * lanes),
            f"declare {vector} @llvm.masked.load.v{lanes}f64.p0"
            f"(ptr, i32, <{lanes} x i1>, {vector})\n",
            f"declare void @llvm.masked.store.v{lanes}f64.p0({vector}, ptr, i32, <{lanes} x i1>)\n",
            _mover(lanes, storing=False),
            _mover(lanes, storing=True),
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n",
            POINT.format(lanes=lanes, **{name: k for k, name in enumerate(FIELDS)}),
            DRIVER.format(lanes=lanes, fields=len(FIELDS)),
        ]
    )


def _mover(lanes: int, storing: bool) -> str:
    """Return the IR of what moves one port of one tile between its array and its scratch area."""
    body = Body(lanes)
    vector, bytes_ = body.real, 8 * lanes
    for k, name in enumerate(FIELDS):
        kind = "ptr" if name in ("address", "scratch", "order") else "i64"
        at = body.new(f"getelementptr i64, ptr %port, i64 {k}")
        body.set(f"%{name}", f"load {kind}, ptr {at}")
    body.set("%offset", "mul i64 %i, %by_state")
    body.set("%base", "getelementptr i8, ptr %address, i64 %offset")
    body.set("%constant", "icmp eq i64 %by_state, 0")
    body.set("%in.rows", "icmp eq i64 %by_entry, 8")
    body.lines += [
        "  br i1 %constant, label %end, label %moved",
        "moved:",
        "  br i1 %in.rows, label %rows, label %columns",
        "columns:",
        "  %c = phi i64 [ 0, %moved ], [ %c.next, %columns ]",
        "  %c.offset = mul i64 %c, %by_entry",
        "  %c.array = getelementptr i8, ptr %base, i64 %c.offset",
    ]
    if storing:
        at = body.new("getelementptr i32, ptr %order, i64 %c")
        body.set("%column", f"load {vector}, ptr {_placed(body, at, 0)}, align {bytes_}")
        body.lines.append(f"  store {vector} %column, ptr %c.array, align 8")
    else:
        body.set("%c.scratch", f"getelementptr {vector}, ptr %scratch, i64 %c")
        body.set("%column", f"load {vector}, ptr %c.array, align 8")
        body.lines.append(f"  store {vector} %column, ptr %c.scratch, align {bytes_}")
    body.lines += [
        "  %c.next = add i64 %c, 1",
        "  %c.more = icmp slt i64 %c.next, %size",
        "  br i1 %c.more, label %columns, label %end",
        "rows:",
    ]
    rows = ["%base"]
    for _ in range(lanes - 1):
        rows.append(body.new(f"getelementptr i8, ptr {rows[-1]}, i64 %by_state"))
    body.lines += [
        f"  %last = sub i64 %size, {lanes}",
        "  %narrow = icmp slt i64 %last, 0",
        "  br i1 %narrow, label %part, label %whole",
        "part:",
    ]
    step = ", ".join(f"i64 {k}" for k in range(lanes))
    one = body.new(f"insertelement {body.word} poison, i64 %size, i64 0")
    all_ = body.new(
        f"shufflevector {body.word} {one}, {body.word} poison, <{lanes} x i32> zeroinitializer"
    )
    mask = body.new(f"icmp ult {body.word} <{step}>, {all_}")
    mask = f"{body.bit} {mask}"
    _block(body, rows, "%order" if storing else "%scratch", storing, mask)
    body.lines += [
        "  br label %end",
        "whole:",
    ]
    if storing:
        body.set("%is.long", f"icmp sgt i64 %size, {LONG * lanes}")
        body.lines.append("  br i1 %is.long, label %from.long, label %from.short")
        _blocks(body, rows, "long", storing, prefetching=True)
    else:
        body.lines.append("  br label %from.short")
    _blocks(body, rows, "short", storing)
    body.lines += ["end:", "  ret void"]
    name = "mbs.store" if storing else "mbs.load"
    lines = "\n".join(body.lines)
    return f"define internal void @{name}(ptr %port, i64 %i) nounwind {{\nentry:\n{lines}\n}}\n"


def _blocks(
    body: Body, rows: Sequence[str], name: str, storing: bool, *, prefetching: bool = False
) -> None:
    """Emit the loop over the blocks of rows that are at least as long as a vector.

    With ``prefetching``, what is written next is prefetched, and no vector of the first row
    straddles two lines but the first one and the last.
    """
    j, lanes = f"%{name}.j", body.lanes
    body.lines.append(f"from.{name}:")
    if prefetching:
        place = body.new("ptrtoint ptr %base to i64")
        before = body.new(f"lshr i64 {place}, 3")
    body.lines += [
        f"  br label %{name}",
        f"{name}:",
        f"  {j} = phi i64 [ 0, %from.{name} ], [ {j}.next, %{name}.next ]",
        f"  {j}.from = getelementptr i32, ptr %order, i64 {j}"
        if storing
        else f"  {j}.from = getelementptr {body.real}, ptr %scratch, i64 {j}",
    ]
    here = [body.new(f"getelementptr double, ptr {row}, i64 {j}") for row in rows]
    for row in here if prefetching else ():
        next_ = body.new(f"getelementptr i8, ptr {row}, i64 {DISTANCE}")
        body.lines.append(f"  call void @llvm.prefetch.p0(ptr {next_}, i32 1, i32 3, i32 1)")
    _block(body, here, f"{j}.from", storing)
    body.lines += [
        f"  {j}.more = icmp slt i64 {j}, %last",
        f"  br i1 {j}.more, label %{name}.next, label %end",
        f"{name}.next:",
        f"  {j}.whole = add i64 {j}, {lanes}",
    ]
    whole = f"{j}.whole"
    if prefetching:
        border = body.new(f"and i64 {body.new(f'add i64 {whole}, {before}')}, {-lanes}")
        whole = body.new(f"sub i64 {border}, {before}")
    body.lines += [
        f"  {j}.next = call i64 @llvm.smin.i64(i64 {whole}, i64 %last)",
        f"  br label %{name}",
    ]


def _block(body: Body, rows: Sequence[str], first: str, storing: bool, mask: str = "") -> None:
    """Emit the move of a square block; with a mask, of the columns of the array that it selects.

    It begins there in the scratch area, or in storing there in the order of its entries.
    """
    vector, lanes = body.real, body.lanes
    if storing:
        columns = [_placed(body, first, k) for k in range(lanes)]
    else:
        columns = [body.new(f"getelementptr {vector}, ptr {first}, i64 {k}") for k in range(lanes)]
    load, store = f"@llvm.masked.load.v{lanes}f64.p0", f"@llvm.masked.store.v{lanes}f64.p0"
    if storing:
        loads = [f"load {vector}, ptr {x}, align {8 * lanes}" for x in columns]
    elif mask:
        loads = [
            f"call {vector} {load}(ptr {x}, i32 8, {mask}, {vector} zeroinitializer)" for x in rows
        ]
    else:
        loads = [f"load {vector}, ptr {x}, align 8" for x in rows]
    turned = transposed(body, [body.new(x) for x in loads])
    for k, x in enumerate(turned):
        if not storing:
            body.lines.append(f"  store {vector} {x}, ptr {columns[k]}, align {8 * lanes}")
        elif mask:
            body.lines.append(f"  call void {store}({vector} {x}, ptr {rows[k]}, i32 8, {mask})")
        else:
            body.lines.append(f"  store {vector} {x}, ptr {rows[k]}, align 8")


def _placed(body: Body, order: str, k: int) -> str:
    """Emit the address in the scratch area of the k-th entry from there on in the order."""
    at = body.new(f"getelementptr i32, ptr {order}, i64 {k}")
    place = body.new(f"sext i32 {body.new(f'load i32, ptr {at}')} to i64")
    return body.new(f"getelementptr i8, ptr %scratch, i64 {place}")


def transposed(body: Body, rows: Sequence[str]) -> list[str]:
    """Emit the transposition of a square of vectors: pairs of rows swap parts, in log2 stages."""
    values, lanes = list(rows), body.lanes
    distance = 1
    while distance < lanes:
        first = [c if not c & distance else lanes + c - distance for c in range(lanes)]
        second = [c + distance if not c & distance else lanes + c for c in range(lanes)]
        for k in [k for k in range(lanes) if not k & distance]:
            pair = f"{body.real} {values[k]}, {body.real} {values[k + distance]}"
            for row, mask in ((k, first), (k + distance, second)):
                order = ", ".join(f"i32 {c}" for c in mask)
                values[row] = body.new(f"shufflevector {pair}, <{lanes} x i32> <{order}>")
        distance *= 2
    return values
