# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs without loops as one block: operations in the order of the trace, with loads and stores.

An input is loaded before its first use, and a result is stored as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.ir.nodes import (
    INPUT,
    OUTPUT,
    Buffer,
    Check,
    Fill,
    Index,
    Let,
    Load,
    Module,
    Operand,
    Statement,
    Store,
)
from mbs_dynamics.compiler.passes.strategy import MANY_ZEROS


def lowered(program: Program) -> Module:
    """Return a program without loops as a module."""
    return _Lowering(program).module()


class _Lowering:
    """The buffers of a program, and the numbers of its values."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.inputs = {x.name: Buffer(x.name, INPUT, x.size) for x in program.inputs}
        self.outputs = [Buffer(x.name, OUTPUT, x.size) for x in program.outputs]
        self.values: dict[int, int] = {}
        """Numbers of values, by the ids of their nodes."""
        self.body: list[Statement] = []

    def module(self) -> Module:
        """Return the program."""
        program = self.program
        self.body += self._constants()
        entries = self._entries()
        for node in program.nodes:
            if node.op is not g.INPUT:
                args = tuple([self._operand(x) for x in node.args])
                value = self.values[node.id] = len(self.values)
                self.body.append(Let(value, node.op, args))
            for output, k in entries.get(node.id, ()):
                self.body.append(Store(output, Index((), k), self._operand(node)))
        for k, (x, _) in enumerate(program.guards, 1):
            self._operand(x)
            self.body.append(Check(self.values[x.id], Index((), k)))
        inputs = tuple(self.inputs.values())
        return Module(program.name, inputs, tuple(self.outputs), tuple(self.body))

    def _constants(self) -> Iterator[Statement]:
        """Yield the stores of the entries of outputs that are numbers."""
        for output, values in zip(self.outputs, self.program.values, strict=True):
            zeros = sum(type(x) is float and x == 0.0 for x in values)
            if zeros > MANY_ZEROS:
                yield Fill(output, 0, output.size)
            for k, x in enumerate(values):
                if type(x) is float and (x != 0.0 or zeros <= MANY_ZEROS):
                    yield Store(output, Index((), k), x)

    def _entries(self) -> dict[int, list[tuple[Buffer, int]]]:
        """Return which entries of outputs each node is, by its id."""
        found: dict[int, list[tuple[Buffer, int]]] = {}
        for output, values in zip(self.outputs, self.program.values, strict=True):
            for k, x in enumerate(values):
                if isinstance(x, Symbol):
                    found.setdefault(x.id, []).append((output, k))
        return found

    def _operand(self, x: Any) -> Operand:
        """Return a number or the value of a node, after the load of an input."""
        if isinstance(x, (Symbol, Condition)):
            value = self.values.get(x.id)
            return self._load(x) if value is None else value
        return float(x)

    def _load(self, x: Symbol | Condition) -> int:
        name, k = x.args
        value = self.values[x.id] = len(self.values)
        self.body.append(Load(value, self.inputs[name], Index((), k)))
        return value
