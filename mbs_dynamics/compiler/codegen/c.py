# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""C99 of any program, without dependencies beyond math.h: one walk over its module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
    Module,
    Operand,
    Procedure,
    Sines,
    Statement,
    Store,
    Switch,
    Variable,
    index,
)
from mbs_dynamics.compiler.passes.pipeline import for_c
from mbs_dynamics.compiler.passes.strategy import C_STACK

PRECISIONS = {"double": ("double", "", 8), "single": ("float", "f", 4)}
"""For each precision the type in C, the suffix of its constants and mathematical functions, and how
many bytes a number takes."""

KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while INFINITY NAN"
)
OWN = "workspace memory"
FUNCTIONS = {ops.SIN, ops.COS, ops.SQRT, ops.ATAN2}
RESERVED = {*KEYWORDS.split(), *OWN.split(), *FUNCTIONS, *(f"{x}f" for x in FUNCTIONS)}


class CFunction(NamedTuple):
    """A program as C99 source of ``int <name>(const double inputs..., double outputs...)``.

    The function returns 0, or k if the k-th of the program's guards, counted from one, is not
    positive; the outputs then mean nothing. All arguments are flat, row-major arrays of the sizes
    written in the signature; outputs must not overlap inputs. The function allocates nothing and
    keeps no state. In single precision every number and every operation is a float.
    """

    signature: str
    """The declaration, without the semicolon."""
    definition: str
    """The function, and before it the static functions that it needs."""
    stack: int
    """Bytes of an array of its own on the stack; the compiler's variables come on top."""
    workspace: int
    """How many numbers there must be room for at the last argument, ``workspace``, which means
    nothing between calls; 0 if there is no such argument."""


def c_function(
    program: Program, *, name: str | None = None, precision: str = "double"
) -> CFunction:
    """Return a program in C. Memory beyond :data:`C_STACK` is the caller's."""
    return emit_module(for_c(program), name or identifier(program.name), precision)


def emit_c(program: Program) -> str:
    """Return a C99 file with the program as one function; see :class:`CFunction`."""
    return "#include <math.h>\n\n" + c_function(program).definition


def emit_module(module: Module, name: str, precision: str = "double") -> CFunction:
    """Return a module in C."""
    kind, suffix, size = PRECISIONS[precision]
    printer = _Printer(module, name, kind, suffix)
    workspace = printer.memory if size * printer.memory > C_STACK else 0
    definition = "\n".join([*printer.lines(workspace), ""])
    stack = 0 if workspace else size * printer.memory
    return CFunction(printer.signature(workspace), definition, stack, workspace)


def identifier(name: str) -> str:
    """Return a name as an identifier of C that means nothing else in the functions."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    taken = plain in RESERVED or re.fullmatch(r"t\d+|n_\w+", plain)
    return f"{plain}_" if taken else plain


def c_constant(x: float, suffix: str = "") -> str:
    """Return a number as C writes it; a suffix of ``f`` makes it a float."""
    names = {"inf": "INFINITY", "-inf": "(-INFINITY)", "nan": "NAN"}
    text = repr(float(x))
    return names.get(text, f"({text}{suffix})")


class _Printer:
    """The lines of a module. Values are ``t0``, ``t1``..., and integers begin with ``n_``."""

    def __init__(self, module: Module, name: str, kind: str, suffix: str) -> None:
        self.module, self.name, self.kind, self.suffix = module, name, kind, suffix
        self.offsets: dict[Buffer, int] = {}
        self.memory = 0
        """Numbers of scratch memory."""
        for buffer in module.buffers(SCRATCH):
            self.offsets[buffer] = self.memory
            self.memory += buffer.size
        self.ports: dict[Buffer, str] = {}
        """Names of the parameters, none like another."""
        for buffer in (*module.inputs, *module.outputs):
            free = identifier(buffer.name if buffer.kind == INPUT else f"out_{buffer.name}")
            while free in self.ports.values():
                free += "_"
            self.ports[buffer] = free
        self.used: set[str] = set()
        """Parameters that the present function uses."""

    def signature(self, workspace: int) -> str:
        """Return the declaration of the function, with an argument of so many numbers at the end.

        ISO C has no arrays of size zero: those of ports without entries have one.
        """
        arguments = [
            f"{'const ' if x.kind == INPUT else ''}{self.kind} {port}[{x.size or 1}]"
            for x, port in self.ports.items()
        ]
        arguments += [f"{self.kind} workspace[{workspace}]"] if workspace else []
        return f"int {self.name}({', '.join(arguments) or 'void'})"

    def lines(self, workspace: int) -> Iterator[str]:
        """Yield all of it."""
        for buffer in self.module.buffers(CONSTANT, TABLE):
            yield self.table(buffer)
        for procedure in self.module.procedures:
            yield from self.procedure(procedure)
        yield self.signature(workspace)
        yield "{"
        if self.memory:
            declared = "*const memory = workspace" if workspace else f"memory[{self.memory}]"
            yield f"  {self.kind} {declared};"
        yield from self.function_body(self.module.body, ["memory"] if self.memory else [])
        yield "  return 0;"
        yield "}"

    def procedure(self, procedure: Procedure) -> Iterator[str]:
        """Yield a static function."""
        declared = [f"{self.kind} *memory"] if self.memory else []
        declared += [
            f"{'const ' if x.kind == INPUT else ''}{self.kind} *{port}"
            for x, port in self.ports.items()
        ]
        integers = [self.variable(x) for x in procedure.parameters]
        declared += [f"int {x}" for x in integers]
        yield f"static void {self.name}_{procedure.name}({', '.join(declared)})"
        yield "{"
        yield from self.function_body(
            procedure.body, [*(["memory"] if self.memory else []), *integers]
        )
        yield "}"
        yield ""

    def function_body(self, body: Sequence[Statement], names: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a function, after what names parameters that it does not use."""
        self.used.clear()
        lines = list(self.body(body, 2))
        for name in (*names, *self.ports.values()):
            if name not in self.used:
                yield f"  (void){name};"
        yield from lines

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
        self.used.add(f"n_{x}")
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
            self.used.add("memory")
            return f"memory[{self.index(at + self.offsets[buffer])}]"
        name = self.ports.get(buffer) or self.symbol(buffer)
        self.used.add(name)
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
                kind = "int" if op in ops.CONDITIONS else self.kind
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
            case Sines(buffer, first, angles, width):
                for op, begin in ((ops.SIN, first), (ops.COS, first + width)):
                    for k, angle in enumerate(angles):
                        entry = self.entry(buffer, Index((), begin + k))
                        yield f"{entry} = {self.expression(op, (angle,))};"
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
                given = ["memory"] if self.memory else []
                given += [*self.ports.values(), *map(self.index, statement.arguments)]
                self.used.update(given)
                yield f"{self.name}_{statement.procedure.name}({', '.join(given)});"

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
        if op == ops.NEG:
            return f"-{x[0]}"
        if op == ops.SELECT:
            return f"{x[0]} ? {x[1]} : {x[2]}"
        if op in FUNCTIONS:
            return f"{op}{self.suffix}({', '.join(x)})"
        return f"{x[0]} {op} {x[1]}"
