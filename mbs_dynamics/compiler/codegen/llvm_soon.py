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

AHEAD = 8 * LINE

ANNOUNCE = """\
define internal void @mbs.announce{write}(ptr %port, i64 %i) nounwind {{
entry:
  %address = load ptr, ptr %port
  %by_state.at = getelementptr i64, ptr %port, i64 1
  %by_state = load i64, ptr %by_state.at
  %by_entry.at = getelementptr i64, ptr %port, i64 2
  %by_entry = load i64, ptr %by_entry.at
  %size.at = getelementptr i64, ptr %port, i64 3
  %size = load i64, ptr %size.at
  %in.rows = icmp eq i64 %by_entry, 8
  %least = select i1 %in.rows, i64 {least}, i64 1
  %most = select i1 %in.rows, i64 {most}, i64 %size
  %enough = icmp sge i64 %size, %least
  %few = icmp sle i64 %size, %most
  %some = and i1 %enough, %few
  br i1 %some, label %begin, label %end
begin:
  %offset = mul i64 %i, %by_state
  %base = getelementptr i8, ptr %address, i64 %offset
  %later = getelementptr i8, ptr %base, i64 {ahead}
  %bytes = mul i64 %by_state, {lanes}
  %lines = sdiv i64 %bytes, {line}
  %count = select i1 %in.rows, i64 %lines, i64 %size
  %step = select i1 %in.rows, i64 {line}, i64 %by_entry
  %from = select i1 %in.rows, ptr %base, ptr %later
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %line, label %end
line:
  %k = phi i64 [ 0, %begin ], [ %next, %line ]
  %at.offset = mul i64 %k, %step
  %at = getelementptr i8, ptr %from, i64 %at.offset
  call void @llvm.prefetch.p0(ptr %at, i32 {write}, i32 3, i32 1)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %line, label %end
end:
  ret void
}}
"""
"""IR that announces what is going to be read or written, so that memory is fetched meanwhile.

Rows that are written are announced before the body of their own tile runs. For short ones it is not
worth it, and for long ones the body would wait: see :data:`PART`. Where each entry of all states
lies together, there may be more streams than the processor follows by itself, and each takes one
line in a tile: those are announced some tiles before.
"""

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
