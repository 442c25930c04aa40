# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of kernels: binding, validation, tables of states, named tuples."""

from __future__ import annotations

import functools
import inspect
import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.errors import ArgumentError, SingularError


class Signature:
    """The inputs of a program, the last of which may have defaults, and its outputs and guards."""

    def __init__(self, program: Program, defaults: Mapping[str, FloatArray]) -> None:
        self.name, self.inputs, self.outputs = program.name, program.inputs, program.outputs
        self.guards = program.guards
        self.optional = {
            port.name: np.array(defaults[port.name], dtype=np.float64, order="C")
            for port in self.inputs
            if port.name in defaults
        }
        """The defaults by name."""
        self.required = len(self.inputs) - len(self.optional)
        for port in self.inputs[self.required :]:
            default = self.optional.get(port.name)
            if default is None:
                raise ArgumentError(f"{self.name}: inputs with a default must come last")
            if default.shape != port.shape:
                raise ArgumentError(
                    f"{self.name}: the default of {port.name} has shape {default.shape}; "
                    f"must be {port.shape}"
                )
            default.flags.writeable = False
        self.defaults = tuple(self.optional.values())

    @functools.cached_property
    def python(self) -> inspect.Signature:
        """The signature as Python writes it, with shapes as annotations."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(x.name, kind, annotation=_batched(x)) for x in self.inputs]
        for k, default in enumerate(self.defaults, self.required):
            parameters[k] = parameters[k].replace(default=default.tolist())
        returned = [f"{port.name} {_batched(port)}" for port in self.outputs]
        several = f"({', '.join(returned)})" if len(returned) > 1 else _batched(self.outputs[0])
        return inspect.Signature(parameters, return_annotation=several)

    def bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Return all inputs in order, from positional and named arguments and defaults."""
        if not named and self.required <= len(args) <= len(self.inputs):
            return [*args, *self.defaults[len(args) - self.required :]]
        try:
            values = self.optional | self.python.bind(*args, **named).arguments
        except TypeError as error:
            arguments = f"the arguments are: {listed(self.inputs)}"
            raise ArgumentError(f"{self.name}: {error}; {arguments}") from None
        return [values[port.name] for port in self.inputs]

    def arrays(self, values: Sequence[Any]) -> list[FloatArray]:
        given = zip(self.inputs, values, strict=True)
        return [_as_floats(self.name, port, value) for port, value in given]

    def batch(self, arrays: Sequence[FloatArray]) -> tuple[int, ...]:
        """Return the shape to which the batch axes of all inputs broadcast."""
        given = zip(self.inputs, arrays, strict=True)
        leading = [array.shape[: array.ndim - len(port.shape)] for port, array in given]
        try:
            return np.broadcast_shapes(*leading)
        except ValueError:
            raise ArgumentError(
                f"{self.name}: the batch axes do not broadcast together: "
                f"{listed(self.inputs, arrays)}"
            ) from None

    def singular(self, guard: int, state: tuple[Any, ...], finite: bool) -> SingularError:
        where = f" at state {[int(k) for k in state]} of the batch" if state else ""
        why = "" if finite else "; an input is not finite"
        return SingularError(f"{self.name}: {self.guards[guard]}{where}{why}")


def listed(ports: Sequence[Port], arrays: Sequence[Port | FloatArray] | None = None) -> str:
    """Return the names of ports, each with its shape, or that of its array."""
    given = zip(ports, ports if arrays is None else arrays, strict=True)
    return ", ".join(f"{port.name} {x.shape}" for port, x in given)


def _as_floats(name: str, port: Port, value: Any) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{name}: {port.name} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "fiu":
        received = "None" if value is None else f"dtype {array.dtype}"
        raise ArgumentError(f"{name}: {port.name} must be real numbers; got {received}")
    lead = array.ndim - len(port.shape)
    if lead < 0 or array.shape[lead:] != port.shape:
        raise ArgumentError(
            f"{name}: {port.name} has shape {array.shape}; must be {port.shape}, or "
            f"{_batched(port)} for a batch"
        )
    return array if array.dtype == np.float64 else array.astype(np.float64)


def table_of(array: FloatArray, port: Port, batch: tuple[int, ...]) -> FloatArray:
    """Return the table (states, entries) of an array whose batch axes broadcast to a batch.

    It is a view if possible. The entries of a row are contiguous; the distance of rows is
    arbitrary, and 0 if all states share one.
    """
    states, batched = math.prod(batch), array.ndim > len(port.shape)
    if batched:
        array = np.broadcast_to(array, batch + port.shape)
    rows = array.reshape(states if batched else 1, port.size)
    if not (rows[:1].flags.c_contiguous and rows.flags.aligned):
        rows = np.require(rows, requirements=("C", "A"))
    return rows if batched else np.broadcast_to(rows, (states, port.size))


def address(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first entry."""
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _batched(port: Port) -> str:
    return "(" + ", ".join(["...", *map(str, port.shape)]) + ")"


def result_type(program: Program) -> Any:
    """Return the type of the results of a program with several outputs: fields are their names.

    It is that of the traced function if this returned a named tuple with the layout of a tuple,
    which native calls rely on; else one made for these names; None for a single output.
    """
    if len(program.outputs) == 1:
        return None
    kind = program.result_type
    plain = kind is not None and kind.__basicsize__ == tuple.__basicsize__
    if plain and not (kind.__dictoffset__ or kind.__weakrefoffset__):
        return kind
    return _made(program.name, tuple(port.name for port in program.outputs))


@functools.cache
def _made(name: str, fields: tuple[str, ...]) -> Any:
    title = "".join(part.capitalize() for part in name.split("_")) or "Results"
    base: Any = namedtuple(title, fields, rename=True)  # type: ignore[misc]

    def reduced(results: Any) -> tuple[Any, ...]:
        return _unpickled, (name, fields, tuple(results))

    return type(title, (base,), {"__slots__": (), "__reduce__": reduced})


def _unpickled(name: str, fields: tuple[str, ...], results: tuple[Any, ...]) -> Any:
    return _made(name, fields)(*results)
