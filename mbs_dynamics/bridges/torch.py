# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms on tensors of PyTorch, with gradients, by the compiled kernels of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mbs_dynamics.bridges._programs import Pullbacks, kernel_for, refused
from mbs_dynamics.errors import ArgumentError, missing_extra
from mbs_dynamics.model import Model

try:
    import torch
except ImportError as error:
    raise missing_extra("mbs_dynamics.bridges.torch", "torch", error) from error

__all__ = ["TorchFunction", "function"]


def function(function: Callable[..., Any] | str, model: Model, **options: Any) -> TorchFunction:
    """Return an algorithm of a model as a function of tensors that autograd can differentiate.

    ``function(mbs.inverse_dynamics, arm)`` is called with q, qd and qdd, float64 tensors on the
    CPU with any leading batch axes, which broadcast. ``gravity`` (..., 3), ``payload``
    (..., k, 10), ``armature`` (..., n) and ``placements`` (..., k, 3, 4) may be given by name; by
    default they are those of the model.

    ``options`` are those of :func:`mbs_dynamics.compile`, and ``inertial_parameters=True`` makes
    what :func:`mbs_dynamics.inertial_parameters` returns an input, in place of payload and
    armature. All inputs have gradients.

    Raises what :func:`mbs_dynamics.compile` raises.
    """
    return TorchFunction(function, model, options)


class TorchFunction:
    """An algorithm as a function of tensors; made by :func:`function`.

    It returns a tensor, or a named tuple of tensors for algorithms with several results. Tensors
    share their memory with the kernel unless they are not contiguous. Gradients are computed by
    kernels that are compiled when they are first needed, one for each set of inputs that require
    them. ``torch.vmap`` and ``torch.func.grad`` apply. Quaternions of floating bases are entries of
    q like others; ``displaced`` moves on the group.

    Raises ArgumentError for arguments that are no float64 tensors on the CPU or have wrong shapes,
    SingularError as kernels do, and BackendError for second and forward-mode derivatives.
    """

    def __init__(self, function: Any, model: Model, options: dict[str, Any]) -> None:
        self.kernel = kernel_for(function, model, options)
        self.pullbacks = Pullbacks(self.kernel)
        self.__name__ = self.kernel.name
        self._optional = self.kernel.signature.optional
        self._defaults = {name: torch.tensor(x) for name, x in self._optional.items()}

    def __call__(self, *args: torch.Tensor, **named: torch.Tensor) -> Any:
        """Return the result, or a named tuple of results; see the class."""
        kernel = self.kernel
        if len(args) == kernel.required and not named:
            args = (*args, *self._defaults.values())
        else:
            pairs = zip(kernel.inputs, kernel.signature.bound(args, named), strict=True)
            default = self._optional.get
            args = tuple([self._defaults[k] if x is default(k) else x for (k, _), x in pairs])
        for x, port in zip(args, kernel.inputs, strict=True):
            if type(x) is not torch.Tensor or x.dtype is not torch.float64 or not x.is_cpu:
                self._check(x, port.name)
        results = _first_of(_Recorded.apply, _Value, (self, *args))
        return results if kernel.result_type is None else kernel.result_type._make(results)

    def _check(self, x: Any, name: str) -> None:
        is_tensor = isinstance(x, torch.Tensor)
        if not is_tensor or x.dtype is not torch.float64 or not x.is_cpu:
            received = f"{x.dtype} on {x.device}" if is_tensor else type(x).__name__
            valid = "a tensor of torch.float64 on cpu"
            raise ArgumentError(f"{self.__name__}: {name} must be {valid}; got {received}")


class _Value(torch.autograd.Function):
    """The value, with the gradient by the program's pullback."""

    @staticmethod
    def forward(of: TorchFunction, *inputs: torch.Tensor) -> Any:
        return _tensors(of.kernel(*[x.numpy(force=True) for x in inputs]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.of, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *weights: torch.Tensor) -> Any:
        inputs, needed = ctx.saved_tensors, ctx.needs_input_grad[1:]
        quick = _Gradient.apply if torch.is_grad_enabled() else _Gradient.forward
        results = _first_of(quick, _Gradient, (ctx.of, needed, *inputs, *weights))
        gradients = iter(results if isinstance(results, tuple) else (results,))
        given = zip(inputs, needed, strict=True)
        return None, *[next(gradients).sum_to_size(x.shape) if need else None for x, need in given]

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Any:
        raise refused(ctx.of.__name__, "torch")

    @staticmethod
    def vmap(info: Any, dims: Any, of: TorchFunction, *inputs: torch.Tensor) -> Any:
        return _over_first_axis(_Value, (of,), dims[1:], inputs, of.kernel.inputs)


class _Recorded(_Value):
    """The same without support of torch.func, whose preparation takes PyTorch 20 us."""

    setup_context = staticmethod(torch.autograd.Function.setup_context)

    @staticmethod
    def forward(ctx: Any, of: TorchFunction, *inputs: Any) -> Any:  # type: ignore[override]
        _Value.setup_context(ctx, (of, *inputs), None)
        return _Value.forward(of, *inputs)


class _Gradient(torch.autograd.Function):
    """The gradient, which cannot be differentiated."""

    @staticmethod
    def forward(of: TorchFunction, needed: tuple[bool, ...], *arrays: torch.Tensor) -> Any:
        names = [x.name for x, need in zip(of.kernel.inputs, needed, strict=True) if need]
        return _tensors(of.pullbacks[tuple(names)](*[x.numpy(force=True) for x in arrays]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.of = inputs[0]

    @staticmethod
    def backward(ctx: Any, *weights: torch.Tensor) -> Any:
        raise refused(ctx.of.__name__, "torch")

    @staticmethod
    def vmap(info: Any, dims: Any, of: TorchFunction, needed: Any, *arrays: torch.Tensor) -> Any:
        ports = (*of.kernel.inputs, *of.kernel.outputs)
        return _over_first_axis(_Gradient, (of, needed), dims[2:], arrays, ports)


def _first_of(quick: Any, function: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the result of ``quick``, or of the function within a transform of torch.func."""
    try:
        return quick(*arguments)
    except RuntimeError:  # tensors of transforms have no memory
        return function.apply(*arguments)


def _tensors(results: Any) -> Any:
    if isinstance(results, tuple):
        return tuple([torch.from_numpy(x) for x in results])
    return torch.from_numpy(results)


def _over_first_axis(
    function: Any, first: tuple[Any, ...], dims: Any, tensors: Any, ports: Sequence[Any]
) -> Any:
    """Apply a function to tensors with an axis that vmap maps; it comes first in the results."""
    mapped = [x if k is None else x.movedim(k, 0) for x, k in zip(tensors, dims, strict=True)]
    axes = [
        x.ndim - len(port.shape) - (k is not None)
        for x, k, port in zip(mapped, dims, ports, strict=True)
    ]
    aligned = [
        x if k is None else x.reshape(len(x), *[1] * (max(axes) - own), *x.shape[1:])
        for x, k, own in zip(mapped, dims, axes, strict=True)
    ]
    results = function.apply(*first, *aligned)
    return results, tuple([0] * len(results)) if isinstance(results, tuple) else 0
