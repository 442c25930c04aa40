# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a compiled program: one state, and many in the way that suits the program."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.compiler.codegen.llvm import emit_llvm
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.passes.deduplication import deduplicated
from mbs_dynamics.compiler.passes.strategy import LEAST_STATES, is_worth_lanes
from mbs_dynamics.compiler.runtime.buffers import Buffers
from mbs_dynamics.compiler.runtime.compile_time import warn_if_long
from mbs_dynamics.compiler.runtime.tiles import (
    Tiles,
    in_threads,
    loop_over_states,
    thread_count,
)
from mbs_dynamics.compiler.runtime.views import View


class Machine:
    """A program as machine code. Evaluates states that have been checked."""

    def __init__(self, program: Program) -> None:
        self.program = program
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
        if self.several_at_once(states):
            return self.several(states, views)
        return in_threads(states, thread_count(states), lambda a, b: self._part(a, b, views))

    def several(self, states: int, views: Sequence[View]) -> int:
        """Evaluate several states at once; what is returned is that of :meth:`Kernel.evaluate`."""
        with self._lock:
            if self.vector is None:
                self.vector = Vector(self.program, llvm.vector_lanes())
        return self.vector.evaluate(states, views, thread_count(states))

    def one_by_one(self, states: int, views: Sequence[View]) -> int:
        """Evaluate one state after the other, whose entries lie side by side."""
        return self._part(0, states, views)

    def _part(self, first: int, last: int, views: Sequence[View]) -> int:
        at = [view.since(first).at for view in views]
        guards = len(self.program.guards)
        if last - first == 1:  # for which the loop would have to be loaded
            pointers = np.array(at, dtype=np.int64)
            status = int(self.plain(pointers.ctypes.data))
            return status + first * guards if status > 0 else status
        strides = [view.by_state for view in views]
        sizes = [port.size for port in (*self.program.inputs, *self.program.outputs)]
        inputs = len(self.program.inputs)
        status = loop_over_states(self.function, last - first, at, strides, sizes, inputs, guards)
        return status + first * guards if status > 0 else status


class Vector(Tiles):
    """A program as vector code."""

    def __init__(self, program: Program, lanes: int) -> None:
        warn_if_long(program, "llvm")
        stored, of_outputs = deduplicated(program)
        orders = [*(np.arange(port.size) for port in program.inputs), *of_outputs]
        ir = emit_llvm(stored, lanes)
        inputs, guards = len(program.inputs), len(program.guards)
        super().__init__(ir, program.name, inputs, orders, guards, lanes)
