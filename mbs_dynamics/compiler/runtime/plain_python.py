# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back end python: a program as a function of lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler.codegen.python import Failed, compile_python
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.compiler.runtime.states import View


class PlainPython:
    """A program in plain Python. Its methods are those of :class:`runtime.machine.Machine`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._function = compile_python(lower(program, "python"))

    def evaluate(self, states: int, views: Sequence[View], *, in_turn: bool = False) -> int:
        inputs, guards = self.program.inputs, len(self.program.guards)
        ports = zip(views, (*inputs, *self.program.outputs), strict=True)
        tables = [as_strided(x.array, (states, port.size), (x.by_state, 8)) for x, port in ports]
        for k, entries in enumerate(zip(*tables, strict=True)):
            guard = self._evaluate(entries[: len(inputs)], entries[len(inputs) :])
            if guard:
                return k * guards + guard
        return 0

    def _evaluate(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        try:
            computed = self._function(*[x.ravel().tolist() for x in inputs])
        except Failed as failed:
            return int(failed.args[0]) + 1
        for array, values in zip(outputs, computed, strict=True):
            array.flat = values
        return 0
