# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The ends of LLVM IR with loops: outputs that are put together, and the status."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.compiler.codegen.llvm_body import output_pointer
from mbs_dynamics.compiler.codegen.llvm_sums import Sums
from mbs_dynamics.compiler.frontend.loop_program import Home
from mbs_dynamics.compiler.frontend.loops import INWARD


class LoopEnds(Sums):
    """A body that hands out what loops have left in the memory."""

    def outputs_in_order(self) -> None:
        """Copy outputs in which rows stand in another order than here."""
        program, room = self.program, self.room
        self._numbers()
        for slot, home in program.slot_homes.items():
            if slot not in room.outputs:
                placed = program.rows_of(home.by)
                name, i = self._counted(len(placed))
                i = i if placed.start == 0 else self.new(f"add i64 {i}, {placed.start}")
                from_ = self._entry_at(self._of_rows(slot), i)
                to = self.entry(output_pointer(home.port), home.first)
                row = self.new(f"mul i64 {self._place(home.by, i)}, {home.strides[0]}")
                self._take(home, from_, self._entry_at(to, row), self._product(home, i))
                self._turned(name, len(placed))
        for number, home in program.matrix_homes.items():
            if (number,) not in room.outputs:
                self._matrix_in_order(number, home)
            if home.symmetric:
                self._turn_over(home)

    def _matrix_in_order(self, number: int, home: Home) -> None:
        by_row, by_column, by_entry, _ = self.program.matrices[number]
        if self._is_sum_of_square(number, home):
            at, weights = self.program.places[home.by], next(iter(home.factors), None)
            to = self.entry(output_pointer(home.port), home.first)
            self.sum_matrix(number, at, weights, to, home.strides[0])
            return
        own = len(self.program.rows_of(home.by))
        across = self.program.rows_of(home.across)
        rows, i = self._counted(own)
        columns, k = self._counted(len(across))
        j = k if across.start == 0 else self.new(f"add i64 {k}, {across.start}")
        a, b = self._place(home.by, i), self._place(home.across, j)
        here = self._offset((i, by_row), (k, by_column))
        there = self._offset((a, home.strides[0]), (b, home.strides[1]))
        factor = self._product(home, i, j)
        for entry in range(self.program.entries(number)):
            place = int(self.program.places[home.by][entry]) if home.is_cube else entry
            from_ = self.entry("%memory", self.room.matrices[number] + entry * by_entry)
            to = self.entry(output_pointer(home.port), home.first + place * home.strides[2])
            third = factor and self._product(home, i, j, str(entry)) if home.is_cube else factor
            self._take(home, self._entry_at(from_, here), self._entry_at(to, there), third)
        self._turned(columns, len(across))
        self._turned(rows, own)

    def _is_sum_of_square(self, number: int, home: Home) -> bool:
        """Whether rows and columns of a matrix of scalars are added up and multiplied alike."""
        (_, by_column, *_), places = self.program.matrices[number], self.program.places[home.by]
        alike = home.by == home.across and len(home.factors) in (0, 2) and bool((places >= 0).all())
        one = self.program.entries(number) == by_column == home.strides[1] == 1
        return home.is_sum and alike and one and not home.is_cube

    def _product(self, home: Home, *rows: str) -> str | None:
        """Emit the product of the factors of a row, a column and an entry, if there are any."""
        found = None
        for table, row in zip(home.factors, rows, strict=False):
            factor = self.of_table(table, row)
            found = factor if found is None else self.new(f"fmul double {found}, {factor}")
        return found and self.in_all_lanes(found)

    def _take(self, home: Home, from_: str, to: str, factor: str | None) -> None:
        """Emit the copy of an entry, multiplied and added as its home says."""
        value = self.new(f"load {self.real}, ptr {from_}, align 8")
        if factor:
            value = self.new(f"fmul {self.real} {value}, {factor}")
        if home.is_sum:
            before = self.new(f"load {self.real}, ptr {to}, align 8")
            value = self.new(f"fadd {self.real} {before}, {value}")
        self.lines.append(f"  store {self.real} {value}, ptr {to}, align 8")

    def _turn_over(self, home: Home) -> None:
        """Emit the copy of what is above the diagonal of a sum to below it."""
        size = int(self.program.places[home.by].max()) + 1
        rows, i = self._counted(size)
        columns, j = self._counted(size)
        above = self.new(f"icmp slt i64 {i}, {j}")
        from_, to = (
            self._entry_at(
                self.entry(output_pointer(home.port), home.first),
                self._offset((a, home.strides[0]), (b, home.strides[1])),
            )
            for a, b in ((i, j), (j, i))
        )
        at = self.new(f"select i1 {above}, ptr {to}, ptr {from_}")
        self._copy(from_, at)
        self._turned(columns, size)
        self._turned(rows, size)

    def _numbers(self) -> None:
        """Fill outputs that are put together, or of which only the rows of some bodies are set.

        An output of which nothing is kept here is that of the other half of a program.
        """
        program = self.program
        sizes = {number: size for number, (*_, size) in enumerate(program.matrices)}
        homes = [(home.port, sizes[number]) for number, home in program.matrix_homes.items()]
        of_rows = program.slot_homes.values()
        homes += [(home.port, len(program.rows_of(home.by))) for home in of_rows]
        every = (*program.slot_homes.values(), *program.matrix_homes.values())
        sums = {home.port for home in every if home.is_sum}
        for port in program.outputs:
            kept = [size for name, size in homes if name == port.name]
            if (sum(kept) == port.size and port.name not in sums) or not kept:
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
