# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A traced function: named inputs, named outputs, and the operations between them."""

from __future__ import annotations

import contextlib
import gc
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler.frontend.columns import place_in, result_with
from mbs_dynamics.compiler.frontend.functions import ON_SYMBOLS, positive
from mbs_dynamics.compiler.frontend.graph import NUMBER, Graph, Symbol
from mbs_dynamics.compiler.frontend.lowering import lowered
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import evaluate_on
from mbs_dynamics.errors import TraceError, log_warning


class Port(NamedTuple):
    """Name and shape of one input or output."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
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
        return sum(self)

    def __str__(self) -> str:
        counts = self._asdict().items()
        listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts if count)
        return f"{self.total} operations ({listed})" if listed else "0 operations"


COUNTED = {
    "multiplications": (ops.MUL,),
    "additions": (ops.ADD, ops.SUB),
    "divisions": (ops.DIV,),
    "square_roots": (ops.SQRT,),
    "trigonometric": (ops.SIN, ops.COS, ops.ATAN2),
    "selections": (ops.SELECT,),
}


@dataclass(frozen=True, eq=False)
class Program:
    """A traced function, as straight-line code or as a loop nest."""

    module: ir.Module
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    guards: tuple[str, ...] = ()
    """Error messages of values that must be positive, in the order of the trace."""
    result_type: Any = None
    """The named tuple that the function returned; None if it returned an array or a mapping."""
    in_loops: bool = False
    """Whether loops have stayed loops."""
    has_columns: bool = False
    """Whether there are loops over columns of matrices in code that is straight otherwise."""

    @property
    def name(self) -> str:
        return self.module.name

    @cached_property
    def operations(self) -> Operations:
        """How many operations of each kind one evaluation takes."""
        times = ops.evaluations(self.straight.module)
        return Operations(**{kind: sum(times[op] for op in of) for kind, of in COUNTED.items()})

    @cached_property
    def straight(self) -> Program:
        """The program with loops over columns written out, in which their zeros are left out."""
        if not self.has_columns:
            return self

        def outputs(**symbols: Any) -> dict[str, Any]:
            return self.on_symbols(symbols)

        shapes = {port.name: port.shape for port in self.inputs}
        return replace(trace(outputs, shapes, name=self.name), result_type=self.result_type)

    def on_symbols(self, symbols: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name, of symbols of the inputs, and guard these."""

        def check(value: Any, status: int) -> None:
            positive(value, self.guards[status - 1])

        flat = {port.name: symbols[port.name].ravel() for port in self.inputs}
        outputs = evaluate_on(self.module, flat, ON_SYMBOLS, check)
        return {
            port.name: np.array(outputs[port.name], dtype=object).reshape(port.shape)
            for port in self.outputs
        }


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
    """Call ``function(**symbols)`` once and return the traced program.

    ``inputs`` maps the names of keyword arguments to their shapes. The function returns one array,
    a named tuple of arrays, or a mapping of names to arrays. Inputs in ``droppable`` on which no
    output depends are left out. ``large`` logs that tracing takes long, if it does. Raises
    TraceError if the function does what only numbers allow, such as branching on a symbol.
    """
    graph = Graph()
    with uncollected(), _reported(graph, name) if large else contextlib.nullcontext():
        try:
            result = function(**{key: graph.input(key, shape) for key, shape in inputs.items()})
        except (TypeError, AttributeError) as error:
            if isinstance(error, TraceError) or not _is_about_symbols(error):
                raise
            raise TraceError(
                f"{name} could not be traced: {error}. Use sin, cos, sqrt, atan2, less and select "
                "from mbs_dynamics.compiler, which work on floats and symbols"
            ) from error
        named, result_type = named_results(name, result)
        arrays = {key: np.asarray(value, dtype=object) for key, value in named.items()}
        outputs = [_output(graph, key, array) for key, array in arrays.items()]
        checked, guards = zip(*graph.guards.values(), strict=True) if graph.guards else ((), ())
        body = lowered(graph, outputs, checked)
        has_columns = bool(graph.column_loops)
    used = {x.buffer.name for x in body if isinstance(x, ir.Load)}
    kept = [Port(k, tuple(s)) for k, s in inputs.items() if k in used or k not in droppable]
    given = tuple(graph.inputs[port.name] for port in kept)
    graph.forget()
    return Program(
        ir.Module(name, given, tuple(outputs), body),
        tuple(kept),
        tuple(Port(key, array.shape) for key, array in arrays.items()),
        guards,
        result_type,
        has_columns=has_columns,
    )


def _output(graph: Graph, name: str, array: Any) -> ir.Buffer:
    """Return the buffer of an output, after its stores are noted."""
    entries = [_entry(x, graph) for x in array.flat]
    result = result_with(graph, entries)
    output = result or ir.Buffer(name, ir.OUTPUT, len(entries))
    output.name, output.kind = name, ir.OUTPUT
    for k, x in enumerate(entries):
        after = len(graph.nodes) if result else x.id + 1 if isinstance(x, Symbol) else 0
        if not result or place_in(result, x) != k:
            graph.stores[output, ir.Index((), k)] = x, after
    return output


@contextlib.contextmanager
def _reported(graph: Graph, name: str) -> Iterator[None]:
    """Log that tracing takes more than :data:`SILENT` seconds, if it does. Starts a thread."""

    def warn() -> None:
        message = "%s: tracing takes more than %.0f s; %d operations so far"
        log_warning(message, name, SILENT, len(graph.nodes))

    timer = threading.Timer(SILENT, warn)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Suspend the garbage collector: it would double the time and free none of the nodes."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def named_results(name: str, result: Any) -> tuple[Mapping[str, Any], Any]:
    """Return what a function returned by name, and its type if that is a named tuple."""
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        return result._asdict(), type(result)
    return (result if isinstance(result, Mapping) else {name: result}), None


def _is_about_symbols(error: TypeError | AttributeError) -> bool:
    """Whether an error comes from an operation that symbols, unlike numbers, do not have."""
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
