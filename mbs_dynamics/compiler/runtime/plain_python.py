# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a program by plain Python, one state after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler.codegen.python import Failed, compile_python
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.runtime.arguments import Signature
from mbs_dynamics.compiler.runtime.views import View


class PlainPython:
    """A program as a function of lists of numbers; what a kernel asks of its machine code."""

    def __init__(self, program: Program, signature: Signature, result_type: Any) -> None:
        self.program, self.signature, self.result_type = program, signature, result_type
        self._function = compile_python(program)

    def call(self, args: tuple[Any, ...]) -> Any:
        """Return the results of one state, or None if the arguments need a closer look."""
        arrays = self.signature.unconverted(args)
        if arrays is None:
            return None
        lists = [x.tolist() if x.ndim == 1 else x.ravel().tolist() for x in arrays]
        try:
            computed = self._function(*lists)
        except Failed:
            return None
        results = [
            np.array(values).reshape(port.shape)
            for values, port in zip(computed, self.program.outputs, strict=True)
        ]
        return results[0] if self.result_type is None else self.result_type._make(results)

    def evaluate(self, states: int, views: Sequence[View], *, in_turn: bool = False) -> int:
        """Evaluate states; see :meth:`Kernel.evaluate`."""
        inputs, guards = len(self.program.inputs), len(self.program.guards)
        tables = [
            as_strided(view.array, (states, port.size), (view.by_state, view.by_entry))
            for view, port in zip(views, (*self.program.inputs, *self.program.outputs), strict=True)
        ]
        for k in range(states):
            try:
                computed = self._function(*[x[k].tolist() for x in tables[:inputs]])
            except Failed as failed:
                return k * guards + int(failed.args[0]) + 1
            for found, values in zip(tables[inputs:], computed, strict=True):
                found[k] = values
        return 0

    def several_at_once(self, states: int) -> bool:
        """Whether vector code would evaluate so many states: there is none."""
        return False

    takes_transposed = several_at_once
