# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Where the states of a batch are in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port


class View(NamedTuple):
    """Where the states of one port are in memory."""

    array: FloatArray
    """Holds the entries; its first one is the first entry of the first state."""
    by_state: int
    """Bytes from one state to the next; 0 if all states share the same entries."""
    by_entry: int = 8
    """Bytes from one entry to the next."""
    offset: int = 0
    """Bytes from there to the first state that is meant."""

    @property
    def at(self) -> int:
        """The address of the first entry of the first state."""
        return address(self.array) + self.offset

    def since(self, state: int) -> View:
        """Return the view of the states from one on."""
        return self._replace(offset=self.offset + state * self.by_state)


LINE = 64
"""Bytes of a line of the processor's cache, and of its widest vectors."""


def aligned(shape: tuple[int, ...]) -> FloatArray:
    """Return a new C-contiguous array that begins with a line of the cache.

    Vectors that straddle two lines are stored at half the speed.
    """
    size = math.prod(shape)
    room = np.empty(size + LINE // 8)
    start = -address(room) % LINE // 8
    return room[start : start + size].reshape(shape)


def address(array: FloatArray) -> int:
    """Return the address of the first entry."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _contiguous(array: FloatArray) -> FloatArray:
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=("C", "A"))


def view_of(array: FloatArray, port: Port, batch: tuple[int, ...], transposed: bool) -> View:
    """Return the view of an array of shape ``(*batch, *port.shape)``, or without the batch.

    What cannot be viewed so is copied. ``transposed`` says that arrays need no copy in which the
    same entry of all states lies side by side.
    """
    if array.ndim == len(port.shape):
        return View(_contiguous(array), 0)
    size = port.size
    flags = array.flags
    if flags.c_contiguous and flags.aligned and size > 1 and array.shape == batch + port.shape:
        return View(array, 8 * size)
    if array.shape != batch + port.shape:
        array = np.broadcast_to(array, batch + port.shape)
    axes = len(batch)
    by_state = _stride(batch, array.strides[:axes])
    by_entry = _stride(port.shape, array.strides[axes:])
    if by_state == 0 and array.size:
        return View(_contiguous(array[(0,) * axes]), 0)
    if by_state and by_entry and array.flags.aligned:
        if size == 1 and by_state == 8 and transposed:
            return View(array, 8, 0)
        if by_entry == 8 or (transposed and by_state == 8):
            return View(array, by_state, by_entry)
    return View(_contiguous(array), 8 * size)


def _stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the bytes from each element to the next in C order; None if they are not the same."""
    stride, span = None, 1
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride is None:
                stride = step
            elif step != stride * span:
                return None
            span *= size
    return 8 if stride is None else stride
