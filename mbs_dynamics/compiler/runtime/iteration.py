# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Iteration of a kernel: its output is its first input one step later.

A loop over states is a loop over time if each state's output stands where the next state's input is
read. So the whole trajectory is made by one call of the machine code, or of the Python function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray, count
from mbs_dynamics.compiler.frontend.program import Port
from mbs_dynamics.compiler.passes.strategy import LEAST_STATES
from mbs_dynamics.compiler.runtime.arguments import Signature, listed
from mbs_dynamics.errors import ArgumentError

Evaluate = Callable[..., int]
"""The method :meth:`Kernel.evaluate`."""


def iterate(
    signature: Signature, evaluate: Evaluate, arrays: Sequence[FloatArray], steps: Any
) -> FloatArray:
    """Return the trajectory of :meth:`Kernel.iterate`; the arrays have the cores of the inputs."""
    outputs = signature.outputs
    if len(outputs) != 1 or [outputs[0].shape] != [x.shape for x in signature.inputs[:1]]:
        raise ArgumentError(
            f"{signature.name} cannot be iterated: that takes one output, of the shape of the "
            f"first input; the outputs are: {listed(outputs)}; the first input is: "
            f"{listed(signature.inputs[:1]) or 'none'}"
        )
    steps = count(f"{signature.name}: steps", steps, least=0)
    first, *others = signature.inputs
    for port, x in zip(others, arrays[1:], strict=True):
        if x.ndim > len(port.shape) and len(x) not in (1, steps):
            raise ArgumentError(
                f"{signature.name}: {port.name} has {len(x)} entries along its first axis; valid "
                f"is one value for all steps, or one for each of the {steps} steps"
            )
    batch = signature.batch(arrays, stepped=True)
    trajectory = np.empty((steps + 1, *batch, *first.shape))
    trajectory[0] = arrays[0]
    states = trajectory.reshape(steps + 1, math.prod(batch), first.size)
    given = [_series(x, port, batch, steps) for x, port in zip(arrays[1:], others, strict=True)]
    failure = _run(evaluate, len(signature.guards), [states, *given, states[1:]])
    if failure:
        step, member, guard = failure
        finite = all(np.isfinite(x).all() for x in arrays)
        state = np.unravel_index(member, batch)
        error = signature.singular(guard, state, finite, f" at step {step}")
        error.trajectory = trajectory[: step + 1].copy()
        raise error
    return trajectory


def _series(x: FloatArray, port: Port, batch: tuple[int, ...], steps: int) -> FloatArray:
    """Return an input as (steps, members of the batch, entries); a state's entries are adjacent."""
    along, *own = x.shape[: x.ndim - len(port.shape)] or (1,)
    x = np.require(x, requirements=("C", "A"))
    x = x.reshape(along, *[1] * (len(batch) - len(own)), *own, *port.shape)
    x = np.broadcast_to(x, (steps, *batch, *port.shape))
    return x.reshape(steps, math.prod(batch), port.size)


def _run(
    evaluate: Evaluate, guards: int, series: Sequence[FloatArray]
) -> tuple[int, int, int] | None:
    """Fill in the trajectory; return step, member and guard of the first failure, if any."""
    failure = None
    steps, members, _ = series[-1].shape
    if members >= LEAST_STATES:
        for step in range(steps):
            status = evaluate(members, [x[step] for x in series])
            if status:
                return step, *divmod(status - 1, guards)
        return None
    for member in range(members):  # all members end at the first step at which one has failed
        status = evaluate(steps, [x[:, member] for x in series], in_turn=True)
        if status:
            steps, guard = divmod(status - 1, guards)
            failure = steps, member, guard
    return failure
