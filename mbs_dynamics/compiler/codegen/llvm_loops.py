# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The LLVM emitter of programs with loops: turns as functions, and the loops around them."""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, output_pointer
from mbs_dynamics.compiler.codegen.llvm_columns import VECTORS, ColumnsBody
from mbs_dynamics.compiler.codegen.llvm_loop_ends import LoopEnds
from mbs_dynamics.compiler.codegen.llvm_memory import MASKED, NO_MEMORY
from mbs_dynamics.compiler.codegen.llvm_prefetch import AHEAD
from mbs_dynamics.compiler.codegen.llvm_turns import TurnBody
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, Step, Turn
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMNS,
    OUTWARD,
    PAIRS,
    ROWS,
)
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.frontend.spans import ALL, BELOW, BEYOND


def emit_loops(program: Program, lanes: int = 1) -> str:
    """Return LLVM IR of a program with loops; see :mod:`codegen.llvm_body`."""
    assert isinstance(program, LoopProgram)
    return Main(program, lanes).emit()


class Main(LoopEnds):
    """The body of the program's function, or of one whose values of rows are kept by its caller."""

    def emit(self) -> str:
        """Return the IR of the program: tables, functions of turns, and the function itself."""
        program = self.program
        self._tables()
        self.lines.append("entry:")
        self.pointers(program)
        heap = not self.room.apart and self._memory()
        self._zeros()
        if program.angles:
            self._steps([Step(ROWS, OUTWARD, ALL, program.early)])
            self._sines_and_cosines()
        for steps in self.groups:
            if self._are_by_columns(steps):
                self._by_columns(steps)
                continue
            self._steps(steps)
        self.outputs_in_order()
        status = self.status_of_rows()
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
            [
                *self.globals,
                *self.functions,
                head,
                *self.lines,
                "}",
                self.declarations(),
                MASKED,
            ]
        )

    def _by_columns(self, steps: Sequence[Step]) -> None:
        """Emit loops over columns for some of them at a time."""
        blocks = -(-self.forest.count // WIDTH)
        groups = -(-blocks // VECTORS)
        values = ", ptr %values" if self.room.apart else ""
        names: dict[int, str] = {}
        for group in range(groups):
            first, end = (blocks * k // groups for k in (group, group + 1))
            vectors = end - first
            if vectors not in names:
                names[vectors] = name = f'@"{self.names}.side{len(self.functions)}"'
                body = ColumnsBody(self.program, self.room, vectors)
                self.functions.append(body.emit_columns(name, steps))
            parameters = f"ptr %memory, ptr %ports, i64 {WIDTH * first}{values}"
            self.lines.append(f"  call void {names[vectors]}({parameters})")

    def _function(self, step: Step, turn: Turn) -> str:
        """Return the name of the function of a turn; turns that do the same share one."""
        below, beyond = step.span == BELOW, 0
        if step.sort == PAIRS and self.room.apart:
            beyond = AHEAD if step.direction == OUTWARD else -AHEAD
        key = step.sort, below, beyond, turn.signature
        if key not in self._shared:
            name = self._shared[key] = f'@"{self.names}.turn{len(self._shared)}"'
            way = self.program, self.room, step.sort, self.lanes
            body = TurnBody(*way, below=below, beyond=beyond)
            self.functions.append(body.emit(name, turn))
        return self._shared[key]

    def _steps(self, steps: Sequence[Step]) -> None:
        """Emit a loop over the rows, and in a turn what each step does for one of its kind."""
        count = self.forest.count
        if not count:
            return
        backwards = steps[0].direction != OUTWARD
        name, i = self._counted(count, backwards=backwards)
        for step in steps:
            self._turn(step, i)
        self._turned(name, count, backwards=backwards)

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
        elif sort == COLUMNS:
            begin = self._number("roots", i) if span == ALL else i
        if sort == COLUMNS and span != BEYOND:
            end = self._number("tree.ends", i)
        arguments = f"ptr %memory, ptr %ports, i64 {i}, i64 {p}, i64 {begin}, i64 {end}"
        if self.room.apart:
            arguments += ", ptr %values"
        if sort == PAIRS:
            self._zero_row(step, i)
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

    def _zero_row(self, step: Step, i: str) -> None:
        """Emit zeros for a row of the outputs of which the loop writes only parts."""
        places = {place for turn in step.turns.values() for place, *_ in turn.stores}
        for number in sorted({place.name for place in places if place.space == CELL}):
            port = self.room.outputs.get((number,))
            if port is None or not self._stays_zero(number) or not self._zeroed_by_rows(number):
                continue
            by_row, _, by_entry, _ = self.program.matrices[number]
            first = self._entry_at(output_pointer(port), self.new(f"mul i64 {i}, {by_row}"))
            for k in range(self.program.entries(number)):
                self.zero(self.entry(first, k * by_entry), by_row)

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
