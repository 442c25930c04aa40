# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: they return a clean array or raise an error that states the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbs_dynamics.errors import ArgumentError

FloatArray = NDArray[np.float64]

ROTATION_TOLERANCE = 1e-6
"""How far R^T R may be from the identity before a matrix is refused as a rotation."""

UNIT_TOLERANCE = 1e-6
"""How far the length of an axis may be from one before it is refused as a unit vector."""

SNAP_TOLERANCE = 1e-14
"""Entries of placements and screws this close to 0, 1 or -1 are taken to be exactly that."""


def numbers(name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return ``value`` as a finite float64 array of exactly this shape, or raise ArgumentError."""
    try:
        given = np.asarray(value)
        if given.dtype.kind in "bcSUVmM":  # NumPy would take the real part, or read the text
            raise TypeError(f"got dtype {given.dtype}")
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be numbers of shape {shape}: {error}") from error
    if array.shape != shape:
        raise ArgumentError(f"{name} has shape {array.shape}; valid is {shape}")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite; got {array.tolist()}")
    return array


def number(name: str, value: Any) -> float:
    """Return ``value`` as a finite float, or raise ArgumentError."""
    return float(numbers(name, value, ()))


def pose(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as a (4, 4) homogeneous transformation, or raise ArgumentError."""
    C = numbers(name, value, (4, 4))
    R = C[:3, :3]
    if np.abs(R.T @ R - np.eye(3)).max() > ROTATION_TOLERANCE or np.linalg.det(R) < 0.0:
        raise ArgumentError(f"{name} has no rotation in its upper left block: {R.tolist()}")
    if not np.array_equal(C[3], (0.0, 0.0, 0.0, 1.0)):
        raise ArgumentError(f"the last row of {name} must be (0, 0, 0, 1); got {C[3].tolist()}")
    return C


def snap(array: FloatArray) -> FloatArray:
    """Return a read-only copy with entries within 1e-14 of 0, 1 or -1 made exact."""
    snapped: FloatArray = array.copy()
    for exact in (0.0, 1.0, -1.0):
        snapped[np.abs(array - exact) <= SNAP_TOLERANCE] = exact
    snapped.flags.writeable = False
    return snapped
