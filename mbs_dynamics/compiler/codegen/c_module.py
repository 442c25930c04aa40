# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""C99 from the intermediate representation: one walk over the loop nest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mbs_dynamics.compiler.codegen.c_body import FUNCTIONS, c_constant
from mbs_dynamics.compiler.frontend import graph as g
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
    Module,
    Operand,
    Statement,
    Store,
    Switch,
    Variable,
    index,
)

COMPARISONS = (g.LESS, g.LESS_EQUAL)


def memory_of(module: Module) -> int:
    """Return how many numbers of scratch memory a module needs."""
    return sum(buffer.size for buffer in module.buffers(SCRATCH))


def emit_module(module: Module, name: str, kind: str, suffix: str) -> str:
    """Return static tables and functions, the last of which is ``static int <name>_all``.

    It takes scratch memory of :func:`memory_of` numbers, the inputs, and the outputs, and returns
    the status. ``kind`` is the type of numbers, ``suffix`` that of constants and functions.
    """
    return "\n".join([*_Printer(module, name, kind, suffix).lines(), ""])


class _Printer:
    """The lines of a module."""

    def __init__(self, module: Module, name: str, kind: str, suffix: str) -> None:
        self.module, self.name, self.kind, self.suffix = module, name, kind, suffix
        self.offsets: dict[Buffer, int] = {}
        top = 0
        for buffer in module.buffers(SCRATCH):
            self.offsets[buffer] = top
            top += buffer.size
        self.ports = {x: f"port{k}" for k, x in enumerate((*module.inputs, *module.outputs))}
        declared = [
            f"{'const ' if x.kind == INPUT else ''}{kind} *{port}" for x, port in self.ports.items()
        ]
        self.parameters = ", ".join([f"{kind} *memory", *declared])
        self.arguments = ", ".join(["memory", *self.ports.values()])

    def lines(self) -> Iterator[str]:
        """Yield them."""
        for buffer in self.module.buffers(CONSTANT, TABLE):
            yield self.table(buffer)
        for procedure in self.module.procedures:
            integers = "".join(f", int {self.variable(x)}" for x in procedure.parameters)
            yield f"static void {self.name}_{procedure.name}({self.parameters}{integers})"
            yield "{"
            yield from self.unused()
            for variable in procedure.parameters:
                yield f"  (void){self.variable(variable)};"
            yield from self.body(procedure.body, 2)
            yield "}"
        yield f"static int {self.name}_all({self.parameters})"
        yield "{"
        yield from self.unused()
        yield from self.body(self.module.body, 2)
        yield "  return 0;"
        yield "}"

    def unused(self) -> Iterator[str]:
        """Yield what names parameters that may have no use."""
        for name in ("memory", *self.ports.values()):
            yield f"  (void){name};"

    def table(self, buffer: Buffer) -> str:
        """Return the definition of a table."""
        assert buffer.data is not None
        whole = buffer.kind == TABLE
        entries = [
            str(x) if whole else c_constant(float(x), self.suffix) for x in buffer.data.tolist()
        ]
        kind = "int" if whole else self.kind
        rows = [", ".join(entries[k : k + 8]) for k in range(0, len(entries), 8)] or ["0"]
        size, text = max(buffer.size, 1), ",\n  ".join(rows)
        return f"static const {kind} {self.symbol(buffer)}[{size}] = {{\n  {text}}};"

    def symbol(self, buffer: Buffer) -> str:
        """Return the name of a table."""
        return f"{self.name}_{buffer.kind}_{buffer.name}".replace(".", "_")

    def variable(self, x: Variable) -> str:
        """Return the name of an integer."""
        return f"n_{x}"

    def index(self, at: Index) -> str:
        """Return an index."""
        said = []
        for atom, factor in at.terms:
            if isinstance(atom, Variable):
                term = self.variable(atom)
            else:
                term = f"{self.symbol(atom.table)}[{self.index(atom.at)}]"
            said.append(term if factor == 1 else f"{factor} * {term}")
        if at.constant or not said:
            said.append(str(at.constant))
        return " + ".join(said)

    def entry(self, buffer: Buffer, at: Index) -> str:
        """Return an entry of a buffer."""
        if buffer.kind == SCRATCH:
            return f"memory[{self.index(at + self.offsets[buffer])}]"
        name = self.ports.get(buffer) or self.symbol(buffer)
        return f"{name}[{self.index(at)}]"

    def operand(self, x: Operand) -> str:
        """Return an operand."""
        return f"t{x}" if isinstance(x, int) else c_constant(x, self.suffix)

    def body(self, body: Sequence[Statement], margin: int) -> Iterator[str]:
        """Yield the lines of statements."""
        for statement in body:
            for line in self.statement(statement):
                yield " " * margin + line

    def statement(self, statement: Statement) -> Iterator[str]:
        """Yield the lines of one statement."""
        match statement:
            case Let(value, op, args):
                kind = "int" if op in COMPARISONS else self.kind
                yield f"const {kind} t{value} = {self.expression(op, args)};"
            case Equal(value, a, b):
                one, zero = self.operand(1.0), self.operand(0.0)
                same = f"{self.index(a)} == {self.index(b)}"
                yield f"const {self.kind} t{value} = {same} ? {one} : {zero};"
            case Load(value, buffer, at):
                yield f"const {self.kind} t{value} = {self.entry(buffer, at)};"
            case Store(buffer, at, x):
                yield f"{self.entry(buffer, at)} = {self.operand(x)};"
            case Fill(buffer, first, entries):
                place = Variable("zero")
                body = (Store(buffer, index(place) + first, 0.0),)
                yield from self.loop(For(place, Index(), index(entries), body))
            case Check(value, status):
                positive = f"t{value} > {self.operand(0.0)}"
                yield f"if (!({positive})) return {self.index(status)};"
            case For():
                yield from self.loop(statement)
            case Switch():
                yield f"switch ({self.index(statement.on)}) {{"
                for k, within in statement.cases:
                    yield f"case {k}: {{"
                    yield from self.body(within, 2)
                    yield "  break; }"
                yield "default: break;"
                yield "}"
            case Call():
                given = "".join(f", {self.index(x)}" for x in statement.arguments)
                yield f"{self.name}_{statement.procedure.name}({self.arguments}{given});"

    def loop(self, loop: For) -> Iterator[str]:
        """Yield a loop."""
        k, begin, end = self.variable(loop.variable), self.index(loop.begin), self.index(loop.end)
        if loop.backwards:
            yield f"for (int {k} = {end} - 1; {k} >= {begin}; --{k}) {{"
        else:
            yield f"for (int {k} = {begin}; {k} < {end}; ++{k}) {{"
        yield from self.body(loop.body, 2)
        yield "}"

    def expression(self, op: str, args: Sequence[Operand]) -> str:
        """Return an operation."""
        x = [self.operand(x) for x in args]
        if op == g.NEG:
            return f"-{x[0]}"
        if op == g.SELECT:
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if op in FUNCTIONS:
            return f"{op}{self.suffix}({', '.join(x)})"
        return f"{x[0]} {op} {x[1]}"
