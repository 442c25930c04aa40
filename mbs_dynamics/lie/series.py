# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the squared rotation angle in exp, dexp and their inverses.

Each is 0/0 at angle zero. Below a threshold the power series is used, above it the closed form;
both are accurate to rounding at the threshold. Arguments are floats, symbols or arrays of them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

from mbs_dynamics.compiler import cos, less, select, sin, sqrt
from mbs_dynamics.lie.arrays import Array

TERMS = 11
"""Terms of each power series; the next one is below 1e-19 at the threshold angle of one."""


def _alternating(start: int) -> list[float]:
    return [(-1) ** k / factorial(2 * k + start) for k in range(TERMS)]


def _joined(
    closed: Callable[[Array, Array], Array], series: list[float], threshold: float = 1.0
) -> Callable[[Array], Array]:
    """Return a function of x = angle^2 from ``closed(x, angle)`` and the series in x."""

    def function(x: Array) -> Array:
        small = less(x, threshold)
        safe = select(small, 1.0, x)  # keeps the closed form finite where it is not selected
        power = series[-1] + 0.0 * x
        for c in reversed(series[:-1]):
            power = power * x + c
        return select(small, power, closed(safe, sqrt(safe)))

    return function


sinc = _joined(lambda x, a: sin(a) / a, _alternating(1))
"""sin(a) / a of x = a^2."""

cosc = _joined(lambda x, a: 2.0 * sin(0.5 * a) * sin(0.5 * a) / x, _alternating(2))
"""(1 - cos(a)) / a^2 of x = a^2."""

sinc3 = _joined(lambda x, a: (a - sin(a)) / (x * a), _alternating(3))
"""(a - sin(a)) / a^3 of x = a^2."""

cosc4 = _joined(lambda x, a: (0.5 * x + cos(a) - 1.0) / (x * x), _alternating(4))
"""(a^2/2 + cos(a) - 1) / a^4 of x = a^2."""

sinc5 = _joined(
    lambda x, a: (2.0 * a - 3.0 * sin(a) + a * cos(a)) / (2.0 * x * x * a),
    [(-1) ** k * (k + 1) / factorial(2 * k + 5) for k in range(TERMS)],
)
"""(2a - 3 sin(a) + a cos(a)) / (2 a^5) of x = a^2."""

cotc = _joined(
    lambda x, a: (1.0 - 0.5 * a * cos(0.5 * a) / sin(0.5 * a)) / x,
    [  # |B_2k| / (2k)!, the Bernoulli numbers, k = 1, 2, ...
        1 / 12,
        1 / 720,
        1 / 30240,
        1 / 1209600,
        1 / 47900160,
        691 / 1307674368000,
        1 / 74724249600,
        3617 / 10670622842880000,
        43867 / 5109094217170944000,
    ],
    0.25,
)
"""(1 - (a/2) cot(a/2)) / a^2 of x = a^2; singular at a = 2 pi."""
