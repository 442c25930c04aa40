# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Calls with one state where there is no native call: inputs are copied to arrays, results from.

NumPy takes ten times as long to return the address of a small array as to copy the array. So the
addresses of these arrays are known. This relies on no layout of objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from mbs_dynamics.compiler.frontend.program import Program

FLOAT64 = np.dtype(np.float64)


class Buffers:
    """Arrays for the inputs and outputs of one call at a time."""

    def __init__(self, program: Program) -> None:
        arrays = [np.empty(port.shape) for port in (*program.inputs, *program.outputs)]
        self.inputs, self.outputs = arrays[: len(program.inputs)], arrays[len(program.inputs) :]
        self._words = np.array([array.ctypes.data for array in arrays], dtype=np.int64)
        self.pointers = self._words.ctypes.data


class BufferPool:
    """Buffers of one kernel. ``evaluate`` evaluates the state in them and returns the status."""

    def __init__(self, program: Program, evaluate: Callable[[Buffers], int]) -> None:
        self._program, self._evaluate = program, evaluate
        self._shapes = [port.shape for port in program.inputs]
        self._free: list[Buffers] = []

    def call(self, args: tuple[Any, ...]) -> list[ndarray[Any, Any]] | None:
        """Return the results for one state; None if a guard fails or arguments do not suit."""
        if len(args) != len(self._shapes):
            return None
        for x, shape in zip(args, self._shapes, strict=True):
            if type(x) is not ndarray or x.dtype is not FLOAT64 or x.shape != shape:
                return None
        try:
            buffers = self._free.pop()
        except IndexError:  # the first call, or others have not ended
            buffers = Buffers(self._program)
        for array, x in zip(buffers.inputs, args, strict=True):
            array[...] = x
        failed = self._evaluate(buffers)
        results = None if failed else [array.copy() for array in buffers.outputs]
        self._free.append(buffers)
        return results
