# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Plain Python of any program: the walk of :class:`ir.text.Printer` over its module."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.text import Printer


class Failed(Exception):  # noqa: N818
    """A guard was not positive; the argument is its index."""


def _failed(guard: int) -> None:
    raise Failed(guard)


def _quotient(a: float, b: float) -> float:
    """IEEE division, as in machine code: no exception in a branch that select does not take."""
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _quiet(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return NaN where ``math`` raises, as machine code does."""

    def quiet(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan

    return quiet


NAMESPACE: dict[str, Any] = {
    "sin": _quiet(math.sin),
    "cos": _quiet(math.cos),
    "sqrt": _quiet(math.sqrt),
    "atan2": math.atan2,
    "quotient": _quotient,
    "failed": _failed,
    "inf": math.inf,
    "nan": math.nan,
    "range": range,
    "__builtins__": {},
}


def emit_python(module: ir.Module) -> str:
    """Return the source of ``def <name>(<inputs>)``, which takes flat lists and returns flat lists.

    It refers to the names of :data:`NAMESPACE`, and to the constants and tables of the module. An
    input whose name has another meaning there gets an underscore.
    """
    return "\n".join([*_Python(module).lines(module), ""])


def compile_python(module: ir.Module) -> Callable[..., Sequence[list[float]]]:
    """Return a module as a Python function of flat lists; one flat list per output.

    The function raises :class:`Failed` where a guard is not positive.
    """
    names = dict(NAMESPACE)
    for buffer in module.buffers(ir.CONSTANT, ir.TABLE):
        assert buffer.data is not None
        names[_name(buffer)] = buffer.data.tolist()
    exec(compile(emit_python(module), f"<{module.name}>", "exec"), names)
    return names[module.name]  # type: ignore[no-any-return]


def _name(buffer: ir.Buffer) -> str:
    return f"{buffer.kind}_{buffer.name}".replace(".", "_")


class _Python(Printer):
    def __init__(self, module: ir.Module) -> None:
        own = (ir.OUTPUT, ir.SCRATCH, ir.CONSTANT, ir.TABLE)
        self.names = {buffer: _name(buffer) for buffer in (*module.outputs, *module.buffers(*own))}
        taken = {*NAMESPACE, *self.names.values(), *(x.name for x in module.procedures)}
        for buffer in module.inputs:
            name = buffer.name
            while name in taken or re.fullmatch(r"t\d+", name):
                name += "_"
            self.names[buffer] = name
            taken.add(name)

    def lines(self, module: ir.Module) -> Iterator[str]:
        yield f"def {module.name}({', '.join(self.names[x] for x in module.inputs)}):"
        for buffer in (*module.outputs, *module.buffers(ir.SCRATCH)):
            yield f"    {self.names[buffer]} = [0.0] * {buffer.size}"
        for procedure in module.procedures:
            yield f"    def {procedure.name}({', '.join(map(str, procedure.parameters))}):"
            yield from (self.margin + line for line in self.body(procedure.body))
        yield from self.body(module.body)
        yield f"    return {', '.join(self.names[x] for x in module.outputs)},"

    def body(self, body: Sequence[ir.Statement]) -> Iterator[str]:
        return super().body(body) if body else iter([self.margin + "pass"])

    def entry(self, buffer: ir.Buffer, at: ir.Index) -> str:
        return f"{self.names[buffer]}[{self.index(at)}]"

    def operand(self, x: ir.Operand) -> str:
        return repr(x) if isinstance(x, float) else f"t{x}"

    def expression(self, op: str, args: Sequence[str]) -> str:
        if op == ops.NEG:
            return f"-{args[0]}"
        if op == ops.SELECT:
            return f"{args[1]} if {args[0]} else {args[2]}"
        return super().expression("quotient" if op == ops.DIV else op, args)

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        return f"t{value} = {expression}"

    def fill(self, fill: ir.Fill) -> Iterator[str]:
        buffer, first, entries = fill
        yield f"{self.names[buffer]}[{first}:{first + entries}] = [0.0] * {entries}"

    def check(self, value: str, status: int) -> str:
        return f"if not {value} > 0.0: failed({status - 1})"

    def loop(self, loop: ir.For) -> Iterator[str]:
        rows = f"range({self.index(loop.begin)}, {self.index(loop.end)})"
        yield f"for {loop.variable} in {rows}{'[::-1]' if loop.backwards else ''}:"
        yield from self.body(loop.body)
