# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on conditions and numbers of all joints, for floats and symbols."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np

from mbs_dynamics.compiler import equal, less, select


def min(a: Any, b: Any) -> Any:
    """Return the lesser of two numbers; ``b`` if one of them is NaN.

    It is one instruction. The function of the compiler, which returns NaN then, takes five.
    """
    return select(less(a, b), a, b)


def max(a: Any, b: Any) -> Any:
    """Return the greater of two numbers; ``b`` if one of them is NaN."""
    return select(less(b, a), a, b)


def holds(x: Any) -> Any:
    """Return the conditions of numbers that are 1.0 or 0.0. A NaN does not hold."""
    return less(0.5, x)


def any_of(conditions: Any) -> Any:
    """Return the condition that any of the conditions (n,) holds."""
    return reduce(or_, conditions)


def all_of(conditions: Any) -> Any:
    """Return the condition that all of the conditions (n,) hold."""
    return reduce(and_, conditions)


def is_one_of(number: Any, values: tuple[float, ...]) -> Any:
    """Return the condition that a number is one of some constants."""
    return reduce(or_, [equal(number, value) for value in values])


def largest(values: Any) -> Any:
    """Return the largest of numbers (n,)."""
    return reduce(max, values)


def least(values: Any) -> Any:
    """Return the least of numbers (n,)."""
    return reduce(min, values)


def clipped(x: Any, low: Any, high: Any) -> Any:
    """Return numbers between limits; a NaN remains one."""
    return max(low, min(high, x))


def count_if(condition: Any, count: Any) -> Any:
    """Return ``count`` + 1 where the condition holds, else 0."""
    return select(condition, count + 1.0, 0.0)


def first_of(fails: Any, values: Any, limits: Any) -> tuple[Any, Any, Any]:
    """Return the first of the joints (n,) whose condition holds, its value and limit.

    If none does, the joint is NaN, and the others are those of the last one.
    """
    joint, value, limit = np.nan, values[-1], limits[-1]
    for k in reversed(range(len(fails))):
        joint = select(fails[k], float(k), joint)
        value, limit = select(fails[k], values[k], value), select(fails[k], limits[k], limit)
    return joint, value, limit
