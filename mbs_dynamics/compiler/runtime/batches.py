# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of states that have been checked, and where they are in memory.

A back end is an :class:`Evaluator`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port
from mbs_dynamics.compiler.runtime.buffers import Buffers

LINE = 64
"""Bytes of a line of the processor's cache, and of its widest vectors."""


class View(NamedTuple):
    """Where the states of one port are in memory. The entries of a state lie side by side."""

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


def address(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first entry."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


class Addresses:
    """The tables that compiled loops take: where state 0 is in each port, and the next one."""

    def __init__(self, views: Sequence[View]) -> None:
        places = [address(view.array) for view in views]
        words = places + [view.by_state for view in views]
        self._words = np.array(words, dtype=np.int64)
        self.pointers = address(self._words)
        self.strides = self.pointers + 8 * len(views)


def aligned(shape: tuple[int, ...]) -> FloatArray:
    """Return a new C-contiguous array that begins with a line of the cache.

    Vectors that straddle two lines are stored at half the speed.
    """
    size = math.prod(shape)
    room = np.empty(size + LINE // 8)
    start = -address(room) % LINE // 8
    return room[start : start + size].reshape(shape)


class Evaluator(ABC):
    """A program that a back end made executable."""

    @abstractmethod
    def one(self, buffers: Buffers) -> int:
        """Evaluate the state in these buffers. Returns 0, or the guard that fails from 1 on."""

    @abstractmethod
    def evaluate(self, states: int, views: Sequence[View], *, in_turn: bool = False) -> int:
        """Evaluate states, ``in_turn`` if one may depend on the one before.

        ``views`` are those of the inputs, then those of the outputs. Returns 0, or for the first
        state i at which the guard k, counted from 1, fails, i times the number of guards, plus k;
        or -1 if there is no memory.
        """
