# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of springs and dampers in a sampled loop. The laws themselves are in ``period``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError

RATIOS = 0.1, 2.0
"""Valid damping ratios."""

GAIN_MARGIN = 2.0
"""Factor of stiffness and damping with which a sampled loop must be stable still."""


def checked_ratio(value: Any) -> float:
    """Return a damping ratio, or raise ArgumentError."""
    ratio, (low, high) = checks.number("damping_ratio", value), RATIOS
    if not low <= ratio <= high:
        raise ArgumentError(f"damping_ratio is {ratio:g}; must be {low:g} to {high:g}")
    return ratio


def by_joint(values: Any, names: Sequence[str], name: str) -> FloatArray:
    """Return (m,) of one value for all joints, one for each, or those of some joints, else 0."""
    if isinstance(values, Mapping):
        UnknownJointError.check(values, names)
        values = [values.get(joint, 0.0) for joint in names]
    array = checks.not_negative(name, values)
    if array.shape not in ((), (len(names),)):
        raise ArgumentError(f"{name} has shape {array.shape}; must be one or ({len(names)},)")
    return np.broadcast_to(array, (len(names),))


@lru_cache
def fastest_mode(ratio: float) -> float:
    """Return the largest natural frequency times period that a loop bears at a damping ratio.

    The loop holds each torque for one period, and has a delay of one; it must be stable still with
    GAIN_MARGIN times the stiffness and damping. Eigenvalues of the sampled mode, by bisection.
    """

    def stable(w: float) -> bool:
        k, d = GAIN_MARGIN * w * w, GAIN_MARGIN * 2.0 * ratio * w
        sampled = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [-k, -d, 0.0]])
        return float(abs(np.linalg.eigvals(sampled)).max()) < 1.0

    low, high = 1e-4, 2.0
    while high - low > 1e-4 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low
