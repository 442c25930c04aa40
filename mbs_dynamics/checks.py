# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: they return a clean array or raise an error that states the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbs_dynamics.errors import ArgumentError, ModelError, quoted

FloatArray = NDArray[np.float64]

ROTATION_TOLERANCE = 1e-6
"""How far R^T R may be from the identity before a matrix is refused as a rotation."""

UNIT_TOLERANCE = 1e-6
"""How far the length of an axis may be from one before it is refused as a unit vector."""

SNAP_TOLERANCE = 1e-14
"""Entries of placements and screws this close to 0, 1 or -1 are taken to be exactly that."""


def numbers(
    name: str, value: ArrayLike, shape: tuple[int, ...], *, batch: bool = False
) -> FloatArray:
    """Return ``value`` as a finite float64 array of this shape, or raise ArgumentError.

    With ``batch`` the array may have further axes before those of the shape.
    """
    array = real(name, value, "real numbers" if shape else "a real number")
    lead = array.ndim - len(shape) if batch else 0
    if lead < 0 or array.shape[lead:] != shape:
        axes = ", ".join(["...", *map(str, shape)])
        also = f", or ({axes}) for a batch" if batch else ""
        raise ArgumentError(f"{name} has shape {array.shape}; must be {shape}{also}")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite; got {shown(array)}")
    return array


def real(name: str, value: ArrayLike, valid: str = "real numbers") -> FloatArray:
    """Return a copy of ``value`` as a float64 array of any shape, or raise ArgumentError."""
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{name} is not an array of numbers: {error}") from error
    if value is None or given.dtype.kind in "bcSUVmM":  # NumPy would take the real part, or text
        what = "None" if value is None else f"dtype {given.dtype}"
        raise ArgumentError(f"{name} must be {valid}; got {what}")
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be {valid}: {error}") from error


def batch_of(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the batch axes of these arguments broadcast, or raise."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ArgumentError(f"the batch axes do not broadcast together: {text}") from None


def number(name: str, value: Any) -> float:
    """Return ``value`` as a finite float, or raise ArgumentError."""
    return float(numbers(name, value, ()))


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a positive float, or raise ArgumentError."""
    x = number(name, value)
    if x <= 0.0:
        raise ArgumentError(f"{name} must be positive; got {quoted(value)}")
    return x


def not_negative(name: str, value: ArrayLike, shape: tuple[int, ...] = ()) -> FloatArray:
    """Return an array (..., *shape) of finite numbers >= 0, or raise ArgumentError."""
    array = numbers(name, value, shape, batch=True)
    if (array < 0.0).any():
        raise ArgumentError(f"{name} must not be negative; got {shown(array)}")
    return array


def count(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an integer of at least ``least``, or raise ArgumentError."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}; got {quoted(value)}")
    return int(value)


def one_of(name: str, value: Any, valid: Iterable[str]) -> None:
    """Raise ArgumentError if ``value`` is not one of these names."""
    valid = tuple(valid)
    if value not in valid:
        raise ArgumentError(f"{name} must be one of {', '.join(valid)}; got {quoted(value)}")


def mapping(name: str, value: Any, what: str) -> None:
    """Raise ArgumentError if ``value`` is not a mapping of names of ``what``."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{name} must be a mapping of {what} names; got {quoted(value)}")


def pose(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as a (4, 4) homogeneous transformation, or raise ArgumentError."""
    C = numbers(name, value, (4, 4))
    check_poses(name, C)
    return C


def check_poses(name: str, C: FloatArray) -> None:
    """Raise ArgumentError unless matrices are poses (..., 4, 4) or rotations (..., 3, 3)."""
    R, last = C[..., :3, :3], C[..., 3:, :]
    defect = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2), initial=0.0)
    wrong = (defect > ROTATION_TOLERANCE) | (np.linalg.det(R) < 0.0)
    if wrong.any():
        where = f"{name}{_place(wrong)}"
        raise ArgumentError(
            f"{where} has no rotation in its upper left block: {shown(R[wrong][0])}"
        )
    wrong = (last != (0.0, 0.0, 0.0, 1.0)[: C.shape[-1]]).any(axis=(-1, -2))
    if wrong.any():
        raise ArgumentError(
            f"the last row of {name}{_place(wrong)} must be (0, 0, 0, 1); got "
            f"{shown(last[wrong][0, 0])}"
        )


def _place(wrong: Any) -> str:
    """Return the index of the first wrong element of a batch; nothing for a single one."""
    first = [int(k) for k in np.argwhere(wrong)[0]]
    return str(first) if first else ""


def shown(array: FloatArray) -> Any:
    """Return the numbers of an array for a message, or its shape if it is large."""
    return array.tolist() if array.size <= 36 else f"numbers of shape {array.shape}"


def unit_length(name: str, axis: FloatArray) -> float:
    """Return the length of an axis (3,), one up to rounding, or raise ModelError."""
    length = float(np.linalg.norm(axis))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise ModelError(f"{name} must have unit length; got {axis.tolist()} of length {length:g}")
    return length


def snap(array: FloatArray) -> FloatArray:
    """Return a read-only copy with entries within 1e-14 of 0, 1 or -1 made exact."""
    snapped: FloatArray = array.copy()
    for exact in (0.0, 1.0, -1.0):
        snapped[np.abs(array - exact) <= SNAP_TOLERANCE] = exact
    snapped.flags.writeable = False
    return snapped
