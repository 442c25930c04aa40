# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over rows in LLVM IR: matrices of rows that become matrices of what rows share.

Lanes are entries of a row of one state, or in vector code for several states one state each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, output_pointer
from mbs_dynamics.compiler.codegen.llvm_loop_body import LoopBody


def _over_entries(
    signature: str, body: str, *, first: str = "", carried: str = "", last: str = "ret void"
) -> str:
    """Return the template of a function with a loop over ``%count`` entries of rows."""
    return f"""\
define internal {signature} nounwind {{{{
{first}  br label %loop
loop:
  %k = phi i64 [ 0, %0 ], [ %next, %some ]
{carried}  %on = icmp slt i64 %k, %count
  br i1 %on, label %some, label %done
some:
  {{mask}}
{body}
  %next = add i64 %k, {{step}}
  br label %loop
done:
  {last}
}}}}
"""


BOTH_ROWS = """\
  %x.at = getelementptr {real}, ptr %x, i64 %k
  %y.at = getelementptr {real}, ptr %y, i64 %k
  %a = {load} %x.at{masked}
  %b = {load} %y.at{masked}
"""
IN_ALL_LANES = "  {in_all_lanes}\n"

LESS = _over_entries(
    'void @"{name}.less"(ptr %y, ptr %x, {real} %f, i64 %count)',
    BOTH_ROWS
    + """\
  %c = fmul contract {row} %a, {f}
  %d = fsub contract {row} %b, %c
  {store}""",
    first=IN_ALL_LANES,
)
"""Subtracts a multiple of one row from another."""

TIMES = _over_entries(
    'void @"{name}.times"(ptr %y, {real} %f, i64 %count)',
    """\
  %y.at = getelementptr {real}, ptr %y, i64 %k
  %b = {load} %y.at{masked}
  %d = fmul {row} %b, {f}
  {store}""",
    first=IN_ALL_LANES,
)
"""Multiplies a row."""

DOT = _over_entries(
    '{real} @"{name}.dot"(ptr %y, ptr %x, i64 %count)',
    BOTH_ROWS
    + """\
  %c = fmul contract {row} %a, %b
  %more = fadd contract {row} %sum, %c""",
    carried="  %sum = phi {row} [ zeroinitializer, %0 ], [ %more, %some ]\n",
    last="{result}",
)
"""Returns the sum of the products of the entries of two rows."""

LANES = ", ".join(f"i64 {k}" for k in range(WIDTH))
VECTOR = f"<{WIDTH} x double>"
OF_ONE_STATE = {
    "row": VECTOR,
    "step": WIDTH,
    "in_all_lanes": f"""%one = insertelement {VECTOR} poison, double %f, i64 0
  %all = shufflevector {VECTOR} %one, {VECTOR} poison, <{WIDTH} x i32> zeroinitializer""",
    "f": "%all",
    "mask": f"""%rest = sub i64 %count, %k
  %rest.one = insertelement <{WIDTH} x i64> poison, i64 %rest, i64 0
  %rest.all = shufflevector <{WIDTH} x i64> %rest.one, <{WIDTH} x i64> poison,
    <{WIDTH} x i32> zeroinitializer
  %mask = icmp sgt <{WIDTH} x i64> %rest.all, <{LANES}>""",
    "load": f"call {VECTOR} @llvm.masked.load.v{WIDTH}f64.p0(ptr",
    "masked": f", i32 8, <{WIDTH} x i1> %mask, {VECTOR} zeroinitializer)",
    "store": f"""call void @llvm.masked.store.v{WIDTH}f64.p0({VECTOR} %d, ptr %y.at, i32 8,
    <{WIDTH} x i1> %mask)""",
    "result": f"""%whole = call reassoc double @llvm.vector.reduce.fadd.v{WIDTH}f64(
    double 0.0, {VECTOR} %sum)
  ret double %whole""",
}
REDUCE = f"declare double @llvm.vector.reduce.fadd.v{WIDTH}f64(double, {VECTOR})\n"


def of_several_states(real: str) -> dict[str, object]:
    """Return what the functions are made of in vector code."""
    return {
        "row": real,
        "step": 1,
        "in_all_lanes": "",
        "f": "%f",
        "mask": "",
        "load": f"load {real}, ptr",
        "masked": ", align 8",
        "store": f"store {real} %d, ptr %y.at, align 8",
        "result": f"ret {real} %sum",
    }


