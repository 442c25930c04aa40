# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Plain Python of any program: one walk over its module.

A value with a single use is nested into the expression of its user.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import (
    CONSTANT,
    INPUT,
    SCRATCH,
    TABLE,
    Buffer,
    Call,
    Check,
    Equal,
    Fill,
    For,
    Index,
    Let,
    Load,
    Lookup,
    Module,
    Operand,
    Sines,
    Statement,
    Store,
    Switch,
    index,
    inner_bodies,
    operands_of,
    walk,
)
from mbs_dynamics.compiler.passes.pipeline import for_python

NESTED = 12
"""How deep expressions are nested; Python's parser has a limit."""

INFIX = {ops.ADD: "+", ops.SUB: "-", ops.MUL: "*", ops.LESS: "<", ops.LESS_EQUAL: "<="}
CALLED = {
    ops.SIN: "sin",
    ops.COS: "cos",
    ops.SQRT: "sqrt",
    ops.ATAN2: "atan2",
    ops.DIV: "quotient",
}


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
    return emit_module(for_python(program))


def compile_python(program: Program) -> Callable[..., Sequence[list[float]]]:
    """Return the program as a Python function of flat lists; one flat list per output."""
    return compile_module(for_python(program))


def compile_module(module: Module) -> Callable[..., Sequence[list[float]]]:
    """Return a module as a Python function of flat lists; one flat list per output.

    The function raises :class:`Failed` where a guard is not positive.
    """
    names = namespace(module)
    exec(compile(emit_module(module), f"<{module.name}>", "exec"), names)
    return names[module.name]  # type: ignore[no-any-return]


def emit_module(module: Module) -> str:
    """Return the source of a module, as :func:`emit_python` does."""
    return "\n".join([*_Printer(module).lines(), ""])


def namespace(module: Module) -> dict[str, Any]:
    """Return what the source refers to: functions, constants and tables."""
    names = dict(NAMESPACE)
    for buffer in module.buffers(CONSTANT, TABLE):
        assert buffer.data is not None
        names[_name(buffer)] = buffer.data.tolist()
    return names


def _name(buffer: Buffer) -> str:
    if buffer.kind == INPUT:
        return buffer.name
    return f"{buffer.kind}_{buffer.name}".replace(".", "_")


class _Printer:
    """The lines of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.nested: dict[int, tuple[str, int]] = {}
        """Values without a variable of their own: their expressions, and how deep these are."""

    def lines(self) -> Iterator[str]:
        """Yield them."""
        module = self.module
        yield f"def {module.name}({', '.join(x.name for x in module.inputs)}):"
        for buffer in (*module.outputs, *module.buffers(SCRATCH)):
            yield f"    {_name(buffer)} = [0.0] * {buffer.size}"
        for procedure in module.procedures:
            yield f"    def {procedure.name}({', '.join(map(str, procedure.parameters))}):"
            yield from self.body(procedure.body, 8)
        yield from self.body(module.body, 4)
        yield f"    return {', '.join(map(_name, module.outputs))},"

    def body(self, body: Sequence[Statement], margin: int) -> Iterator[str]:
        """Yield the lines of statements."""
        uses = _uses(body)
        for statement in body:
            once = isinstance(statement, (Let, Load)) and uses[statement.value] == 1
            if once and self.nests(statement):
                continue
            for line in self.statement(statement):
                yield " " * margin + line
        if not body:
            yield " " * margin + "pass"

    def nests(self, statement: Statement) -> bool:
        """Take down a value that is nested into its user, if it can be."""
        if isinstance(statement, Load):
            if statement.buffer.kind not in (INPUT, CONSTANT):  # others change meanwhile
                return False
            self.nested[statement.value] = self.entry(statement.buffer, statement.at), 0
            return True
        assert isinstance(statement, Let)
        depths = (self.nested[x][1] for x in statement.args if type(x) is int and x in self.nested)
        depth = 1 + max(depths, default=0)
        if depth <= NESTED:
            expression = self.expression(statement.op, statement.args)
            self.nested[statement.value] = f"({expression})", depth
        return depth <= NESTED

    def statement(self, statement: Statement) -> Iterator[str]:
        """Yield the lines of one statement."""
        match statement:
            case Let(value, op, args):
                yield f"t{value} = {self.expression(op, args)}"
            case Equal(value, a, b):
                yield f"t{value} = ({self.index(a)} == {self.index(b)}) * 1.0"
            case Load(value, buffer, at):
                yield f"t{value} = {self.entry(buffer, at)}"
            case Store(buffer, at, x):
                yield f"{self.entry(buffer, at)} = {self.operand(x)}"
            case Fill(buffer, first, entries):
                yield f"{_name(buffer)}[{first}:{first + entries}] = [0.0] * {entries}"
            case Sines(buffer, first, angles, width):
                for k, angle in enumerate(map(self.operand, angles)):
                    for name, place in (("sin", first + k), ("cos", first + width + k)):
                        yield f"{self.entry(buffer, index(place))} = {name}({angle})"
            case Check(value, status):
                yield f"if not {self.operand(value)} > 0.0: failed({self.index(status)} - 1)"
            case For():
                yield from self.loop(statement)
            case Switch():
                for k, body in statement.cases:
                    yield f"if {self.index(statement.on)} == {k}:"
                    yield from self.body(body, 4)
            case Call():
                arguments = ", ".join(map(self.index, statement.arguments))
                yield f"{statement.procedure.name}({arguments})"

    def loop(self, loop: For) -> Iterator[str]:
        """Yield a loop."""
        rows = f"range({self.index(loop.begin)}, {self.index(loop.end)})"
        yield f"for {loop.variable} in {rows}{'[::-1]' if loop.backwards else ''}:"
        yield from self.body(loop.body, 4)

    def index(self, at: Index) -> str:
        """Return an index."""
        said = []
        for atom, factor in at.terms:
            term = str(atom)
            if isinstance(atom, Lookup):
                term = f"{_name(atom.table)}[{self.index(atom.at)}]"
            said.append(term if factor == 1 else f"{factor} * {term}")
        if at.constant or not said:
            said.append(str(at.constant))
        return " + ".join(said)

    def entry(self, buffer: Buffer, at: Index) -> str:
        """Return an entry of a buffer."""
        return f"{_name(buffer)}[{self.index(at)}]"

    def operand(self, x: Operand) -> str:
        """Return an operand."""
        if isinstance(x, float):
            return repr(x)
        return self.nested.pop(x)[0] if x in self.nested else f"t{x}"

    def expression(self, op: str, args: Sequence[Operand]) -> str:
        """Return an operation."""
        x = [self.operand(x) for x in args]
        if op == ops.NEG:
            return f"-{x[0]}"
        if op in INFIX:
            return f"{x[0]} {INFIX[op]} {x[1]}"
        if op == ops.SELECT:
            return f"{x[1]} if {x[0]} else {x[2]}"
        return f"{CALLED[op]}({', '.join(x)})"


def _values(statement: Statement) -> list[int]:
    return [x for x in operands_of(statement) if type(x) is int]


def _uses(body: Sequence[Statement]) -> Counter[int]:
    """Return how often values are used; uses in loops and cases count as several."""
    uses: Counter[int] = Counter()
    for statement in body:
        uses.update(_values(statement))
        for inner in inner_bodies(statement):
            for x in walk(inner):
                uses.update(2 * _values(x))
    return uses
