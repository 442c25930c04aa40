# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From the nodes of a graph to statements, in the order of the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbs_dynamics.compiler.frontend.graph import LOAD, Graph, Node, Symbol
from mbs_dynamics.compiler.ir import nodes as ir


def live_nodes(graph: Graph, needed: Sequence[Any]) -> list[Node]:
    """Return the nodes that these depend on, in the order of the trace."""
    live = bytearray(len(graph.nodes))
    for x in needed:
        if isinstance(x, Node):
            live[x.id] = 1
    for node in reversed(graph.nodes):
        if live[node.id] and node.op is not LOAD:
            for x in node.args:
                if type(x) is not float:
                    live[x.id] = 1
    return [node for node in graph.nodes if live[node.id]]


def lowered(
    graph: Graph, outputs: Mapping[ir.Buffer, Sequence[Any]], checked: Sequence[Symbol] = ()
) -> tuple[ir.Statement, ...]:
    """Return the statements that compute the entries of outputs, and the checks at the end.

    Inputs are loaded before their first use, and results stored once they are known.
    """
    stores: dict[int, list[tuple[ir.Buffer, int]]] = {}
    """Places of results, by the number of the node; -1 stands for the numbers."""
    body: list[ir.Statement] = []
    for buffer, entries in outputs.items():
        for k, x in enumerate(entries):
            if isinstance(x, Symbol):
                stores.setdefault(x.id, []).append((buffer, k))
            else:
                body.append(ir.Store(buffer, k, float(x)))
    needed = [x for entries in outputs.values() for x in entries]
    values: dict[int, int] = {}

    def operand(x: Any) -> Any:
        """Return a number, or the value of a node, after its load at need."""
        if not isinstance(x, Node):
            return float(x)
        value = values.get(x.id)
        return define(x) if value is None else value

    def define(node: Node) -> int:
        args = node.args if node.op is LOAD else tuple([operand(x) for x in node.args])
        value = values[node.id] = len(values)
        body.append(ir.Load(value, *args) if node.op is LOAD else ir.Let(value, node.op, args))
        return value

    for node in live_nodes(graph, [*needed, *checked]):
        if node.op is not LOAD:
            define(node)
        for buffer, k in stores.get(node.id, ()):
            body.append(ir.Store(buffer, k, operand(node)))
    body += [ir.Check(operand(x), k) for k, x in enumerate(checked, 1)]
    return tuple(body)