class Sums(LoopBody):
    """A body that adds up what rows share."""

    def function_of_rows(self, which: str, template: str) -> str:
        """Return the name of a function of rows, which is emitted once."""
        name = f'@"{self.names}.{which}"'
        if name not in self._shared:
            self._shared[name] = name
            text = OF_ONE_STATE if self.lanes == 1 else of_several_states(self.real)
            own = {"name": self.names, "real": self.real, "one": self.constant(1.0)}
            self.functions.append(template.format(**own, **text))
        return name

    def real_at(self, at: str) -> str:
        """Emit the load of an entry."""
        return self.new(f"load {self.real}, ptr {at}, align 8")

    def put(self, value: str, at: str) -> None:
        """Emit the store of an entry."""
        self.lines.append(f"  store {self.real} {value}, ptr {at}, align 8")

    def of_table(self, number: int, i: str) -> str:
        """Emit a constant of a row."""
        first = number * self.room.stride
        at = self.new(f'getelementptr double, ptr @"{self.names}.tables", i64 {first}')
        return self.new(f"load double, ptr {self.new(f'getelementptr double, ptr {at}, i64 {i}')}")

    def values(self, slot: int) -> str:
        """Emit the address of a value of the rows, that of the first one."""
        port = self.room.outputs.get(slot)
        return output_pointer(port) if port else self._of_rows(slot)

    def matrix(self, number: int) -> str:
        """Emit the address of a matrix."""
        port = self.room.outputs.get((number,))
        return output_pointer(port) if port else self.entry("%memory", self.room.matrices[number])

    def sum_matrix(
        self,
        number: int,
        at: NDArray[np.int64],
        weights: int | None,
        to: str,
        apart: int,
        *,
        negative: bool = False,
    ) -> None:
        """Emit the sums of a matrix of rows over rows and columns that stand ``at`` the same place.

        Rows first, a vector at a time. ``weights`` is the table of what both are multiplied by;
        rows of the result, which is full of zeros before, are so far ``apart``.
        """
        by_row, by_column, *_ = self.program.matrices[number]
        assert by_column == 1, "entries of a row are not side by side"
        rows, size = len(at), int(at.max(initial=-1)) + 1
        name = f"{self._label()}.sum"
        order = np.argsort(at, kind="stable")
        self._table(f"{name}.at", at)
        self._table(f"{name}.rows", order.astype(np.int64))
        self._table(f"{name}.first", np.searchsorted(at[order], np.arange(size + 1)))
        less, from_ = self.function_of_rows("less", LESS), self.matrix(number)
        row = self.new(f"alloca [{rows} x {self.real}], align 64")
        outer, a = self._counted(size)
        self.zero(row, rows)
        begin = self._number(f"{name}.first", a)
        end = self._number(f"{name}.first", self.new(f"add i64 {a}, 1"))
        self.lines += [
            f"  br label %{name}.from",
            f"{name}.from:",
            f"  br label %{name}",
            f"{name}:",
            f"  %{name}.k = phi i64 [ {begin}, %{name}.from ], [ %{name}.next, %{name} ]",
        ]
        i = self._number(f"{name}.rows", f"%{name}.k")
        weight = "1.0" if weights is None else self.of_table(weights, i)
        if not negative:
            weight = self.new(f"fneg double {weight}")
        there = self._entry_at(from_, self.new(f"mul i64 {i}, {by_row}"))
        factor = f"{self.real} {self.in_all_lanes(weight)}"
        self.lines += [
            f"  call void {less}(ptr {row}, ptr {there}, {factor}, i64 {rows})",
            f"  %{name}.next = add i64 %{name}.k, 1",
            f"  %{name}.more = icmp slt i64 %{name}.next, {end}",
            f"  br i1 %{name}.more, label %{name}, label %{name}.end",
            f"{name}.end:",
        ]
        to = self._entry_at(to, self.new(f"mul i64 {a}, {apart}"))
        inner, j = self._counted(rows)
        value = self.real_at(self._entry_at(row, j))
        if weights is not None:
            weight = self.in_all_lanes(self.of_table(weights, j))
            value = self.new(f"fmul {self.real} {value}, {weight}")
        place = self._entry_at(to, self._number(f"{name}.at", j))
        self.put(self.new(f"fadd {self.real} {self.real_at(place)}, {value}"), place)
        self._turned(inner, rows)
        self._turned(outer, size)
