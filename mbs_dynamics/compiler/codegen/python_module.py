# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Plain Python from the intermediate representation; parallel loops become operations on arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.ir.nodes import (
    CONSTANT,
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
    Statement,
    Store,
    Switch,
    Variable,
)

INFIX = {g.ADD: "+", g.SUB: "-", g.MUL: "*", g.LESS: "<", g.LESS_EQUAL: "<="}
OF_NUMBERS = {g.SIN: "sin", g.COS: "cos", g.SQRT: "sqrt", g.ATAN2: "atan2", g.DIV: "quotient"}
OF_ARRAYS = {
    g.SIN: "sines",
    g.COS: "cosines",
    g.SQRT: "square_roots",
    g.ATAN2: "angles",
    g.DIV: "quotients",
}

NAMESPACE: dict[str, Any] = {
    "bytes": bytes,
    "range": range,
    "array": array,
    "frombuffer": np.frombuffer,
    "arange": np.arange,
    "where": np.where,
    "sines": np.sin,
    "cosines": np.cos,
    "square_roots": np.sqrt,
    "angles": np.arctan2,
    "quotients": np.divide,
}


def emit_module(module: Module) -> str:
    """Return the source of ``def <name>(<inputs>)``, of flat lists, which returns flat lists.

    It needs the names of :func:`namespace`, and those of programs without loops. Every buffer has
    two names for one memory: ``x`` for its entries one by one, ``x_all`` for many at once.
    """
    return "\n".join([*_Printer(module).lines(), ""])


def namespace(module: Module) -> dict[str, Any]:
    """Return what the source refers to: constants and tables, and functions of arrays."""
    names: dict[str, Any] = dict(NAMESPACE)
    for buffer in module.buffers(CONSTANT, TABLE):
        assert buffer.data is not None
        names[_name(buffer)] = buffer.data.tolist()
        names[f"{_name(buffer)}_all"] = buffer.data
    return names


def _name(buffer: Buffer) -> str:
    return f"{buffer.kind}_{buffer.name}".replace(".", "_")


class _Printer:
    """The lines of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.across: Variable | None = None
        """The variable of the parallel loop around."""
        self.written: set[Buffer] = set()
        """What this loop writes."""
        self.varying: set[int] = set()

    def lines(self) -> Iterator[str]:
        """Yield them."""
        module = self.module
        yield f"def {module.name}({', '.join(x.name for x in module.inputs)}):"
        for buffer in module.inputs:
            yield f"    {_name(buffer)} = array('d', {buffer.name})"
        for buffer in (*module.outputs, *module.buffers(SCRATCH)):
            yield f"    {_name(buffer)} = array('d', bytes({8 * buffer.size}))"
        for buffer in (*module.inputs, *module.outputs, *module.buffers(SCRATCH)):
            if buffer.size:
                yield f"    {_name(buffer)}_all = frombuffer({_name(buffer)})"
        for procedure in module.procedures:
            yield f"    def {procedure.name}({', '.join(map(str, procedure.parameters))}):"
            yield from self.body(procedure.body, 8)
        yield from self.body(module.body, 4)
        yield f"    return {', '.join(f'{_name(x)}.tolist()' for x in module.outputs)},"

    def body(self, body: Sequence[Statement], margin: int) -> Iterator[str]:
        """Yield the lines of statements."""
        for statement in body:
            for line in self.statement(statement):
                yield " " * margin + line
        if not body:
            yield " " * margin + "pass"

    def statement(self, statement: Statement) -> Iterator[str]:
        """Yield the lines of one statement."""
        match statement:
            case Let(value, op, args):
                yield f"t{value} = {self.expression(value, op, args)}"
            case Equal(value, a, b):
                varies = self.varies(a) or self.varies(b)
                self.varying |= {value} if varies else set()
                yield f"t{value} = ({self.index(a)} == {self.index(b)}) * 1.0"
            case Load(value, buffer, at):
                self.varying |= {value} if self.varies(at) else set()
                copied = buffer in self.written and self.varies(at)
                yield f"t{value} = {self.entry(buffer, at)}{'.copy()' if copied else ''}"
            case Store(buffer, at, x):
                yield f"{self.entry(buffer, at)} = {self.operand(x)}"
            case Fill(buffer, first, entries):
                yield f"{_name(buffer)}_all[{first}:{first + entries}] = 0.0"
            case Check(value, status):
                yield f"if not t{value} > 0.0: failed({self.index(status)} - 1)"
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
        """Yield a loop, or if it is parallel what is done for all iterations at once."""
        begin, end = self.index(loop.begin), self.index(loop.end)
        if not loop.parallel:
            rows = f"range({begin}, {end})" + ("[::-1]" if loop.backwards else "")
            yield f"for {loop.variable} in {rows}:"
            yield from self.body(loop.body, 4)
            return
        self.across = loop.variable
        self.written = {x.buffer for x in loop.body if isinstance(x, Store)}
        yield f"first, last = {begin}, {end}"
        yield "if first < last:"
        yield f"    {loop.variable} = arange(first, last)"
        yield from self.body(loop.body, 4)
        self.across, self.written = None, set()
        self.varying.clear()

    def varies(self, at: Index) -> bool:
        """Whether an index differs from iteration to iteration of the parallel loop around."""
        return self.across is not None and self.across in at.variables

    def index(self, at: Index) -> str:
        """Return an index; an array, if it varies."""
        said = []
        for atom, factor in at.terms:
            term = str(atom) if isinstance(atom, Variable) else self.lookup(atom)
            said.append(term if factor == 1 else f"{factor} * {term}")
        if at.constant or not said:
            said.append(str(at.constant))
        return " + ".join(said)

    def lookup(self, x: Lookup) -> str:
        """Return an integer of a table, or several."""
        every = "_all" if self.varies(x.at) else ""
        return f"{_name(x.table)}{every}[{self.index(x.at)}]"

    def entry(self, buffer: Buffer, at: Index) -> str:
        """Return an entry of a buffer, or those of all iterations."""
        if not self.varies(at):
            return f"{_name(buffer)}[{self.index(at)}]"
        assert self.across is not None
        factor = at.factor(self.across)
        if at.looks_up(self.across) or factor <= 0:
            return f"{_name(buffer)}_all[{self.index(at)}]"
        rest, by = self.index(at.without(self.across)), f"{factor} * " if factor != 1 else ""
        step = f":{factor}" if factor != 1 else ""
        end = f"{rest} + {by}last" if factor == 1 else f"{rest} + {by}(last - 1) + 1"
        return f"{_name(buffer)}_all[{rest} + {by}first:{end}{step}]"

    def operand(self, x: Operand) -> str:
        """Return an operand."""
        return f"t{x}" if isinstance(x, int) else repr(x)

    def expression(self, value: int, op: str, args: Sequence[Operand]) -> str:
        """Return an operation."""
        varies = any(type(x) is int and x in self.varying for x in args)
        if varies:
            self.varying.add(value)
        x = [self.operand(x) for x in args]
        if op == g.NEG:
            return f"-{x[0]}"
        if op in INFIX:
            return f"{x[0]} {INFIX[op]} {x[1]}"
        if op == g.SELECT:
            return f"where({', '.join(x)})" if varies else f"{x[1]} if {x[0]} else {x[2]}"
        return f"{(OF_ARRAYS if varies else OF_NUMBERS)[op]}({', '.join(x)})"
