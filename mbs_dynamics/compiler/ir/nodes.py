# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs as loop nests over arrays of doubles, with explicit addresses.

This page is the whole language. A :class:`Module` is a function of arrays. Its statements compute
values, each of which is defined once and has a number; load and store entries of buffers at
addresses that are affine in loop variables and in integers looked up in tables; and repeat, choose
and call other statements. Nothing is left to be decided but registers and instructions: where what
stands in memory is part of the program.

    statement = Let | Equal | Load | Store | Fill | Sines | Check | For | Switch | Call | Mirror
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

INPUT, OUTPUT, SCRATCH, CONSTANT, TABLE = "input", "output", "scratch", "constant", "table"
"""Kinds of buffers: what comes in, what goes out, memory of one evaluation, constants (doubles),
and tables (integers), in which only indices are looked up."""


class Buffer:
    """An array of ``size`` entries. ``data`` are those of constants, and the integers of tables."""

    __slots__ = ("data", "kind", "name", "size")

    def __init__(self, name: str, kind: str, size: int, data: NDArray[Any] | None = None) -> None:
        self.name, self.kind, self.size, self.data = name, kind, size, data

    def __getitem__(self, at: Index | Variable | int) -> Lookup:
        """Return the integer at this place of a table."""
        return Lookup(self, index(at))

    def __repr__(self) -> str:
        return self.name


# -- indices ---------------------------------------------------------------------------------------


class Variable(NamedTuple):
    """An integer that a loop counts, or the parameter of a procedure."""

    name: str

    def __repr__(self) -> str:
        return self.name


class Lookup(NamedTuple):
    """An integer that stands in a table."""

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
        """Return the sum without the term of a variable."""
        return Index(tuple(term for term in self.terms if term[0] != variable), self.constant)

    def looks_up(self, variable: Variable) -> bool:
        """Whether a lookup depends on a variable."""
        return any(isinstance(x, Lookup) and variable in x.at.variables for x, _ in self.terms)

    def value(self, variables: Mapping[Variable, int]) -> int:
        """Return the integer that it is for these values of variables."""
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
        """The variables that it depends on."""
        found: set[Variable] = set()
        for atom, _ in self.terms:
            found |= {atom} if isinstance(atom, Variable) else atom.at.variables
        return found

    def __repr__(self) -> str:
        said = [f"{k}*{x}" if k != 1 else f"{x}" for x, k in self.terms]
        if self.constant or not said:
            said.append(str(self.constant))
        return " + ".join(said)


def index(x: Index | Atom | int) -> Index:
    """Return an integer, a variable or a lookup as an index."""
    if isinstance(x, Index):
        return x
    return Index((), x) if isinstance(x, int) else Index(((x, 1),))


# -- statements ------------------------------------------------------------------------------------

Operand = int | float
"""The number of a value (int), or a number (float)."""


class Let(NamedTuple):
    """Define a value as an operation of the graph on operands; comparisons define conditions."""

    value: int
    op: str
    args: tuple[Operand, ...]


class Equal(NamedTuple):
    """Define a value as one where two indices are equal, else zero."""

    value: int
    a: Index
    b: Index


class Load(NamedTuple):
    """Define a value as an entry of a buffer.

    A ``volatile`` one stays where it is, also where a compiler could do without.
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
    """Set entries of a buffer to zero, so many ``entries`` from the first on."""

    buffer: Buffer
    first: int
    entries: int


class Sines(NamedTuple):
    """Set entries of a buffer to the sines of angles, and entries ``width`` further to the cosines.

    The sine of angle k comes to ``first + k``. Entries of angles that are missing mean nothing.
    ``first`` is a multiple of ``width``, so that vectors can be stored aligned.
    """

    buffer: Buffer
    first: int
    angles: tuple[Operand, ...]
    width: int


class Check(NamedTuple):
    """Where a value is not positive, set the status, if none is set yet, to a positive integer."""

    value: int
    status: Index


class Mirror(NamedTuple):
    """Copy what is above the diagonal of a square matrix to below that of another, or its own.

    target[k, i] = source[i, k] for i < k, of matrices that begin at these entries of buffers.
    """

    source: Buffer
    source_first: int
    target: Buffer
    target_first: int
    size: int


class For(NamedTuple):
    """Repeat statements for all integers from ``begin`` on that are less than ``end``."""

    variable: Variable
    begin: Index
    end: Index
    body: tuple[Statement, ...]
    backwards: bool = False
    parallel: bool = False
    """Whether iterations may run in any order, and several at once."""


class Switch(NamedTuple):
    """Do the statements of the case that an integer names, or nothing."""

    on: Index
    cases: tuple[tuple[int, tuple[Statement, ...]], ...]


class Procedure:
    """Statements that several calls share, or that stand apart to be compiled apart."""

    __slots__ = ("body", "name", "parameters")

    def __init__(
        self, name: str, parameters: tuple[Variable, ...], body: tuple[Statement, ...]
    ) -> None:
        self.name, self.parameters, self.body = name, parameters, body

    def with_body(self, body: tuple[Statement, ...]) -> Procedure:
        """Return a procedure that does something else."""
        return Procedure(self.name, self.parameters, body)


class Call(NamedTuple):
    """Do what a procedure does, for these values of its parameters."""

    procedure: Procedure
    arguments: tuple[Index, ...]


Statement = Let | Equal | Load | Store | Fill | Sines | Check | Mirror | For | Switch | Call


class Module(NamedTuple):
    """A function: fills the outputs from the inputs, and returns the status, 0 if all is well."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: tuple[Statement, ...]

    @property
    def procedures(self) -> tuple[Procedure, ...]:
        """The procedures that are called, those that are called by others first."""
        found: dict[Procedure, None] = {}

        def visit(body: Iterable[Statement]) -> None:
            for statement in walk(body):
                if isinstance(statement, Call) and statement.procedure not in found:
                    visit(statement.procedure.body)
                    found[statement.procedure] = None

        visit(self.body)
        return tuple(found)

    @property
    def statements(self) -> list[Statement]:
        """All statements, those of procedures first."""
        bodies = [*(x.body for x in self.procedures), self.body]
        return [statement for body in bodies for statement in walk(body)]

    def buffers(self, *kinds: str) -> tuple[Buffer, ...]:
        """Return the buffers of some kinds that are used, in the order in which they come up."""
        found: dict[Buffer, None] = {}
        for statement in self.statements:
            for x in buffers_of(statement):
                found.setdefault(x)
        return tuple(x for x in found if x.kind in kinds)


