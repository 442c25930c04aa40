# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Plain Python of any program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

NAMESPACE: dict[str, Any] = {
    **{row.name: row.meaning for row in ops.ROWS if f"{row.name}(" in row.python},
    "quotient": ops.quotient,
    "inf": math.inf,
    "nan": math.nan,
    "__builtins__": {},
}


def emit_python(module: ir.Module) -> str:
    """Return the source of ``def <name>(<inputs>)``, which takes flat lists and returns flat lists.

    It returns k instead if the k-th guard, counted from one, is not positive. It refers to the
    names of :data:`NAMESPACE`.
    """
    return "\n".join([*Printer().function(module), ""])


def compile_python(module: ir.Module) -> Callable[..., Sequence[list[float]] | int]:
    """Return the function of :func:`emit_python`."""
    names = dict(NAMESPACE)
    exec(compile(emit_python(module), f"<{module.name}>", "exec"), names)
    return names[module.name]  # type: ignore[no-any-return]


class Printer:
    """One walk over statements, which prints their lines in Python. C overrides how they look."""

    margin = "    "

    def function(self, module: ir.Module) -> Iterator[str]:
        yield f"def {module.name}({', '.join(map(self.variable, module.inputs))}):"
        for buffer in (*module.outputs, *module.scratch):
            yield f"    {self.variable(buffer)} = [0.0] * {buffer.size}"
        for procedure in module.procedures:
            yield f"    def {procedure.name}():"
            yield from (self.margin + line for line in self.body(procedure.body))
        yield from self.body(module.body)
        yield f"    return {', '.join(map(self.variable, module.outputs))},"

    def body(self, body: Sequence[ir.Statement]) -> Iterator[str]:
        for statement in body:
            for line in self.statement(statement):
                yield self.margin + line

    def statement(self, statement: ir.Statement) -> Iterator[str]:
        match statement:
            case ir.Let(value, op, args):
                computed = self.expression(op, [self.operand(x) for x in args])
                yield self.define(value, computed, condition=ops.TABLE[op].is_condition)
            case ir.Load(value, buffer, at):
                yield self.define(value, self.entry(buffer, at))
            case ir.Store(buffer, at, x):
                yield self.assign(self.entry(buffer, at), self.operand(x))
            case ir.Sines(buffer, first, angles, width):
                for k, angle in enumerate(map(self.operand, angles)):
                    for op, place in ((ops.SIN, first + k), (ops.COS, first + width + k)):
                        yield self.assign(self.entry(buffer, place), self.expression(op, [angle]))
            case ir.Check(value, status):
                yield self.check(self.operand(value), status)
            case ir.Call(_, _, condition):
                call = self.call(statement)
                yield call if condition is None else self.only_if(self.operand(condition), call)

    def variable(self, buffer: ir.Buffer) -> str:
        return f"{buffer.kind}_{buffer.name}"

    def entry(self, buffer: ir.Buffer, at: int) -> str:
        return f"{self.variable(buffer)}[{at}]"

    def operand(self, x: ir.Operand) -> str:
        return f"t{x}" if isinstance(x, int) else repr(x)

    def expression(self, op: str, args: Sequence[str]) -> str:
        return ops.TABLE[op].python.format(*args)

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        return f"t{value} = {expression}"

    def assign(self, entry: str, value: str) -> str:
        return f"{entry} = {value}"

    def check(self, value: str, status: int) -> str:
        return f"if not {value} > 0.0: return {status}"

    def call(self, procedure: ir.Call) -> str:
        return f"{procedure.name}()"

    def only_if(self, condition: str, call: str) -> str:
        return f"if {condition}: {call}"
