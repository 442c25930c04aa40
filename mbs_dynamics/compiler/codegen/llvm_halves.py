# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The LLVM emitter of programs in two halves: rows of several states at once, then state by state.

Matrices do not pass through a scratch area: what is computed for one state goes to where its
results are to stand.
"""

from __future__ import annotations

import re

import numpy as np

from mbs_dynamics.compiler.codegen.llvm_batch import transposed
from mbs_dynamics.compiler.codegen.llvm_body import Body
from mbs_dynamics.compiler.codegen.llvm_loops import Main
from mbs_dynamics.compiler.codegen.llvm_memory import ALIGNED, NO_MEMORY, byte_table, emit_memory
from mbs_dynamics.compiler.codegen.llvm_room import CACHE
from mbs_dynamics.compiler.passes.fission import Halves

FEWEST = 4
"""So few lanes are never halved."""


def emit_halves(name: str, parts: Halves, lanes: int) -> str:
    """Return LLVM IR of ``i32 @<name>(ptr ports)`` for several states, in a program's two halves.

    As in :func:`codegen.llvm_body.emit_llvm`, but for the ports that are direct: there
    stands the address of an array with the addresses of the results of each state.
    """
    return _Joint(parts, lanes).emit(name)


def lanes_of(parts: Halves, most: int) -> int:
    """Return how many states the first half takes at once: half as many if all do not fit.

    Measured for chains of 100 and 200: where their values of rows take more than a fast cache, four
    lanes take 0.8 to 0.95 of the time of eight.
    """
    count = parts.rows.forest.count
    size = 8 * most * (parts.rows.slots + len(parts.between)) * count
    return most // 2 if most > FEWEST and size > CACHE else most


class _Joint(Body):
    """The body of the function that calls both halves."""

    def __init__(self, parts: Halves, lanes: int) -> None:
        super().__init__(lanes)
        self.parts = parts
        self.rows = Main(parts.rows, lanes, range(parts.rows.slots))
        self.wide = Main(parts.wide, 1, parts.between)

    def emit(self, name: str) -> str:
        """Return the IR of the function, and of both halves."""
        rows, wide = self.rows.emit(), self.wide.emit()
        first = _whole_lines(8 * self.lanes * self.rows.room.top)
        each = 8 * self.wide.room.top
        size = first + self.lanes * each + 8 * self.wide.room.size
        lines, heap = emit_memory(size)
        self.lines += ["entry:", *lines]
        status = self.new(f"call i32 @{self.parts.rows.name}(ptr %ports, ptr %memory, ptr %memory)")
        self.set("%values", f"getelementptr i8, ptr %memory, i64 {first}")
        self.set("%rest", f"getelementptr i8, ptr %memory, i64 {first + self.lanes * each}")
        places = [self.lanes * self.rows.room.values[slot] for slot in self.parts.between]
        table = f"{name}.{self.lanes}.between"
        self.set("%local", f"alloca [{len(self.parts.direct)} x ptr], align 8")
        self._turn(table, len(places), each)
        self._states(each)
        if heap:
            self.lines.append("  call void @free(ptr %heap)")
        self.lines.append(f"  ret i32 {status}")
        if heap:
            self.lines += ["full:", f"  ret i32 {NO_MEMORY}"]
        head = f"define i32 @{name}(ptr %ports) nounwind {{"
        text = "\n".join(
            [byte_table(table, np.array(places, dtype=np.int64)), head, *self.lines, "}"]
        )
        return _declared_once("\n".join([rows, wide, text]))

    def _turn(self, table: str, count: int, each: int) -> None:
        """Emit the moves of values of rows from where states are lanes to where rows are.

        ``each`` is how many bytes the values of one state take.
        """
        if not count:
            return
        rows, lanes, stride = self.parts.rows.forest.count, self.lanes, self.wide.room.stride
        self.lines += [
            "  br label %turn",
            "turn:",
            "  br label %value",
            "value:",
            "  %s = phi i64 [ 0, %turn ], [ %s.next, %value.end ]",
            f'  %s.at = getelementptr i64, ptr @"{table}", i64 %s',
            "  %s.place = load i64, ptr %s.at",
            "  %s.from = getelementptr double, ptr %memory, i64 %s.place",
            f"  %s.first = mul i64 %s, {stride}",
            "  %s.to = getelementptr double, ptr %values, i64 %s.first",
        ]
        whole = rows - rows % lanes
        if whole:
            self.lines += [
                "  br label %block",
                "block:",
                "  %r = phi i64 [ 0, %value ], [ %r.next, %block ]",
            ]
            self._block("%r", lanes, each)
            self.lines += [
                f"  %r.next = add i64 %r, {lanes}",
                f"  %r.more = icmp slt i64 %r.next, {whole}",
                "  br i1 %r.more, label %block, label %value.rest",
            ]
        else:
            self.lines.append("  br label %value.rest")
        self.lines.append("value.rest:")
        for first in range(whole, stride, lanes):  # what no row has is read as well
            self._block(str(first), max(0, min(rows - first, lanes)), each)
        self.lines += [
            "  br label %value.end",
            "value.end:",
            "  %s.next = add i64 %s, 1",
            f"  %s.more = icmp slt i64 %s.next, {count}",
            "  br i1 %s.more, label %value, label %turned",
            "turned:",
        ]

    def _block(self, first: str, count: int, each: int) -> None:
        """Emit the move of so many rows, and zeros for those that are left of a vector."""
        vectors = ["zeroinitializer"] * self.lanes
        at = self.new(f"getelementptr {self.real}, ptr %s.from, i64 {first}")
        for k in range(count):
            vectors[k] = self.new(f"load {self.real}, ptr {self.entry(at, k)}, align 8")
        if count:
            vectors = transposed(self.new, self.lanes, vectors)
        to = self.new(f"getelementptr double, ptr %s.to, i64 {first}")
        for k, x in enumerate(vectors):
            at = self.new(f"getelementptr i8, ptr {to}, i64 {k * each}")
            self.lines.append(f"  store {self.real} {x}, ptr {at}, align 8")

    def _states(self, each: int) -> None:
        """Emit the loop over the states, each with the addresses of its results."""
        self.lines += [
            "  br label %before",
            "before:",
            "  br label %state",
            "state:",
            "  %k = phi i64 [ 0, %before ], [ %k.next, %state ]",
        ]
        for port in np.flatnonzero(self.parts.direct):
            at = self.new(f"getelementptr ptr, ptr %ports, i64 {port}")
            at = self.new(f"load ptr, ptr {at}")
            at = self.new(f"getelementptr ptr, ptr {at}, i64 %k")
            to = self.new(f"getelementptr ptr, ptr %local, i64 {port}")
            self.lines.append(f"  store ptr {self.new(f'load ptr, ptr {at}')}, ptr {to}")
        at = self.new(f"mul i64 %k, {each}")
        at = self.new(f"getelementptr i8, ptr %values, i64 {at}")
        self.lines += [
            f"  %none.{self.parts.wide.name} = call i32 @{self.parts.wide.name}"
            f"(ptr %local, ptr {at}, ptr %rest)",
            "  %k.next = add i64 %k, 1",
            f"  %k.more = icmp slt i64 %k.next, {self.lanes}",
            "  br i1 %k.more, label %state, label %end",
            "end:",
        ]


def _whole_lines(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _declared_once(text: str) -> str:
    """Return IR in which nothing is declared again."""
    pattern = re.compile(r"^declare [^@]*@([\w.]+)\(.*?\)[^)\n]*\n", re.M | re.S)
    known: set[str] = set()

    def first(found: re.Match[str]) -> str:
        new = found[1] not in known
        known.add(found[1])
        return found[0] if new else ""

    return pattern.sub(first, text + "\n")
