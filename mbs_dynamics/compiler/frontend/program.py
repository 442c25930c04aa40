# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A traced function: named inputs, named outputs, and the operations between them."""

from __future__ import annotations

import contextlib
import gc
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mbs_dynamics.compiler.frontend.graph import INPUT, NUMBER, Condition, Graph, Symbol
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.errors import TraceError


class Port(NamedTuple):
    """Name and shape of one input or output."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


class Operations(NamedTuple):
    """How many operations of each kind a program has. Negations cost nothing and are left out."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    selections: int = 0

    @property
    def total(self) -> int:
        """Operations of all kinds."""
        return sum(self)

    def __str__(self) -> str:
        counts = self._asdict().items()
        said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts if count)
        return f"{self.total} operations ({said})" if said else "0 operations"


KIND = {
    ops.MUL: "multiplications",
    ops.ADD: "additions",
    ops.SUB: "additions",
    ops.DIV: "divisions",
    ops.SQRT: "square_roots",
    ops.SIN: "trigonometric",
    ops.COS: "trigonometric",
    ops.ATAN2: "trigonometric",
    ops.SELECT: "selections",
}


@dataclass(frozen=True, eq=False)
class Program:
    """What is left of a function after tracing: only the nodes that an output needs."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    values: tuple[tuple[Symbol | float, ...], ...]
    """For each output the flat (row-major) list of its entries."""
    nodes: tuple[Symbol | Condition, ...]
    """Arguments before their users, inputs included, nothing superfluous."""
    guards: tuple[tuple[Symbol, str], ...] = ()
    """Symbols that must be positive, in the order of the trace, and what to say if one is not."""
    result_type: Any = None
    """The named tuple that the function returned; None if it returned an array or a mapping."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what it is made of as lists, which do not nest: graphs are deep."""
        number = {node.id: k for k, node in enumerate(self.nodes)}

        def plain(x: Any) -> Any:
            return number[x.id] if isinstance(x, (Symbol, Condition)) else x

        nodes = [(x.op, x.args if x.op == INPUT else tuple(map(plain, x.args))) for x in self.nodes]
        values = [list(map(plain, entries)) for entries in self.values]
        guards = [(plain(x), text) for x, text in self.guards]
        given = self.name, self.inputs, self.outputs, values, nodes, guards, self.result_type
        return _rebuilt, given

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        # the number 1.0 equals the node 1, but for their texts
        return self is other or repr(self.__reduce__()) == repr(other.__reduce__())

    def __hash__(self) -> int:
        return hash((self.name, self.inputs, self.outputs))

    in_loops: ClassVar[bool] = False
    """Whether it is a :class:`LoopProgram`. What these need is imported where there is one: to make
    its classes takes longer than to load a kernel."""

    @property
    def expanded(self) -> Program:
        """The same function without loops: itself."""
        return self

    @property
    def operations(self) -> Operations:
        """How many operations of each kind one evaluation takes."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            kind = KIND.get(node.op)
            if kind:
                counts[kind] = counts.get(kind, 0) + 1
        return Operations(**counts)


def _rebuilt(
    name: str,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    values: list[list[Any]],
    nodes: list[tuple[str, tuple[Any, ...]]],
    guards: list[tuple[Any, str]],
    result_type: Any,
) -> Program:
    """Return the program of which these are the lists."""
    graph = Graph()

    def node(x: Any) -> Any:
        return graph.nodes[x] if type(x) is int else x

    known = {op: op for op in (INPUT, *ops.EVERY)}  # operations are compared as objects
    for name_of_op, args in nodes:
        op = known[name_of_op]
        kind = Condition if op in ops.CONDITIONS else Symbol
        operands = args if op == INPUT else tuple(map(node, args))
        graph.nodes.append(kind(graph, op, operands, len(graph.nodes)))
    return Program(
        name,
        inputs,
        outputs,
        tuple(tuple(map(node, entries)) for entries in values),
        tuple(graph.nodes),
        tuple((node(x), text) for x, text in guards),
        result_type,
    )


SILENT = 5.0
"""Seconds that tracing and compilation take at most without a word in the log."""


def trace(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    droppable: frozenset[str] = frozenset(),
    large: bool = False,
) -> Program:
    """Call ``function(**symbols)`` once and return the program that it leaves behind.

    ``inputs`` maps the names of keyword arguments to their shapes. The function returns one array,
    a named tuple of arrays, or a mapping of names to arrays. Inputs in ``droppable`` on which no
    output depends are left out. ``large`` logs that tracing takes long, if it does.

    Raises TraceError if the function does what only numbers allow, such as branching on a symbol.
    """
    graph = Graph()
    with uncollected(), _reported(graph, name) if large else contextlib.nullcontext():
        return _trace(graph, function, inputs, name, droppable)


@contextlib.contextmanager
def _reported(graph: Graph, name: str) -> Iterator[None]:
    """Log that tracing takes more than :data:`SILENT` seconds, if it does. Starts a thread."""

    def warn() -> None:
        import logging  # slow to import, and rarely needed

        said = "%s: tracing takes more than %.0f s; %d operations so far"
        logging.getLogger("mbs_dynamics").warning(said, name, SILENT, len(graph.nodes))

    timer = threading.Timer(SILENT, warn)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage meanwhile.

    Nodes are many and live long: collecting doubles the time and frees nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _trace(
    graph: Graph,
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    name: str,
    droppable: frozenset[str],
) -> Program:
    symbols = {key: graph.input(key, shape) for key, shape in inputs.items()}
    try:
        result = function(**symbols)
    except (TypeError, AttributeError) as error:
        if isinstance(error, TraceError) or not _is_about_symbols(error):
            raise
        raise TraceError(
            f"{name} could not be traced: {error}. Use sin, cos, sqrt, atan2, less and select from "
            "mbs_dynamics.compiler, which work on floats and symbols"
        ) from error
    named, result_type = named_results(name, result)
    arrays = {key: np.asarray(value, dtype=object) for key, value in named.items()}
    values = tuple(tuple(_entry(x, graph) for x in array.flat) for array in arrays.values())
    guards = tuple(graph.guards.values())
    nodes = _needed(graph, (*values, tuple(x for x, _ in guards)))
    used = {node.args[0] for node in nodes if node.op == INPUT}
    kept = [Port(k, tuple(s)) for k, s in inputs.items() if k in used or k not in droppable]
    outputs = tuple(Port(key, array.shape) for key, array in arrays.items())
    graph.forget_but(nodes)
    return Program(name, tuple(kept), outputs, values, nodes, guards, result_type)


def named_results(name: str, result: Any) -> tuple[Mapping[str, Any], Any]:
    """Return what a function returned by name, and its type if that is a named tuple."""
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        return result._asdict(), type(result)
    return (result if isinstance(result, Mapping) else {name: result}), None


def _is_about_symbols(error: TypeError | AttributeError) -> bool:
    """Whether Python or NumPy failed to do with symbols what they do with numbers."""
    if isinstance(error, AttributeError):  # np.arctan2 looks for a method of that name
        return isinstance(getattr(np, error.name or "", None), np.ufunc)
    return "ufunc" in str(error) or "'Symbol'" in str(error)


def _entry(x: Any, graph: Graph) -> Symbol | float:
    if isinstance(x, Symbol):
        if x.graph is not graph:
            raise TraceError("an output contains a symbol of another trace")
        return x
    if not isinstance(x, NUMBER):
        raise TraceError(
            f"an output contains a {type(x).__name__}; valid are arrays of numbers and symbols"
        )
    return float(x)


def _needed(
    graph: Graph, values: tuple[tuple[Symbol | float, ...], ...]
) -> tuple[Symbol | Condition, ...]:
    needed = bytearray(len(graph.nodes))
    for output in values:
        for x in output:
            if isinstance(x, Symbol):
                needed[x.id] = 1
    for node in reversed(graph.nodes):
        if needed[node.id] and node.op != INPUT:
            for x in node.args:
                if type(x) is not float:
                    needed[x.id] = 1
    return tuple(node for node in graph.nodes if needed[node.id])
