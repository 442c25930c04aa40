# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of algorithms for other systems, with properties of the model as inputs if asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import compile, inertial_parameters
from mbs_dynamics.algorithms._algorithm import Algorithm, asked_of
from mbs_dynamics.algorithms.kernels import kernel_of, traced_on
from mbs_dynamics.compiler import Kernel, Port, Program
from mbs_dynamics.compiler.frontend.reverse import pullback
from mbs_dynamics.compiler.ir.interpreter import evaluate_on
from mbs_dynamics.errors import ArgumentError, BackendError
from mbs_dynamics.model import Model
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation.tree import Tree

INERTIAL = "inertial_parameters"


def refused(name: str, system: str) -> BackendError:
    """Return the exception for derivatives that reverse-mode gradients do not provide."""
    return BackendError(
        f"{name}: second derivatives and forward-mode derivatives are not available in {system}; "
        "mbs_dynamics.bridges.casadi has them"
    )


def kernel_for(
    function: Callable[..., Any] | str, model: Model, options: Mapping[str, Any]
) -> Kernel:
    """Return the kernel of an algorithm; properties of the model are defaults of its inputs.

    ``options`` are those of :func:`mbs_dynamics.compile`. ``inertial_parameters=True`` makes the
    parameters of all bodies an input, which replaces payload and armature.
    """
    others = {name: x for name, x in options.items() if name != INERTIAL}
    if not options.get(INERTIAL, False):
        return compile(function, model, **others)
    backend = others.pop("backend", None)
    algorithm, arrays, complete = asked_of(function, others)
    algorithm.check_model(model)
    model = algorithm.model_for(model, complete)

    def on_tree(tree: Tree, entries: Any) -> None:
        rows = entries[: 10 * model.nb].reshape(-1, 10)
        pairs = zip(tree.bodies, rows, strict=True)
        tree.bodies = [replace(body, inertia=Inertia.from_parameters(row)) for body, row in pairs]
        if tree.has_armature:
            tree.armature = entries[10 * model.nb :]

    def traced() -> Program:
        return program_with(algorithm, model, arrays, complete, (INERTIAL, len(values)), on_tree)

    values = inertial_parameters(model)
    key = (algorithm, INERTIAL, arrays, *complete.values())
    kernel = kernel_of(model, key, traced, backend=backend)
    return kernel.with_defaults({INERTIAL: values, "gravity": model.gravity})


def program_with(
    algorithm: Algorithm,
    model: Model,
    arrays: Iterable[str],
    options: Mapping[str, Any],
    extra: tuple[str, int],
    on_tree: Callable[[Tree, Any], None],
) -> Program:
    """Return an algorithm traced with one more input, whose name and size are ``extra``.

    ``on_tree(tree, entries)`` changes the tree by the entries of this input before the trace.
    """
    name, size = extra

    def equations(tree: Tree, **symbols: Any) -> Any:
        on_tree(tree, symbols.pop(name))
        return algorithm.equations(tree, **symbols, **options)

    shapes = {each: algorithm.shape(each, model, options) for each in arrays} | {name: (size,)}
    return traced_on(model, equations, shapes, name=algorithm.name)


def split(kernel: Kernel, **wanted: bool) -> tuple[list[Port], dict[str, Any]]:
    """Return the ports of a kernel that remain inputs, and the values of those that do not.

    ``wanted`` says for each property of the model whether it is an input (True) or a constant.
    Raises ArgumentError if an input is wanted that the kernel does not have.
    """
    values = kernel.signature.optional
    for name, asked in wanted.items():
        if asked and name not in values:
            inputs = ", ".join(port.name for port in kernel.inputs)
            raise ArgumentError(
                f"{kernel.name} does not depend on {name}; its inputs are: {inputs}"
            )
    constants = {name: values[name] for name in wanted if name in values and not wanted[name]}
    ports = [port for port in kernel.inputs if port.name not in constants]
    return ports, constants


def evaluated(
    program: Program, inputs: Mapping[str, Any], meaning: Mapping[str, Callable[..., Any]]
) -> dict[str, Any]:
    """Return the outputs by name, as object arrays of the scalars of another system."""
    flat = {name: np.asarray(x, dtype=object).reshape(-1).tolist() for name, x in inputs.items()}
    outputs = evaluate_on(program.module, flat, meaning)
    arrays = {}
    for port in program.outputs:
        array = arrays[port.name] = np.empty(port.shape, dtype=object)
        for k, x in enumerate(outputs[port.name]):
            array.flat[k] = x
    return arrays


def check_size(program: Program, most: int, cost: str) -> None:
    """Raise ArgumentError if a program has more operations than another system can take."""
    total = program.operations.total
    if total > most:
        raise ArgumentError(
            f"model: {program.name} takes {total} operations, {cost}; the limit is {most}"
        )


class Pullbacks(dict[tuple[str, ...], Kernel]):
    """Kernels of gradients of a kernel by some of its inputs, compiled when first needed."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    def __missing__(self, wrt: tuple[str, ...]) -> Kernel:
        gradient = pullback(self.kernel.program, wrt)
        return self.setdefault(wrt, Kernel(gradient, backend=self.kernel.backend))
