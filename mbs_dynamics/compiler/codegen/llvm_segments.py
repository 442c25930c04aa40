# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of large programs: functions that segments share, and the table of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, Body, output_pointer
from mbs_dynamics.compiler.codegen.llvm_body import emit_llvm as emit_straight
from mbs_dynamics.compiler.codegen.llvm_memory import NO_MEMORY, byte_table, emit_memory
from mbs_dynamics.compiler.codegen.llvm_prefetch import Prefetched
from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.passes.plan import MEMORY, Function, Place, Plan
from mbs_dynamics.compiler.passes.scheduling import in_good_order
from mbs_dynamics.compiler.passes.segments import segmented

STRAIGHT, ALIKE = 20_000, 8
"""Programs of more nodes than STRAIGHT are compiled in segments, and so are large ones that are
ALIKE times as large as what their segments are made of.

Measured between 5,000 and 20,000 nodes: straight-line code takes 0.72 to 1 of the time of segments
for one state and 0.83 to 1 in batches. For humanoids and short chains, which share little, it takes
1 to 1.5 times as long to compile, at most a second; for chains of hundreds of joints eight times.
With 25,000 nodes and more it takes twice as long to compile, and not less to run.
"""

SHORT, OWN = 10_000, 2
"""Of more nodes than SHORT, segments must share as little as OWN says, as those of humanoids do.
What shares more takes twice as long to compile straight on, three seconds and more.
"""

STRAIGHT_VECTORS = 40_000
"""In place of STRAIGHT for vector code.

Measured for derivatives of forward dynamics of humanoids, 35,000 nodes: 0.78 to 0.84 of the time of
segments, as nothing comes from tables and memory for the results is prefetched; 1.1 to 1.2 times
as long to compile, when a first batch comes.
"""

DIRECT = 64
"""So many runs of calls at most are written one after the other; more come from a table."""

PARAMETERS = (
    "ptr noalias nocapture readonly %memory, ptr noalias nocapture writeonly %frame, "
    "ptr nocapture readonly %ports, ptr noalias nocapture readonly %row, "
    "ptr noalias nocapture readonly %numbers"
)
"""Parameters of a segment's function. No call reads what it writes, so that the memory may come
twice, as two that do not overlap."""


class _Laned(Body):
    """A body that takes numbers from tables."""

    def as_real(self, node: Symbol | Condition) -> str:
        """Return what of a node is stored: of a condition one or zero."""
        value = self.text[node.id]
        if not isinstance(node, Condition):
            return value
        one, zero = self.constant(1.0), self.constant(0.0)
        return self.new(f"select {self.bit} {value}, {self.real} {one}, {self.real} {zero}")


class _Segment(_Laned):
    """The body of a function that segments share."""

    def __init__(self, function: Function, lanes: int) -> None:
        super().__init__(lanes)
        self.function = function
        self._numbers = iter(function.numbers)
        self._columns: dict[tuple[str, int], str] = {}
        self._ports: dict[int, str] = {}

    def emit(self, name: str) -> str:
        """Return the IR of the function."""
        for node in self.function.nodes:
            self.node(node)
            for place in self.function.stores.get(node.id, ()):
                at = self._address(place, "%frame")
                self.lines.append(f"  store {self.real} {self.as_real(node)}, ptr {at}")
        body = "\n".join(self.lines)
        return f"define internal void @{name}({PARAMETERS}) nounwind {{\n{body}\n  ret void\n}}\n"

    def ref(self, x: Any) -> str:
        """Return an operand; where it is born outside, load it first."""
        if not isinstance(x, (Symbol, Condition)):
            return self._number(next(self._numbers))
        if x.id not in self.text:
            at = self._address(self.function.loads[x.id], "%memory")
            value = self.new(f"load {self.real}, ptr {at}")
            if isinstance(x, Condition):
                value = self.new(f"fcmp une {self.real} {value}, {self.constant(0.0)}")
            self.text[x.id] = value
        return self.text[x.id]

    def _number(self, number: float | int) -> str:
        if isinstance(number, float):
            return self.constant(number)
        name = self._columns.get(("numbers", number))
        if name is None:
            at = self.new(f"getelementptr double, ptr %numbers, i64 {number}")
            name = self.in_all_lanes(self.new(f"load double, ptr {at}"))
            self._columns["numbers", number] = name
        return name

    def _address(self, place: Place, memory: str) -> str:
        if place.port == MEMORY:
            pointer = memory
        else:
            if place.port not in self._ports:
                at = self.new(f"getelementptr ptr, ptr %ports, i64 {place.port}")
                self._ports[place.port] = self.new(f"load ptr, ptr {at}")
            pointer = self._ports[place.port]
        if place.column is not None:
            key = pointer, place.column
            if key not in self._columns:
                at = self.new(f"getelementptr i32, ptr %row, i64 {place.column}")
                short = self.new(f"load i32, ptr {at}")
                base = self.new(f"sext i32 {short} to i64")
                self._columns[key] = self.entry_at(pointer, base)
            pointer = self._columns[key]
        return self.entry(pointer, place.offset)

    def entry_at(self, pointer: str, k: str) -> str:
        """Emit the address of an entry of which the index is a value."""
        return self.new(f"getelementptr {self.real}, ptr {pointer}, i64 {k}")


