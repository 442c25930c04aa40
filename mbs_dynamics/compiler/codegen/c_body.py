# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How a program is written in C99, and the function of a program that is not large."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program

PRECISIONS = {"double": ("double", "", 8), "single": ("float", "f", 4)}
"""For each precision the type in C, the suffix of its constants and mathematical functions, and how
many bytes a number takes."""

KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while INFINITY NAN"
)
OWN = "workspace memory k"
FUNCTIONS = {g.SIN, g.COS, g.SQRT, g.ATAN2}

DIRECT = 64
"""An output with more zeros than this is filled with zeros by a loop."""

RESERVED = {*KEYWORDS.split(), *OWN.split(), *FUNCTIONS, *(f"{x}f" for x in FUNCTIONS)}


def identifier(name: str) -> str:
    """Return a name as an identifier of C that means nothing else in the functions."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain in RESERVED or re.fullmatch(r"t\d+", plain) else plain


def c_constant(x: float, suffix: str = "") -> str:
    """Return a number as C writes it; a suffix of ``f`` makes it a float."""
    names = {"inf": "INFINITY", "-inf": "(-INFINITY)", "nan": "NAN"}
    text = repr(float(x))
    return names.get(text, f"({text}{suffix})")


class Style:
    """The names of a program's parameters in C, and its numbers."""

    def __init__(self, program: Program, precision: str) -> None:
        self.kind, self.suffix, self.bytes = PRECISIONS[precision]
        self.program = program
        self._taken: set[str] = set()
        self.inputs = [self._free(port.name) for port in program.inputs]
        """Names of the parameters of the inputs, in order; none is like another."""
        self.outputs = [self._free(f"out_{port.name}") for port in program.outputs]
        """Names of the parameters of the outputs, in order."""
        names = [port.name for port in program.inputs]
        self.of = dict(zip(names, self.inputs, strict=True))
        """Names of the parameters of the inputs, by the name of the input."""

    def _free(self, name: str) -> str:
        found = identifier(name)
        while found in self._taken:
            found += "_"
        self._taken.add(found)
        return found

    def signature(self, name: str, workspace: int = 0) -> str:
        """Return the declaration of the function, with an argument of so many numbers at the end.

        ISO C has no arrays of size zero: those of ports without entries have one.
        """
        ports = zip(self.inputs, self.program.inputs, strict=True)
        arguments = [f"const {self.kind} {name}[{port.size or 1}]" for name, port in ports]
        ports = zip(self.outputs, self.program.outputs, strict=True)
        arguments += [f"{self.kind} {name}[{port.size or 1}]" for name, port in ports]
        arguments += [f"{self.kind} workspace[{workspace}]"] if workspace else []
        return f"int {name}({', '.join(arguments) or 'void'})"

    def constant(self, x: float) -> str:
        """Return a number."""
        return c_constant(x, self.suffix)

    def type(self, node: Symbol | Condition) -> str:
        """Return the type of a node's variable."""
        return "int" if isinstance(node, Condition) else self.kind

    def expression(self, node: Symbol | Condition, ref: Callable[[Any], str]) -> str:
        """Return what a node is; ``ref`` is asked for its arguments in order."""
        if node.op == g.INPUT:
            return f"{self.of[node.args[0]]}[{node.args[1]}]"
        args = [ref(x) for x in node.args]
        if node.op == g.NEG:
            return f"-{args[0]}"
        if node.op == g.SELECT:
            return f"{args[0]} ? {args[1]} : {args[2]}"
        if node.op in FUNCTIONS:
            return f"{node.op}{self.suffix}({', '.join(args)})"
        return f"{args[0]} {node.op} {args[1]}"

    def numbers(self) -> Iterator[str]:
        """Yield the stores of the entries of outputs that are numbers."""
        for name, values in zip(self.outputs, self.program.values, strict=True):
            zeros = sum(isinstance(x, float) and x == 0.0 for x in values)
            if zeros > DIRECT:
                zero = self.constant(0.0)
                yield f"  for (long k = 0; k < {len(values)}; ++k) {name}[k] = {zero};"
            for k, x in enumerate(values):
                if isinstance(x, float) and (x != 0.0 or zeros <= DIRECT):
                    yield f"  {name}[{k}] = {self.constant(x)};"

    def end(self, ref: Callable[[Any], str]) -> Iterator[str]:
        """Yield the last lines: they name parameters without use, and return the status."""
        read = {node.args[0] for node in self.program.nodes if node.op == g.INPUT}
        unused = [name for port, name in self.of.items() if port not in read]
        ports = zip(self.outputs, self.program.outputs, strict=True)
        unused += [name for name, port in ports if not port.size]
        for name in sorted(unused):
            yield f"  (void){name};"
        for k, (x, _) in enumerate(self.program.guards, 1):
            yield f"  if (!({ref(x)} > {self.constant(0.0)})) return {k};"
        yield "  return 0;"
        yield "}"


def emit_straight(program: Program, style: Style, signature: str) -> str:
    """Return the definition of a program's function: one operation after the other."""

    def ref(x: Any) -> str:
        return f"t{x.id}" if isinstance(x, (Symbol, Condition)) else style.constant(x)

    lines = [signature, "{", *style.numbers()]
    for node in program.nodes:
        lines.append(f"  const {style.type(node)} t{node.id} = {style.expression(node, ref)};")
    for name, values in zip(style.outputs, program.values, strict=True):
        symbols = ((k, x) for k, x in enumerate(values) if isinstance(x, Symbol))
        lines += [f"  {name}[{k}] = {ref(x)};" for k, x in symbols]
    return "\n".join([*lines, *style.end(ref), ""])
