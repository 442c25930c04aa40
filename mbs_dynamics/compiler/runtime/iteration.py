# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Iteration of a kernel: its output is its first input one step later.

A loop over states is a loop over time if each state's output stands where the next state's input is
read. So the whole trajectory is made by one call of the machine code, or of the Python function.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.frontend.program import Port
from mbs_dynamics.compiler.passes.strategy import LEAST_STATES
from mbs_dynamics.compiler.runtime.batches import View
from mbs_dynamics.errors import ArgumentError

if TYPE_CHECKING:
    from mbs_dynamics.compiler.runtime.kernel import Kernel


def iterate(kernel: Kernel, arrays: Sequence[FloatArray], steps: Any) -> FloatArray:
    """Return the trajectory of :meth:`Kernel.iterate`; the arrays have the cores of the inputs."""
    steps = _checked_steps(kernel, steps)
    ports = kernel.inputs
    leading = [x.shape[: x.ndim - len(port.shape)] for x, port in zip(arrays, ports, strict=True)]
    for port, axes in zip(ports[1:], leading[1:], strict=True):
        if axes and axes[0] not in (1, steps):
            raise ArgumentError(
                f"{kernel.name}: {port.name} has {axes[0]} entries along its first axis; valid is "
                f"one value for all steps, or one for each of the {steps} steps"
            )
    try:
        batch = np.broadcast_shapes(leading[0], *(axes[1:] for axes in leading[1:]))
    except ValueError:
        said = ", ".join(f"{p.name} {x.shape}" for p, x in zip(ports, arrays, strict=True))
        raise ArgumentError(
            f"{kernel.name}: the batch axes, which follow the axis of the steps in all but the "
            f"first argument, do not broadcast together: {said}"
        ) from None
    trajectory = np.empty((steps + 1, *batch, *ports[0].shape))
    trajectory[0] = arrays[0]
    members, size = math.prod(batch), ports[0].size
    states = trajectory.reshape(steps + 1, members, size)
    given = [_series(x, port, batch, steps) for x, port in zip(arrays[1:], ports[1:], strict=True)]
    series = [states, *given, states[1:]]
    failure = _run(kernel, series, steps, members)
    if failure:
        step, member, guard = failure
        finite = all(np.isfinite(x).all() for x in arrays)
        state = np.unravel_index(member, batch)
        error = kernel.singular(guard, state, finite, f" at step {step}")
        error.trajectory = trajectory[: step + 1].copy()
        raise error
    return trajectory


def _checked_steps(kernel: Kernel, steps: Any) -> int:
    outputs, first = kernel.outputs, kernel.inputs[:1]
    if not first or len(outputs) != 1 or outputs[0].shape != first[0].shape:
        raise ArgumentError(
            f"{kernel.name} cannot be iterated: that takes one output, of the shape of the first "
            f"input; the outputs are: {_listed(outputs)}; the first input is: {_listed(first)}"
        )
    try:
        count = operator.index(steps)
    except TypeError:
        count = -1
    if count < 0:
        raise ArgumentError(f"{kernel.name}: steps must be an integer of at least 0; got {steps!r}")
    return count


def _listed(ports: Sequence[Port]) -> str:
    return ", ".join(f"{port.name} {port.shape}" for port in ports) or "none"


def _series(x: FloatArray, port: Port, batch: tuple[int, ...], steps: int) -> FloatArray:
    """Return an input as (steps, members of the batch, entries); a state's entries are adjacent."""
    axes = x.shape[: x.ndim - len(port.shape)]
    along, own = axes[:1] or (1,), axes[1:]
    missing = (1,) * (len(batch) - len(own))
    extent = batch if own else missing
    x = x.reshape(*along, *missing, *own, *port.shape)
    x = np.broadcast_to(x, (*along, *extent, *port.shape))
    x = np.require(x, requirements=("C", "A")).reshape(*along, math.prod(extent), port.size)
    return np.broadcast_to(x, (steps, math.prod(batch), port.size))


def _run(
    kernel: Kernel, series: Sequence[FloatArray], steps: int, members: int
) -> tuple[int, int, int] | None:
    """Fill in the trajectory; return step, member and guard of the first failure, if any."""
    failure, guards = None, len(kernel.guards)
    if members >= LEAST_STATES:
        for step in range(steps):
            status = kernel.evaluate(members, [View(x[step], x.strides[1]) for x in series])
            if status:
                return step, *divmod(status - 1, guards)
        return None
    for member in range(members):  # none goes further than the first step at which one has failed
        views = [View(x[:, member], x.strides[0]) for x in series]
        status = kernel.evaluate(steps, views, in_turn=True)
        if status:
            steps, guard = divmod(status - 1, guards)
            failure = steps, member, guard
    return failure
