# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a compiled program over many states: vector code, tiles, threads."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.llvm import emit_llvm
from mbs_dynamics.compiler.codegen.llvm_batch import BATCH_PORT
from mbs_dynamics.compiler.codegen.llvm_prefetch import prefetched
from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.passes.deduplication import Order, condensed
from mbs_dynamics.compiler.passes.strategy import STAGED, is_worth_lanes
from mbs_dynamics.compiler.runtime.buffers import Buffers
from mbs_dynamics.compiler.runtime.compile_time import warn_if_long
from mbs_dynamics.compiler.runtime.native.table import VECTOR
from mbs_dynamics.errors import ArgumentError


class View(NamedTuple):
    """Where the states of one port are in memory."""

    array: FloatArray
    """Holds the entries; its first one is the first entry of the first state."""
    by_state: int
    """Bytes from one state to the next; 0 if all states share the same entries."""
    by_entry: int = 8
    """Bytes from one entry to the next."""


LEAST_STATES = 64
"""From so many states on, several are evaluated at once, by code compiled when it is first used."""

STATES_PER_THREAD = 50_000
"""No thread is started for fewer states."""

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


class Machine:
    """A program as machine code. Evaluates states that have been checked."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.shared = llvm.shared()
        self.code = llvm.MachineCode(emit_llvm(program))
        self.function = self.code.address(program.name)
        self.plain = llvm.FUNCTION(self.function)
        self._lock = threading.Lock()
        self._worth_lanes = is_worth_lanes(program, llvm.vector_lanes())
        self.vector: Vector | None = None
        """Vector code, once there is any."""

    def one(self, buffers: Buffers) -> int:
        """Evaluate the state in these buffers. Returns the status."""
        return self.plain(buffers.pointers)  # type: ignore[no-any-return]

    def several_at_once(self, states: int) -> bool:
        """Whether so many states are worth vector code."""
        return states >= LEAST_STATES and self._worth_lanes

    def takes_transposed(self, states: int) -> bool:
        """Whether arrays in which each entry of all states lies side by side need no copy."""
        return self.several_at_once(states)

    def evaluate(self, states: int, views: Sequence[View], *, in_turn: bool = False) -> int:
        """Evaluate states; see :meth:`Kernel.evaluate`."""
        if in_turn:
            return self.one_by_one(states, views)
        if not self.several_at_once(states):
            return in_threads(
                states,
                thread_count(states),
                lambda first, last: self.one_by_one(last - first, views, first),
            )
        return self.several(states, views)

    def several(self, states: int, views: Sequence[View]) -> int:
        """Evaluate several states at once; what is returned is that of :meth:`Kernel.evaluate`."""
        with self._lock:
            if self.vector is None:
                self.vector = Vector(self.program, llvm.vector_lanes())
        return self.vector.evaluate(states, views, thread_count(states))

    def one_by_one(self, states: int, views: Sequence[View], first: int = 0) -> int:
        """Evaluate one state after the other, from a first one on. Entries lie side by side."""
        ports = (*self.program.inputs, *self.program.outputs)
        inputs, guards = len(self.program.inputs), len(self.program.guards)
        where = [address(view.array) + first * view.by_state for view in views]
        sizes = [8 * port.size for port in ports]
        staged = states >= LEAST_STATES and sum(sizes[inputs:]) >= STAGED
        staging = [aligned((port.size,)) if staged else None for port in self.program.outputs]
        words = np.array(
            [
                where,
                [view.by_state for view in views],
                [0] * inputs + [0 if x is None else address(x) for x in staging],
                sizes,
            ],
            dtype=np.int64,
        )
        at = [row.ctypes.data for row in words]
        count = len(ports), guards
        status = int(self.shared.loop(self.function, states, *at[:2], *count, *at[2:]))
        return status + first * guards if status > 0 else status


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


class Vector:
    """A program as vector code with a driver."""

    def __init__(self, program: Program, lanes: int) -> None:
        warn_if_long(program, "llvm")
        stored, orders = condensed(program)
        sizes = [port.size for port in program.outputs]
        ahead = () if program.in_loops else prefetched(sizes, lanes)
        self.program, self.lanes = program, lanes
        self.driver = llvm.batch_driver(lanes)
        self.code = llvm.MachineCode(emit_llvm(stored, lanes, ahead))
        self.function = self.code.address(program.name)
        self.inputs, self.guards = len(program.inputs), len(program.guards)
        self._orders = [*(np.arange(port.size) for port in program.inputs), *orders]
        self._own = threading.local()

    def evaluate(self, states: int, views: Sequence[View], threads: int = 1) -> int:
        """Evaluate at least as many states as there are lanes, as :meth:`Machine.several` does."""
        return in_threads(states, threads, lambda first, last: self._part(first, last, views))

    def _part(self, first: int, last: int, views: Sequence[View]) -> int:
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
        self._table[:, :3] = [(address(view.array), view.by_state, view.by_entry) for view in views]
        for view, entries in zip(views, self._entries, strict=False):
            if view.by_state == 0:
                entries[:] = view.array.reshape(-1)[: len(entries), None]  # it may go on after
