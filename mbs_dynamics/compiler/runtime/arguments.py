# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a kernel: which is which, and what is wrong with them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.errors import ArgumentError


class Signature:
    """The inputs of a kernel with their defaults, and its outputs."""

    def __init__(self, program: Program, defaults: Mapping[str, FloatArray]) -> None:
        self.name = program.name
        self.inputs, self.outputs = program.inputs, program.outputs
        self.required = sum(port.name not in defaults for port in self.inputs)
        if any(port.name in defaults for port in self.inputs[: self.required]):
            raise ArgumentError(f"{self.name}: inputs with a default must come last")
        optional = self.inputs[self.required :]
        self.defaults = tuple(
            np.array(defaults[port.name], dtype=np.float64, order="C") for port in optional
        )
        for port, default in zip(optional, self.defaults, strict=True):
            default.flags.writeable = False
            if default.shape != port.shape:
                raise ArgumentError(
                    f"{self.name}: the default of {port.name} has shape {default.shape}; "
                    f"valid is {port.shape}"
                )

    @property
    def python(self) -> inspect.Signature:
        """The signature as Python writes it, with shapes as annotations."""
        empty = inspect.Parameter.empty
        defaults = [empty] * self.required + [x.tolist() for x in self.defaults]
        parameters = [
            inspect.Parameter(
                port.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=default,
                annotation=_batched(port),
            )
            for port, default in zip(self.inputs, defaults, strict=True)
        ]
        shapes = [_batched(port) for port in self.outputs]
        named = [f"{port.name} {shape}" for port, shape in zip(self.outputs, shapes, strict=True)]
        returned = shapes[0] if len(shapes) == 1 else f"({', '.join(named)})"
        return inspect.Signature(parameters, return_annotation=returned)

    def bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """Return all inputs in order, from positional and named arguments and defaults."""
        if len(args) > len(self.inputs):
            raise ArgumentError(self._complaint(f"got {len(args)} arguments"))
        bound = {port.name: x for port, x in zip(self.inputs, args, strict=False)}
        for name, value in named.items():
            if name in bound:
                raise ArgumentError(self._complaint(f"got two values for {name!r}"))
            bound[name] = value
        for port, default in zip(self.inputs[self.required :], self.defaults, strict=True):
            bound.setdefault(port.name, default)
        names = [port.name for port in self.inputs]
        missing = [name for name in names if name not in bound]
        unknown = [name for name in bound if name not in names]
        if missing or unknown:
            what = f"missing {missing}" if missing else f"got an unknown argument {unknown[0]!r}"
            raise ArgumentError(self._complaint(what))
        return [bound[name] for name in names]

    def _complaint(self, complaint: str) -> str:
        arguments = ", ".join(f"{port.name} {port.shape}" for port in self.inputs)
        return f"{self.name}: {complaint}; the arguments are: {arguments}"

    def arrays(self, values: Sequence[Any]) -> list[FloatArray]:
        """Return all inputs as float64 arrays with the right last axes."""
        return [
            _as_floats(self.name, port, value)
            for port, value in zip(self.inputs, values, strict=True)
        ]

    def batch(self, arrays: Sequence[FloatArray]) -> tuple[int, ...]:
        """Return the shape to which the batch axes of all inputs broadcast."""
        leading = [
            array.shape[: array.ndim - len(port.shape)]
            for array, port in zip(arrays, self.inputs, strict=True)
        ]
        try:
            return np.broadcast_shapes(*leading)
        except ValueError:
            said = ", ".join(
                f"{port.name} {array.shape}"
                for port, array in zip(self.inputs, arrays, strict=True)
            )
            raise ArgumentError(
                f"{self.name}: the batch axes do not broadcast together: {said}"
            ) from None


def _as_floats(name: str, port: Port, value: Any) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{name}: {port.name} is no array of numbers: {error}") from error
    if array.dtype.kind not in "fiu":
        came = "None" if value is None else f"dtype {array.dtype}"
        raise ArgumentError(f"{name}: {port.name} must be real numbers; got {came}")
    core = array.ndim - len(port.shape)
    if core < 0 or array.shape[core:] != port.shape:
        batched = "(..., " + ", ".join(str(size) for size in port.shape) + ")"
        raise ArgumentError(
            f"{name}: {port.name} has shape {array.shape}; valid is {port.shape}, or {batched} "
            "for a batch"
        )
    return array if array.dtype == np.float64 else array.astype(np.float64)


def _batched(port: Port) -> str:
    return "(" + ", ".join(["...", *map(str, port.shape)]) + ")"
