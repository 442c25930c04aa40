# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled code through ctypes: arrays at fixed addresses for the inputs and outputs.

NumPy takes ten times as long to return the address of a small array as to copy the array. So the
inputs of a call are copied to arrays whose addresses are known, and the results are copied from
such arrays. This relies on no layout of objects, so that it is right on every interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.runtime.result_types import result_type

LARGEST = 1 << 14
"""Programs with more numbers in all ports are called without copies: those would take longer."""

FLOAT64 = np.dtype(np.float64)


class Buffers:
    """Arrays for the inputs and outputs of one call at a time."""

    def __init__(self, program: Program, defaults: Sequence[FloatArray] = ()) -> None:
        ports = (*program.inputs, *program.outputs)
        self.arrays = [np.empty(port.shape) for port in ports]
        given = len(program.inputs) - len(defaults)
        for array, default in zip(self.arrays[given:], defaults, strict=False):
            array[...] = default
        self._inputs = [(k, x, x.shape) for k, x in enumerate(self.arrays[:given])]
        self._outputs = self.arrays[len(program.inputs) :]
        self._type = result_type(program)
        addresses = [array.ctypes.data for array in self.arrays]
        self._words = np.array([addresses, [0] * len(ports)], dtype=np.int64)
        self.pointers, self.no_strides = (row.ctypes.data for row in self._words)

    def take(self, arrays: Sequence[Any]) -> bool:
        """Copy the inputs of one state; False if there is one that needs a conversion."""
        for k, array, shape in self._inputs:
            x = arrays[k]
            if type(x) is not ndarray or x.dtype is not FLOAT64 or x.shape != shape:
                return False
            array[...] = x
        return True

    def results(self) -> Any:
        """Return new arrays with the outputs: one array, or a named tuple of several."""
        if self._type is None:
            return self._outputs[0].copy()
        return self._type._make([array.copy() for array in self._outputs])


class BufferPool:
    """Buffers of one kernel, by the number of arguments. Each set serves one call at a time."""

    def __init__(
        self, program: Program, defaults: Sequence[FloatArray], evaluate: Callable[[Buffers], int]
    ) -> None:
        every = len(program.inputs)
        self._program, self._evaluate = program, evaluate
        self._defaults = {every: (), every - len(defaults): defaults}
        small = sum(port.size for port in (*program.inputs, *program.outputs)) <= LARGEST
        self._free: dict[int, list[Buffers]] = {n: [] for n in self._defaults} if small else {}

    def call(self, args: tuple[Any, ...]) -> Any:
        """Return the results for one state; None if a guard fails or arguments do not suit."""
        free = self._free.get(len(args))
        if free is None:
            return None
        try:
            buffers = free.pop()
        except IndexError:  # the first call, or others have not ended
            buffers = Buffers(self._program, self._defaults[len(args)])
        results = buffers.results() if buffers.take(args) and not self._evaluate(buffers) else None
        free.append(buffers)
        return results
