# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation of programs: from a program to one that computes gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend.graph import LOAD, Node, Symbol
from mbs_dynamics.compiler.frontend.program import Program, trace
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.errors import TraceError

WEIGHT, GRADIENT = "weight_{}", "gradient_{}"
"""Names of the weight of an output, and of the gradient by an input."""


def pullback(program: Program, wrt: Sequence[str]) -> Program:
    """Return the program of (dy/dx)^T w for the inputs x that are named in ``wrt``.

    Its inputs are those of the program, and then a weight ``weight_y`` of the shape of each output
    y. Its outputs ``gradient_x`` are the gradients of the weighted sum of all outputs by x. Where a
    select does not take an operand, that operand must be finite and have finite derivatives. The
    program's conditions on quantities to be positive are kept. Raises TraceError for an operation
    without a derivative.
    """
    weights = {WEIGHT.format(port.name): port.shape for port in program.outputs}
    shapes = {port.name: port.shape for port in program.inputs}

    def gradients(**symbols: Any) -> dict[str, Any]:
        weighted: list[tuple[Any, Any]] = []
        for name, y in program.on_symbols(symbols).items():
            weighted += zip(y.flat, symbols[WEIGHT.format(name)].flat, strict=True)
        by_node = _gradients(weighted)
        return {
            GRADIENT.format(name): np.array(
                [by_node.get(x.id, 0.0) for x in symbols[name].flat], dtype=object
            ).reshape(shapes[name])
            for name in wrt
        }

    name = f"{program.name}_pullback"
    return trace(gradients, shapes | weights, name=name)


def _gradients(outputs: Sequence[tuple[Any, Any]]) -> dict[int, Any]:
    """Return the gradients of sum w y by all nodes, from pairs of an output y and its weight w."""
    gradients: dict[int, Any] = {}

    def add(x: Any, w: Any) -> None:
        if isinstance(x, Symbol):
            gradients[x.id] = gradients[x.id] + w if x.id in gradients else w

    nodes: list[Node] = []
    for y, w in outputs:
        add(y, w)
        if isinstance(y, Symbol):
            nodes = y.graph.nodes
    for node in nodes[::-1]:  # nodes that are created here come later
        w = gradients.get(node.id)
        if w is not None and node.op is not LOAD:
            rule = ops.TABLE[node.op].gradient
            if rule is None:
                raise TraceError(f"the operation {node.op!r} has no derivative")
            for x, change in zip(node.args, rule(w, node, *node.args), strict=True):
                add(x, change)
    return gradients
