# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Straight-line programs over arrays of doubles.

This module defines the whole language. A :class:`Module` is a function of arrays. Its statements
compute values, each of which is defined once and has a number, and load and store entries of
buffers. The memory layout is part of the program; registers and instructions are not.

    module    = inputs, outputs, statement*
    statement = Let(value, operation, operand*)    value = operation(operands)
              | Load(value, buffer, at)            value = buffer[at]
              | Store(buffer, at, operand)         buffer[at] = operand
              | Sines(buffer, first, operand*)     buffer[first + k] = sine of angle k, and cosines
              | Check(value, status)               fail with this status unless value > 0
              | Call(name, statement*, condition)  run these, as a procedure, if the value is true
    operand   = number of a value | float
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

INPUT, OUTPUT, SCRATCH = "input", "output", "scratch"
"""Kinds of buffers: arguments, results, and memory of one evaluation."""


class Buffer:
    """An array of ``size`` entries."""

    __slots__ = ("kind", "name", "size")

    def __init__(self, name: str, kind: str, size: int) -> None:
        self.name, self.kind, self.size = name, kind, size

    def __repr__(self) -> str:
        return self.name


Operand = int | float
"""The number of a value (int), or a number (float)."""


class Let(NamedTuple):
    """Define a value as an operation on operands: a row of :data:`ir.operations.TABLE`."""

    value: int
    op: str
    args: tuple[Operand, ...]


class Load(NamedTuple):
    """Define a value as an entry of a buffer. Compilers must not remove a ``volatile`` load."""

    value: int
    buffer: Buffer
    at: int
    volatile: bool = False


class Store(NamedTuple):
    """Set an entry of a buffer; ``volatile`` means the same as for :class:`Load`."""

    buffer: Buffer
    at: int
    value: Operand
    volatile: bool = False


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

    It stands outside of procedures.
    """

    value: int
    status: int


class Call(NamedTuple):
    """Run statements that are compiled as a function of their own, a procedure.

    With a ``condition``, the number of a value, only where it holds.
    """

    name: str
    body: Block
    condition: int | None = None


Statement = Let | Load | Store | Sines | Check | Call
Block = tuple[Statement, ...]


class Module(NamedTuple):
    """A function: fills the outputs from the inputs, and returns the status, 0 on success."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Block

    @property
    def procedures(self) -> tuple[Call, ...]:
        """The procedures, in the order of their calls."""
        return tuple([x for x in self.body if type(x) is Call])

    @property
    def statements(self) -> list[Statement]:
        """All statements, those of procedures first."""
        bodies = [*(x.body for x in self.procedures), self.body]
        return [statement for body in bodies for statement in body]

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The scratch buffers, in the order of their first use."""
        used = [x.buffer for x in self.statements if isinstance(x, (Load, Store, Sines))]
        return tuple([x for x in dict.fromkeys(used) if x.kind == SCRATCH])


def operands_of(x: Statement) -> tuple[Operand, ...]:
    """Return the operands of a statement: numbers of values, and numbers."""
    if type(x) is Let:  # most are
        return x.args
    if type(x) is Store or type(x) is Check:
        return (x.value,)
    if type(x) is Call:
        return () if x.condition is None else (x.condition,)
    return x.angles if type(x) is Sines else ()


def with_operands(x: Statement, instead: Mapping[int, int]) -> Statement:
    """Return a statement with operands replaced as mapped."""

    def other(operand: Any) -> Any:  # the number 2.0 is not a key
        return instead.get(operand, operand) if type(operand) is int else operand

    match x:
        case Let(value, op, args):
            return Let(value, op, tuple([other(arg) for arg in args]))
        case Store(value=value) | Check(value=value):
            return x._replace(value=other(value))
        case Sines(angles=angles):
            return x._replace(angles=tuple([other(angle) for angle in angles]))
        case Call(condition=condition):
            return x._replace(condition=other(condition))
    return x
