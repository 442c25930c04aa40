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
"""Symmetric systems of equations in LLVM IR; see :mod:`mbs_dynamics.tracing.loop_system`.

All of it is made of one operation, to subtract a multiple of one row from another. Lanes are
entries of a row of one state, or in vector code for several states one state each.
"""

from __future__ import annotations

from mbs_dynamics.tracing.llvm_body import WIDTH, output_pointer
from mbs_dynamics.tracing.llvm_loop_ends import LoopEnds
from mbs_dynamics.tracing.loop_system import MATRIX, VECTOR, Solution, System, Task

ROWS = """\
define internal void @"{name}.less"(ptr %y, ptr %x, {real} %f, i64 %count) nounwind {{
  {all} = {everywhere}
  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %some ]
  %on = icmp slt i64 %k, %count
  br i1 %on, label %some, label %done
some:
  {mask}
  %x.at = getelementptr {real}, ptr %x, i64 %k
  %y.at = getelementptr {real}, ptr %y, i64 %k
  %a = {load} %x.at{masked}
  %b = {load} %y.at{masked}
  %c = fmul contract {row} %a, {f}
  %d = fsub contract {row} %b, %c
  {store}
  %next = add i64 %k, {step}
  br label %loop
done:
  ret void
}}
"""

FACTORIZED = """\
define internal void @"{name}.factorized"(ptr %U, i64 %n, i64 %apart) nounwind {{
  br label %loop
loop:
  %after = phi i64 [ %n, %0 ], [ %k, %done ]
  %on = icmp sgt i64 %after, 0
  br i1 %on, label %pivot, label %end
pivot:
  %k = sub i64 %after, 1
  %k.first = mul i64 %k, %apart
  %row = getelementptr {real}, ptr %U, i64 %k.first
  %d.at = getelementptr {real}, ptr %row, i64 %k
  %d = load {real}, ptr %d.at, align 8
  %inverse = fdiv {real} {one}, %d
  br label %rows
rows:
  %i = phi i64 [ 0, %pivot ], [ %i.next, %other ]
  %more = icmp slt i64 %i, %k
  br i1 %more, label %other, label %scale
other:
  %i.first = mul i64 %i, %apart
  %other.row = getelementptr {real}, ptr %U, i64 %i.first
  %m.at = getelementptr {real}, ptr %row, i64 %i
  %m = load {real}, ptr %m.at, align 8
  %u = fmul {real} %m, %inverse
  %i.next = add i64 %i, 1
  call void @"{name}.less"(ptr %other.row, ptr %row, {real} %u, i64 %i.next)
  br label %rows
scale:
  %j = phi i64 [ 0, %rows ], [ %j.next, %scaled ]
  %left = icmp slt i64 %j, %k
  br i1 %left, label %scaled, label %done
scaled:
  %e.at = getelementptr {real}, ptr %row, i64 %j
  %e = load {real}, ptr %e.at, align 8
  %e.scaled = fmul {real} %e, %inverse
  store {real} %e.scaled, ptr %e.at, align 8
  %j.next = add i64 %j, 1
  br label %scale
done:
  br label %loop
end:
  ret void
}}
"""

