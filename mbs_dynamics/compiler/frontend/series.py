# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Truncated Taylor series as scalars: derivatives of any order from the equations as they are.

A :class:`Series` holds the coefficients c_k = x^(k) / k! of a quantity that varies with time, as
floats or symbols. Calling equations with series for their arguments gives the series of the result,
and with it all time derivatives up to the order, at a cost that grows with its square.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend import functions
from mbs_dynamics.compiler.frontend.graph import NUMBER, Symbol
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.errors import TraceError


class Series:
    """A scalar function of time, as its Taylor coefficients at the present instant."""

    __slots__ = ("c",)

    def __init__(self, coefficients: Sequence[Any]) -> None:
        self.c = tuple(coefficients)

    def _coefficients(self, x: Any) -> tuple[Any, ...]:
        """Return the coefficients of a series or of a constant."""
        return x.c if isinstance(x, Series) else (x, *[0.0] * (len(self.c) - 1))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, (Series, Symbol, *NUMBER)):
            return NotImplemented
        return Series([a + b for a, b in zip(self.c, self._coefficients(other), strict=True)])

    def __neg__(self) -> Series:
        return Series([-a for a in self.c])

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (Series, Symbol, *NUMBER)):
            return NotImplemented
        factor = self._coefficients(other)
        return Series([_convolution(self.c, factor, k) for k in range(len(self.c))])

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Any:
        first, *others = self._coefficients(other)
        quotient: list[Any] = []
        for k, a in enumerate(self.c):
            quotient.append((a - _convolution(others, quotient, k - 1)) / first)
        return Series(quotient)

    def __rtruediv__(self, other: Any) -> Any:
        return Series(self._coefficients(other)) / self

    def operation(self, op: str, operands: tuple[Any, ...]) -> Any:
        """Return an operation of which an operand is a series.

        Raises TraceError for one without a rule for series.
        """
        if op not in (ops.SIN, ops.COS, ops.SQRT):
            raise TraceError(f"the operation {op!r} has no derivatives with respect to time")
        return getattr(self, op)()

    def sin(self) -> Series:
        return self._sin_cos()[0]

    def cos(self) -> Series:
        return self._sin_cos()[1]

    def _sin_cos(self) -> tuple[Series, Series]:
        """Return the sine and the cosine, from sdot = c xdot and cdot = -s xdot."""
        s, c = [functions.sin(self.c[0])], [functions.cos(self.c[0])]
        rate = [j * x for j, x in enumerate(self.c)][1:]  # coefficients of xdot
        for k in range(1, len(self.c)):
            s_k, c_k = _convolution(rate, c, k - 1), _convolution(rate, s, k - 1)
            s.append(s_k / k)
            c.append(-c_k / k)
        return Series(s), Series(c)

    def sqrt(self) -> Series:
        """Square root, from y y = x."""
        y = [functions.sqrt(self.c[0])]
        for k, x in enumerate(self.c[1:], 1):
            y.append((x - _convolution(y[1:], y[1:], k - 2)) / (2.0 * y[0]))
        return Series(y)

    def __gt__(self, other: Any) -> Any:
        return self.c[0] > self._coefficients(other)[0]


def series_of(derivatives: Sequence[Any]) -> Any:
    """Return the object array of series with these values and time derivatives.

    ``derivatives`` is (x, xdot, xddot, ...), arrays of one shape; the result has that shape.
    """

    def series(*x: Any) -> Series:
        return Series([a / math.factorial(k) for k, a in enumerate(x)])

    return np.frompyfunc(series, len(derivatives), 1)(*map(np.asarray, derivatives))


def derivative_of(array: Any, k: int) -> FloatArray:
    """Return the k-th time derivative of an array of series, floats or symbols."""

    def derivative(x: Any) -> Any:
        if isinstance(x, Series):
            return x.c[k] * float(math.factorial(k))
        return 0.0 if k else x

    return np.asarray(np.frompyfunc(derivative, 1, 1)(np.asarray(array)))


def _convolution(a: Sequence[Any], b: Sequence[Any], k: int) -> Any:
    """Return the k-th coefficient of a product, leaving out factors that are the float zero."""
    total: Any = 0.0
    for x, y in zip(a[: k + 1], reversed(b[: k + 1]), strict=True):
        if (type(x) is float and x == 0.0) or (type(y) is float and y == 0.0):
            continue
        total = total + x * y
    return total
