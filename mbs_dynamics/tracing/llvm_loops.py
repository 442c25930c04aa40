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

from typing import Any

import numpy as np

from mbs_dynamics.tracing.llvm_body import WIDTH, output_pointer
from mbs_dynamics.tracing.llvm_loop_ends import LoopEnds
from mbs_dynamics.tracing.llvm_memory import MASKED, NO_MEMORY, emit_memory
from mbs_dynamics.tracing.llvm_mirror import emit_mirror
from mbs_dynamics.tracing.llvm_turns import TurnBody, room_of
from mbs_dynamics.tracing.loop_program import LoopProgram, Step, Turn, columns_of
from mbs_dynamics.tracing.loops import (
    ALL,
    BEYOND,
    COLUMNS,
    EACH,
    LOAD,
    OUTWARD,
    OWN,
    PAIRS,
    ROWS,
    STATE,
    TRIPLES,
)
from mbs_dynamics.tracing.program import Program

CACHE = 1 << 20
"""Bytes of a cache that is still fast: several states at once have to fit. Measured for chains."""


def emit_loops(program: LoopProgram, lanes: int = 1) -> str:
    """Return LLVM IR of a program with loops; see :mod:`mbs_dynamics.tracing.llvm_body`."""
    return _Main(program, lanes).emit()


def is_worth_lanes(program: Program, lanes: int) -> bool:
    """Whether several states at once take less time than one after the other.

    Loops over pairs and columns fill the lanes with one state, and need less memory for that.
    """
    if not isinstance(program, LoopProgram) or not program.has_wide_loops:
        return True
    room = sum(columns_of(way, program.forest.parents)[1] for way, _ in program.blocks.values())
    count = program.forest.count
    size = program.slots * count + sum(size for *_, size in program.matrices) + 6 * room * count
    return 8 * lanes * size <= CACHE


