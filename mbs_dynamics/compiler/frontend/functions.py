# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Elementary functions on floats and on symbols alike, elementwise on arrays of either."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend.graph import NUMBER, Condition, Symbol
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import ARITHMETIC
from mbs_dynamics.errors import SingularError


def _elementwise(
    scalar: Callable[..., Any], numeric: Callable[..., Any], arguments: int
) -> Callable[..., Any]:
    """Return a function that uses ``numeric`` on numbers and ``scalar`` on symbols and series."""
    on_objects = np.frompyfunc(scalar, arguments, 1)

    def function(*args: Any) -> Any:
        arrays = [x for x in args if isinstance(x, (np.ndarray, list, tuple))]
        if any(np.asarray(x).dtype == object for x in arrays):
            return on_objects(*args)
        if all(isinstance(x, (np.ndarray, list, tuple, *NUMBER, np.bool_, bool)) for x in args):
            return numeric(*args)
        return on_objects(*args) if arrays else scalar(*args)

    return function


def _method(name: str) -> Callable[[Any], Any]:
    """Return a function that is a method of symbols and series."""
    of_numbers = getattr(math, name)
    return lambda x: getattr(x, name)() if hasattr(x, name) else of_numbers(x)


def _atan2(y: Any, x: Any) -> Any:
    for symbol in (y, x):
        if isinstance(symbol, Symbol):
            return symbol.graph.operation(ops.ATAN2, y, x)
    return math.atan2(y, x)


def _less(a: Any, b: Any) -> Any:
    # NumPy 1 would ask a comparison of its scalar with a symbol whether it holds
    return (float(a) if isinstance(a, NUMBER) else a) < b


def _select(condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(condition, Condition):
        return x if condition else y
    for operand in (x, y):
        if hasattr(operand, "selected"):  # a series: coefficient by coefficient
            return operand.selected(condition, x, y)
    if x is y or (type(x) is float and type(y) is float and x == y):
        return x
    return condition.graph.operation(ops.SELECT, x, y, when=(condition,))


def _where(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition, x, y)[()]  # of three scalars a scalar, not an array without axes


def positive(x: Any, message: str, above: float = 0.0) -> Any:
    """Return the scalar x, which must be positive: a kernel raises SingularError where it is not.

    A number is checked at once. ``message`` names the quantity. Values up to ``above`` count as
    rounding, not as positive.
    """
    excess = x - above
    if isinstance(excess, Symbol):
        excess.graph.guards.setdefault(excess.id, (excess, message))
    elif not x > above:
        raise SingularError(f"{message} (it is {x:g})")
    return x


sin = _elementwise(_method("sin"), np.sin, 1)
"""Sine of an angle in rad."""

cos = _elementwise(_method("cos"), np.cos, 1)
"""Cosine of an angle in rad."""

sqrt = _elementwise(_method("sqrt"), np.sqrt, 1)
"""Square root."""

atan2 = _elementwise(_atan2, np.arctan2, 2)
"""Angle of the point (x, y), called as ``atan2(y, x)``, in (-pi, pi]."""

less = _elementwise(_less, np.less, 2)
"""The condition a < b, for use in :func:`select`."""

select = _elementwise(_select, _where, 3)
"""``select(condition, x, y)``: x where the condition holds, else y. Both are computed."""

ON_SYMBOLS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    ops.DIV: operator.truediv,
    ops.SIN: sin,
    ops.COS: cos,
    ops.SQRT: sqrt,
    ops.ATAN2: atan2,
    ops.LESS: less,
    ops.SELECT: select,
}
"""The functions of symbols that carry out operations."""
