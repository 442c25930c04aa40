# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From the nodes of a graph to statements, in the order of the trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mbs_dynamics.compiler.frontend.graph import LOAD, Graph, Node, Symbol
from mbs_dynamics.compiler.ir import nodes as ir


def live_nodes(
    graph: Graph, needed: Collection[ir.Buffer], checked: Sequence[Symbol] = ()
) -> list[Node]:
    """Return the nodes that stores to needed buffers, and checks, depend on."""
    stored = [value for (buffer, _), (value, _) in graph.stores.items() if buffer in needed]
    live = bytearray(len(graph.nodes))
    for x in (*stored, *checked):
        if isinstance(x, Node):
            live[x.id] = 1
    for node in reversed(graph.nodes):
        if live[node.id] and node.op is not LOAD:
            for x in node.args:
                if type(x) is not float:
                    live[x.id] = 1
    return [node for node in graph.nodes if live[node.id]]


def lowered(
    graph: Graph,
    needed: Collection[ir.Buffer],
    checked: Sequence[Symbol] = (),
    *,
    loads_first: bool = False,
) -> tuple[ir.Statement, ...]:
    """Return the statements of stores to needed buffers, and checks at the end.

    Inputs, constants and results of loops over columns are loaded before their first use, all else
    where the trace did it; with ``loads_first`` all loads precede all stores, as in iterations that
    run at the same time.
    """
    read = {graph.constants, *(x.given for x in graph.column_loops)}
    nodes = live_nodes(graph, {*needed, *read}, checked)
    pending: list[tuple[int, ir.Statement]]
    pending = [(0, ir.Fill(x.given, 0, x.given.size)) for x in graph.column_loops]
    pending += [
        (after, ir.Store(buffer, at, value))
        for (buffer, at), (value, after) in graph.stores.items()
        if buffer in needed or buffer in read
    ]
    pending += [(x.after, x.call) for x in graph.column_loops]
    pending.sort(key=lambda step: step[0])
    pending.reverse()
    results = {x.result for x in graph.column_loops}
    body: list[ir.Statement] = []
    values: dict[int, int] = {}

    def operand(x: Any) -> Any:
        """Return a number, or the value of a node, after its load at need."""
        if not isinstance(x, Node):
            return float(x)
        value = values.get(x.id)
        return define(x) if value is None else value

    def define(node: Node) -> int:
        op, args = node.op, node.args
        if op is not LOAD:
            args = tuple([operand(x) for x in args])
        value = values[node.id] = len(values)
        body.append(ir.Load(value, *args) if op is LOAD else ir.Let(value, op, args))
        return value

    def step() -> None:
        _, statement = pending.pop()
        if isinstance(statement, ir.Store):
            statement = statement._replace(value=operand(statement.value))
        body.append(statement)

    if loads_first:
        nodes.sort(key=lambda node: node.op is not LOAD)
    for node in nodes:
        while pending and pending[-1][0] <= node.id and not loads_first:
            step()
        source = node.args[0] if node.op is LOAD else None
        if source is None or (source.kind not in (ir.INPUT, ir.CONSTANT) and source not in results):
            define(node)
    to_check = [operand(x) for x in checked]
    while pending:
        step()
    body += [ir.Check(x, k) for k, x in enumerate(to_check, 1)]
    return tuple(body)


def hoisted(loop: ir.For) -> ir.Block:
    """Return a parallel loop, preceded by its loop-invariant statements."""
    before: list[ir.Statement] = []
    within: list[ir.Statement] = []
    varying: set[ir.Operand] = set()
    for x in loop.body:
        varies = any(loop.variable in at.variables for at in ir.indices_of(x))
        if not isinstance(x, (ir.Let, ir.Load)):
            within.append(x)
        elif varies or not varying.isdisjoint(ir.operands_of(x)):
            within.append(x)
            varying.add(x.value)
        else:
            before.append(x)
    return (*before, loop._replace(body=tuple(within)))
