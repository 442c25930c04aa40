# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Symmetric systems of equations in LLVM IR; see :mod:`frontend.loop_system`.

Matrices are taken by rows, so that lanes are entries of a row of one state; or in vector code for
several states one state each.
"""

from __future__ import annotations

from mbs_dynamics.compiler.codegen.llvm_loop_ends import LoopEnds
from mbs_dynamics.compiler.codegen.llvm_sums import DOT, LESS, TIMES
from mbs_dynamics.compiler.frontend.loop_system import MATRIX, VECTOR, Solution, System, Task

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
  br i1 %more, label %other, label %done
other:
  %i.first = mul i64 %i, %apart
  %other.row = getelementptr {real}, ptr %U, i64 %i.first
  %m.at = getelementptr {real}, ptr %row, i64 %i
  %m = load {real}, ptr %m.at, align 8
  %u = fmul {real} %m, %inverse
  %i.next = add i64 %i, 1
  call void @"{name}.less"(ptr %other.row, ptr %row, {real} %u, i64 %i.next)
  br label %rows
done:
  call void @"{name}.times"(ptr %row, {real} %inverse, i64 %k)
  br label %loop
end:
  ret void
}}
"""
"""The rows before one get less of it the further in they are; then it is divided by its pivot."""

BEFORE = """\
define internal void @"{name}.before"(ptr %U, i64 %k, i64 %apart, ptr %X, i64 %columns, i1 %inwards)
    nounwind {{
  %k.first = mul i64 %k, %apart
  %row = getelementptr {real}, ptr %U, i64 %k.first
  %x = getelementptr {real}, ptr %X, i64 %k.first
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %some ]
  %on = icmp slt i64 %i, %k
  br i1 %on, label %some, label %done
some:
  %u.at = getelementptr {real}, ptr %row, i64 %i
  %u = load {real}, ptr %u.at, align 8
  %i.first = mul i64 %i, %apart
  %y = getelementptr {real}, ptr %X, i64 %i.first
  %to = select i1 %inwards, ptr %y, ptr %x
  %from = select i1 %inwards, ptr %x, ptr %y
  call void @"{name}.less"(ptr %to, ptr %from, {real} %u, i64 %columns)
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
}}
"""
"""The rows before one get less of it, or it gets less of them."""


def _both_ways(signature: str, inwards: str, outwards: str) -> str:
    """Return the template of a function that takes the rows of U inwards, and then outwards."""
    return f"""\
define internal void {signature} nounwind {{{{
  br label %inwards
inwards:
  %after = phi i64 [ %n, %0 ], [ %k, %in ]
  %k = sub i64 %after, 1
  %in.on = icmp sge i64 %k, 0
  br i1 %in.on, label %in, label %outwards
in:
{inwards}
  br label %inwards
outwards:
  %o = phi i64 [ 0, %inwards ], [ %o.next, %out ]
  %out.on = icmp slt i64 %o, %n
  br i1 %out.on, label %out, label %end
out:
  %first = mul i64 %o, %apart
  %row = getelementptr {{real}}, ptr %U, i64 %first
  %d.at = getelementptr {{real}}, ptr %row, i64 %o
  %d = load {{real}}, ptr %d.at, align 8
{outwards}
  %o.next = add i64 %o, 1
  br label %outwards
end:
  ret void
}}}}
"""


SOLVED = _both_ways(
    '@"{name}.solved"(ptr %U, i64 %n, i64 %apart, ptr %X)',
    """\
  call void @"{name}.before"(ptr %U, i64 %k, i64 %apart, ptr %X, i64 %n, i1 true)""",
    """\
  %inverse = fdiv {real} {one}, %d
  %x = getelementptr {real}, ptr %X, i64 %first
  call void @"{name}.times"(ptr %x, {real} %inverse, i64 %n)
  call void @"{name}.before"(ptr %U, i64 %o, i64 %apart, ptr %X, i64 %n, i1 false)""",
)

