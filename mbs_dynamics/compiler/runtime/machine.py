# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back end llvm: a program as machine code for one state, and as vector code for many."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.llvm import emit_llvm
from mbs_dynamics.compiler.codegen.llvm_batch import DRIVER, TILE_PORT, VECTOR
from mbs_dynamics.compiler.codegen.llvm_shared import LOOP
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.compiler.passes.deduplication import deduplicated
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.compiler.runtime.states import Addresses, address, aligned
from mbs_dynamics.locks import Lock


class Machine:
    """A program as machine code."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = llvm.MachineCode(emit_llvm(lower(program, "llvm")), program.name)
        self.function = self.code.address
        self._lock = Lock()
        self._vector: Vector | None = None

    def evaluate(self, states: int, tables: Sequence[FloatArray], *, in_turn: bool = False) -> int:
        """Evaluate states, ``in_turn`` if one may depend on the one before; else as vector code.

        ``tables`` are those of the inputs, then those of the outputs. Returns 0, or for the first
        state i at which the guard k, counted from 1, fails, i times the number of guards, plus k;
        or -1 if there is no memory.
        """
        if in_turn or states < strategy.LEAST_STATES:
            return self.one_by_one(states, tables)
        return self.vector(llvm.vector_lanes()).evaluate(states, tables)

    def vector(self, lanes: int) -> Vector:
        """Return the vector code, which is compiled when it is first needed."""
        with self._lock:
            if self._vector is None:
                self._vector = Vector(self.program, lanes)
            return self._vector

    def workspace(self) -> Workspace | None:
        """Return memory for calls of the vector code; None as long as that is not compiled."""
        return None if self._vector is None else self._vector.workspace()

    def one_by_one(self, states: int, tables: Sequence[FloatArray]) -> int:
        at = Addresses(tables)
        what = states, at.pointers, at.strides, len(tables), len(self.program.guards)
        return int(llvm.c_type(LOOP)(llvm.shared("mbs.loop"))(self.function, *what))


class Workspace(NamedTuple):
    """The words of :data:`codegen.llvm_batch.VECTOR`, and the memory that they point to."""

    words: NDArray[np.int64]
    held: tuple[Any, ...]


class Vector:
    """A program as vector code, with the driver that takes states tile by tile."""

    def __init__(self, program: Program, lanes: int) -> None:
        strategy.announce(program, "llvm")
        stored, of_outputs = deduplicated(program)
        self.program, self.lanes = program, lanes
        self.code = llvm.MachineCode(emit_llvm(lower(stored, "llvm vectors"), lanes), program.name)
        self._driver = llvm.c_type(DRIVER)(llvm.shared(f"mbs.batch{lanes}"))
        self._orders = [*(np.arange(port.size) for port in program.inputs), *of_outputs]
        """Where the entries of each port stand in the scratch area of a tile."""
        self._free: list[Workspace] = []

    def evaluate(self, states: int, tables: Sequence[FloatArray]) -> int:
        """Evaluate at least as many states as there are lanes; see :meth:`Machine.evaluate`."""
        at = Addresses(tables)
        try:
            workspace = self._free.pop()
        except IndexError:  # other threads use them all
            workspace = self.workspace()
        vector = address(workspace.words)
        status = int(self._driver(vector, states, at.pointers, at.strides))
        self._free.append(workspace)
        return status

    def workspace(self) -> Workspace:
        """Return memory for one call at a time."""
        lanes, orders = self.lanes, self._orders
        sizes = [max(order.max(initial=0) + 1, lanes) * lanes for order in orders]
        offsets = [*itertools.accumulate([*sizes, lanes], initial=0)]  # the last is the status
        scratch = aligned((offsets[-1],))
        areas = address(scratch) + 8 * np.array(offsets[:-1], dtype=np.int64)
        places = [np.zeros(max(order.size, lanes), dtype=np.int32) for order in orders]
        words = VECTOR.words(
            function=self.code.address,
            inputs=len(self.program.inputs),
            count=len(orders),
            guards=len(self.program.guards),
            scratch=areas.ctypes.data,
            driver=llvm.shared(f"mbs.batch{lanes}"),
        )
        for order, area, place in zip(orders, areas[:-1].tolist(), places, strict=True):
            place[: order.size] = 8 * lanes * order
            words += TILE_PORT.words(size=order.size, scratch=area, order=place.ctypes.data)
        return Workspace(np.array(words, dtype=np.int64), (scratch, areas, places))
