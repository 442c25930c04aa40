# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What functions of programs with loops are made of: tables, memory, plain loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from mbs_dynamics.compiler.codegen.llvm_body import Body, output_pointer
from mbs_dynamics.compiler.codegen.llvm_columns import goes_by_columns
from mbs_dynamics.compiler.codegen.llvm_memory import byte_table, emit_memory
from mbs_dynamics.compiler.codegen.llvm_room import room_of
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, Step, columns_of
from mbs_dynamics.compiler.frontend.loops import (
    COLUMN,
    COLUMNS,
    LOAD,
    PAIRS,
    STATE,
)
from mbs_dynamics.compiler.passes.loop_pairs import grouped


class LoopBody(Body):
    """The body of a function of a program with loops: its tables, its memory, plain loops.

    ``apart`` names the values of rows for which there is a place in a memory of the caller's.
    """

    def __init__(
        self, program: LoopProgram, lanes: int, apart: Iterable[int] | None = None
    ) -> None:
        super().__init__(lanes)
        self.program, self.forest = program, program.forest
        self.ends = self.forest.ends
        self.names = f"{program.name}.{lanes}"
        self.globals: list[str] = []
        self.functions: list[str] = []
        self._shared: dict[Any, str] = {}
        self._labels = 0
        blocks = {}
        for number, (direction, _) in program.blocks.items():
            columns, blocks[number] = columns_of(direction, self.forest.parents)
            self._table(f"columns{number}", columns)
        self.groups = self._runs(list(grouped(program, lanes)))
        self.room = room_of(program, lanes, blocks, apart)

    def _runs(self, groups: list[Sequence[Step]]) -> list[Sequence[Step]]:
        """Return the groups, as one those loops over columns that are taken column by column."""
        found: list[Sequence[Step]] = []
        for wide, run in groupby(groups, lambda steps: steps[0].sort == COLUMNS):
            several = list(run)
            together = [step for steps in several for step in steps]
            if wide and self._are_by_columns(together):
                found.append(together)
            else:
                found += several
        return found

    def _are_by_columns(self, steps: Sequence[Step]) -> bool:
        """Whether these are loops over columns that are taken column by column."""
        return self.lanes == 1 and goes_by_columns(self.program, steps)

    def _tables(self) -> None:
        """Add the constants of the rows, and what says where they and their relatives are."""
        program, forest = self.program, self.forest
        tables = np.zeros((len(program.tables), self.room.stride))
        for row, table in zip(tables, program.tables, strict=True):
            row[: len(table)] = table
        self._table("tables", tables)
        self._table("parents", np.array(forest.parents, dtype=np.int64))
        self._table("kinds", np.array(forest.kinds, dtype=np.int64))
        ends = np.zeros(self.room.stride, dtype=np.int64)  # vectors of it are loaded
        ends[: forest.count] = self.ends
        self._table("ends", ends)
        for name, rows in zip(("roots", "tree.ends"), forest.trees, strict=True):
            self._table(name, rows)
        for name, numbers in program.places.items():
            if not program.in_order(name):
                self._table(name, numbers)

    def _table(self, name: str, table: np.ndarray[Any, Any]) -> None:
        self.globals.append(byte_table(f"{self.names}.{name}", table))

    def _memory(self) -> bool:
        """Emit ``%memory``; return whether it is taken from the heap."""
        lines, heap = emit_memory(8 * self.lanes * self.room.size)
        self.lines += lines
        return heap

    def _zeros(self) -> None:
        """Fill what may be read, or stay, without having been written."""
        room, program = self.room, self.program
        for first in program.angles:
            self.zero(self._of_rows(first), room.stride)
        for slot in self._read_beyond() if self.lanes == 1 and not room.apart else ():
            end = self.entry(self._of_rows(slot), self.forest.count)
            self.zero(end, room.stride - self.forest.count)
        for number in sorted(program.blocks.keys() - self._in_registers()):
            direction, size = program.blocks[number]
            rows = columns_of(direction, self.forest.parents)[1]
            self.zero(self.entry("%memory", room.blocks[number]), rows * size * room.stride)
        for number, (*_, size) in enumerate(program.matrices):
            if (number,) in room.outputs:
                if self._stays_zero(number) and not self._zeroed_by_rows(number):
                    self.zero(output_pointer(room.outputs[number,]), size)
            elif not self.forest.is_chain or number in program.matrix_homes:
                self.zero(self.entry("%memory", room.matrices[number]), size)

    def _in_registers(self) -> set[Any]:
        """Return the blocks of columns that are handed from row to row in registers."""
        return {
            store.place.name
            for steps in self.groups
            if self._are_by_columns(steps)
            for step in steps
            for turn in step.turns.values()
            for store in turn.stores
            if store.place.space == COLUMN
        }

    def _stays_zero(self, number: int) -> bool:
        """Whether a part of an output is not computed."""
        return not (self.forest.is_chain and self.program.fills(number))

    def _zeroed_by_rows(self, number: int) -> bool:
        """Whether an output is filled with zeros row by row, so that memory is written once."""
        return self.lanes == 1 and self.program.comes_by_rows(number)

    def _of_rows(self, slot: int) -> str:
        """Return the address of a value of the first row."""
        return self.entry(self.room.base, self.room.values[slot])

    def _read_beyond(self) -> list[int]:
        """Return the values of which lanes read some that no row has.

        They are not used, but what is left over in memory may look like denormal numbers, which
        take a hundred times as long.
        """
        loads = [
            node.args[0]
            for step in self.program.steps
            if step.sort == PAIRS
            for turn in step.turns.values()
            for node in turn.nodes
            if node.op == LOAD
        ]
        found = {place.name for place in loads if place.space == STATE}
        return sorted(found - self.room.outputs.keys())

    def _label(self) -> str:
        self._labels += 1
        return f"l{self._labels}"

    def _number(self, table: str, i: str) -> str:
        at = self.new(f'getelementptr i64, ptr @"{self.names}.{table}", i64 {i}')
        return self.new(f"load i64, ptr {at}")

    def _counted(self, count: int, *, backwards: bool = False) -> tuple[str, str]:
        """Begin a loop of so many turns; return its label and its counter."""
        name = self._label()
        first = count - 1 if backwards else 0
        self.lines += [
            f"  br label %{name}.from",
            f"{name}.from:",
            f"  br label %{name}",
            f"{name}:",
            f"  %{name}.i = phi i64 [ {first}, %{name}.from ], [ %{name}.next, %{name}.turned ]",
        ]
        return name, f"%{name}.i"

    def _turned(self, name: str, count: int, *, backwards: bool = False) -> None:
        """End such a loop."""
        self.lines += [
            f"  br label %{name}.turned",
            f"{name}.turned:",
            f"  %{name}.next = add i64 %{name}.i, {-1 if backwards else 1}",
            f"  %{name}.over = icmp eq i64 %{name}.i, {0 if backwards else count - 1}",
            f"  br i1 %{name}.over, label %{name}.end, label %{name}",
            f"{name}.end:",
        ]

    def _place(self, by: str, i: str) -> str:
        return i if self.program.in_order(by) else self._number(by, i)

    def _offset(self, *steps: tuple[str, int]) -> str:
        a, b = (self.new(f"mul i64 {k}, {step}") for k, step in steps)
        return self.new(f"add i64 {a}, {b}")

    def _entry_at(self, pointer: str, k: str) -> str:
        return self.new(f"getelementptr {self.real}, ptr {pointer}, i64 {k}")

    def _copy(self, from_: str, to: str) -> None:
        value = self.new(f"load {self.real}, ptr {from_}, align 8")
        self.lines.append(f"  store {self.real} {value}, ptr {to}, align 8")
