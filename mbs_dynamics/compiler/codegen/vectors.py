# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Squares of vectors: their transposition in registers, and that of matrices block by block."""

from __future__ import annotations

from collections.abc import Sequence

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
    Value,
    module,
)
from mbs_dynamics.compiler.passes.strategy import WIDTH

MIRROR = Prototype("mbs.mirror", VOID, Pointer(DOUBLE), Pointer(DOUBLE), I64)
VECTOR, BITS = f"<{WIDTH} x {DOUBLE}>", f"<{WIDTH} x {I1}>"
LOAD = Prototype(f"llvm.masked.load.v{WIDTH}f64.p0", VECTOR, PTR, I32, BITS, VECTOR)
STORE = Prototype(f"llvm.masked.store.v{WIDTH}f64.p0", VOID, VECTOR, PTR, I32, BITS)


def first_lanes(f: Function, lanes: int, count: Value) -> Value:
    """Emit the mask of so many lanes, the first ones."""
    words = f"<{lanes} x i64>"
    one = f.new(words, f"insertelement {words} poison, {count}, i64 0")
    every = f"shufflevector {one}, {words} poison, <{lanes} x i32> zeroinitializer"
    numbers = ", ".join(f"i64 {k}" for k in range(lanes))
    bits = f"icmp sgt {f.new(words, every)}, <{numbers}>"
    return f.new(f"<{lanes} x i1>", bits)


def transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
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


def emit_mirror() -> str:
    """Return the IR of ``void mbs.mirror(source, target, size)``.

    It sets target[k, i] = source[i, k] for all i < k, of matrices (size, size). A vector that is
    stored down a column takes as long as ten along rows; so blocks are transposed in registers.
    """
    f = Function(MIRROR, exported=True)
    _, _, size = f.parameters
    with f.loop(0, size, WIDTH) as k, f.loop(0, k + 1, WIDTH) as i:
        with f.if_((i < k) & (k + WIDTH <= size)):
            _mirror_block(f, i, k)
        with f.else_():
            _mirror_part(f, i, k)
    f.ret()
    return module([f])


def _mirror_block(f: Function, i: Value, k: Value) -> None:
    """Emit the move of a whole block to the rows from k on and the columns from i on."""
    source, target, size = f.parameters
    loaded = [source.at((i + n) * size + k).load(VECTOR, 8) for n in range(WIDTH)]
    for n, row in enumerate(transposed(f, loaded)):
        target.at((k + n) * size + i).store(row, 8)


def _mirror_part(f: Function, i: Value, k: Value) -> None:
    """Emit the same of what belongs to the matrix and is below its diagonal."""
    source, target, size = f.parameters
    zeros = Value(f, VECTOR, "zeroinitializer")
    loaded = []
    for n in range(WIDTH):
        mask = first_lanes(f, WIDTH, f.select(i + n < size, size - k, 0))
        at = source.at((i + n) * size + k)
        loaded.append(f.call(LOAD, at, 8, mask, zeros))
    for n, row in enumerate(transposed(f, loaded)):
        mask = first_lanes(f, WIDTH, f.select(k + n < size, k + n - i, 0))
        at = target.at((k + n) * size + i)
        f.call(STORE, row, at, 8, mask)