class _Main(LoopEnds):
    """The body of the program's function."""

    def __init__(self, program: LoopProgram, lanes: int) -> None:
        super().__init__(program, lanes)
        self.ends = self.forest.ends
        self.functions: list[str] = []
        self._shared: dict[Any, str] = {}
        blocks = {}
        for number, (direction, _) in program.blocks.items():
            columns, blocks[number] = columns_of(direction, self.forest.parents)
            self.table(f"columns{number}", columns)
        self.room = room_of(program, blocks)

    def emit(self) -> str:
        """Return the IR of the program: tables, functions of turns, and the function itself."""
        program = self.program
        self._tables()
        self.lines.append("entry:")
        self.pointers(program)
        heap = self._memory()
        self._zeros()
        if program.angles:
            self._step(ROWS, OUTWARD, ALL, program.early)
            self._sines_and_cosines()
        for step in program.steps:
            self._step(step.sort, step.direction, step.span, step.turns)
            if self.lanes == 1 and step.sort != ROWS:
                self._mirror(step)
        self.outputs_in_order()
        status = self.status_of_rows()
        if heap:
            self.lines.append("  call void @free(ptr %heap)")
        self.lines.append(f"  ret i32 {status}")
        if heap:
            self.lines += ["full:", f"  ret i32 {NO_MEMORY}"]
        head = f"define i32 @{program.name}(ptr %ports) nounwind {{"
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
        self.table("tables", tables)
        self.table("parents", np.array(forest.parents, dtype=np.int64))
        self.table("kinds", np.array(forest.kinds, dtype=np.int64))
        self.table("ends", np.array(self.ends, dtype=np.int64))
        for name, numbers in program.places.items():
            if not program.in_order(name):
                self.table(name, numbers)

    def _memory(self) -> bool:
        """Emit ``%memory``; return whether it is taken from the heap."""
        lines, heap = emit_memory(8 * self.lanes * self.room.size)
        self.lines += lines
        return heap

    def _zeros(self) -> None:
        """Fill what may be read, or stay, without having been written."""
        room, program = self.room, self.program
        for first in program.angles:
            self.zero(self.entry("%memory", first * room.stride), room.stride)
        for slot in self._read_beyond() if self.lanes == 1 else ():
            end = slot * room.stride + self.forest.count
            self.zero(self.entry("%memory", end), room.stride - self.forest.count)
        for number, (direction, size) in program.blocks.items():
            rows = columns_of(direction, self.forest.parents)[1]
            self.zero(self.entry("%memory", room.blocks[number]), rows * size * room.stride)
        for number, (*_, size) in enumerate(program.matrices):
            if (number,) in room.outputs:
                if not (self.forest.is_chain and program.fills(number)):
                    self.zero(output_pointer(room.outputs[number,]), size)
            elif not self.forest.is_chain or number in program.matrix_homes:
                self.zero(self.entry("%memory", room.matrices[number]), size)
        for first in room.twins.values() if not self.forest.is_chain else ():
            self.zero(self.entry("%memory", first), self.forest.count**2)

    def _read_beyond(self) -> list[int]:
        """Return the values of which lanes read some that no row has.

        They are not used, but what is left over in memory may look like denormal numbers, which
        take a hundred times as long.
        """
        loads = [
            node.args[0]
            for step in self.program.steps
            if step.sort in (PAIRS, TRIPLES)
            for turn in step.turns.values()
            for node in turn.nodes
            if node.op == LOAD
        ]
        found = {place.name for place in loads if (place.space, place.role) == (STATE, OWN)}
        return sorted(found - self.room.outputs.keys())

    # -- loops -----------------------------------------------------------------------------------

    def _function(self, sort: str, turn: Turn) -> str:
        """Return the name of the function of a turn; turns that do the same share one."""
        key = sort, turn.signature
        if key not in self._shared:
            name = self._shared[key] = f'@"{self.names}.turn{len(self._shared)}"'
            body = TurnBody(self.program, self.room, sort, self.lanes)
            self.functions.append(body.emit(name, turn))
        return self._shared[key]

    def _step(self, sort: str, direction: str, span: str, turns: Any) -> None:
        """Emit a loop over the rows, and in a turn the call of what is done for its kind."""
        name, last = self.label(), self.forest.count - 1
        first, step, over = (0, 1, last) if direction == OUTWARD else (last, -1, 0)
        if not self.forest.count:
            return
        functions = {kind: self._function(sort, turn) for kind, turn in turns.items()}
        if sort == TRIPLES:
            self._triples(next(iter(functions.values())))
            return
        lines = self.lines
        lines += [
            f"  br label %{name}.from",
            f"{name}.from:",
            f"  br label %{name}",
            f"{name}:",
            f"  %{name}.i = phi i64 [ {first}, %{name}.from ], [ %{name}.next, %{name}.turned ]",
        ]
        i = f"%{name}.i"
        p, end = self.number("parents", i), self.number("ends", i)
        begin = "0"
        if sort == PAIRS:
            begin = self.new(f"add i64 {i}, 1")
        elif sort == COLUMNS and span != ALL:
            begin = i
        if sort == COLUMNS and span != BEYOND:
            end = str(self.forest.count)
        arguments = f"ptr %memory, ptr %ports, i64 {i}, i64 {p}, i64 {begin}, i64 {end}"
        if sort == PAIRS:
            some = self.new(f"icmp slt i64 {begin}, {end}")
            lines += [
                f"  br i1 {some}, label %{name}.call, label %{name}.turned",
                f"{name}.call:",
                f"  call void {next(iter(functions.values()))}({arguments})",
                f"  br label %{name}.turned",
            ]
        else:
            self._call_by_kind(name, i, functions, arguments)
        lines += [
            f"{name}.turned:",
            f"  %{name}.next = add i64 {i}, {step}",
            f"  %{name}.over = icmp eq i64 {i}, {over}",
            f"  br i1 %{name}.over, label %{name}.end, label %{name}",
            f"{name}.end:",
        ]

    def _triples(self, function: str) -> None:
        """Emit a loop over the rows, within one over those that come after, and the call there."""
        count = self.forest.count
        rows, p = self.counted(count)
        name, until = self.label(), self.number("ends", p)
        i = f"%{name}.i"
        self.lines += [
            f"  br label %{name}.from",
            f"{name}.from:",
            f"  br label %{name}",
            f"{name}:",
            f"  {i} = phi i64 [ {p}, %{name}.from ], [ %{name}.next, %{name}.turned ]",
        ]
        begin, end = self.new(f"add i64 {i}, 1"), self.number("ends", i)
        some = self.new(f"icmp slt i64 {begin}, {end}")
        arguments = f"ptr %memory, ptr %ports, i64 {i}, i64 {p}, i64 {begin}, i64 {end}"
        self.lines += [
            f"  br i1 {some}, label %{name}.call, label %{name}.turned",
            f"{name}.call:",
            f"  call void {function}({arguments})",
            f"  br label %{name}.turned",
            f"{name}.turned:",
            f"  %{name}.next = add i64 {i}, 1",
            f"  %{name}.more = icmp slt i64 %{name}.next, {until}",
            f"  br i1 %{name}.more, label %{name}, label %{name}.end",
            f"{name}.end:",
        ]
        self.turned(rows, count)

    def _mirror(self, step: Step) -> None:
        """Emit the moves of what was stored above a diagonal to below it."""
        lane = OWN if step.sort == PAIRS else EACH
        count = self.forest.count
        entries = {entry: None for turn in step.turns.values() for entry in turn.mirrored(lane)}
        for number, k in entries:
            name = f'@"{self.names}.mirror"'
            by_row, by_column, by_entry, _ = self.program.matrices[number]
            assert (by_row, by_column) == (count, 1), "rows are not side by side"
            if "mirror" not in self._shared:
                self._shared["mirror"] = name
                self.functions.append(emit_mirror(name, count))
            port, twin = self.room.outputs.get((number,)), self.room.twins.get((number, k))
            base = "%memory" if port is None else output_pointer(port)
            to = self.entry(base, self.room.matrices.get(number, 0) + k * by_entry)
            from_ = to if twin is None else self.entry("%memory", twin)
            self.lines.append(f"  call void {name}(ptr {from_}, ptr {to})")

    def _call_by_kind(self, name: str, i: str, functions: dict[int, str], arguments: str) -> None:
        kind = self.number("kinds", i)
        cases = " ".join(f"i64 {k}, label %{name}.{k}" for k in functions)
        self.lines.append(f"  switch i64 {kind}, label %{name}.turned [ {cases} ]")
        for k, function in functions.items():
            self.lines += [
                f"{name}.{k}:",
                f"  call void {function}({arguments})",
                f"  br label %{name}.turned",
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
            name, i = self.counted(count)
            angle = self.entry("%memory", first * self.room.stride)
            at = self.new(f"getelementptr {vector}, ptr {angle}, i64 {i}")
            x = self.new(f"load {vector}, ptr {at}, align 8")
            self.lines.append(f"  call void @mbs.sincos{size}({vector} {x}, ptr {pair})")
            for k, source in ((1, pair), (2, cosines)):
                value = self.new(f"load {vector}, ptr {source}, align 8")
                to = self.entry("%memory", (first + k) * self.room.stride)
                to = self.new(f"getelementptr {vector}, ptr {to}, i64 {i}")
                self.lines.append(f"  store {vector} {value}, ptr {to}, align 8")
            self.turned(name, count)
