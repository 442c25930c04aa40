# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The LLVM emitter of programs with loops: turns as functions, and the loops around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.tracing.llvm_body import WIDTH, Body, output_pointer
from mbs_dynamics.tracing.llvm_memory import (
    MASKED,
    NO_MEMORY,
    byte_table,
    emit_ahead,
    emit_memory,
)
from mbs_dynamics.tracing.llvm_mirror import emit_mirror
from mbs_dynamics.tracing.llvm_room import room_of
from mbs_dynamics.tracing.llvm_turns import TurnBody
from mbs_dynamics.tracing.loop_pairs import grouped, roots_of
from mbs_dynamics.tracing.loop_program import LoopProgram, Step, Turn, columns_of, twins_of
from mbs_dynamics.tracing.loops import (
    ALL,
    BELOW,
    BEYOND,
    COLUMNS,
    EACH,
    INWARD,
    LOAD,
    OUTWARD,
    OWN,
    PAIRS,
    ROWS,
    SINCE,
    STATE,
)
from mbs_dynamics.tracing.program import Program

def emit_loops(program: LoopProgram, lanes: int = 1) -> str:
    """Return LLVM IR of a program with loops; see :mod:`mbs_dynamics.tracing.llvm_body`."""
    return Main(program, lanes).emit()


