# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of the intermediate representation as text, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import (
    SCRATCH,
    Call,
    Check,
    Equal,
    Fill,
    For,
    Let,
    Load,
    Mirror,
    Module,
    Sines,
    Statement,
    Store,
    Switch,
)

INFIX = (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.LESS, ops.LESS_EQUAL)


def text(module: Module) -> str:
    """Return a module as text, its procedures first."""
    lines = []
    for procedure in module.procedures:
        parameters = ", ".join(map(str, procedure.parameters))
        lines += [f"procedure {procedure.name}({parameters}):", *_body(procedure.body, "    "), ""]
    inputs, outputs = (
        ", ".join(f"{x}[{x.size}]" for x in ports) for ports in (module.inputs, module.outputs)
    )
    lines.append(f"module {module.name}({inputs}) -> ({outputs}):")
    lines += [f"    scratch {x}[{x.size}]" for x in module.buffers(SCRATCH)]
    return "\n".join([*lines, *_body(module.body, "    "), ""])


def _body(body: Sequence[Statement], margin: str) -> Iterator[str]:
    for statement in body:
        yield from (margin + line for line in _lines(statement))


def expression(op: str, args: Sequence[str]) -> str:
    """Return an operation on operands that are text."""
    return f"{args[0]} {op} {args[1]}" if op in INFIX else f"{op}({', '.join(args)})"


def _operand(x: int | float) -> str:
    return f"%{x}" if isinstance(x, int) else f"{x:g}"


def _lines(statement: Statement) -> Iterator[str]:
    match statement:
        case Let(value, op, args):
            yield f"%{value} = {expression(op, [_operand(x) for x in args])}"
        case Equal(value, a, b):
            yield f"%{value} = ({a}) == ({b})"
        case Load(value, buffer, at):
            yield f"%{value} = {buffer}[{at}]"
        case Store(buffer, at, x):
            yield f"{buffer}[{at}] = {_operand(x)}"
        case Fill(buffer, first, entries):
            yield f"{buffer}[{first}:{first + entries}] = 0"
        case Sines(buffer, first, angles, width):
            said = ", ".join(map(_operand, angles))
            places = (f"{buffer}[{k}:{k + len(angles)}]" for k in (first, first + width))
            yield f"{', '.join(places)} = sines, cosines of {said}"
        case Check(value, status):
            yield f"check %{value} > 0, else status {status}"
        case Mirror(source, first, target, target_first, size):
            yield f"mirror {source}[{first}:] to {target}[{target_first}:], ({size}, {size})"
        case For():
            kind = "parallel for" if statement.parallel else "for"
            way = " backwards" if statement.backwards else ""
            yield f"{kind} {statement.variable} from {statement.begin} to {statement.end}{way}:"
            yield from _body(statement.body, "    ")
        case Switch():
            for number, body in statement.cases:
                yield f"if {statement.on} == {number}:"
                yield from _body(body, "    ")
        case Call():
            yield f"{statement.procedure.name}({', '.join(map(str, statement.arguments))})"
