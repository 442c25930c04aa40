# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A large program in C99: static functions that segments share, and tables of how to call them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

from mbs_dynamics.compiler.codegen.c_body import Style
from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.plan import MEMORY, Function, Place, Plan

DIRECT = 64
"""So many numbers of an output at most are written one after the other; more come from a table."""

PER_LINE = 12
"""Entries of a table in a line."""

UNSIGNED_SHORT = 1 << 16
"""What is less than this fits in an unsigned short, wherever there is C."""


def emit_segments(
    program: Program, plan: Plan, style: Style, name: str, signature: str, *, own: bool
) -> str:
    """Return the definition of a large program's function, and before it of what it calls.

    ``name`` begins the names of all that. The memory of the plan is an array of the function if it
    is its ``own``, else its parameter ``workspace``.
    """
    return "\n".join(_Main(program, plan, style, name).lines(signature, own))


def _parameters(kind: str, row: str) -> str:
    """Return the parameters of the function of segments."""
    return (
        f"{kind} *memory, const {kind} *const *inputs, {kind} *const *outputs,\n"
        f"    const {row} *row, const {kind} *number"
    )


def _entries(table: Iterable[int]) -> str:
    """Return the type of a table of whole numbers."""
    return "unsigned short" if max(table, default=0) < UNSIGNED_SHORT else "long"


