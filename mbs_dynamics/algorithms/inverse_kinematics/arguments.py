# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of the inverse kinematics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie import se3

FARTHEST = 1e100
"""Distance in m of a target; far beyond it the squares of errors are no longer finite."""


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a positive float, or raise ArgumentError."""
    number = checks.number(name, value)
    if number <= 0.0:
        raise ArgumentError(f"{name} must be positive; got {value!r}")
    return number


def count(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an integer of at least ``least``, or raise ArgumentError."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}; got {value!r}")
    return int(value)


def pose_or_position(value: ArrayLike) -> tuple[FloatArray, bool]:
    """Return a target as poses (..., 4, 4), and whether it is a position alone.

    The rotations are replaced by the nearest ones, so that an error that is within the tolerance
    for rotations does not keep a search from converging.
    """
    array = checks.real("target", value)
    position_only = array.shape[-2:] != (4, 4)
    if position_only and array.shape[-1:] != (3,):
        raise ArgumentError(
            f"target has shape {array.shape}; valid is (..., 4, 4) for poses and (..., 3) for "
            "positions"
        )
    C = checks.numbers("target", array, (3,) if position_only else (4, 4), batch=True)
    if (np.abs(C) > FARTHEST).any():
        raise ArgumentError(f"target must be within {FARTHEST:g} m; got {checks.shown(C)}")
    if position_only:
        return se3.pose(np.eye(3), C), True
    checks.check_poses("target", C)
    U, _, Vt = np.linalg.svd(C[..., :3, :3])
    return se3.pose(U @ Vt, C[..., :3, 3]), False
