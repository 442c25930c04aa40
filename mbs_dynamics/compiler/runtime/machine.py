# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that evaluate tables of states: as machine code, vector code or plain Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.llvm import emit_llvm
from mbs_dynamics.compiler.codegen.llvm_drivers import DRIVER, driver_name
from mbs_dynamics.compiler.codegen.python import compile_python
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.compiler.runtime.arguments import address
from mbs_dynamics.locks import Lock

LEAST_STATES = 64
"""Number of states from which on vector code is used; it is compiled on first use."""

C_DRIVER = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + len(DRIVER.parameters)))
"""Type of a driver, whose pointers are passed as integers. ctypes releases Python's lock."""


class Code:
    """A program as machine code for one state, or for as many at once as there are lanes."""

    def __init__(self, program: Program, lanes: int = 1) -> None:
        self.program, self.lanes = program, lanes
        module = lower(program, "llvm" if lanes == 1 else "llvm vectors")
        self._code = llvm.MachineCode(emit_llvm(module, lanes), program.name)
        self.address = self._code.address

    def evaluate(self, states: int, tables: Sequence[FloatArray]) -> int:
        """Evaluate at least as many states as there are lanes; see :meth:`Machine.evaluate`."""
        words = [(address(x), x.strides[0], x.shape[1]) for x in tables]
        columns = np.array(words, dtype=np.int64).reshape(-1, 3).T.copy()
        counts = len(self.program.inputs), len(tables), len(self.program.guards)
        driver = C_DRIVER(llvm.shared(driver_name(self.lanes)))
        return int(driver(self.address, states, *map(address, columns), *counts))


class Machine:
    """A program as machine code."""

    def __init__(self, program: Program) -> None:
        self.one = Code(program)
        self.vector: Code | None = None
        """The vector code, which is compiled when it is first needed."""
        self._lock = Lock()

    def evaluate(self, states: int, tables: Sequence[FloatArray], *, in_turn: bool = False) -> int:
        """Evaluate states, ``in_turn`` if one may depend on the one before; else as vector code.

        ``tables`` are those of the inputs, then those of the outputs. Returns 0, or for the first
        state i at which the guard k, counted from 1, fails, i times the number of guards, plus k;
        or -1 if there is no memory.
        """
        if in_turn or states < LEAST_STATES:
            return self.one.evaluate(states, tables)
        with self._lock:
            if self.vector is None:
                self.vector = Code(self.one.program, llvm.vector_lanes())
        return self.vector.evaluate(states, tables)


class PlainPython:
    """A program in plain Python. Its methods are those of :class:`Machine`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._function = compile_python(lower(program, "python"))

    def evaluate(self, states: int, tables: Sequence[FloatArray], *, in_turn: bool = False) -> int:
        inputs, guards = len(self.program.inputs), len(self.program.guards)
        for k in range(states):
            results = self._function(*[x[k].tolist() for x in tables[:inputs]])
            if isinstance(results, int):
                return k * guards + results
            for table, values in zip(tables[inputs:], results, strict=True):
                table[k] = values
        return 0
