# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on conditions and numbers of all joints, for floats and symbols."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np

from mbs_dynamics.compiler import equal, less, max, min, select


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
    return max(low, min(x, high))


def count_if(condition: Any, count: Any) -> Any:
    """Return ``count`` + 1 where the condition holds, else 0."""
    return select(condition, count + 1.0, 0.0)


def first_of(fails: Any, values: Any, limits: Any) -> tuple[Any, Any, Any]:
    """Return the first of the joints (n,) whose condition holds, its value and limit.

    NaN where none does.
    """
    found: tuple[Any, Any, Any] = (np.nan, np.nan, np.nan)
    for k in reversed(range(len(fails))):
        fails_here, row = fails[k], (float(k), values[k], limits[k])
        joint, value, limit = (select(fails_here, x, y) for x, y in zip(row, found, strict=True))
        found = joint, value, limit
    return found
