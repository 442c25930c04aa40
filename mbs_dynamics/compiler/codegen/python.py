# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Plain Python of any program: the walk of :class:`ir.text.Printer` over its module.

A value with a single use is nested into the expression of its user.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.text import Printer, expression

NESTED = 12
"""How deep expressions are nested; Python's parser has a limit."""


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


def emit_python(program: Program) -> str:
    """Return the source of ``def <name>(<inputs>)``, which takes flat lists and returns flat lists.

    It needs the names of :func:`namespace`.
    """
    return emit_module(program.module)


def compile_python(program: Program) -> Callable[..., Sequence[list[float]]]:
    """Return the program as a Python function of flat lists; one flat list per output."""
    return compile_module(program.module)


def compile_module(module: ir.Module) -> Callable[..., Sequence[list[float]]]:
    """Return a module as a Python function of flat lists; one flat list per output.

    The function raises :class:`Failed` where a guard is not positive.
    """
    names = namespace(module)
    exec(compile(emit_module(module), f"<{module.name}>", "exec"), names)
    return names[module.name]  # type: ignore[no-any-return]


def emit_module(module: ir.Module) -> str:
    """Return the source of a module, as :func:`emit_python` does."""
    return "\n".join([*_Python().lines(module), ""])


def namespace(module: ir.Module) -> dict[str, Any]:
    """Return the names that the source refers to: functions, constants and tables."""
    names = dict(NAMESPACE)
    for buffer in module.buffers(ir.CONSTANT, ir.TABLE):
        assert buffer.data is not None
        names[_name(buffer)] = buffer.data.tolist()
    return names


def _name(buffer: ir.Buffer) -> str:
    if buffer.kind == ir.INPUT:
        return buffer.name
    return f"{buffer.kind}_{buffer.name}".replace(".", "_")


class _Python(Printer):
    def __init__(self) -> None:
        self.nested: dict[int, tuple[str, int]] = {}
        """Values without a variable of their own: their expressions, and how deep these are."""

    def lines(self, module: ir.Module) -> Iterator[str]:
        """Yield the lines of a module."""
        yield f"def {module.name}({', '.join(x.name for x in module.inputs)}):"
        for buffer in (*module.outputs, *module.buffers(ir.SCRATCH)):
            yield f"    {_name(buffer)} = [0.0] * {buffer.size}"
        for procedure in module.procedures:
            yield f"    def {procedure.name}({', '.join(map(str, procedure.parameters))}):"
            yield from (self.margin + line for line in self.body(procedure.body))
        yield from self.body(module.body)
        yield f"    return {', '.join(map(_name, module.outputs))},"

    def body(self, body: Sequence[ir.Statement]) -> Iterator[str]:
        """Yield the lines of statements but those whose values are nested."""
        uses = _uses(body)
        for statement in body:
            if not self.nests(statement, uses):
                for line in self.statement(statement):
                    yield self.margin + line
        if not body:
            yield self.margin + "pass"

    def nests(self, x: ir.Statement, uses: Counter[int]) -> bool:
        """Whether a value is nested into the expression of its user, which is kept for that."""
        if isinstance(x, ir.Load) and uses[x.value] == 1:
            if x.buffer.kind in (ir.INPUT, ir.CONSTANT):  # others change meanwhile
                self.nested[x.value] = self.entry(x.buffer, x.at), 0
        elif isinstance(x, ir.Let) and uses[x.value] == 1:
            args = [a for a in x.args if type(a) is int]
            depth = 1 + max([self.nested[a][1] for a in args if a in self.nested], default=0)
            if depth <= NESTED:
                computed = self.expression(x.op, [self.operand(a) for a in x.args])
                self.nested[x.value] = f"({computed})", depth
        return isinstance(x, (ir.Load, ir.Let)) and x.value in self.nested

    def entry(self, buffer: ir.Buffer, at: ir.Index) -> str:
        """Return an entry of a buffer."""
        return f"{_name(buffer)}[{self.index(at)}]"

    def operand(self, x: ir.Operand) -> str:
        """Return an operand."""
        if isinstance(x, float):
            return repr(x)
        return self.nested.pop(x)[0] if x in self.nested else f"t{x}"

    def expression(self, op: str, args: Sequence[str]) -> str:
        """Return an operation."""
        if op == ops.NEG:
            return f"-{args[0]}"
        if op == ops.SELECT:
            return f"{args[1]} if {args[0]} else {args[2]}"
        return f"quotient({args[0]}, {args[1]})" if op == ops.DIV else expression(op, args)

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        """Return the definition of a value."""
        return f"t{value} = {expression}"

    def fill(self, fill: ir.Fill) -> Iterator[str]:
        """Yield what sets entries to zero."""
        buffer, first, entries = fill
        yield f"{_name(buffer)}[{first}:{first + entries}] = [0.0] * {entries}"

    def check(self, value: str, status: int) -> str:
        """Return what raises if a value is not positive."""
        return f"if not {value} > 0.0: failed({status - 1})"

    def loop(self, loop: ir.For) -> Iterator[str]:
        """Yield a loop."""
        rows = f"range({self.index(loop.begin)}, {self.index(loop.end)})"
        yield f"for {loop.variable} in {rows}{'[::-1]' if loop.backwards else ''}:"
        yield from self.body(loop.body)


def _uses(body: Sequence[ir.Statement]) -> Counter[int]:
    """Return how often values are used; uses in loops and cases count as several."""
    uses: Counter[int] = Counter()
    for statement in body:
        uses.update([x for x in ir.operands_of(statement) if type(x) is int])
        for inner in ir.inner_bodies(statement):
            for within in ir.walk(inner):
                uses.update([x for x in ir.operands_of(within) if type(x) is int] * 2)
    return uses