class _Main(_Laned):
    """The body of the program's function: what comes before the calls, the calls, the end."""

    def __init__(self, program: Program, plan: Plan, lanes: int) -> None:
        super().__init__(lanes)
        self.program = program
        self.plan = plan
        self.prefix_of_names = f"{program.name}.{lanes}"
        self.globals: list[str] = []
        self._fills = 0

    def emit(self) -> str:
        """Return the IR of the program's function and of its tables."""
        plan, program = self.plan, self.program
        self.lines.append("entry:")
        self.pointers(program)
        size = 8 * self.lanes * max(plan.memory, 1)
        lines, heap = emit_memory(size)
        self.lines += lines
        for node in plan.early:
            self.node(node)
            at = self._home(node)
            self.lines.append(f"  store {self.real} {self.as_real(node)}, ptr {at}")
        self._sines_and_cosines()
        self._constant_outputs()
        self._calls()
        self._copied_outputs()
        count = len(program.inputs) + len(program.outputs)
        status = self.status(program.guards, count)
        if heap:
            self.lines.append("  call void @free(ptr %heap)")
        self.lines.append(f"  ret i32 {status}")
        if heap:
            self.lines += ["full:", f"  ret i32 {NO_MEMORY}"]
        head = f"define i32 @{program.name}(ptr %ports) nounwind {{"
        declarations = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        declarations += "declare ptr @malloc(i64)\ndeclare void @free(ptr)\n" if heap else ""
        return "\n".join([*self.globals, head, *self.lines, "}", declarations])

    def ref(self, x: Any) -> str:
        """Return an operand that is an input, early, or kept in the memory."""
        if not isinstance(x, (Symbol, Condition)):
            return self.constant(float(x))
        if x.id not in self.text:
            if x.op == g.INPUT:
                self.node(x)
            else:
                self.text[x.id] = self.new(f"load {self.real}, ptr {self._home(x)}")
        return self.text[x.id]

    def _home(self, x: Symbol | Condition) -> str:
        return self.entry("%memory", self.plan.home[x.id])

    def _sines_and_cosines(self) -> None:
        angles = list({x.args[0].id: x.args[0] for x in self.plan.trig}.values())
        size = WIDTH if self.lanes == 1 else self.lanes
        side = together(self.lanes)
        for k in range(0, len(angles), side):
            group = angles[k : k + side]
            x = self._together(group) if self.lanes == 1 else self.ref(group[0])
            at = self.entry("%memory", 2 * k)
            self.lines.append(f"  call void @mbs.sincos{size}(<{size} x double> {x}, ptr {at})")

    def _constant_outputs(self) -> None:
        """Fill outputs in which there are numbers."""
        for port, values in zip(self.program.outputs, self.program.values, strict=True):
            table = np.array([x if isinstance(x, float) else 0.0 for x in values])
            fixed = sum(isinstance(x, float) for x in values)
            if fixed <= DIRECT:
                for k, x in enumerate(values):
                    if isinstance(x, float):
                        at = self.entry(output_pointer(port.name), k)
                        self.lines.append(f"  store {self.real} {self.constant(x)}, ptr {at}")
            else:
                self._fill(port.name, table)

    def _fill(self, port: str, table: np.ndarray[Any, Any]) -> None:
        """Copy a table to an output, number by number, to all lanes."""
        self._fills += 1
        name = f"fill{self._fills}"
        source = self._table(f"{self.prefix_of_names}.{name}", table)
        if self.lanes == 1:
            self.lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr {output_pointer(port)}, ptr {source}, "
                f"i64 {8 * len(table)}, i1 false)"
            )
            return
        self.lines += [
            f"  br label %{name}.from",
            f"{name}.from:",
            f"  br label %{name}.step",
            f"{name}.step:",
            f"  %{name}.k = phi i64 [ 0, %{name}.from ], [ %{name}.next, %{name}.step ]",
            f"  %{name}.at = getelementptr double, ptr {source}, i64 %{name}.k",
            f"  %{name} = load double, ptr %{name}.at",
        ]
        value = self.in_all_lanes(f"%{name}")
        self.lines += [
            f"  %{name}.to = getelementptr {self.real}, ptr {output_pointer(port)}, i64 %{name}.k",
            f"  store {self.real} {value}, ptr %{name}.to",
            f"  %{name}.next = add i64 %{name}.k, 1",
            f"  %{name}.more = icmp slt i64 %{name}.next, {len(table)}",
            f"  br i1 %{name}.more, label %{name}.step, label %{name}.end",
            f"{name}.end:",
        ]

    def _copied_outputs(self) -> None:
        """Store outputs that are inputs, or were computed before the calls."""
        before = {x.id for x in (*self.plan.early, *self.plan.trig)}
        for port, values in zip(self.program.outputs, self.program.values, strict=True):
            for k, x in enumerate(values):
                if isinstance(x, Symbol) and (x.op == g.INPUT or x.id in before):
                    value = self.ref(x)
                    at = self.entry(output_pointer(port.name), k)
                    self.lines.append(f"  store {self.real} {value}, ptr {at}")

    # -- the calls -------------------------------------------------------------------------------

    def _calls(self) -> None:
        plan = self.plan
        runs = [(f, len(list(group))) for f, group in groupby(plan.calls)]
        rows = self._table(f"{self.prefix_of_names}.rows", plan.addresses)
        numbers = self._table(f"{self.prefix_of_names}.numbers", plan.constants)
        if len(plan.calls) <= DIRECT:
            row = number = 0
            for f in plan.calls:
                function = plan.functions[f]
                here = self.new(f"getelementptr i32, ptr {rows}, i64 {row}")
                there = self.new(f"getelementptr double, ptr {numbers}, i64 {number}")
                self.lines.append(f"  call void {self._name(f)}({arguments(here, there)})")
                row += function.addresses
                number += function.constants
            return
        self._loop(runs, rows, numbers)

    def _name(self, f: int) -> str:
        return f'@"{self.prefix_of_names}.{f}"'

    def _loop(self, runs: Sequence[tuple[int, int]], rows: str, numbers: str) -> None:
        """Emit the loop over runs: pairs of a function and how often it is called."""
        plan, count = self.plan, len(self.plan.functions)
        table = self._table(f"{self.prefix_of_names}.runs", np.array(runs, dtype=np.int32))
        names = ", ".join(f"ptr {self._name(f)}" for f in range(count))
        code = f'@"{self.prefix_of_names}.functions"'
        self.globals.append(f"{code} = private constant [{count} x ptr] [{names}]")
        steps = np.array([(4 * f.addresses, 8 * f.constants) for f in plan.functions], np.int64)
        sizes = self._table(f"{self.prefix_of_names}.steps", steps)
        self.lines += [
            "  br label %calls",
            "calls:",
            "  br label %run",
            "run:",
            "  %r = phi i64 [ 0, %calls ], [ %r.next, %ran ]",
            f"  %r.row = phi ptr [ {rows}, %calls ], [ %row.next, %ran ]",
            f"  %r.numbers = phi ptr [ {numbers}, %calls ], [ %numbers.next, %ran ]",
            f"  %f.at = getelementptr [2 x i32], ptr {table}, i64 %r, i64 0",
            f"  %n.at = getelementptr [2 x i32], ptr {table}, i64 %r, i64 1",
            "  %f32 = load i32, ptr %f.at",
            "  %n = load i32, ptr %n.at",
            "  %f = sext i32 %f32 to i64",
            f"  %code.at = getelementptr ptr, ptr {code}, i64 %f",
            "  %code = load ptr, ptr %code.at",
            f"  %step.row.at = getelementptr [2 x i64], ptr {sizes}, i64 %f, i64 0",
            f"  %step.numbers.at = getelementptr [2 x i64], ptr {sizes}, i64 %f, i64 1",
            "  %step.row = load i64, ptr %step.row.at",
            "  %step.numbers = load i64, ptr %step.numbers.at",
            "  br label %call",
            "call:",
            "  %left = phi i32 [ %n, %run ], [ %left.next, %call ]",
            "  %row = phi ptr [ %r.row, %run ], [ %row.next, %call ]",
            "  %numbers = phi ptr [ %r.numbers, %run ], [ %numbers.next, %call ]",
            f"  call void %code({arguments('%row', '%numbers')})",
            "  %row.next = getelementptr i8, ptr %row, i64 %step.row",
            "  %numbers.next = getelementptr i8, ptr %numbers, i64 %step.numbers",
            "  %left.next = sub i32 %left, 1",
            "  %again = icmp sgt i32 %left.next, 0",
            "  br i1 %again, label %call, label %ran",
            "ran:",
            "  %r.next = add i64 %r, 1",
            f"  %more = icmp slt i64 %r.next, {len(runs)}",
            "  br i1 %more, label %run, label %called",
            "called:",
        ]

    def _table(self, name: str, table: np.ndarray[Any, Any]) -> str:
        """Add a constant array of bytes and return its name."""
        self.globals.append(byte_table(name, table))
        return f'@"{name}"'


