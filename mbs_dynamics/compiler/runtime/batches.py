# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of states that have been checked: where they are in memory, and threads that share them.

A back end is an :class:`Evaluator`.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port
from mbs_dynamics.compiler.passes.strategy import STATES_PER_THREAD
from mbs_dynamics.compiler.runtime.buffers import Buffers
from mbs_dynamics.errors import ArgumentError

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
    """The tables that compiled loops take: where a state is in each port, and the next one."""

    def __init__(self, views: Sequence[View], state: int = 0) -> None:
        places = [address(view.array) + state * view.by_state for view in views]
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


class Evaluator:
    """A program that a back end made executable."""

    def one(self, buffers: Buffers) -> int:
        """Evaluate the state in these buffers. Returns 0, or the guard that fails from 1 on."""
        raise NotImplementedError

    def one_by_one(self, first: int, last: int, views: Sequence[View]) -> int:
        """Evaluate some states, one after the other; see :meth:`evaluate`."""
        raise NotImplementedError

    def evaluate(self, states: int, views: Sequence[View], *, in_turn: bool = False) -> int:
        """Evaluate states, ``in_turn`` if one may depend on the one before.

        ``views`` are those of the inputs, then those of the outputs. Returns 0, or for the first
        state i at which the guard k, counted from 1, fails, i times the number of guards, plus k;
        or -1 if there is no memory.
        """
        threads = 1 if in_turn else thread_count(states)
        return in_threads(states, threads, lambda a, b: self.one_by_one(a, b, views))


def thread_count(states: int) -> int:
    """Return how many threads share so many states.

    The environment variable MBS_THREADS is the most there may be; by default, as many as there are
    processors. Raises ArgumentError if it is no positive integer.
    """
    worth = states // STATES_PER_THREAD
    if worth <= 1:
        return 1
    named = os.environ.get("MBS_THREADS")
    if not named:
        most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    elif named.isdecimal() and int(named) > 0:
        most = int(named)
    else:
        raise ArgumentError(f"MBS_THREADS must be a positive integer; got {named!r}")
    return min(worth, most or 1)


def in_threads(states: int, threads: int, part: Callable[[int, int], int]) -> int:
    """Return the first status that is not 0 of ``part(first, last)`` over all states, or 0.

    What it calls runs without the interpreter lock, or there is no use in threads.
    """
    if threads == 1:
        return part(0, states)
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and rarely needed

    edges = [k * states // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(part, a, b) for a, b in itertools.pairwise(edges)]
        return next((status for done in parts if (status := done.result())), 0)
