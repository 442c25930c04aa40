# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Memory and tables of programs that are more than one basic block, in LLVM IR."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.compiler.passes.strategy import STACK

ALIGNED = 64
"""Bytes at multiples of which vectors stand."""

NO_MEMORY = -1
"""What a function returns where the heap has none."""


def emit_memory(size: int) -> tuple[list[str], bool]:
    """Return the lines that make ``%memory``, and whether it is taken from the heap.

    Then ``%heap`` is to be freed, and where there is none they go on at the label full.
    """
    if size <= STACK:
        return [f"  %memory = alloca i8, i64 {size}, align {ALIGNED}"], False
    return [
        f"  %heap = call ptr @malloc(i64 {size + ALIGNED})",
        "  %none = icmp eq ptr %heap, null",
        "  br i1 %none, label %full, label %begin",
        "begin:",
        "  %heap.at = ptrtoint ptr %heap to i64",
        f"  %heap.up = add i64 %heap.at, {ALIGNED - 1}",
        f"  %heap.even = and i64 %heap.up, -{ALIGNED}",
        "  %memory = inttoptr i64 %heap.even to ptr",
    ], True


def byte_table(name: str, table: np.ndarray[Any, Any]) -> str:
    """Return the IR of a constant array of bytes."""
    data = np.ascontiguousarray(table).tobytes()
    text = "\\" + data.hex("\\") if data else ""
    return f'@"{name}" = private constant [{len(data)} x i8] c"{text}", align 64'
