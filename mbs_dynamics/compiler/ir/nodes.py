# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs as loop nests over arrays of doubles, with explicit addresses.

This module defines the whole language. A :class:`Module` is a function of arrays. Its statements
compute values, each of which is defined once and has a number; load and store entries of buffers at
addresses that are affine in loop variables and in integers looked up in tables; and repeat, choose
and call other statements. Only registers and instructions are left to be decided: the memory layout
is part of the program.

    statement = Let | Load | Store | Fill | Sines | Check | For | Switch | Call
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

INPUT, OUTPUT, SCRATCH, CONSTANT, TABLE = "input", "output", "scratch", "constant", "table"
"""Kinds of buffers: arguments, results, memory of one evaluation, constants (doubles), and tables
(integers), which only indices look up."""


class Buffer:
    """An array of ``size`` entries; ``data`` are those of constants and tables."""

    __slots__ = ("data", "kind", "name", "size")

    def __init__(self, name: str, kind: str, size: int, data: NDArray[Any] | None = None) -> None:
        self.name, self.kind, self.size, self.data = name, kind, size, data

    def __getitem__(self, at: Index | Variable | int) -> Lookup:
        return Lookup(self, index(at))

    def __repr__(self) -> str:
        return self.name


class Variable(NamedTuple):
    """A loop counter, or the parameter of a procedure."""

    name: str

    def __repr__(self) -> str:
        return self.name


class Lookup(NamedTuple):
    """An integer that is looked up in a table, at an index without lookups."""

    table: Buffer
    at: Index

    def __repr__(self) -> str:
        return f"{self.table}[{self.at}]"


Atom = Variable | Lookup


class Index(NamedTuple):
    """A sum of integers with constant factors, and a constant."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Index | Atom | int) -> Index:  # type: ignore[override]
        other = index(other)
        factors = dict(self.terms)
        for atom, factor in other.terms:
            factors[atom] = factors.get(atom, 0) + factor
        terms = tuple((atom, factor) for atom, factor in factors.items() if factor)
        return Index(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:  # type: ignore[override]
        if not factor:
            return Index()
        return Index(tuple((x, factor * k) for x, k in self.terms), factor * self.constant)

    def factor(self, variable: Variable) -> int:
        """Return the factor of a variable, outside of lookups."""
        return dict(self.terms).get(variable, 0)

    def without(self, variable: Variable) -> Index:
        return Index(tuple(term for term in self.terms if term[0] != variable), self.constant)

    def looks_up(self, variable: Variable) -> bool:
        return any(isinstance(x, Lookup) and variable in x.at.variables for x, _ in self.terms)

    def value(self, variables: Mapping[Variable, int]) -> int:
        total = self.constant
        for atom, factor in self.terms:
            if isinstance(atom, Variable):
                total += factor * variables[atom]
            else:
                assert atom.table.data is not None
                total += factor * int(atom.table.data[atom.at.value(variables)])
        return total

    @property
    def variables(self) -> set[Variable]:
        variables: set[Variable] = set()
        for atom, _ in self.terms:
            variables |= {atom} if isinstance(atom, Variable) else atom.at.variables
        return variables

    def __repr__(self) -> str:
        terms = [f"{k}*{x}" if k != 1 else f"{x}" for x, k in self.terms]
        if self.constant or not terms:
            terms.append(str(self.constant))
        return " + ".join(terms)


def index(x: Index | Atom | int) -> Index:
    """Return an integer, a variable or a lookup as an index."""
    if isinstance(x, Index):
        return x
    return Index((), x) if isinstance(x, int) else Index(((x, 1),))


Operand = int | float
"""The number of a value (int), or a number (float)."""


class Let(NamedTuple):
    """Define a value as an operation of the graph on operands; comparisons define conditions."""

    value: int
    op: str
    args: tuple[Operand, ...]


class Load(NamedTuple):
    """Define a value as an entry of a buffer.

    Compilers must not remove a ``volatile`` load.
    """

    value: int
    buffer: Buffer
    at: Index
    volatile: bool = False


class Store(NamedTuple):
    """Set an entry of a buffer; ``volatile`` means the same as for :class:`Load`."""

    buffer: Buffer
    at: Index
    value: Operand
    volatile: bool = False


class Fill(NamedTuple):
    """Set ``entries`` entries of a buffer to zero, from the entry ``first`` on."""

    buffer: Buffer
    first: int
    entries: int


class Sines(NamedTuple):
    """Set entries of a buffer to the sines of angles, and entries ``width`` further to the cosines.

    The sine of angle k is stored at ``first + k``. Entries of missing angles are undefined.
    ``first`` is a multiple of ``width``, so that vectors are stored aligned.
    """

    buffer: Buffer
    first: int
    angles: tuple[Operand, ...]
    width: int


class Check(NamedTuple):
    """If a value is not positive, set the status, unless it is set, to a positive number.

    It stands outside of loops, cases and procedures.
    """

    value: int
    status: int


class For(NamedTuple):
    """Repeat statements for all integers from ``begin`` on that are less than ``end``."""

    variable: Variable
    begin: Index
    end: Index
    body: Block
    backwards: bool = False
    parallel: bool = False
    """Whether iterations may run in any order, and several at once."""


class Switch(NamedTuple):
    """Execute the statements of the case that an integer selects, or none."""

    on: Index
    cases: tuple[tuple[int, Block], ...]


class Procedure:
    """Statements that several calls share, or that are compiled as a function of their own."""

    __slots__ = ("body", "name", "parameters")

    def __init__(self, name: str, parameters: tuple[Variable, ...], body: Block) -> None:
        self.name, self.parameters, self.body = name, parameters, body


class Call(NamedTuple):
    """Execute a procedure, for these values of its parameters."""

    procedure: Procedure
    arguments: tuple[Index, ...]


Statement = Let | Load | Store | Fill | Sines | Check | For | Switch | Call
Block = tuple[Statement, ...]


class Module(NamedTuple):
    """A function: fills the outputs from the inputs, and returns the status, 0 on success."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Block

    @property
    def procedures(self) -> tuple[Procedure, ...]:
        """The procedures that are called, callees before their callers."""
        procedures: dict[Procedure, None] = {}

        def visit(body: Block) -> None:
            for statement in walk(body):
                if type(statement) is Call and statement.procedure not in procedures:
                    visit(statement.procedure.body)
                    procedures[statement.procedure] = None

        visit(self.body)
        return tuple(procedures)

    @property
    def statements(self) -> list[Statement]:
        """All statements, those of procedures first."""
        bodies = [*(x.body for x in self.procedures), self.body]
        return [statement for body in bodies for statement in walk(body)]

    def buffers(self, *kinds: str) -> tuple[Buffer, ...]:
        """Return the buffers of some kinds that are used, in the order of their first use."""
        buffers: dict[Buffer, None] = {}
        for x in self.statements:
            if type(x) is Let:  # most are
                continue
            if isinstance(x, (Load, Store, Fill, Sines)):
                buffers[x.buffer] = None
            for at in indices_of(x):
                tables = [atom.table for atom, _ in at.terms if isinstance(atom, Lookup)]
                buffers |= dict.fromkeys(tables)
        return tuple(x for x in buffers if x.kind in kinds)


