# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The meaning of programs of the intermediate representation: evaluation statement by statement.

It is slow, and simple enough to be obviously right: passes and printers are tested against it. It
also evaluates programs on the scalars of other systems, given what the operations mean for them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

Array = NDArray[np.float64]


def _quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


ARITHMETIC: dict[str, Callable[..., Any]] = {
    ops.ADD: operator.add,
    ops.SUB: operator.sub,
    ops.MUL: operator.mul,
    ops.NEG: operator.neg,
    ops.LESS: operator.lt,
    ops.LESS_EQUAL: operator.le,
}
"""Operations that Python's operators are."""

MEANING: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    ops.DIV: _quotient,
    ops.SIN: math.sin,
    ops.COS: math.cos,
    ops.SQRT: lambda a: math.sqrt(a) if a >= 0.0 else math.nan,
    ops.ATAN2: math.atan2,
    ops.SELECT: lambda condition, a, b: a if condition else b,
}


def evaluate(module: ir.Module, inputs: Mapping[str, Any]) -> tuple[dict[str, Array], int]:
    """Return the outputs, flat, by name, and the status; inputs are flat arrays by name.

    Scratch memory and outputs are NaN at first, so that reads before writes show.
    Raises IndexError for an address out of bounds.
    """
    failed: list[int] = []

    def check(value: float, status: int) -> None:
        if not value > 0.0:
            failed.append(status)

    flat = {name: np.asarray(x, dtype=np.float64).reshape(-1) for name, x in inputs.items()}
    outputs = evaluate_on(module, flat, MEANING, check)
    return {name: np.array(x, dtype=np.float64) for name, x in outputs.items()}, [*failed, 0][0]


def evaluate_on(
    module: ir.Module,
    inputs: Mapping[str, Any],
    meaning: Mapping[str, Callable[..., Any]],
    check: Callable[[Any, int], None] = lambda value, status: None,
) -> dict[str, list[Any]]:
    """Return the outputs, flat, by name, on scalars for which operations mean ``meaning``.

    ``inputs`` are sequences of scalars, flat, by name.
    ``check`` is called with each value that must be positive, and the status if it is not.
    """
    evaluation = _Evaluation(module, inputs, meaning, check)
    evaluation.body(module.body, {})
    return {buffer.name: evaluation.memory[buffer] for buffer in module.outputs}


class _Evaluation:
    """The memory of one evaluation."""

    def __init__(self, module: ir.Module, inputs: Any, meaning: Any, check: Any) -> None:
        self.meaning, self.check = meaning, check
        self.memory: dict[ir.Buffer, Any] = {x: inputs[x.name] for x in module.inputs}
        for buffer in (*module.outputs, *module.buffers(ir.SCRATCH)):
            self.memory[buffer] = [math.nan] * buffer.size
        self.values: dict[int, Any] = {}

    def body(self, body: Sequence[ir.Statement], variables: Mapping[ir.Variable, int]) -> None:
        for statement in body:
            self.statement(statement, variables)

    def place(self, buffer: ir.Buffer, at: ir.Index, variables: Mapping[ir.Variable, int]) -> int:
        k = at.value(variables)
        if not 0 <= k < buffer.size:
            raise IndexError(f"{buffer}[{k}], of {buffer.size} entries")
        return k

    def operand(self, x: int | float) -> Any:
        return x if isinstance(x, float) else self.values[x]

    def statement(self, statement: ir.Statement, variables: Mapping[ir.Variable, int]) -> None:
        match statement:
            case ir.Let(value, op, args):
                self.values[value] = self.meaning[op](*(self.operand(x) for x in args))
            case ir.Load(value, buffer, at):
                entries = buffer.data if buffer.data is not None else self.memory[buffer]
                entry = entries[self.place(buffer, at, variables)]
                self.values[value] = float(entry) if buffer.data is not None else entry
            case ir.Store(buffer, at, x):
                self.memory[buffer][self.place(buffer, at, variables)] = self.operand(x)
            case ir.Fill(buffer, first, entries):
                self.memory[buffer][first : first + entries] = [0.0] * entries
            case ir.Sines(buffer, first, angles, width):
                for k, angle in enumerate(map(self.operand, angles)):
                    self.memory[buffer][first + k] = self.meaning[ops.SIN](angle)
                    self.memory[buffer][first + width + k] = self.meaning[ops.COS](angle)
            case ir.Check(value, status):
                self.check(self.operand(value), status)
            case ir.For():
                rows = range(statement.begin.value(variables), statement.end.value(variables))
                for k in reversed(rows) if statement.backwards else rows:
                    self.body(statement.body, {**variables, statement.variable: k})
            case ir.Switch():
                case_ = dict(statement.cases).get(statement.on.value(variables), ())
                self.body(case_, variables)
            case ir.Call(procedure=procedure, arguments=arguments):
                given = [x.value(variables) for x in arguments]
                named = dict(zip(procedure.parameters, given, strict=True))
                of_caller, self.values = self.values, {}
                self.body(procedure.body, named)
                self.values = of_caller
