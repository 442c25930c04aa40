# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of the inverse kinematics, checked: batches of numbers, and targets."""

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


def numbers(name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return ``value`` as a finite float64 array (..., *shape), or raise ArgumentError."""
    array = _real(name, value)
    core = array.ndim - len(shape)
    if core < 0 or array.shape[core:] != shape:
        batched = "(" + ", ".join(["...", *map(str, shape)]) + ")"
        raise ArgumentError(f"{name} has shape {array.shape}; valid is {batched}")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite; got {_shown(array)}")
    return array


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
    array = _real("target", value)
    position_only = array.shape[-2:] != (4, 4)
    if position_only and array.shape[-1:] != (3,):
        raise ArgumentError(
            f"target has shape {array.shape}; valid is (..., 4, 4) for poses and (..., 3) for "
            "positions"
        )
    C = numbers("target", array, (3,) if position_only else (4, 4))
    if (np.abs(C) > FARTHEST).any():
        raise ArgumentError(f"target must be within {FARTHEST:g} m; got {_shown(C)}")
    if position_only:
        return se3.pose(np.eye(3), C), True
    R = C[..., :3, :3]
    error = np.abs(R.swapaxes(-1, -2) @ R - np.eye(3)).max((-1, -2))
    wrong = (error > checks.ROTATION_TOLERANCE) | (np.linalg.det(R) < 0.0)
    if wrong.any():
        raise ArgumentError(
            f"target{_place(wrong)} has no rotation in its upper left block: {_shown(R[wrong][0])}"
        )
    wrong = (C[..., 3, :] != (0.0, 0.0, 0.0, 1.0)).any(-1)
    if wrong.any():
        raise ArgumentError(
            f"the last row of target{_place(wrong)} must be (0, 0, 0, 1); got "
            f"{_shown(C[..., 3, :][wrong][0])}"
        )
    U, _, Vt = np.linalg.svd(R)
    return se3.pose(U @ Vt, C[..., :3, 3]), False


def batch_of(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that the batch axes of these arguments broadcast to."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ArgumentError(f"the batch axes do not broadcast together: {said}") from None


def _real(name: str, value: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{name} is no array of numbers: {error}") from error
    if array.dtype.kind not in "fiu":
        what = "None" if value is None else f"dtype {array.dtype}"
        raise ArgumentError(f"{name} must be real numbers; got {what}")
    return array.astype(np.float64)


def _place(wrong: Any) -> str:
    """Return the index of the first wrong element of a batch; nothing for a single one."""
    first = [int(k) for k in np.argwhere(wrong)[0]]
    return str(first) if first else ""


def _shown(array: FloatArray) -> Any:
    return array.tolist() if array.size <= 16 else f"numbers of shape {array.shape}"
