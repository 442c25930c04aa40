# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms on arrays of JAX, with derivatives, by callbacks to the kernels of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mbs_dynamics.bridges._programs import Pullbacks, kernel_for, refused
from mbs_dynamics.checks import batch_of
from mbs_dynamics.compiler import Kernel, Port
from mbs_dynamics.errors import ArgumentError, missing_extra
from mbs_dynamics.model import Model

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise missing_extra("mbs_dynamics.bridges.jax", "jax", error) from error

__all__ = ["function"]


def function(
    function: Callable[..., Any] | str, model: Model, **options: Any
) -> Callable[..., Any]:
    """Return an algorithm of a model as a function of arrays that JAX can transform.

    ``function(mbs.inverse_dynamics, arm)`` is called with q, qd and qdd, float64 arrays on the CPU
    with any leading batch axes, which broadcast. ``gravity`` (..., 3), ``payload`` (..., k, 10),
    ``armature`` (..., n) and ``placements`` (..., k, 3, 4) may be given by name; by default they
    are those of the model. It returns an array, or a named tuple for algorithms with several
    results.

    ``options`` are those of :func:`mbs_dynamics.compile`, and ``inertial_parameters=True`` makes
    what :func:`mbs_dynamics.inertial_parameters` returns an input, in place of payload and
    armature.

    ``jit``, ``vmap``, ``grad``, ``vjp`` and ``jacrev`` apply; ``vmap`` makes a batch for one call
    of the kernel. Quaternions of floating bases are entries of q like others; ``displaced`` moves
    on the group.

    Raises what :func:`mbs_dynamics.compile` raises. The function raises ArgumentError for arrays of
    another type, device or shape, and BackendError for second and forward-mode derivatives. Where a
    kernel raises SingularError, JAX raises an error of its own with that message.
    """
    kernel = kernel_for(function, model, options)
    pullbacks = Pullbacks(kernel)

    @jax.custom_vjp
    def value(*inputs: Any) -> Any:
        return _called(kernel, inputs, kernel.inputs)

    def forward(*inputs: Any) -> Any:
        values = tuple([x.value for x in inputs])
        needed = tuple([x.value if x.perturbed else None for x in inputs])
        return value(*values), (values, needed)

    def backward(kept: Any, weights: Any) -> Any:
        inputs, needed = kept
        wrt = tuple([p.name for p, x in zip(kernel.inputs, needed, strict=True) if x is not None])
        gradients = iter(gradient(wrt, *inputs, *weights))
        return tuple([None if x is None else _summed(next(gradients), x.shape) for x in needed])

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def gradient(wrt: tuple[str, ...], *arrays: Any) -> Any:
        return _called(pullbacks[wrt], arrays, (*kernel.inputs, *kernel.outputs))

    @gradient.defjvp
    def no_more(*_: Any) -> Any:
        raise refused(kernel.name, "JAX")

    value.defvjp(forward, backward, symbolic_zeros=True)

    def on_arrays(*args: Any, **named: Any) -> Any:
        given = zip(kernel.inputs, kernel.signature.bound(args, named), strict=True)
        arrays = [_checked(kernel.name, port, x) for port, x in given]
        ranks = [x.ndim - len(port.shape) for port, x in zip(kernel.inputs, arrays, strict=True)]
        # axes of equal number, which those that vmap adds precede
        most, pairs = max(ranks), zip(arrays, ranks, strict=True)
        same = [x.reshape(*[1] * (most - rank), *x.shape) for x, rank in pairs]
        try:
            results = value(*same)
        except TypeError as error:  # of JAX, which does not name the function
            if "forward-mode" not in str(error):
                raise
            raise refused(kernel.name, "JAX") from error
        return results[0] if kernel.result_type is None else kernel.result_type._make(results)

    on_arrays.__name__ = kernel.name
    return on_arrays


def _called(kernel: Kernel, arrays: Sequence[Any], ports: Sequence[Port]) -> Any:
    """Return the results of a kernel, whose inputs have these shapes, as a tuple."""
    pairs = zip(ports, arrays, strict=True)
    batch = batch_of(**{port.name: x.shape[: x.ndim - len(port.shape)] for port, x in pairs})
    shapes = [jax.ShapeDtypeStruct(batch + x.shape, jnp.float64) for x in kernel.outputs]

    def evaluated(*inputs: Any) -> Any:
        results = kernel(*map(np.asarray, inputs))
        return results if isinstance(results, tuple) else (results,)

    return jax.pure_callback(evaluated, tuple(shapes), *arrays, vmap_method="expand_dims")


def _summed(x: Any, shape: tuple[int, ...]) -> Any:
    """Return the sum over axes that have the length one in a shape."""
    axes = tuple([k for k, size in enumerate(shape) if size == 1 != x.shape[k]])
    return x.sum(axes, keepdims=True) if axes else x


def _checked(name: str, port: Port, x: Any) -> Any:
    array = x if isinstance(x, jax.Array) else jnp.asarray(x)
    if array.dtype != np.float64:
        hint = "jax.config.update('jax_enable_x64', True) permits it"
        raise ArgumentError(f"{name}: {port.name} must be float64; got {array.dtype}; {hint}")
    if not isinstance(array, jax.core.Tracer):
        others = [d for d in array.devices() if d.platform != "cpu"]
        if others:
            raise ArgumentError(f"{name}: {port.name} must be on the CPU; it is on {others[0]}")
    lead = array.ndim - len(port.shape)
    if lead < 0 or array.shape[lead:] != port.shape:
        raise ArgumentError(
            f"{name}: {port.name} has shape {array.shape}; must be {port.shape}, after batch axes"
        )
    return array