SOLVED_VECTOR = _both_ways(
    '@"{name}.vector"(ptr %U, i64 %n, i64 %apart, ptr %x)',
    """\
  %k.first = mul i64 %k, %apart
  %in.row = getelementptr {real}, ptr %U, i64 %k.first
  %in.at = getelementptr {real}, ptr %x, i64 %k
  %f = load {real}, ptr %in.at, align 8
  call void @"{name}.less"(ptr %x, ptr %in.row, {real} %f, i64 %k)""",
    """\
  %at = getelementptr {real}, ptr %x, i64 %o
  %b = load {real}, ptr %at, align 8
  %scaled = fdiv {real} %b, %d
  %sum = call {real} @"{name}.dot"(ptr %row, ptr %x, i64 %o)
  %value = fsub {real} %scaled, %sum
  store {real} %value, ptr %at, align 8""",
)


class Systems(LoopEnds):
    """A body that solves systems of equations between the loops."""

    def task(self, task: Task) -> None:
        """Emit a task."""
        if isinstance(task, System):
            self._factorize(task)
        elif task.sort == VECTOR:
            self._solve_vector(task)
        else:
            self._solve_matrix(task)

    def _factorize(self, system: System) -> None:
        self._table(f"unknowns{system.factors}", system.unknowns)
        U, rows = self.matrix(system.factors), len(system.unknowns)
        self.zero(U, rows * system.size)
        self.sum_matrix(system.matrix, system.unknowns, system.weights, U, rows)
        factorized = self._function_of_system("factorized", FACTORIZED)
        self.lines.append(f"  call void {factorized}(ptr {U}, i64 {system.size}, i64 {rows})")
        name, i = self._counted(rows)
        k = self._number(f"unknowns{system.factors}", i)
        pivot = self.real_at(self._entry_at(U, self.new(f"mul i64 {k}, {rows + 1}")))
        least = self.in_all_lanes(self.of_table(system.least, i))
        excess = self.new(f"fsub {self.real} {pivot}, {least}")
        self.put(excess, self._entry_at(self._of_rows(system.excess), i))
        self._turned(name, rows)

    def _solve_vector(self, task: Solution) -> None:
        system = task.system
        rows, n = len(system.unknowns), system.size
        x = self.new(f"alloca [{n} x {self.real}], align 64")
        self.zero(x, n)
        name, i = self._counted(rows)
        at = self._entry_at(x, self._number(f"unknowns{system.factors}", i))
        value = self.real_at(self._entry_at(self.values(task.of), i))
        self.put(self.new(f"fadd {self.real} {self.real_at(at)}, {value}"), at)
        self._turned(name, rows)
        solved = self._function_of_system("vector", SOLVED_VECTOR)
        U = self.matrix(system.factors)
        self.lines.append(f"  call void {solved}(ptr {U}, i64 {n}, i64 {rows}, ptr {x})")
        name, i = self._counted(rows)
        value = self.real_at(self._entry_at(x, self._number(f"unknowns{system.factors}", i)))
        self.put(value, self._entry_at(self.values(task.to), i))
        self._turned(name, rows)

    def _solve_matrix(self, task: Solution) -> None:
        system = task.system
        rows, n, X = len(system.unknowns), system.size, self.matrix(task.to)
        self.zero(X, rows * n)
        if task.sort == MATRIX:
            at, weights = system.unknowns, system.weights
            self.sum_matrix(task.of, at, weights, X, rows, negative=True)
        else:
            name, i = self._counted(n)
            diagonal = self._entry_at(X, self.new(f"mul i64 {i}, {rows + 1}"))
            self.put(self.constant(1.0), diagonal)
            self._turned(name, n)
        solved = self._function_of_system("solved", SOLVED)
        self.lines.append(
            f"  call void {solved}(ptr {self.matrix(system.factors)}, i64 {n}, i64 {rows}, ptr {X})"
        )

    def _function_of_system(self, which: str, template: str) -> str:
        for name, needed in (("less", LESS), ("times", TIMES), ("dot", DOT), ("before", BEFORE)):
            self.function_of_rows(name, needed)
        return self.function_of_rows(which, template)
