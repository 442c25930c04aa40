# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back end python: a program as a function of lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler.codegen.python import Failed, compile_python
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.runtime.batches import Evaluator, View
from mbs_dynamics.compiler.runtime.buffers import Buffers


class PlainPython(Evaluator):
    """A program in plain Python."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._function = compile_python(program.module)

    def one(self, buffers: Buffers) -> int:
        """Evaluate the state in these buffers."""
        return self._evaluate(
            [x.reshape(-1) for x in buffers.inputs], [x.reshape(-1) for x in buffers.outputs]
        )

    def evaluate(self, states: int, views: Sequence[View], *, in_turn: bool = False) -> int:
        """Evaluate states, one after the other."""
        ports = (*self.program.inputs, *self.program.outputs)
        tables = [
            as_strided(view.array, (states, port.size), (view.by_state, 8))
            for view, port in zip(views, ports, strict=True)
        ]
        inputs = len(self.program.inputs)
        for k in range(states):
            entries = [table[k] for table in tables]
            guard = self._evaluate(entries[:inputs], entries[inputs:])
            if guard:
                return k * len(self.program.guards) + guard
        return 0

    def _evaluate(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        try:
            computed = self._function(*[x.tolist() for x in inputs])
        except Failed as failed:
            return int(failed.args[0]) + 1
        for found, values in zip(outputs, computed, strict=True):
            found[:] = values
        return 0
