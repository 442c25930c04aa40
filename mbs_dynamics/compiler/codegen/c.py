# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""C99 of any program, without dependencies beyond math.h."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mbs_dynamics.compiler.codegen.python import Printer
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

C_STACK = 1 << 16
"""Bytes of scratch memory above which it becomes an argument of the function."""

PRECISIONS = {"double": ("double", "", 8), "single": ("float", "f", 4)}
"""For each precision the type in C, the suffix of its constants and mathematical functions, and how
many bytes a number takes."""

KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while INFINITY NAN workspace memory"
)
FUNCTIONS = [row.c.partition("{f}(")[0] for row in ops.ROWS if "{f}(" in row.c]
RESERVED = {*KEYWORDS.split(), *FUNCTIONS, *(f"{x}f" for x in FUNCTIONS)}


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
    """Bytes of the array of scratch memory on the stack, without the compiler's own variables."""
    workspace: int
    """Length of the last argument, the array ``workspace``, whose contents need not persist
    between calls; 0 if there is no such argument."""


def emit_c(module: ir.Module, *, name: str | None = None, precision: str = "double") -> CFunction:
    """Return a module in C. The caller provides scratch memory above :data:`C_STACK`."""
    printer = _C(module, name or identifier(module.name), precision)
    definition = "\n".join([*printer.lines(), ""])
    return CFunction(printer.signature(), definition, printer.stack, printer.workspace)


def identifier(name: str) -> str:
    """Return a name as an identifier of C that no keyword or name in the functions equals."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    taken = plain in RESERVED or re.fullmatch(r"t\d+", plain)
    return f"{plain}_" if taken else plain


def c_constant(x: float, suffix: str = "") -> str:
    """Return a number as C writes it; a suffix of ``f`` makes it a float."""
    names = {"inf": "INFINITY", "-inf": "(-INFINITY)", "nan": "NAN"}
    text = repr(float(x))
    return names.get(text, f"({text}{suffix})")


class _C(Printer):
    """The lines of a module. Values are ``t0``, ``t1``... Methods are described in Printer."""

    margin = "  "

    def __init__(self, module: ir.Module, name: str, precision: str) -> None:
        self.module, self.name = module, name
        self.kind, self.suffix, size = PRECISIONS[precision]
        self.offsets: dict[ir.Buffer, int] = {}
        self.memory = 0
        """Numbers of scratch memory."""
        for buffer in module.scratch:
            self.offsets[buffer] = self.memory
            self.memory += buffer.size
        self.workspace = self.memory if size * self.memory > C_STACK else 0
        self.stack = 0 if self.workspace else size * self.memory
        self.ports: dict[ir.Buffer, str] = {}
        """Names of the parameters, none like another."""
        for buffer in (*module.inputs, *module.outputs):
            free = identifier(buffer.name if buffer.kind == ir.INPUT else f"out_{buffer.name}")
            while free in self.ports.values():
                free += "_"
            self.ports[buffer] = free

    def signature(self) -> str:
        """Return the declaration of the function.

        ISO C has no arrays of size zero: those of ports without entries have one.
        """
        arguments = [f"{self.type(x)} {port}[{x.size or 1}]" for x, port in self.ports.items()]
        arguments += [f"{self.kind} workspace[{self.workspace}]"] if self.workspace else []
        return f"int {self.name}({', '.join(arguments) or 'void'})"

    def type(self, port: ir.Buffer) -> str:
        return f"const {self.kind}" if port.kind == ir.INPUT else self.kind

    def lines(self) -> Iterator[str]:
        memory = ["memory"] if self.memory else []
        for procedure in self.module.procedures:
            declared = [f"{self.kind} *{x}" for x in memory]
            declared += [f"{self.type(x)} *{port}" for x, port in self.ports.items()]
            yield f"static void {self.name}_{procedure.name}({', '.join(declared)})"
            yield "{"
            yield from self.function_body(procedure.body, memory)
            yield "}\n"
        yield self.signature()
        yield "{"
        if self.memory:
            here = "*const memory = workspace" if self.workspace else f"memory[{self.memory}]"
            yield f"  {self.kind} {here};"
        yield from self.function_body(self.module.body, memory)
        yield "  return 0;"
        yield "}"

    def function_body(self, body: ir.Block, names: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a function, after those that name unused parameters."""
        lines = list(self.body(body))
        used = set(re.findall(r"[a-zA-Z_]\w*", " ".join(lines), re.ASCII))
        yield from (f"  (void){x};" for x in (*names, *self.ports.values()) if x not in used)
        yield from lines

    def entry(self, buffer: ir.Buffer, at: int) -> str:
        if buffer.kind == ir.SCRATCH:
            return f"memory[{at + self.offsets[buffer]}]"
        return f"{self.ports[buffer]}[{at}]"

    def operand(self, x: ir.Operand) -> str:
        return f"t{x}" if isinstance(x, int) else c_constant(x, self.suffix)

    def expression(self, op: str, args: Sequence[str]) -> str:
        return ops.TABLE[op].c.format(*args, f=self.suffix)

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        return f"const {'int' if condition else self.kind} t{value} = {expression};"

    def assign(self, entry: str, value: str) -> str:
        return f"{entry} = {value};"

    def check(self, value: str, status: int) -> str:
        return f"if (!({value} > {self.operand(0.0)})) return {status};"

    def call(self, procedure: ir.Call) -> str:
        given = [*(["memory"] if self.memory else []), *self.ports.values()]
        return f"{self.name}_{procedure.name}({', '.join(given)});"

    def only_if(self, condition: str, call: str) -> str:
        return f"if ({condition}) {call}"
