# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of the intermediate representation as lines of text: for people, and in C and Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

INFIX = (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.LESS, ops.LESS_EQUAL)


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
            case ir.Fill():
                yield from self.fill(statement)
            case ir.Sines(buffer, first, angles, width):
                for k, angle in enumerate(map(self.operand, angles)):
                    for op, place in ((ops.SIN, first + k), (ops.COS, first + width + k)):
                        entry = self.entry(buffer, ir.index(place))
                        yield self.assign(entry, self.expression(op, [angle]))
            case ir.Check(value, status):
                yield self.check(self.operand(value), status)
            case ir.For():
                yield from self.loop(statement)
            case ir.Switch():
                yield from self.switch(statement)
            case ir.Call(procedure, arguments):
                yield self.call(procedure, [self.index(x) for x in arguments])

    def index(self, at: ir.Index) -> str:
        terms = []
        for atom, factor in at.terms:
            if isinstance(atom, ir.Variable):
                term = self.variable(atom)
            else:
                term = self.entry(atom.table, atom.at)
            terms.append(term if factor == 1 else f"{factor}*{term}")
        if at.constant or not terms:
            terms.append(str(at.constant))
        return " + ".join(terms)

    def entry(self, buffer: ir.Buffer, at: ir.Index) -> str:
        return f"{buffer}[{self.index(at)}]"

    def variable(self, x: ir.Variable) -> str:
        return x.name

    def operand(self, x: ir.Operand) -> str:
        return f"%{x}" if isinstance(x, int) else f"{x:g}"

    def expression(self, op: str, args: Sequence[str]) -> str:
        return f"{args[0]} {op} {args[1]}" if op in INFIX else f"{op}({', '.join(args)})"

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        return f"%{value} = {expression}"

    def assign(self, entry: str, value: str) -> str:
        return f"{entry} = {value}"

    def fill(self, fill: ir.Fill) -> Iterator[str]:
        yield f"{fill.buffer}[{fill.first}:{fill.first + fill.entries}] = 0"

    def check(self, value: str, status: int) -> str:
        return f"check {value} > 0, else status {status}"

    def loop(self, loop: ir.For) -> Iterator[str]:
        begin, end = self.index(loop.begin), self.index(loop.end)
        backwards = " backwards" if loop.backwards else ""
        parallel = "parallel " if loop.parallel else ""
        yield f"{parallel}for {loop.variable} from {begin} to {end}{backwards}:"
        yield from self.body(loop.body)

    def switch(self, switch: ir.Switch) -> Iterator[str]:
        """Yield the cases, each as a condition of its own."""
        for k, body in switch.cases:
            yield f"if {self.index(switch.on)} == {k}:"
            yield from self.body(body)

    def call(self, procedure: ir.Procedure, arguments: Sequence[str]) -> str:
        return f"{procedure.name}({', '.join(arguments)})"


def text(module: ir.Module) -> str:
    """Return a module as text, its procedures first."""
    printer, lines = Printer(), []
    for procedure in module.procedures:
        parameters = ", ".join(map(str, procedure.parameters))
        lines += [f"procedure {procedure.name}({parameters}):", *printer.body(procedure.body), ""]
    inputs, outputs = (
        ", ".join(f"{x}[{x.size}]" for x in ports) for ports in (module.inputs, module.outputs)
    )
    lines.append(f"module {module.name}({inputs}) -> ({outputs}):")
    lines += [f"    scratch {x}[{x.size}]" for x in module.buffers(ir.SCRATCH)]
    return "\n".join([*lines, *printer.body(module.body), ""])
