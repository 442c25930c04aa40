# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The ends of LLVM IR with loops: outputs that are put together, and the status."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.compiler.codegen.llvm_body import output_pointer
from mbs_dynamics.compiler.codegen.llvm_loop_body import LoopBody
from mbs_dynamics.compiler.frontend.loop_program import Home
from mbs_dynamics.compiler.frontend.loops import INWARD


class LoopEnds(LoopBody):
    """A body that hands out what loops have left in the memory."""

    def outputs_in_order(self) -> None:
        """Copy outputs in which rows stand in another order than here."""
        program, room = self.program, self.room
        self._numbers()
        for slot, home in program.slot_homes.items():
            if slot not in room.outputs:
                name, i = self._counted(self.forest.count)
                from_ = self._entry_at(self._of_rows(slot), i)
                to = self.entry(output_pointer(home.port), home.first)
                row = self.new(f"mul i64 {self._place(home.by, i)}, {home.strides[0]}")
                self._copy(from_, self._entry_at(to, row))
                self._turned(name, self.forest.count)
        for number, home in program.matrix_homes.items():
            if (number,) not in room.outputs:
                self._matrix_in_order(number, home)

    def _matrix_in_order(self, number: int, home: Home) -> None:
        by_row, by_column, by_entry, _ = self.program.matrices[number]
        count = self.forest.count
        rows, i = self._counted(count)
        columns, j = self._counted(count)
        a, b = self._place(home.by, i), self._place(home.across, j)
        here = self._offset((i, by_row), (j, by_column))
        there = self._offset((a, home.strides[0]), (b, home.strides[1]))
        for entry in range(self.program.entries(number)):
            from_ = self.entry("%memory", self.room.matrices[number] + entry * by_entry)
            to = self.entry(output_pointer(home.port), home.first + entry * home.strides[2])
            self._copy(self._entry_at(from_, here), self._entry_at(to, there))
        self._turned(columns, count)
        self._turned(rows, count)

    def _numbers(self) -> None:
        """Fill outputs that are put together, or of which only the rows of some bodies are set.

        An output of which nothing is kept here is that of the other half of a program.
        """
        program = self.program
        sizes = {number: size for number, (*_, size) in enumerate(program.matrices)}
        homes = [(home.port, sizes[number]) for number, home in program.matrix_homes.items()]
        of_rows = program.slot_homes.values()
        homes += [(home.port, self.forest.count) for home in of_rows]
        for port in program.outputs:
            kept = [size for name, size in homes if name == port.name]
            if sum(kept) == port.size or not kept:
                continue
            self.zero(output_pointer(port.name), port.size)
            table = program.numbers.get(port.name, np.zeros(0))
            at = np.flatnonzero(table)
            if not len(at):
                continue
            self._table(f"at.{port.name}", at)
            self._table(f"numbers.{port.name}", table[at])
            name, k = self._counted(len(at))
            to = self._entry_at(output_pointer(port.name), self._number(f"at.{port.name}", k))
            x = self.new(f'getelementptr double, ptr @"{self.names}.numbers.{port.name}", i64 {k}')
            value = self.in_all_lanes(self.new(f"load double, ptr {x}"))
            self.lines.append(f"  store {self.real} {value}, ptr {to}, align 8")
            self._turned(name, len(at))

    def status_of_rows(self) -> str:
        """Emit the number of the first guard that fails, or 0; see :meth:`Body.status`."""
        if not self.program.guard_slots:
            return "0"
        count = self.forest.count
        number = self.type("i32")
        status = "zeroinitializer" if self.lanes > 1 else "0"
        for k, (slot, direction) in reversed(list(enumerate(self.program.guard_slots))):
            forwards = direction == INWARD  # the first one is said, and so found last
            name, i = self._counted(count, backwards=not forwards)
            before = f"%{name}.status"
            self.lines.append(
                f"  {before} = phi {number} [ {status}, %{name}.from ], "
                f"[ %{name}.found, %{name}.turned ]"
            )
            at = self._entry_at(self._of_rows(slot), i)
            x = self.new(f"load {self.real}, ptr {at}, align 8")
            good = self.new(f"fcmp ogt {self.real} {x}, {self.constant(0.0)}")
            rank = self.new(f"sub i64 {(k + 1) * count}, {i}") if forwards else None
            rank = rank or self.new(f"add i64 {k * count + 1}, {i}")
            rank = self.new(f"trunc i64 {rank} to i32")
            if self.lanes > 1:
                one = self.new(f"insertelement {number} poison, i32 {rank}, i64 0")
                zeros = f"<{self.lanes} x i32> zeroinitializer"
                rank = self.new(f"shufflevector {number} {one}, {number} poison, {zeros}")
            self.set(
                f"%{name}.found", f"select {self.bit} {good}, {number} {before}, {number} {rank}"
            )
            self._turned(name, count, backwards=not forwards)
            status = f"%{name}.found"
        return self.said(status, len(self.program.inputs) + len(self.program.outputs))