def arguments(row: str, numbers: str) -> str:
    """Return the arguments of a call of a segment's function."""
    return f"ptr %memory, ptr %memory, ptr %ports, ptr {row}, ptr {numbers}"


def together(lanes: int) -> int:
    """Return the sines of how many angles stand side by side."""
    return WIDTH if lanes == 1 else 1


def emit_llvm(program: Program, lanes: int = 1, prefetched: Prefetched = ()) -> str:
    """Return LLVM IR of a program: straight on, or in segments if it is large.

    Segments prefetch nothing: between their calls it is worth nothing.

    See :func:`codegen.llvm_body.emit_llvm` for the function that is written.
    """
    if program.in_loops:
        from mbs_dynamics.compiler.codegen.llvm_loops import emit_loops

        return emit_loops(program, lanes)
    size = len(program.nodes)
    if size <= g.LARGE:
        return emit_straight(program, lanes, prefetched)
    with uncollected():
        plan = segmented(program, together=together(lanes))
    distinct = sum(len(function.nodes) for function in plan.functions)
    longest = STRAIGHT if lanes == 1 else STRAIGHT_VECTORS
    if size <= longest and size <= (ALIKE if size <= SHORT else OWN) * distinct:
        return emit_straight(in_good_order(program) if lanes > 1 else program, lanes, prefetched)
    return emit_segments(program, lanes, plan)


def emit_segments(program: Program, lanes: int = 1, plan: Plan | None = None) -> str:
    """Return LLVM IR of the same function as :func:`emit_llvm` for a large program."""
    with uncollected():
        plan = plan or segmented(program, together=together(lanes))
        main = _Main(program, plan, lanes)
        text = main.emit()
        functions = [
            _Segment(function, lanes).emit(f'"{main.prefix_of_names}.{k}"')
            for k, function in enumerate(plan.functions)
        ]
    return "".join([*functions, text, main.declarations()])
