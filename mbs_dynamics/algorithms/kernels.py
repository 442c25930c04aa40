# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of a model: equations traced with its gravity and loads as inputs, compiled once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, Program, checked_backend, default_backend, trace
from mbs_dynamics.model.compiled import compiled
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.values import Recent
from mbs_dynamics.representation.tree import Tree

Property = Callable[[Model], FloatArray]

MODEL_INPUTS: dict[str, Property] = {
    "gravity": attrgetter("gravity"),
    "payload": attrgetter("payloads.parameters"),
}
"""The last inputs of a kernel, if it takes them: properties of the model."""

MOST_LOADS = 16
"""So many kernels are kept that differ in nothing but the gravity and loads they default to."""


def traced_on(
    model: Model,
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    large: bool = False,
) -> Program:
    """Return ``function(tree, **inputs)`` traced body by body, with the model's inputs as its last.

    ``inputs`` maps the names of the arrays to their shapes. The tree has gravity and loads as
    symbols; those that nothing depends on are no inputs.
    """

    def on_symbols(gravity: Any, payload: Any, **symbols: Any) -> Any:
        return function(Tree(model, gravity, payload), **symbols)

    every = {**inputs, **shapes_of_model_inputs(model)}
    return trace(on_symbols, every, name=name, droppable=frozenset(MODEL_INPUTS), large=large)


def compiled_on(
    model: Model,
    key: Hashable,
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    backend: str | None = None,
) -> Kernel:
    """Return what :func:`traced_on` traces as a kernel, once for each name and ``key``.

    Its last inputs, which have no defaults, are what :func:`model_inputs` returns.
    """
    key = name, key
    return kernel_of(
        model, key, lambda: traced_on(model, function, inputs, name=name), backend=backend
    )


def shapes_of_model_inputs(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs that are properties of the model."""
    return {"gravity": (3,), "payload": (len(model.payloads.bodies), 10)}


def model_inputs(model: Model, kernel: Kernel) -> tuple[FloatArray, ...]:
    """Return gravity (3,) and loads (k, 10) of a model, as far as the kernel takes them."""
    return tuple(take(model) for take in properties_taken(kernel))


def properties_taken(kernel: Kernel) -> tuple[Property, ...]:
    """Return the properties of a model that a kernel takes."""
    return tuple(MODEL_INPUTS[port.name] for port in kernel.inputs if port.name in MODEL_INPUTS)


def kernel_of(
    model: Model,
    key: Hashable,
    program: Callable[[], Program],
    *,
    backend: str | None = None,
    defaults: bool = False,
) -> Kernel:
    """Return a program compiled for a model, once for each key and back end.

    With ``defaults`` its last inputs default to the gravity and loads of the model.
    """
    backend = default_backend() if backend is None else checked_backend(backend)
    kept = compiled(model)
    key = key, model.payloads.bodies
    with kept.lock:
        traced: Program = kept.once(key, program)
        values: dict[str, FloatArray] = {}
        if defaults:
            values = {name: take(model) for name, take in MODEL_INPUTS.items()}
        used = [values[port.name] for port in traced.inputs if port.name in values]
        loads = b"".join(np.asarray(x).tobytes() for x in used)
        kernels = kept.once((key, backend, defaults), lambda: Recent(MOST_LOADS))
        if loads not in kernels:
            kernels[loads] = Kernel(traced, backend=backend, defaults=values)
        return kernels[loads]  # type: ignore[no-any-return]
