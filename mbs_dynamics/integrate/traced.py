# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of steps: a model is traced with its gravity and its payloads as inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, Program, checked_backend, default_backend, trace
from mbs_dynamics.model.body import Payload
from mbs_dynamics.model.tree import Model

MODEL_INPUTS = frozenset({"gravity", "payload"})
"""Inputs of a kernel that come from the model; those that nothing depends on are left out."""


def model_kernel(
    model: Model,
    key: Hashable,
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    backend: str | None = None,
) -> Kernel:
    """Return ``function(model, **inputs)`` compiled for a model, once for each name and ``key``.

    ``inputs`` maps the names of the arrays to their shapes. The kernel takes them in this order,
    and then, as far as anything depends on them, what :func:`model_inputs` returns.
    """
    chosen = default_backend() if backend is None else checked_backend(backend)
    traced = (name, key, model.carriers)
    with model.lock:
        if traced not in model.kernels:
            model.kernels[traced] = _trace(model, function, inputs, name)
        compiled = (*traced, chosen)
        if compiled not in model.kernels:
            model.kernels[compiled] = Kernel(model.kernels[traced], backend=chosen)
        kernel: Kernel = model.kernels[compiled]
    return kernel


def model_inputs(model: Model, kernel: Kernel) -> tuple[FloatArray, ...]:
    """Return gravity (3,) and payloads (k, 10) of a model, as far as the kernel takes them."""
    given = {"gravity": np.asarray(model.gravity), "payload": model.payload_parameters}
    return tuple(given[port.name] for port in kernel.inputs if port.name in MODEL_INPUTS)


def _trace(
    model: Model, function: Callable[..., Any], inputs: Mapping[str, tuple[int, ...]], name: str
) -> Program:
    def on_symbols(gravity: Any, payload: Any, **symbols: Any) -> Any:
        loads = tuple(
            Payload(load.body, parameters)
            for load, parameters in zip(model.payloads, payload, strict=True)
        )
        return function(replace(model, gravity=gravity, payloads=loads).loaded(), **symbols)

    every = {**inputs, "gravity": (3,), "payload": (len(model.payloads), 10)}
    return trace(on_symbols, every, name=name, droppable=MODEL_INPUTS)
