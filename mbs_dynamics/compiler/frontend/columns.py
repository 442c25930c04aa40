# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of each column of a matrix, as loops instead of operations written out.

A loop over the columns takes several at once, one in each lane of a vector. It is for code for one
state; all other code is made from :attr:`Program.straight`, which leaves out more zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend.graph import LOAD, ColumnLoop, Graph, Symbol
from mbs_dynamics.compiler.frontend.lowering import lowered
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir.nodes import Buffer, Index, index

LEAST = 16
"""Columns from which on they are a loop.

Derivatives of forward dynamics then take 0.8 of the time for quadrupeds, of 18 columns, and
0.6 to 0.65 for humanoids (``benchmarks floating``).
"""

COLUMN = ir.Variable("column")


def columnwise(function: Callable[..., Any], B: Any, *constants: Any) -> Any:
    """Return the matrix whose columns are ``function(column, *constants)`` for those of B.

    All are arrays of numbers and symbols of one trace. Many columns are a loop, in which zeros of
    the constants are left out. The function must use no symbols but those that it is given.
    """
    rows, columns = B.shape
    graph = next((x.graph for a in (B, *constants) for x in a.flat if isinstance(x, Symbol)), None)
    if type(graph) is not Graph or columns < LEAST:
        return np.array([function(column, *constants) for column in B.T]).T
    number = len(graph.column_loops)
    given = Buffer(f"columns{number}", ir.SCRATCH, B.size)
    for k, x in enumerate(B.flat):
        if isinstance(x, Symbol):
            graph.stores[given, Index((), k)] = x, x.id + 1
        elif x != 0.0:
            graph.stores[given, Index((), k)] = x, 0
    own = Graph()  # of the operations for one column
    column = np.array([own.load(given, index(COLUMN) + columns * i) for i in range(rows)])
    results = function(column, *(_loaded(own, graph, a) for a in constants))
    result = Buffer(f"results{number}", ir.SCRATCH, len(results) * columns)
    for i, x in enumerate(results):
        own.stores[result, index(COLUMN) + columns * i] = x, len(own.nodes)
    loop = ir.For(COLUMN, Index(), index(columns), lowered(own, [result]), parallel=True)
    own.forget()
    call = ir.Call(ir.Procedure(f"over{number}", (), (loop,)), ())
    graph.column_loops.append(ColumnLoop(given, result, call, len(graph.nodes)))
    entries = [graph.load(result, Index((), k)) for k in range(result.size)]
    return np.array(entries, dtype=object).reshape(-1, columns)


def _loaded(own: Graph, graph: Graph, array: Any) -> Any:
    """Return an array with its symbols as loads within a loop, and its numbers as they are."""
    loaded = np.array(array, dtype=object)
    for k, x in enumerate(loaded.flat):
        if isinstance(x, Symbol):
            if x.id not in graph.places:
                graph.places[x.id] = Index((), graph.constants.size)
                graph.constants.size += 1
                graph.stores[graph.constants, graph.places[x.id]] = x, x.id + 1
            loaded.flat[k] = own.load(graph.constants, graph.places[x.id])
    return loaded


def result_with(graph: Graph, entries: Sequence[Any]) -> Buffer | None:
    """Return the results of a loop that has most of these entries, at their places, if any.

    The others can be stored there in the end: none of them is an entry that another replaces.
    """
    for loop in graph.column_loops:
        result = loop.result
        if result.size == len(entries) and result.kind != ir.OUTPUT:
            places = [place_in(result, x) for x in entries]
            others = {k for k, place in enumerate(places) if place != k}
            if 2 * len(others) <= result.size and others.isdisjoint(places[k] for k in others):
                return result
    return None


def place_in(result: Buffer, x: Any) -> int | None:
    """Return the place of an entry in the results of a loop; None if it is none of them."""
    if isinstance(x, Symbol) and x.op is LOAD and x.args[0] is result:
        return int(x.args[1].constant)
    return None
