# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Elementary functions on floats and on symbols alike, elementwise on arrays of either.

With NaN, every comparison is false, and all other functions return NaN as NumPy's do: also
:func:`min` and :func:`max`. In all back ends ``min(a, b)`` is b if neither is less.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend.graph import NUMBER, Condition, Symbol
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.operations import on
from mbs_dynamics.errors import SingularError, TraceError


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


def _min(a: Any, b: Any) -> Any:
    return _select(on(ops.LESS, a, b) | on(ops.ISNAN, a), a, b)


def _max(a: Any, b: Any) -> Any:
    return _select(on(ops.LESS, b, a) | on(ops.ISNAN, a), a, b)


def _select(condition: Any, x: Any, y: Any) -> Any:
    if isinstance(condition, (bool, np.bool_)):
        return x if condition else y
    if not isinstance(condition, Condition):
        raise TraceError(
            f"a condition must be a comparison; got {type(condition).__name__}: write "
            "select(less(0.5, x), a, b) for a number x that is 1 or 0"
        )
    if x is y or (type(x) is float and type(y) is float and x == y):
        return x
    return condition.graph.operation(ops.SELECT, (condition, x, y))


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


sin = _elementwise(functools.partial(on, ops.SIN), np.sin, 1)
"""Sine of an angle in rad."""

cos = _elementwise(functools.partial(on, ops.COS), np.cos, 1)
"""Cosine of an angle in rad."""

sqrt = _elementwise(functools.partial(on, ops.SQRT), np.sqrt, 1)
"""Square root."""

atan2 = _elementwise(functools.partial(on, ops.ATAN2), np.arctan2, 2)
"""Angle of the point (x, y), called as ``atan2(y, x)``, in (-pi, pi]."""

hypot = _elementwise(functools.partial(on, ops.HYPOT), np.hypot, 2)
"""Length of the vector (x, y), without overflow. Infinite if one of them is, also beside NaN."""

abs = _elementwise(builtins.abs, np.abs, 1)
"""Absolute value."""

round = _elementwise(functools.partial(on, ops.ROUND), np.rint, 1)
"""Nearest integer; of two, the even one. It has no derivative."""

min = _elementwise(_min, np.minimum, 2)
"""The lesser of two numbers; NaN if one of them is."""

max = _elementwise(_max, np.maximum, 2)
"""The greater of two numbers; NaN if one of them is."""

isnan = _elementwise(functools.partial(on, ops.ISNAN), np.isnan, 1)
"""The condition that a number is NaN."""

less = _elementwise(functools.partial(on, ops.LESS), np.less, 2)
"""The condition a < b. Conditions are combined by ``&``, ``|`` and ``~``; in arithmetic and as
results they are 1.0 or 0.0."""

less_equal = _elementwise(functools.partial(on, ops.LESS_EQUAL), np.less_equal, 2)
"""The condition a <= b."""

equal = _elementwise(functools.partial(on, ops.EQUAL), np.equal, 2)
"""The condition a == b."""

select = _elementwise(_select, _where, 3)
"""``select(condition, x, y)``: x where the condition holds, else y. Both are computed."""

ON_SYMBOLS: dict[str, Callable[..., Any]] = {
    **{name: functools.partial(on, name) for name in ops.TABLE},
    **{op: ops.TABLE[op].meaning for op in (ops.ADD, ops.SUB, ops.MUL, ops.NEG, ops.AND, ops.OR)},
    ops.DIV: operator.truediv,
    ops.SELECT: select,
}
"""The operations on symbols and numbers, with the folding of constants."""