def walk(body: Iterable[Statement]) -> Iterable[Statement]:
    """Yield statements and, before each that has some, those within."""
    for statement in body:
        for inner in inner_bodies(statement):
            yield from walk(inner)
        yield statement


def inner_bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """Return the statements within a statement; those of a procedure are not within its calls."""
    if isinstance(statement, For):
        return (statement.body,)
    if isinstance(statement, Switch):
        return tuple(body for _, body in statement.cases)
    return ()


def calling(
    body: Iterable[Statement], instead: Mapping[Procedure, Procedure]
) -> tuple[Statement, ...]:
    """Return the statements with calls of other procedures instead of some."""
    found: list[Statement] = []
    for statement in body:
        if isinstance(statement, Call):
            procedure = instead.get(statement.procedure, statement.procedure)
            statement = Call(procedure, statement.arguments)
        elif isinstance(statement, For):
            statement = statement._replace(body=calling(statement.body, instead))
        elif isinstance(statement, Switch):
            cases = tuple((k, calling(within, instead)) for k, within in statement.cases)
            statement = statement._replace(cases=cases)
        found.append(statement)
    return tuple(found)


def with_buffers(
    body: Iterable[Statement], instead: Mapping[Buffer, tuple[Buffer, int]]
) -> tuple[Statement, ...]:
    """Return the statements with parts of other buffers instead of some, in procedures as well.

    A part is given by its first entry.
    """
    changed: dict[Procedure, Procedure] = {}

    def visit(body: Iterable[Statement]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for statement in body:
            match statement:
                case Load(_, buffer, at) | Store(buffer, at) if buffer in instead:
                    to, first = instead[buffer]
                    statement = statement._replace(buffer=to, at=at + first)
                case Sines(buffer, begin, angles, width) if buffer in instead:
                    to, first = instead[buffer]
                    statement = Sines(to, begin + first, angles, width)
                case Fill(buffer, begin, entries) if buffer in instead:
                    to, first = instead[buffer]
                    statement = Fill(to, begin + first, entries)
                case For():
                    statement = statement._replace(body=visit(statement.body))
                case Switch():
                    cases = tuple((k, visit(within)) for k, within in statement.cases)
                    statement = statement._replace(cases=cases)
                case Call(procedure=procedure):
                    if procedure not in changed:
                        changed[procedure] = procedure.with_body(visit(procedure.body))
                    statement = statement._replace(procedure=changed[procedure])
            found.append(statement)
        return tuple(found)

    return visit(body)


def indices_of(statement: Statement) -> tuple[Index, ...]:
    """Return the indices that a statement evaluates itself."""
    match statement:
        case Equal(_, a, b):
            return a, b
        case Load(_, _, at) | Store(_, at, _):
            return (at,)
        case Check(_, status):
            return (status,)
        case For():
            return statement.begin, statement.end
        case Switch():
            return (statement.on,)
        case Call():
            return statement.arguments
    return ()


def operands_of(statement: Statement) -> tuple[Operand, ...]:
    """Return the operands of a statement: numbers of values, and numbers."""
    if type(statement) is Let:  # most are
        return statement.args
    match statement:
        case Store(_, _, value):
            return (value,)
        case Sines(_, _, angles, _):
            return angles
        case Check(value, _):
            return (value,)
    return ()


def with_operands(statement: Statement, instead: Callable[[int], int]) -> Statement:
    """Return a statement that takes other values as its operands."""
    match statement:
        case Let(value, op, args):
            return Let(value, op, tuple([instead(x) if type(x) is int else x for x in args]))
        case Store(buffer, at, x, volatile) if type(x) is int:
            return Store(buffer, at, instead(x), volatile)
        case Check(value, status):
            return Check(instead(value), status)
        case Sines(buffer, first, angles, width):
            others = tuple([instead(x) if type(x) is int else x for x in angles])
            return Sines(buffer, first, others, width)
    return statement


def buffers_of(statement: Statement) -> list[Buffer]:
    """Return the buffers that a statement itself refers to, tables included."""
    found: list[Buffer] = []
    match statement:
        case Load(_, buffer) | Store(buffer) | Fill(buffer) | Sines(buffer):
            found.append(buffer)
        case Mirror(source, _, target, _, _):
            found += [source, target]
    pending = list(indices_of(statement))
    while pending:
        for atom, _ in pending.pop().terms:
            if isinstance(atom, Lookup):
                found.append(atom.table)
                pending.append(atom.at)
    return found


def table(name: str, numbers: Any) -> Buffer:
    """Return a table of integers."""
    data = np.ascontiguousarray(numbers, dtype=np.int64).reshape(-1)
    return Buffer(name, TABLE, len(data), data)


def constants(name: str, numbers: Any) -> Buffer:
    """Return a buffer of constant doubles."""
    data = np.ascontiguousarray(numbers, dtype=np.float64).reshape(-1)
    return Buffer(name, CONSTANT, len(data), data)