def _listed(entries: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a table."""
    entries = list(entries)
    for k in range(0, len(entries), PER_LINE):
        yield f"  {', '.join(entries[k : k + PER_LINE])},"


class _Segment:
    """The function of segments that share their code."""

    def __init__(self, function: Function, inputs: int, style: Style) -> None:
        self.function, self.inputs, self.style = function, inputs, style
        self._numbers = iter(function.numbers)
        self._known: set[str] = set()
        self._used: set[str] = set()
        self._lines: list[str] = []

    def emit(self, name: str, row: str) -> str:
        """Return its definition; ``row`` is the type of addresses."""
        kind = self.style.kind
        for node in self.function.nodes:
            variable = f"t{node.id}"
            self._define(variable, self.style.type(node), self.style.expression(node, self._ref))
            stored = f"({kind}){variable}" if isinstance(node, Condition) else variable
            for place in self.function.stores.get(node.id, ()):
                self._lines.append(f"  {self._at(place)} = {stored};")
        for parameter in ("memory", "inputs", "outputs", "row", "number"):
            if parameter not in self._used:
                self._lines.append(f"  (void){parameter};")
        head = f"static void {name}({_parameters(kind, row)})"
        return "\n".join([head, "{", *self._lines, "}", ""])

    def _define(self, variable: str, kind: str, expression: str) -> str:
        self._known.add(variable)
        self._lines.append(f"  const {kind} {variable} = {expression};")
        return variable

    def _ref(self, x: Any) -> str:
        if not isinstance(x, (Symbol, Condition)):
            return self._number(next(self._numbers))
        variable = f"t{x.id}"
        if variable in self._known:
            return variable
        value = self._at(self.function.loads[x.id])
        if isinstance(x, Condition):
            value = f"{value} > {self.style.constant(0.0)}"
        return self._define(variable, self.style.type(x), value)

    def _number(self, number: float | int) -> str:
        if isinstance(number, float):
            return self.style.constant(number)
        self._used.add("number")
        variable = f"n{number}"
        if variable in self._known:
            return variable
        return self._define(variable, self.style.kind, f"number[{number}]")

    def _at(self, place: Place) -> str:
        if place.port == MEMORY:
            array = "memory"
        elif place.port < self.inputs:
            array = f"inputs[{place.port}]"
        else:
            array = f"outputs[{place.port - self.inputs}]"
        self._used.add(array.partition("[")[0])
        if place.column is None:
            return f"{array}[{place.offset}]"
        self._used.add("row")
        base = f"r{place.column}"
        if base not in self._known:
            self._define(base, "long", f"row[{place.column}]")
        return f"{array}[{base} + {place.offset}]"


class _Main:
    """The program's function: what comes before the calls, the calls, the end."""

    def __init__(self, program: Program, plan: Plan, style: Style, name: str) -> None:
        self.program, self.plan, self.style, self.name = program, plan, style, name
        self.kind = style.kind
        self.row = _entries(plan.addresses.tolist())
        self._tables: list[str] = []

    def lines(self, signature: str, own: bool) -> list[str]:
        """Return the text of all."""
        memory = f"memory[{max(self.plan.memory, 1)}]" if own else "*const memory = workspace"
        body = [
            signature,
            "{",
            f"  {self.kind} {memory};",
            *self._before(),
            *self._numbers(),
            *(self._calls() if self.plan.calls else ()),
            *self._copied(),
            "  (void)memory;",
            *self.style.end(self._ref),
            "",
        ]
        segments = [
            _Segment(function, len(self.program.inputs), self.style).emit(
                f"{self.name}_{k}", self.row
            )
            for k, function in enumerate(self.plan.functions)
        ]
        return [*segments, *self._tables, *body]

    def _ref(self, x: Any) -> str:
        """Return an operand that is a number, an input, or kept in the memory."""
        if not isinstance(x, (Symbol, Condition)):
            return self.style.constant(x)
        if x.op == g.INPUT:
            return self.style.expression(x, self._ref)
        value = f"memory[{self.plan.home[x.id]}]"
        return f"({value} > {self.style.constant(0.0)})" if isinstance(x, Condition) else value

    def _before(self) -> Iterator[str]:
        """Yield what angles need, and their sines and cosines."""
        for node in (*self.plan.early, *self.plan.trig):
            value = self.style.expression(node, self._ref)
            if isinstance(node, Condition):
                value = f"({self.kind})({value})"
            yield f"  memory[{self.plan.home[node.id]}] = {value};"

    def _numbers(self) -> Iterator[str]:
        """Yield the lines that fill outputs in which there are numbers."""
        for k, (name, values) in enumerate(
            zip(self.style.outputs, self.program.values, strict=True)
        ):
            fixed = [(at, x) for at, x in enumerate(values) if isinstance(x, float)]
            if len(fixed) <= DIRECT:
                yield from (f"  {name}[{at}] = {self.style.constant(x)};" for at, x in fixed)
                continue
            if len({np.float64(x).tobytes() for _, x in fixed}) == 1:
                value = self.style.constant(fixed[0][1])
            else:
                table = f"{self.name}_fixed{k}"
                numbers = [x if isinstance(x, float) else 0.0 for x in values]
                self._table(f"{self.kind} {table}[]", map(self.style.constant, numbers))
                value = f"{table}[k]"
            yield f"  for (long k = 0; k < {len(values)}; ++k) {name}[k] = {value};"

    def _copied(self) -> Iterator[str]:
        """Yield the lines that store outputs that are inputs, or were known before the calls."""
        before = {x.id for x in (*self.plan.early, *self.plan.trig)}
        for name, values in zip(self.style.outputs, self.program.values, strict=True):
            for k, x in enumerate(values):
                if isinstance(x, Symbol) and (x.op == g.INPUT or x.id in before):
                    yield f"  {name}[{k}] = {self._ref(x)};"

    def _table(self, declaration: str, entries: Iterable[str]) -> None:
        self._tables += [f"static const {declaration} = {{", *_listed(entries), "};", ""]

    def _calls(self) -> Iterator[str]:
        """Yield the loop over runs: so many calls of one function, one after the other."""
        plan, name, kind, row = self.plan, self.name, self.kind, self.row
        runs = [(f, len(list(group))) for f, group in groupby(plan.calls)]
        self._table(f"{row} {name}_rows[]", map(str, [*plan.addresses.tolist(), 0]))
        numbers = [*plan.constants.tolist(), 0.0]  # neither table may be empty
        self._table(f"{kind} {name}_numbers[]", map(self.style.constant, numbers))
        members = f"void (*code)({_parameters(kind, row)}); long addresses, numbers;"
        self._table(
            f"struct {{\n  {members}\n}} {name}_segments[]",
            (f"{{{name}_{k}, {f.addresses}, {f.constants}}}" for k, f in enumerate(plan.functions)),
        )
        most = _entries(x for run in runs for x in run)
        self._table(f"{most} {name}_runs[][2]", (f"{{{f}, {count}}}" for f, count in runs))
        yield f"  const {kind} *const inputs[] = {{{', '.join(self.style.inputs) or '0'}}};"
        yield f"  {kind} *const outputs[] = {{{', '.join(self.style.outputs)}}};"
        yield f"  const {row} *row = {name}_rows;"
        yield f"  const {kind} *number = {name}_numbers;"
        yield f"  for (long run = 0; run < {len(runs)}; ++run)"
        yield f"    for (long left = {name}_runs[run][1]; left > 0; --left) {{"
        at = f"{name}_segments[{name}_runs[run][0]]"
        yield f"      {at}.code(memory, inputs, outputs, row, number);"
        yield f"      row += {at}.addresses;"
        yield f"      number += {at}.numbers;"
        yield "    }"
