# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of the intermediate representation as lines of text: for people, and in C and Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops


class Printer:
    """One walk over statements, which prints their lines. A language overrides how they look."""

    margin = "    "

    def body(self, body: Sequence[ir.Statement]) -> Iterator[str]:
        for statement in body:
            for line in self.statement(statement):
                yield self.margin + line

    def statement(self, statement: ir.Statement) -> Iterator[str]:
        match statement:
            case ir.Let(value, op, args):
                computed = self.expression(op, [self.operand(x) for x in args])
                yield self.define(value, computed, condition=op in ops.CONDITIONS)
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
            case ir.Call(procedure):
                yield self.call(procedure)

    def entry(self, buffer: ir.Buffer, at: int) -> str:
        return f"{buffer}[{at}]"

    def operand(self, x: ir.Operand) -> str:
        return f"%{x}" if isinstance(x, int) else f"{x:g}"

    def expression(self, op: str, args: Sequence[str]) -> str:
        return ops.TABLE[op].python.format(*args)

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        return f"%{value} = {expression}"

    def assign(self, entry: str, value: str) -> str:
        return f"{entry} = {value}"

    def check(self, value: str, status: int) -> str:
        return f"check {value} > 0, else status {status}"

    def call(self, procedure: ir.Procedure) -> str:
        return f"{procedure.name}()"


def text(module: ir.Module) -> str:
    """Return a module as text, its procedures first."""
    printer, lines = Printer(), []
    for procedure in module.procedures:
        lines += [f"procedure {procedure.name}():", *printer.body(procedure.body), ""]
    inputs, outputs = (
        ", ".join(f"{x}[{x.size}]" for x in ports) for ports in (module.inputs, module.outputs)
    )
    lines.append(f"module {module.name}({inputs}) -> ({outputs}):")
    lines += [f"    scratch {x}[{x.size}]" for x in module.scratch]
    return "\n".join([*lines, *printer.body(module.body), ""])
