# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""States on their way to a back end: where they are in memory.

All of them have been checked. This relies on no layout of objects.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port

LINE = 64
"""Bytes of a line of the processor's cache, and of its widest vectors."""


class View(NamedTuple):
    """Memory of the states of one port; the entries of a state are contiguous."""

    array: FloatArray
    """Its first entry is the first one of the first state."""
    by_state: int
    """Bytes from one state to the next; 0 if all states share the same entries."""


def view_of(array: FloatArray, port: Port, batch: tuple[int, ...]) -> View:
    """Return the view of an array whose batch axes broadcast to a batch, or of a copy."""
    batched = array.ndim > len(port.shape)
    if batched and array.shape != batch + port.shape:
        array = np.broadcast_to(array, batch + port.shape)
    flags = array.flags
    if len(batch) == 1 and batched and flags.aligned and len(array) and array[0].flags.c_contiguous:
        return View(array, array.strides[0])
    if not (flags.c_contiguous and flags.aligned):
        array = np.require(array, requirements=("C", "A"))
    return View(array, 8 * port.size if batched else 0)


def address(array: ndarray[Any, Any]) -> int:
    """Return the address of the first entry."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def aligned(shape: tuple[int, ...]) -> FloatArray:
    """Return a new C-contiguous array aligned to a line of the cache.

    Vectors that straddle two lines are stored at half the speed.
    """
    size = math.prod(shape)
    room = np.empty(size + LINE // 8)
    start = -address(room) % LINE // 8
    return room[start : start + size].reshape(shape)


class Addresses:
    """Tables of compiled loops: the address of state 0 and the stride of each port."""

    def __init__(self, views: Sequence[View]) -> None:
        places = [address(view.array) for view in views]
        self._words = np.array(places + [view.by_state for view in views], dtype=np.int64)
        self.pointers = address(self._words)
        self.strides = self.pointers + 8 * len(views)
