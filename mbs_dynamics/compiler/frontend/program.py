# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A traced function: named inputs, named outputs, and the operations between them."""

from __future__ import annotations

import contextlib
import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.compiler.frontend.functions import ON_SYMBOLS, positive
from mbs_dynamics.compiler.frontend.graph import NUMBER, Condition, Graph, Symbol
from mbs_dynamics.compiler.frontend.lowering import lowered
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import evaluate_on
from mbs_dynamics.compiler.ir.operations import Operations
from mbs_dynamics.errors import TraceError


class Port(NamedTuple):
    """Name and shape of one input or output."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Program:
    """A traced function, as straight-line code."""

    module: ir.Module
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    guards: tuple[str, ...] = ()
    """Error messages of values that must be positive, in the order of the trace."""
    result_type: Any = None
    """The named tuple that the function returned; None if it returned an array or a mapping."""

    @property
    def name(self) -> str:
        return self.module.name

    @cached_property
    def operations(self) -> Operations:
        """How many operations of each kind one evaluation takes."""
        lets = (x for x in self.module.body if isinstance(x, ir.Let))
        kinds = Counter(ops.TABLE[x.op].counted for x in lets)
        return Operations(*[kinds[kind] for kind in Operations._fields])

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


def trace(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    droppable: frozenset[str] = frozenset(),
) -> Program:
    """Call ``function(**symbols)`` once and return the traced program.

    ``inputs`` maps the names of keyword arguments to their shapes. The function returns one array,
    a named tuple of arrays, or a mapping of names to arrays. Inputs in ``droppable`` on which no
    output depends are left out. Raises TraceError if the function does what only numbers allow,
    such as branching on a symbol, and ArgumentError if it takes too many operations.
    """
    graph = Graph(name)
    with uncollected():
        try:
            result = function(**{key: graph.input(key, shape) for key, shape in inputs.items()})
        except (TypeError, AttributeError) as error:
            if isinstance(error, TraceError) or not _is_about_symbols(error):
                raise
            raise TraceError(
                f"{name} could not be traced: {error}. Use the functions of mbs_dynamics.compiler, "
                "such as sin, sqrt, less and select, which work on floats and symbols"
            ) from error
        named, result_type = named_results(name, result)
        arrays = {key: np.asarray(value, dtype=object) for key, value in named.items()}
        outputs = {
            ir.Buffer(key, ir.OUTPUT, array.size): [_entry(x, graph) for x in array.flat]
            for key, array in arrays.items()
        }
        checked, guards = zip(*graph.guards.values(), strict=True) if graph.guards else ((), ())
        body = lowered(graph, outputs, checked)
    used = {x.buffer.name for x in body if isinstance(x, ir.Load)}
    ports = [Port(k, tuple(s)) for k, s in inputs.items() if k in used or k not in droppable]
    given = tuple(graph.inputs[port.name] for port in ports)
    graph.forget()
    return Program(
        ir.Module(name, given, tuple(outputs), body),
        tuple(ports),
        tuple(Port(key, array.shape) for key, array in arrays.items()),
        guards,
        result_type,
    )


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
    if isinstance(x, Condition):
        x = x.number
    if isinstance(x, Symbol):
        if x.graph is not graph:
            raise TraceError("an output contains a symbol of another trace")
        return x
    if not isinstance(x, (*NUMBER, np.bool_)):
        raise TraceError(
            f"an output contains a {type(x).__name__}; valid: arrays of numbers and symbols"
        )
    return float(x)
