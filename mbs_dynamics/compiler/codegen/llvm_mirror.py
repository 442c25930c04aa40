# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR that fills the lower triangle of a matrix, block by block.

Stores down a column take ten times as long as those along a row. So what belongs below the diagonal
is first stored above it, in the matrix itself if it is symmetric, or in another one.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.llvm_batch import transposed
from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, Body


def emit_mirror(name: str, count: int, rows: int = WIDTH) -> str:
    """Return the IR of ``void <name>(ptr from, ptr to, i64 j)``, for matrices (count, count).

    Sets to[k, i] = from[i, k] for all i < k, in the rows k from j on, a multiple of eight. Of these
    there are eight, or in the last call as many as are left.
    """
    body = Body(WIDTH)
    body.lines += [
        "entry:",
        "  %before = icmp sgt i64 %j, 0",
        "  br i1 %before, label %block, label %corner",
        "block:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %block ]",
    ]
    _block(body, "%i", count, rows)
    body.lines += [
        f"  %i.next = add i64 %i, {WIDTH}",
        "  %i.more = icmp slt i64 %i.next, %j",
        "  br i1 %i.more, label %block, label %corner",
        "corner:",
    ]
    _block(body, "%j", count, rows, corner=True)
    lines = "\n".join(body.lines)
    return (
        f"define internal void {name}(ptr %from, ptr %to, i64 %j) nounwind {{\n{lines}\n"
        "  ret void\n}\n"
    )


def _block(body: Body, i: str, count: int, rows: int, *, corner: bool = False) -> None:
    """Emit the moves of a block that begins at a row; of what is below the diagonal in a corner."""
    loads = []
    for k in range(WIDTH):
        at = _at(body, "%from", i, k, "%j", count)
        if not corner:
            loads.append(body.new(f"load {body.real}, ptr {at}, align 8"))
            continue
        if k >= rows:
            loads.append("zeroinitializer")
            continue
        mask = _mask([k < lane < rows for lane in range(WIDTH)])
        loads.append(
            body.new(
                f"call {body.real} @llvm.masked.load.v{WIDTH}f64.p0(ptr {at}, i32 8, "
                f"{body.bit} {mask}, {body.real} zeroinitializer)"
            )
        )
    for k, x in enumerate(transposed(body.new, WIDTH, loads)[:rows]):
        at = _at(body, "%to", "%j", k, i, count)
        if corner:
            mask = _mask([lane < k for lane in range(WIDTH)])
            body.lines.append(
                f"  call void @llvm.masked.store.v{WIDTH}f64.p0({body.real} {x}, ptr {at}, i32 8, "
                f"{body.bit} {mask})"
            )
        else:
            body.lines.append(f"  store {body.real} {x}, ptr {at}, align 8")


def _mask(lanes: list[bool]) -> str:
    return "<" + ", ".join(f"i1 {str(lane).lower()}" for lane in lanes) + ">"


def _at(body: Body, base: str, row: str, k: int, column: str, count: int) -> str:
    """Emit the address of an entry in the k-th row after a row."""
    first = body.new(f"mul i64 {row}, {count}")
    entry = body.new(f"add i64 {first}, {column}")
    at = body.new(f"getelementptr double, ptr {base}, i64 {entry}")
    return body.new(f"getelementptr double, ptr {at}, i64 {k * count}")
