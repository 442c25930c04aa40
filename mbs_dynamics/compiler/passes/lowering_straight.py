# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs without loops as one block: operations in the order of the trace, with loads and stores.

An input is loaded before its first use, and a result is stored as soon as it is known.
"""

from __future__ import annotations

from typing import Any

from mbs_dynamics.compiler.frontend.graph import INPUT, Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.passes.strategy import MANY_ZEROS


def lowered(program: Program) -> ir.Module:
    """Return a program without loops as a module."""
    inputs = {x.name: ir.Buffer(x.name, ir.INPUT, x.size) for x in program.inputs}
    outputs = tuple(ir.Buffer(x.name, ir.OUTPUT, x.size) for x in program.outputs)
    body: list[ir.Statement] = []
    values: dict[int, int] = {}
    """Numbers of values, by the ids of their nodes."""
    entries: dict[int, list[tuple[ir.Buffer, int]]] = {}
    """Entries of outputs that each node is, by its id."""
    for output, results in zip(outputs, program.values, strict=True):
        zeros = sum(type(x) is float and x == 0.0 for x in results)
        if zeros > MANY_ZEROS:
            body.append(ir.Fill(output, 0, output.size))
        for k, x in enumerate(results):
            if isinstance(x, Symbol):
                entries.setdefault(x.id, []).append((output, k))
            elif x != 0.0 or zeros <= MANY_ZEROS:
                body.append(ir.Store(output, ir.Index((), k), x))

    def operand(x: Any) -> Any:
        """Return a number or the value of a node, after the load of an input."""
        if not isinstance(x, (Symbol, Condition)):
            return float(x)
        value = values.get(x.id)
        if value is None:
            name, k = x.args
            value = values[x.id] = len(values)
            body.append(ir.Load(value, inputs[name], ir.Index((), k)))
        return value

    for node in program.nodes:
        if node.op is not INPUT:
            args = tuple([operand(x) for x in node.args])
            value = values[node.id] = len(values)
            body.append(ir.Let(value, node.op, args))
        for output, k in entries.get(node.id, ()):
            body.append(ir.Store(output, ir.Index((), k), operand(node)))
    for k, (x, _) in enumerate(program.guards, 1):
        body.append(ir.Check(operand(x), ir.Index((), k)))
    return ir.Module(program.name, tuple(inputs.values()), outputs, tuple(body))