class Main(Body):
    """The body of the program's function, or of one whose values of rows are kept by its caller.

    ``apart`` names the values of rows for which there is a place then.
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
        self.groups = list(grouped(program, lanes))
        twins = twins_of(step for steps in self.groups for step in steps)
        self.room = room_of(program, lanes, blocks, twins, apart)

    def emit(self) -> str:
        """Return the IR of the program: tables, functions of turns, and the function itself."""
        program = self.program
        self._tables()
        self.lines.append("entry:")
        self.pointers(program)
        heap = not self.room.apart and self._memory()
        self._zeros()
        if program.angles:
            self._steps([Step(ROWS, OUTWARD, ALL, program.early)], ())
            self._sines_and_cosines()
        for steps in self.groups:
            mirrored = self._mirrored(steps)
            in_order = all(step.span == SINCE and step.direction == OUTWARD for step in steps)
            self._steps(steps, mirrored if in_order else ())
            if mirrored and not in_order:
                self._mirror_all(self._moves(mirrored))
        self._outputs_in_order()
        status = self._status()
        if heap:
            self.lines.append("  call void @free(ptr %heap)")
        self.lines.append(f"  ret i32 {status}")
        if heap:
            self.lines += ["full:", f"  ret i32 {NO_MEMORY}"]
        parameters = "ptr %ports"
        if self.room.apart:
            parameters += ", ptr %values, ptr %memory"
        head = f"define i32 @{program.name}({parameters}) nounwind {{"
        return "\n".join(
            [*self.globals, *self.functions, head, *self.lines, "}", self.declarations(), MASKED]
        )

    # -- memory ----------------------------------------------------------------------------------

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
        self._table("roots", np.array(roots_of(forest), dtype=np.int64))
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
            self._zero(self._of_rows(first), room.stride)
        for slot in self._read_beyond() if self.lanes == 1 and not room.apart else ():
            end = self.entry(self._of_rows(slot), self.forest.count)
            self._zero(end, room.stride - self.forest.count)
        for number, (direction, size) in program.blocks.items():
            rows = columns_of(direction, self.forest.parents)[1]
            self._zero(self.entry("%memory", room.blocks[number]), rows * size * room.stride)
        for number, (*_, size) in enumerate(program.matrices):
            if (number,) in room.outputs:
                if not (self.forest.is_chain and program.fills(number)):
                    self._zero(output_pointer(room.outputs[number,]), size)
            elif not self.forest.is_chain or number in program.matrix_homes:
                self._zero(self.entry("%memory", room.matrices[number]), size)
            if number in room.twins and not self.forest.is_chain:
                self._zero(self.entry("%memory", room.twins[number]), size)

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

    def _zero(self, at: str, count: int) -> None:
        size = 8 * self.lanes * count
        self.lines.append(f"  call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 false)")

    # -- loops -----------------------------------------------------------------------------------

    def _label(self) -> str:
        self._labels += 1
        return f"l{self._labels}"

    def _function(self, step: Step, turn: Turn) -> str:
        """Return the name of the function of a turn; turns that do the same share one."""
        below = step.span == BELOW
        key = step.sort, below, turn.signature
        if key not in self._shared:
            name = self._shared[key] = f'@"{self.names}.turn{len(self._shared)}"'
            body = TurnBody(self.program, self.room, step.sort, self.lanes, below=below)
            self.functions.append(body.emit(name, turn))
        return self._shared[key]

    def _steps(self, steps: Sequence[Step], mirrored: Sequence[int]) -> None:
        """Emit a loop over the rows, and in a turn what each step does for one of its kind.

        In matrices that are ``mirrored``, moves to below the diagonal are made while rows come in
        order. Processors do not expect what these write next, so it is announced a state before.
        """
        name, last = self._label(), self.forest.count - 1
        first, by, over = (0, 1, last) if steps[0].direction == OUTWARD else (last, -1, 0)
        if not self.forest.count:
            return
        moves = self._moves(mirrored)
        self.lines += [
            f"  br label %{name}.from",
            f"{name}.from:",
            f"  br label %{name}",
            f"{name}:",
            f"  %{name}.i = phi i64 [ {first}, %{name}.from ], [ %{name}.next, %{name}.turned ]",
        ]
        for step in steps:
            self._turn(step, f"%{name}.i")
        if moves:
            self._mirror_turn(name, moves)
        self.lines += [f"  br label %{name}.turned", f"{name}.turned:"]
        outputs = [self.room.outputs.get((number,)) for number in mirrored]
        for output in [output for output in outputs if output and self.room.apart]:
            size, pointer = self.program.next_of(output)
            at = self.new(f"getelementptr ptr, ptr %ports, i64 {pointer}")
            at = self.new(f"load ptr, ptr {at}")
            emit_ahead(self, at, size, f"%{name}.i", self.forest.count)
        self.lines += [
            f"  %{name}.next = add i64 %{name}.i, {by}",
            f"  %{name}.over = icmp eq i64 %{name}.i, {over}",
            f"  br i1 %{name}.over, label %{name}.end, label %{name}",
            f"{name}.end:",
        ]

    def _turn(self, step: Step, i: str) -> None:
        """Emit the call of what a step does for a row."""
        sort, span, name = step.sort, step.span, self._label()
        functions = {kind: self._function(step, turn) for kind, turn in step.turns.items()}
        p, end = self._number("parents", i), self._number("ends", i)
        begin = "0"
        if span == BELOW:
            begin, end = self._number("roots", i), i
        elif sort == PAIRS:
            begin = self.new(f"add i64 {i}, 1")
        elif sort == COLUMNS and span != ALL:
            begin = i
        if sort == COLUMNS and span != BEYOND:
            end = str(self.forest.count)
        arguments = f"ptr %memory, ptr %ports, i64 {i}, i64 {p}, i64 {begin}, i64 {end}"
        if self.room.apart:
            arguments += ", ptr %values"
        if sort == PAIRS:
            some = self.new(f"icmp slt i64 {begin}, {end}")
            self.lines += [
                f"  br i1 {some}, label %{name}.call, label %{name}.done",
                f"{name}.call:",
                f"  call void {functions[min(functions)]}({arguments})",
                f"  br label %{name}.done",
            ]
        else:
            self._call_by_kind(name, i, functions, arguments)
        self.lines.append(f"{name}.done:")

    def _mirrored(self, steps: Sequence[Step]) -> list[int]:
        """Return the matrices in which what is above a diagonal is then moved to below it."""
        moved = {
            number
            for step in steps
            if self.lanes == 1 and step.sort != ROWS and step.span != BELOW
            for turn in step.turns.values()
            for number in turn.mirrored(OWN if step.sort == PAIRS else EACH)
        }
        return sorted(moved)

    def _moves(self, matrices: Sequence[int]) -> list[tuple[str, str]]:
        """Emit the addresses from which and to which it is moved."""
        found = []
        for number in matrices:
            port, twin = self.room.outputs.get((number,)), self.room.twins.get(number)
            kept = self.room.matrices.get(number, 0)
            to = self.entry("%memory", kept) if port is None else output_pointer(port)
            found.append((to if twin is None else self.entry("%memory", twin), to))
        return found

    def _mirror(self, moves: Sequence[tuple[str, str]], rows: int, first: str) -> None:
        """Emit the moves to so many rows from a first one on."""
        name = f'@"{self.names}.mirror{rows}"'
        if name not in self._shared:
            self._shared[name] = name
            self.functions.append(emit_mirror(name, self.forest.count, rows))
        for from_, to in moves:
            self.lines.append(f"  call void {name}(ptr {from_}, ptr {to}, i64 {first})")

    def _mirror_turn(self, name: str, moves: Sequence[tuple[str, str]]) -> None:
        """Emit the moves to the rows that come before the row of a turn, once there are eight."""
        rest = self.forest.count % WIDTH
        i = f"%{name}.i"
        place = self.new(f"and i64 {i}, {WIDTH - 1}")
        full = self.new(f"icmp eq i64 {place}, {WIDTH - 1}")
        self.lines += [
            f"  br i1 {full}, label %{name}.panel, label %{name}.no",
            f"{name}.panel:",
        ]
        self._mirror(moves, WIDTH, self.new(f"sub i64 {i}, {WIDTH - 1}"))
        self.lines += [f"  br label %{name}.no", f"{name}.no:"]
        if rest:
            last = self.new(f"icmp eq i64 {i}, {self.forest.count - 1}")
            self.lines += [
                f"  br i1 {last}, label %{name}.rest, label %{name}.mirrored",
                f"{name}.rest:",
            ]
            self._mirror(moves, rest, str(self.forest.count - rest))
            self.lines += [f"  br label %{name}.mirrored", f"{name}.mirrored:"]

    def _mirror_all(self, moves: Sequence[tuple[str, str]]) -> None:
        """Emit the moves to all rows."""
        name, _ = self._counted(self.forest.count)
        self._mirror_turn(name, moves)
        self._turned(name, self.forest.count)

    def _call_by_kind(self, name: str, i: str, functions: dict[int, str], arguments: str) -> None:
        kind = self._number("kinds", i)
        cases = " ".join(f"i64 {k}, label %{name}.{k}" for k in functions)
        self.lines.append(f"  switch i64 {kind}, label %{name}.done [ {cases} ]")
        for k, function in functions.items():
            self.lines += [
                f"{name}.{k}:",
                f"  call void {function}({arguments})",
                f"  br label %{name}.done",
            ]

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

    # -- before and after ------------------------------------------------------------------------

    def _sines_and_cosines(self) -> None:
        """Emit the sines and cosines of all rows, as many at once as fit."""
        size = WIDTH if self.lanes == 1 else self.lanes
        count = -(-self.forest.count // WIDTH) if self.lanes == 1 else self.forest.count
        pair = self.new(f"alloca [{2 * size} x double], align {8 * size}")
        vector = f"<{size} x double>"
        cosines = self.new(f"getelementptr double, ptr {pair}, i64 {size}")
        for first in self.program.angles:
            name, i = self._counted(count)
            angle = self._of_rows(first)
            at = self.new(f"getelementptr {vector}, ptr {angle}, i64 {i}")
            x = self.new(f"load {vector}, ptr {at}, align 8")
            self.lines.append(f"  call void @mbs.sincos{size}({vector} {x}, ptr {pair})")
            for k, source in ((1, pair), (2, cosines)):
                value = self.new(f"load {vector}, ptr {source}, align 8")
                to = self._of_rows(first + k)
                to = self.new(f"getelementptr {vector}, ptr {to}, i64 {i}")
                self.lines.append(f"  store {vector} {value}, ptr {to}, align 8")
            self._turned(name, count)

    def _outputs_in_order(self) -> None:
        """Copy outputs in which rows stand in another order than here."""
        program, room, count = self.program, self.room, self.forest.count
        for slot, home in program.slot_homes.items():
            if slot not in room.outputs:
                name, i = self._counted(count)
                from_ = self._entry_at(self._of_rows(slot), i)
                to = self._entry_at(output_pointer(home.port), self._place(home.by, i))
                self._copy(from_, to)
                self._turned(name, count)
        for number, home in program.matrix_homes.items():
            if (number,) in room.outputs:
                continue
            by_row, by_column, by_entry, size = program.matrices[number]
            rows, i = self._counted(count)
            columns, j = self._counted(count)
            a, b = self._place(home.by, i), self._place(home.across, j)
            here = self._offset((i, by_row), (j, by_column))
            there = self._offset((a, by_row), (b, by_column))
            for k in range(size // count**2):
                from_ = self.entry("%memory", room.matrices[number] + k * by_entry)
                to = self.entry(output_pointer(home.port), k * by_entry)
                self._copy(self._entry_at(from_, here), self._entry_at(to, there))
            self._turned(columns, count)
            self._turned(rows, count)

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

    def _status(self) -> str:
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