def walk(body: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements and, before each compound one, those within it; procedures are not."""
    for statement in body:
        if type(statement) is For:
            yield from walk(statement.body)
        elif type(statement) is Switch:
            for _, case in statement.cases:
                yield from walk(case)
        yield statement


def indices_of(statement: Statement) -> tuple[Index, ...]:
    """Return the indices that a statement evaluates itself."""
    match statement:
        case For(_, a, b):
            return a, b
        case Load(at=at) | Store(at=at) | Switch(on=at):
            return (at,)
        case Call(arguments=arguments):
            return arguments
    return ()


def operands_of(x: Statement) -> tuple[Operand, ...]:
    """Return the operands of a statement: numbers of values, and numbers."""
    if type(x) is Let:  # most are
        return x.args
    if type(x) is Store or type(x) is Check:
        return (x.value,)
    return x.angles if type(x) is Sines else ()


def with_operands(x: Statement, instead: Mapping[int, int]) -> Statement:
    """Return a statement with operands replaced as mapped."""

    def other(operand: Any) -> Any:  # the number 2.0 is no key
        return instead.get(operand, operand) if type(operand) is int else operand

    match x:
        case Let(value, op, args):
            return Let(value, op, tuple([other(arg) for arg in args]))
        case Store(value=value) | Check(value=value):
            return x._replace(value=other(value))
        case Sines(angles=angles):
            return x._replace(angles=tuple([other(angle) for angle in angles]))
    return x


def table(name: str, numbers: Any) -> Buffer:
    """Return a table of integers."""
    data = np.ascontiguousarray(numbers, dtype=np.int64).reshape(-1)
    return Buffer(name, TABLE, len(data), data)


def constants(name: str, numbers: Any) -> Buffer:
    """Return a buffer of constant doubles."""
    data = np.ascontiguousarray(numbers, dtype=np.float64).reshape(-1)
    return Buffer(name, CONSTANT, len(data), data)
