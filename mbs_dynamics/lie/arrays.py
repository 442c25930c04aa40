# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Small helpers for stacks of vectors and matrices, of floats or of traced symbols."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.errors import ArgumentError

Array = Any
"""A NumPy array of floats, or of traced symbols."""


def square(x: Array) -> Array:
    """Return x^T x of vectors x (..., 3)."""
    x = np.asarray(x)
    return x[..., 0] * x[..., 0] + x[..., 1] * x[..., 1] + x[..., 2] * x[..., 2]


def symmetric(A: Array) -> Array:
    """Return A (m, m) with its lower triangle replaced by the upper one.

    The lower triangle of a symmetric product is then never computed.
    """
    A = np.array(A)
    for i in range(1, len(A)):
        A[i, :i] = A[:i, i]
    return A


def times(scalar: Array, array: Array, axes: int = 2) -> Array:
    """Return scalar (...) times the last ``axes`` axes of array."""
    scalar = np.asarray(scalar)
    return scalar.reshape(scalar.shape + (1,) * axes) * array


def shaped(**given: tuple[Array, tuple[int | str, ...]]) -> list[Array]:
    """Return the values as arrays with these last axes, or raise ArgumentError.

    A name in place of a length is an axis of any length.
    """
    arrays = []
    for name, (value, shape) in given.items():
        array = np.asarray(value)
        last = array.shape[-len(shape) :]
        if len(last) < len(shape) or any(
            valid not in (length, str(valid)) for length, valid in zip(last, shape, strict=True)
        ):
            batched = ", ".join(["...", *map(str, shape)])
            raise ArgumentError(f"{name} has shape {array.shape}; must be ({batched})")
        arrays.append(array)
    return arrays
