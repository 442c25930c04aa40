# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The operations on doubles: one table, from which all else follows.

The trace, the interpreter, the printers, the counts and the gradients look operations up here, and
so do the tests. docs/internals/compiler.md tells how to add one. Every comparison with NaN is
false; all other operations on NaN return NaN, but :data:`SELECT` and ``hypot`` of an infinity.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

ADD, SUB, MUL, DIV, NEG = "+", "-", "*", "/", "neg"
SIN, COS, SQRT, ATAN2, HYPOT = "sin", "cos", "sqrt", "atan2", "hypot"
ABS, ROUND = "abs", "round"
LESS, LESS_EQUAL, EQUAL, ISNAN = "<", "<=", "==", "isnan"
AND, OR, NOT, SELECT = "and", "or", "not", "select"


class Operation(NamedTuple):
    """One operation. In texts, ``{0}`` and so on stand for the operands."""

    name: str
    signature: str
    """The kinds of the operands and of the result: ``n`` a number, ``c`` a condition."""
    counted: str
    """The field of :class:`Operations` that counts it; empty for what is as good as free."""
    meaning: Callable[..., Any]
    """The function of floats (and of conditions, as bools)."""
    gradient: Callable[..., tuple[Any, ...]] | None
    """From the gradient w by the result, the result and the operands, the gradient by each operand;
    None for an operation without a derivative."""
    python: str
    """The expression in Python, which may call ``meaning`` by the name of the operation."""
    c: str
    """The expression in C; ``{f}`` is the suffix of functions of math.h in this precision."""
    llvm: str
    """The instruction in LLVM IR, with types ``{T0}`` and so on; or an intrinsic of LLVM, which
    begins with ``llvm.``; or a function of the C library."""

    @property
    def is_condition(self) -> bool:
        return self.signature.endswith("c")


def on(name: str, *args: Any) -> Any:
    """Return an operation on floats, or on scalars that have a method ``operation``.

    Conditions on floats are NumPy's bools, because ``~True`` is -2.
    """
    for x in args:
        if hasattr(x, "operation"):
            return x.operation(name, args)
    row = TABLE[name]
    return np.bool_(row.meaning(*args)) if row.is_condition else row.meaning(*args)


def quotient(a: float, b: float) -> float:
    """Return a / b by IEEE 754, without an exception for zero."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _quiet(function: Callable[[float], float], x: float) -> float:
    """Return NaN where ``math`` raises."""
    try:
        return function(x)
    except ValueError:
        return math.nan


def _of_quotient(w: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    by_a = w / b
    return by_a, -(by_a * y)


def _of_atan2(w: Any, angle: Any, y: Any, x: Any) -> tuple[Any, Any]:
    scaled = w / (x * x + y * y)
    return scaled * x, -(scaled * y)


def _of_select(w: Any, y: Any, condition: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    return None, on(SELECT, condition, w, 0.0), on(SELECT, condition, 0.0, w)


FLAGS = "contract nsz arcp"
"""Fused multiply-add is allowed. Infinities and NaN keep their meaning: no nnan, no ninf."""

ROWS = [
    Operation(ADD, "nn:n", "additions", operator.add, lambda w, y, a, b: (w, w),
              "{0} + {1}", "{0} + {1}", f"fadd {FLAGS} {{T0}} {{0}}, {{1}}"),
    Operation(SUB, "nn:n", "additions", operator.sub, lambda w, y, a, b: (w, -w),
              "{0} - {1}", "{0} - {1}", f"fsub {FLAGS} {{T0}} {{0}}, {{1}}"),
    Operation(MUL, "nn:n", "multiplications", operator.mul, lambda w, y, a, b: (w * b, w * a),
              "{0} * {1}", "{0} * {1}", f"fmul {FLAGS} {{T0}} {{0}}, {{1}}"),
    Operation(DIV, "nn:n", "divisions", quotient, _of_quotient,
              "quotient({0}, {1})", "{0} / {1}", f"fdiv {FLAGS} {{T0}} {{0}}, {{1}}"),
    Operation(NEG, "n:n", "", operator.neg, lambda w, y, a: (-w,),
              "-{0}", "-{0}", f"fneg {FLAGS} {{T0}} {{0}}"),
    Operation(SIN, "n:n", "trigonometric", lambda a: _quiet(math.sin, a),
              lambda w, y, a: (w * on(COS, a),),
              "sin({0})", "sin{f}({0})", "sin"),
    Operation(COS, "n:n", "trigonometric", lambda a: _quiet(math.cos, a),
              lambda w, y, a: (-(w * on(SIN, a)),),
              "cos({0})", "cos{f}({0})", "cos"),
    Operation(SQRT, "n:n", "square_roots", lambda a: _quiet(math.sqrt, a),
              lambda w, y, a: (0.5 * w / y,),
              "sqrt({0})", "sqrt{f}({0})", "llvm.sqrt"),
    Operation(ATAN2, "nn:n", "trigonometric", math.atan2, _of_atan2,
              "atan2({0}, {1})", "atan2{f}({0}, {1})", "atan2"),
    Operation(HYPOT, "nn:n", "square_roots", math.hypot,
              lambda w, y, a, b: (w * a / y, w * b / y),
              "hypot({0}, {1})", "hypot{f}({0}, {1})", "hypot"),
    Operation(ABS, "n:n", "additions", abs, lambda w, y, a: (on(SELECT, a < 0.0, -w, w),),
              "abs({0})", "fabs{f}({0})", "llvm.fabs"),
    Operation(ROUND, "n:n", "additions", lambda a: round(a, 0), None,
              "round({0})", "rint{f}({0})", "llvm.rint"),
    Operation(LESS, "nn:c", "", operator.lt, None,
              "{0} < {1}", "{0} < {1}", "fcmp olt {T0} {0}, {1}"),
    Operation(LESS_EQUAL, "nn:c", "", operator.le, None,
              "{0} <= {1}", "{0} <= {1}", "fcmp ole {T0} {0}, {1}"),
    Operation(EQUAL, "nn:c", "", operator.eq, None,
              "{0} == {1}", "{0} == {1}", "fcmp oeq {T0} {0}, {1}"),
    Operation(ISNAN, "n:c", "", math.isnan, None,
              "{0} != {0}", "{0} != {0}", "fcmp uno {T0} {0}, {0}"),
    Operation(AND, "cc:c", "", operator.and_, None,
              "{0} and {1}", "{0} && {1}", "and {T0} {0}, {1}"),
    Operation(OR, "cc:c", "", operator.or_, None,
              "{0} or {1}", "{0} || {1}", "or {T0} {0}, {1}"),
    Operation(NOT, "c:c", "", operator.not_, None,
              "not {0}", "!{0}", "icmp eq {T0} {0}, zeroinitializer"),
    Operation(SELECT, "cnn:n", "selections", lambda condition, a, b: a if condition else b,
              _of_select,
              "{1} if {0} else {2}", "{0} ? {1} : {2}", "select {T0} {0}, {T1} {1}, {T1} {2}"),
]  # fmt: skip

TABLE: dict[str, Operation] = {row.name: row for row in ROWS}
"""The operations by name."""


class Operations(NamedTuple):
    """How many operations of each kind a program has.

    Negations, comparisons and logic cost next to nothing and are left out. Roundings and absolute
    values count as additions, and hypot as a square root.
    """

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    selections: int = 0

    @property
    def total(self) -> int:
        return sum(self)

    def __str__(self) -> str:
        counts = self._asdict().items()
        listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts if count)
        return f"{self.total} operations ({listed})" if listed else "0 operations"
