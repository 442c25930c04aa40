# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of many states: vector code over tiles, one after the other, and in threads."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.codegen.llvm_batch import BATCH_PORT
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.passes.deduplication import Order
from mbs_dynamics.compiler.passes.strategy import STAGED, STAGED_STATES, STATES_PER_THREAD
from mbs_dynamics.compiler.runtime.native.table import VECTOR
from mbs_dynamics.compiler.runtime.views import View, address, aligned
from mbs_dynamics.errors import ArgumentError


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


def loop_over_states(
    function: int,
    states: int,
    addresses: Sequence[int],
    strides: Sequence[int],
    sizes: Sequence[int],
    inputs: int,
    guards: int,
) -> int:
    """Evaluate one state after the other; see :func:`codegen.llvm_shared.loop_over_states`.

    Strides are in bytes, sizes in entries.
    """
    staged = states >= STAGED_STATES and 8 * sum(sizes[inputs:]) >= STAGED
    staging = [aligned((size,)) for size in sizes[inputs:]] if staged else []
    staged_at = [address(x) for x in staging] or [0] * (len(sizes) - inputs)
    bytes_ = [8 * size for size in sizes]
    words = np.array([addresses, strides, [0] * inputs + staged_at, bytes_], dtype=np.int64)
    pointers, by_state, staging_at, copied = (row.ctypes.data for row in words)
    arguments = states, pointers, by_state, len(sizes), guards, staging_at, copied
    return int(llvm.loop()(function, *arguments))


class Tiles:
    """Vector code with a driver.

    ``orders`` say for each port where its entries stand in the scratch area of a tile.
    """

    def __init__(
        self, ir: str, name: str, inputs: int, orders: Sequence[Order], guards: int, lanes: int
    ) -> None:
        self.driver = llvm.batch_driver(lanes)
        self.code = llvm.MachineCode(ir)
        self.function = self.code.address(name)
        self.inputs, self.guards, self.lanes = inputs, guards, lanes
        self._orders = orders
        self._own = threading.local()

    def evaluate(self, states: int, views: Sequence[View], threads: int = 1) -> int:
        """Evaluate at least as many states as there are lanes, as :meth:`Machine.several` does."""
        return in_threads(states, threads, lambda first, last: self.part(first, last, views))

    def part(self, first: int, last: int, views: Sequence[View]) -> int:
        """Evaluate some states."""
        # taken out while it is used: a finalizer may run in between and evaluate a batch as well
        workspace = self._own.__dict__.pop("workspace", None) or self._workspace()
        workspace.fill(views)
        status = self.driver(
            self.function,
            first,
            last,
            workspace.table_address,
            self.inputs,
            len(views),
            workspace.pointers_address,
            self.guards,
        )
        self._own.workspace = workspace
        return int(status)

    def words(self) -> tuple[NDArray[np.int64], Any]:
        """Return the words that calls in machine code need, and what has to live as long.

        One call at a time may use them.
        """
        workspace = self._workspace()
        words = VECTOR.words(
            driver=ctypes.cast(self.driver, ctypes.c_void_p).value or 0,
            function=self.function,
            ports=workspace.table_address,
            pointers=workspace.pointers_address,
            guards=self.guards,
            lanes=self.lanes,
        )
        return np.array(words, dtype=np.int64), (self, workspace)

    def _workspace(self) -> _Workspace:
        return _Workspace(self.inputs, self._orders, self.lanes)


class _Workspace:
    """What the driver needs beside the states, for one thread."""

    def __init__(self, inputs: int, orders: Sequence[Order], lanes: int) -> None:
        room = [max(order.max(initial=0) + 1, lanes) * lanes for order in orders]
        offsets = list(itertools.accumulate([*room, lanes], initial=0))  # the last is the status
        self._scratch = aligned((offsets[-1],))
        areas = [address(self._scratch) + 8 * offset for offset in offsets[:-1]]
        self._entries = [
            self._scratch[offset : offset + len(order) * lanes].reshape(-1, lanes)
            for order, offset in zip(orders[:inputs], offsets, strict=False)
        ]
        self._pointers = np.array([*areas, *[0] * (len(orders) - inputs)], dtype=np.int64)
        fields = BATCH_PORT.names
        self._table = np.zeros((len(orders), len(fields)), dtype=np.int64)
        self._table[:, fields.index("size")] = [len(order) for order in orders]
        self._table[:, fields.index("scratch")] = areas[:-1]
        self._places = [np.zeros(max(len(order), lanes), dtype=np.int32) for order in orders]
        for places, order in zip(self._places, orders, strict=True):
            places[: len(order)] = 8 * lanes * order
        self._table[:, fields.index("order")] = [x.ctypes.data for x in self._places]
        self.pointers_address = self._pointers.ctypes.data
        self.table_address = self._table.ctypes.data

    def fill(self, views: Sequence[View]) -> None:
        """Take over where the states of this call are."""
        self._table[:, :3] = [(view.at, view.by_state, view.by_entry) for view in views]
        for view, entries in zip(views, self._entries, strict=False):
            if view.by_state == 0:
                entries[:] = view.array.reshape(-1)[: len(entries), None]  # it may go on after
