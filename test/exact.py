# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""References in decimal arithmetic of 60 digits, from power series alone.

Functions take floats, which are taken to be exact, and return floats that are rounded once, at the
end. The few that work inside the arithmetic say so.
"""

from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

DIGITS = 60
TERMS = 200
"""Terms of a power series at most; enough for arguments of length 40."""

NEGLIGIBLE = Decimal("1e-55")

STEP = Decimal("1e-18")
"""For central differences: in 60 digits both truncation and cancellation stay below 1e-30."""


def arithmetic() -> Any:
    """Return a context with the digits of this module."""
    return localcontext(Context(prec=DIGITS))


def decimals(array: Any) -> Any:
    """Return an object array of the exact values of floats."""
    array = np.asarray(array, dtype=float)
    return np.array([Decimal(x) for x in array.flat], dtype=object).reshape(array.shape)


def floats(array: Any) -> Any:
    return np.asarray(array).astype(float)


def identity(n: int) -> Any:
    return decimals(np.eye(n))


def series(A: Any, first: int) -> Any:
    """Return sum A^k / (k + first)! of a matrix of decimals."""
    term = identity(len(A))
    for k in range(2, first + 1):
        term = term / k
    total = term
    for k in range(1, TERMS):
        term = term @ A / (k + first)
        total = total + term
        if max(abs(x) for x in term.flat) < NEGLIGIBLE:
            break
    return total


def power_series(x: Decimal, first: int) -> Decimal:
    """Return sin(x) for first = 1, cos(x) for first = 0, within the arithmetic."""
    term = total = x if first else Decimal(1)
    for k in range(first + 2, TERMS, 2):
        term = -term * x * x / (k * (k - 1))
        total += term
        if abs(term) < NEGLIGIBLE * abs(total):
            break
    return total


def exponential(A: Any) -> Any:
    """Return exp(A) of a square matrix of floats."""
    with arithmetic():
        return floats(series(decimals(A), 0))


def dexp(A: Any) -> Any:
    """Return sum A^k / (k + 1)! of a square matrix of floats."""
    with arithmetic():
        return floats(series(decimals(A), 1))


def logarithmic_rate(A: Any, B: Any) -> Any:
    """Return (d/dt exp(A + t B)) exp(-A) at t = 0, by a central difference."""
    with arithmetic():
        A, B = decimals(A), decimals(B)
        change = series(A + STEP * B, 0) - series(A - STEP * B, 0)
        return floats(change / (2 * STEP) @ series(-A, 0))


def _pi() -> Decimal:
    """Machin's formula, to 110 digits."""
    with localcontext() as context:
        context.prec = 110

        def arccot(n: int) -> Decimal:
            return sum(Decimal(-1) ** (k // 2) / (k * Decimal(n) ** k) for k in range(1, 341, 2))

        return 4 * (4 * arccot(5) - arccot(239))


PI = _pi()


def sine_and_cosine(x: float) -> tuple[Decimal, Decimal]:
    """Return both of the exact value of a float, as decimals."""
    with localcontext() as context:
        context.prec = 110
        quarter = PI / 2
        n = (Decimal(x) / quarter).to_integral_value()
        r = Decimal(x) - n * quarter
        context.prec = 40
        s, c = power_series(r, 1), power_series(r, 0)
        return [(s, c), (c, -s), (-s, -c), (-c, s)][int(n) % 4]
