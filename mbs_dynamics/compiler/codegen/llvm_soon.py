# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What is announced between the operations of vector code: memory that the results then go to.

Results of a tile are written after its body has run. Meanwhile the memory is idle, and a part of
the lines can be on their way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbs_dynamics.compiler.codegen.llvm_body import Body

LINE = 64
"""Bytes of a line of the cache."""

LONG = 16
"""Rows of more vectors than these are long: eight of them take much of the first cache."""

PART = 0.25
"""So much of a tile is announced, the first lines of each row. The rest is better announced while
rows are written, when the processor waits for the memory anyway.

Measured for matrices and derivatives of humanoids: a quarter to a half takes 0.87 to 0.97 of the
time of none, and all lines as long as none. They go to the second cache: what the body works on is
in the first.
"""

MOST = 1 << 18
"""Bytes of a tile of which a part is announced. For larger ones it takes as long as without."""

APART = 8
"""At least so many operations of the body to each line that is announced."""

Announced = Sequence[tuple[int, int]]
"""Outputs with distances in bytes from the first result of a tile."""


def announced(sizes: Sequence[int], lanes: int, operations: int) -> Announced:
    """Return what a body of so many operations announces of outputs with so many entries, in order.

    One line of each row after the other: processors write into several pages sooner than into one.
    """
    if 8 * lanes * sum(sizes) > MOST:
        return []
    rows = range(lanes)
    found = [
        (output, 8 * size * row + LINE * line)
        for output, size in enumerate(sizes)
        if size > LONG * lanes
        for line in range(int(PART * 8 * size / LINE))
        for row in rows
    ]
    return found[: operations // APART]


class Announcing:
    """Emits announcements in the body of a program with so many inputs and outputs, bit by bit.

    Where the results of a tile begin is said behind the addresses of ports and status.
    """

    def __init__(self, body: Body, ports: int, announced: Announced) -> None:
        self._body, self._announced, self._done = body, announced, 0
        self._first: dict[int, str] = {}
        for output in sorted({output for output, _ in announced}):
            at = body.new(f"getelementptr ptr, ptr %ports, i64 {ports + 1 + output}")
            self._first[output] = body.new(f"load ptr, ptr {at}")

    def until(self, done: int, of: int) -> None:
        """Emit what belongs to so many parts of the body, but for what has been emitted."""
        end = len(self._announced) * done // of
        for output, distance in self._announced[self._done : end]:
            at = self._body.new(f"getelementptr i8, ptr {self._first[output]}, i64 {distance}")
            self._body.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 2, i32 1)")
        self._done = end