SOLVED = """\
define internal void @"{name}.solved"(ptr %U, i64 %n, i64 %apart, ptr %X, i64 %columns, i64 %wide)
    nounwind {{
  br label %inwards
inwards:
  %after = phi i64 [ %n, %0 ], [ %k, %before ]
  %on = icmp sgt i64 %after, 0
  br i1 %on, label %in.row, label %outwards
in.row:
  %k = sub i64 %after, 1
  %k.first = mul i64 %k, %apart
  %row = getelementptr {real}, ptr %U, i64 %k.first
  %k.wide = mul i64 %k, %wide
  %x = getelementptr {real}, ptr %X, i64 %k.wide
  br label %before
before:
  %i = phi i64 [ 0, %in.row ], [ %i.next, %less ]
  %more = icmp slt i64 %i, %k
  br i1 %more, label %less, label %inwards
less:
  %u.at = getelementptr {real}, ptr %row, i64 %i
  %u = load {real}, ptr %u.at, align 8
  %i.wide = mul i64 %i, %wide
  %y = getelementptr {real}, ptr %X, i64 %i.wide
  call void @"{name}.less"(ptr %y, ptr %x, {real} %u, i64 %columns)
  %i.next = add i64 %i, 1
  br label %before
outwards:
  %o = phi i64 [ 0, %inwards ], [ %o.next, %out.before ]
  %o.on = icmp slt i64 %o, %n
  br i1 %o.on, label %out.row, label %end
out.row:
  %o.first = mul i64 %o, %apart
  %o.row = getelementptr {real}, ptr %U, i64 %o.first
  %d.at = getelementptr {real}, ptr %o.row, i64 %o
  %d = load {real}, ptr %d.at, align 8
  %inverse = fdiv {real} {one}, %d
  %o.wide = mul i64 %o, %wide
  %z = getelementptr {real}, ptr %X, i64 %o.wide
  %o.next = add i64 %o, 1
  br label %scale
scale:
  %j = phi i64 [ 0, %out.row ], [ %j.next, %scaled ]
  %left = icmp slt i64 %j, %columns
  br i1 %left, label %scaled, label %out.before
scaled:
  %e.at = getelementptr {real}, ptr %z, i64 %j
  %e = load {real}, ptr %e.at, align 8
  %e.scaled = fmul {real} %e, %inverse
  store {real} %e.scaled, ptr %e.at, align 8
  %j.next = add i64 %j, 1
  br label %scale
out.before:
  %b = phi i64 [ 0, %scale ], [ %b.next, %out.less ]
  %b.more = icmp slt i64 %b, %o
  br i1 %b.more, label %out.less, label %outwards
out.less:
  %v.at = getelementptr {real}, ptr %o.row, i64 %b
  %v = load {real}, ptr %v.at, align 8
  %b.wide = mul i64 %b, %wide
  %w = getelementptr {real}, ptr %X, i64 %b.wide
  call void @"{name}.less"(ptr %z, ptr %w, {real} %v, i64 %columns)
  %b.next = add i64 %b, 1
  br label %out.before
end:
  ret void
}}
"""


