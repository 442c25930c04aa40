# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back end python: a program as a function of lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.codegen.python import compile_python
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.pipeline import lower


class PlainPython:
    """A program in plain Python. Its methods are those of :class:`runtime.machine.Machine`."""

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
