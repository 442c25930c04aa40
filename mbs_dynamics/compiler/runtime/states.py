# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of states for the back ends: one table for each port, one row for each state.

Tables are arrays (states, entries). The entries of a row are contiguous; the distance of the rows
is arbitrary, and 0 if all states share one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port

LINE = 64
"""Bytes of a line of the processor's cache, and of its widest vectors."""


def table_of(array: FloatArray, port: Port, batch: tuple[int, ...]) -> FloatArray:
    """Return the table of an array whose batch axes broadcast to a batch; a view if possible."""
    states, batched = math.prod(batch), array.ndim > len(port.shape)
    if batched:
        array = np.broadcast_to(array, batch + port.shape)
    rows = array.reshape(states if batched else 1, port.size)
    if not (rows[:1].flags.c_contiguous and rows.flags.aligned):
        rows = np.require(rows, requirements=("C", "A"))
    return rows if batched else np.broadcast_to(rows, (states, port.size))


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
