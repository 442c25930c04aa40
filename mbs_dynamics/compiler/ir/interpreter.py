# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The meaning of programs of the intermediate representation: evaluation statement by statement.

It is slow, and simple enough to be obviously right: passes and printers are tested against it. It
also evaluates programs on the scalars of other systems, given what the operations mean for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.errors import BackendError


def evaluate_on(
    module: ir.Module,
    inputs: Mapping[str, Any],
    meaning: Mapping[str, Callable[..., Any]],
    check: Callable[[Any, int], None] = lambda value, status: None,
) -> dict[str, list[Any]]:
    """Return the outputs, flat, by name, on scalars for which operations mean ``meaning``.

    ``inputs`` are sequences of scalars, flat, by name.
    ``check`` is called with each value that must be positive, and the status if it is not.
    Raises BackendError for an operation without a meaning.
    """
    memory: dict[ir.Buffer, Any] = {x: inputs[x.name] for x in module.inputs}
    for buffer in (*module.outputs, *module.scratch):
        memory[buffer] = [math.nan] * buffer.size
    values: dict[int, Any] = {}

    def operand(x: int | float) -> Any:
        return x if isinstance(x, float) else values[x]

    def run(body: ir.Block) -> None:
        for statement in body:
            match statement:
                case ir.Let(value, op, args):
                    if op not in meaning:
                        raise BackendError(f"{module.name}: no {op!r} is available in this system")
                    values[value] = meaning[op](*[operand(x) for x in args])
                case ir.Load(value, buffer, at):
                    values[value] = memory[buffer][at]
                case ir.Store(buffer, at, x):
                    memory[buffer][at] = operand(x)
                case ir.Sines(buffer, first, angles, width):
                    for k, angle in enumerate(map(operand, angles)):
                        memory[buffer][first + k] = meaning[ops.SIN](angle)
                        memory[buffer][first + width + k] = meaning[ops.COS](angle)
                case ir.Check(value, status):
                    check(operand(value), status)
                case ir.Call(_, statements, condition):
                    if condition is None or operand(condition):
                        run(statements)

    run(module.body)
    return {buffer.name: memory[buffer] for buffer in module.outputs}