class Systems(LoopEnds):
    """A body that solves systems of equations between the loops."""

    def task(self, task: Task) -> None:
        """Emit a task."""
        if not self._shared.get("systems"):
            self._shared["systems"] = self.names
            self.functions += self._functions()
        if isinstance(task, System):
            self._factorize(task)
        elif task.sort == VECTOR:
            self._solve_vector(task)
        else:
            self._solve_matrix(task)

    def _functions(self) -> list[str]:
        several, real, name = self.lanes == 1, self.real, self.names
        row = f"<{WIDTH} x double>" if several else real
        lanes = ", ".join(f"i64 {k}" for k in range(WIDTH))
        splat = f"shufflevector {row} %one, {row} poison, <{WIDTH} x i32> zeroinitializer"
        ends = f"""%rest = sub i64 %count, %k
  %rest.one = insertelement <{WIDTH} x i64> poison, i64 %rest, i64 0
  %rest.all = shufflevector <{WIDTH} x i64> %rest.one, <{WIDTH} x i64> poison, \
<{WIDTH} x i32> zeroinitializer
  %mask = icmp sgt <{WIDTH} x i64> %rest.all, <{lanes}>"""
        text = {
            "name": name,
            "real": real,
            "row": row,
            "one": self.constant(1.0),
            "all": "%one" if several else "%unused",
            "everywhere": f"insertelement {row} poison, double %f, i64 0\n  %all = {splat}"
            if several
            else "add i64 %count, 0",
            "f": "%all" if several else "%f",
            "mask": ends if several else "",
            "load": f"call {row} @llvm.masked.load.v{WIDTH}f64.p0(ptr"
            if several
            else f"load {row}, ptr",
            "masked": f", i32 8, <{WIDTH} x i1> %mask, {row} zeroinitializer)"
            if several
            else ", align 8",
            "store": f"call void @llvm.masked.store.v{WIDTH}f64.p0({row} %d, ptr %y.at, i32 8, "
            f"<{WIDTH} x i1> %mask)"
            if several
            else f"store {row} %d, ptr %y.at, align 8",
            "step": WIDTH if several else 1,
        }
        return [template.format(**text) for template in (ROWS, FACTORIZED, SOLVED)]

    def _factorize(self, system: System) -> None:
        self._table(f"unknowns{system.factors}", system.unknowns)
        U, rows = self._matrix(system.factors), len(system.unknowns)
        self._sum_matrix(system, system.matrix, U)
        self.lines.append(
            f'  call void @"{self.names}.factorized"(ptr {U}, i64 {system.size}, i64 {rows})'
        )
        name, i = self._counted(rows)
        k = self._number(f"unknowns{system.factors}", i)
        pivot = self._real_at(self._entry_at(U, self.new(f"mul i64 {k}, {rows + 1}")))
        least = self.in_all_lanes(self.of_table(system.least, i))
        excess = self.new(f"fsub {self.real} {pivot}, {least}")
        self._put(excess, self._entry_at(self._of_rows(system.excess), i))
        self._turned(name, rows)

    def _solve_vector(self, task: Solution) -> None:
        system = task.system
        rows, n = len(system.unknowns), system.size
        x = self.new(f"alloca [{n} x {self.real}], align 64")
        self.zero(x, n)
        name, i = self._counted(rows)
        at = self._entry_at(x, self._number(f"unknowns{system.factors}", i))
        value = self._real_at(self._entry_at(self._of_rows(task.of), i))
        self._put(self.new(f"fadd {self.real} {self._real_at(at)}, {value}"), at)
        self._turned(name, rows)
        self._solve(system, x, 1, 1)
        name, i = self._counted(rows)
        value = self._real_at(self._entry_at(x, self._number(f"unknowns{system.factors}", i)))
        self._put(value, self._entry_at(self._of_rows(task.to), i))
        self._turned(name, rows)

    def _solve_matrix(self, task: Solution) -> None:
        system = task.system
        rows, n, X = len(system.unknowns), system.size, self._matrix(task.to)
        if task.sort == MATRIX:
            self._sum_matrix(system, task.of, X, negative=True)
        else:
            self.zero(X, rows * n)
            name, i = self._counted(n)
            at = self._entry_at(X, self.new(f"mul i64 {i}, {rows + 1}"))
            self._put(self.constant(1.0), at)
            self._turned(name, n)
        self._solve(system, X, n, rows)

    def _solve(self, system: System, X: str, columns: int, wide: int) -> None:
        U, rows = self._matrix(system.factors), len(system.unknowns)
        self.lines.append(
            f'  call void @"{self.names}.solved"(ptr {U}, i64 {system.size}, i64 {rows}, '
            f"ptr {X}, i64 {columns}, i64 {wide})"
        )

    def _sum_matrix(self, system: System, of: int, to: str, *, negative: bool = False) -> None:
        """Emit the sums of a matrix of rows over those that share an unknown, weighted."""
        by_row, by_column, *_ = self.program.matrices[of]
        from_, rows = self._matrix(of), len(system.unknowns)
        self.zero(to, rows * system.size)
        outer, i = self._counted(rows)
        a, weight = self._number(f"unknowns{system.factors}", i), self.of_table(system.weights, i)
        if negative:
            weight = self.new(f"fneg double {weight}")
        inner, j = self._counted(rows)
        b = self._number(f"unknowns{system.factors}", j)
        both = self.new(f"fmul double {weight}, {self.of_table(system.weights, j)}")
        value = self._real_at(self._entry_at(from_, self._offset((i, by_row), (j, by_column))))
        value = self.new(f"fmul {self.real} {value}, {self.in_all_lanes(both)}")
        at = self._entry_at(to, self._offset((a, rows), (b, 1)))
        self._put(self.new(f"fadd {self.real} {self._real_at(at)}, {value}"), at)
        self._turned(inner, rows)
        self._turned(outer, rows)

    def _matrix(self, number: int) -> str:
        port = self.room.outputs.get((number,))
        return output_pointer(port) if port else self.entry("%memory", self.room.matrices[number])

    def _real_at(self, at: str) -> str:
        return self.new(f"load {self.real}, ptr {at}, align 8")

    def _put(self, value: str, at: str) -> None:
        self.lines.append(f"  store {self.real} {value}, ptr {at}, align 8")
