# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of a model: equations traced with gravity, loads, armature, placements as inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, Program, checked_backend, default_backend, trace
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree, rotors


def placements(model: Model) -> FloatArray:
    """Return the upper rows (k, 3, 4) of the poses of ``model.variable_links``."""
    rows = [model.placement(link)[:3] for link in model.variable_links]
    return np.array(rows).reshape(-1, 3, 4)


def variables(model: Model) -> tuple[tuple[int, ...], bool, tuple[str, ...]]:
    """Return the bodies with loads, whether there is armature, and the links with placements.

    Kernels are compiled for these, and have their values as inputs.
    """
    return model.payloads.bodies, bool(model.armature.any()), model.variable_links


MODEL_INPUTS: dict[str, Callable[[Model], FloatArray]] = {
    "gravity": attrgetter("gravity"),
    "payload": attrgetter("payloads.parameters"),
    "armature": rotors,
    "placements": placements,
}
"""The last inputs of a kernel, if it takes them: properties of the model."""


def traced_on(
    model: Model,
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
) -> Program:
    """Return ``function(tree, **inputs)`` traced body by body, with the model's inputs as its last.

    ``inputs`` maps the names of the arrays to their shapes. The tree has gravity, loads, armature
    and placements as symbols; those that nothing depends on are not inputs.
    """

    def on_symbols(**symbols: Any) -> Any:
        tree = Tree(model, *[symbols.pop(name) for name in MODEL_INPUTS])
        return function(tree, **symbols)

    every = {**inputs, **{name: value(model).shape for name, value in MODEL_INPUTS.items()}}
    return trace(on_symbols, every, name=name, droppable=frozenset(MODEL_INPUTS))


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
    traced = partial(traced_on, model, function, inputs, name=name)
    return kernel_of(model, (name, key), traced, backend=backend)


def model_inputs(model: Model, kernel: Kernel) -> tuple[FloatArray, ...]:
    """Return the properties of :data:`MODEL_INPUTS` that the kernel takes."""
    names = [port.name for port in kernel.inputs if port.name in MODEL_INPUTS]
    return tuple(MODEL_INPUTS[name](model) for name in names)


def kernel_of(
    model: Model,
    key: Hashable,
    program: Callable[[], Program],
    *,
    backend: str | None = None,
    defaults: bool = False,
) -> Kernel:
    """Return a program compiled for a model, once for each key and back end.

    Models that differ in nothing but gravity, the loads of the same bodies, armature and placements
    of the same links share its machine code. With ``defaults`` its last inputs default to those of
    the model.
    """
    backend = default_backend() if backend is None else checked_backend(backend)
    store, shared = model.compiled, (key, variables(model), backend)
    with store.lock:
        kernel: Kernel | None = store.with_defaults.get((key, backend)) if defaults else None
        if kernel is None:
            kernel = store.get_or_create(shared, lambda: Kernel(program(), backend=backend))
            if defaults:
                values = {name: value(model) for name, value in MODEL_INPUTS.items()}
                kernel = store.with_defaults[key, backend] = kernel.with_defaults(values)
        return kernel
