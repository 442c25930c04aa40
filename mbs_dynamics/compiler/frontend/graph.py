# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Symbolic scalars that fold constants and share subexpressions.

A :class:`Graph` owns the nodes of one trace; a :class:`Symbol` is one node. Constants stay ordinary
floats: ``0.0 * x`` is the float ``0.0`` and ``1.0 * x`` is ``x`` itself, so that zeros and ones of
a robot's geometry vanish while NumPy multiplies object arrays. The same operation on the same
arguments is always the same node. Signs are pulled outwards, so that ``a - b`` and ``b - a`` share
one.

There is no global state: two threads may trace at the same time, each into a graph of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import Buffer, Index
from mbs_dynamics.compiler.ir.operations import ADD, DIV, MUL, NEG, SUB
from mbs_dynamics.errors import TraceError

NUMBER = (float, int, np.floating, np.integer)

LOAD = "load"
"""The operation of nodes that are loaded, from a buffer at an index."""

BRANCH_HELP = (
    "a traced function cannot branch on a symbol, because the trace has to hold for every value; "
    "write select(less(a, b), x, y) from mbs_dynamics.compiler instead of `x if a < b else y`, and "
    "decide by the model's constants wherever the choice does not depend on the state"
)

MIXED = "symbols of two different traces were mixed in one expression"


class Node:
    """An input, or an operation on nodes and floats."""

    __slots__ = ("args", "graph", "id", "op")

    def __init__(self, graph: Graph, op: str, args: tuple[Any, ...], id: int) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.id = id

    def __repr__(self) -> str:
        return f"<{self.op} #{self.id}>"

    def __bool__(self) -> NoReturn:
        raise TraceError(BRANCH_HELP)

    def __eq__(self, other: object) -> NoReturn:
        raise TraceError(f"whether two symbols are equal is not known while tracing: {BRANCH_HELP}")

    __ne__ = __eq__
    __hash__ = object.__hash__


class Condition(Node):
    """A comparison of symbols, valid in :func:`select` only."""

    __slots__ = ()


def _negated(x: Symbol) -> Any:
    return x.args[0] if x.op is NEG else x.graph.node(NEG, (x,), (x.id,))


def _scaled(x: Symbol, c: float) -> Any:
    if c == 0.0:
        return 0.0
    if c == 1.0:
        return x
    if x.op is NEG:
        return _scaled(x.args[0], -c)
    if c == -1.0:
        return _negated(x)
    if c < 0.0:
        return _negated(_scaled(x, -c))
    if x.op == MUL and type(x.args[0]) is float:
        return _scaled(x.args[1], c * x.args[0])
    return x.graph.node(MUL, (c, x), ("c", c, x.id))


def _shifted(x: Symbol, c: float) -> Any:
    if c == 0.0:
        return x
    sign, y = (-1.0, x.args[0]) if x.op is NEG else (1.0, x)
    if y.op in (ADD, SUB) and type(y.args[0]) is float:  # a number plus or minus a symbol
        rest = y.args[1] if y.op == ADD else -y.args[1]
        return _shifted(sign * rest, c + sign * y.args[0])
    return x.graph.node(ADD if y is x else SUB, (c, y), ("c", c, y.id))


def _product(a: Symbol, b: Symbol) -> Any:
    if a.op is NEG:
        return _negated(_product(a.args[0], b))
    if b.op is NEG:
        return _negated(_product(a, b.args[0]))
    return _pair(MUL, a, b) if a.id <= b.id else _pair(MUL, b, a)


def _sum(a: Symbol, b: Symbol) -> Any:
    if b.op is NEG:
        return _difference(a, b.args[0])
    if a.op is NEG:
        return _difference(b, a.args[0])
    if a is b:
        return _scaled(a, 2.0)
    return _pair(ADD, a, b) if a.id <= b.id else _pair(ADD, b, a)


def _difference(a: Symbol, b: Symbol) -> Any:
    if a is b:
        return 0.0
    if b.op is NEG:
        return _sum(a, b.args[0])
    if a.op is NEG:
        return -_sum(a.args[0], b)
    return _negated(_pair(SUB, b, a)) if a.id > b.id else _pair(SUB, a, b)


def _quotient(a: Symbol, b: Symbol) -> Any:
    return 1.0 if a is b else _pair(DIV, a, b)


def _inverse(x: Symbol, c: float) -> Any:
    return 0.0 if c == 0.0 else x.graph.node(DIV, (c, x), ("c", c, x.id))


def _divided(x: Symbol, c: float) -> Any:
    if c == 0.0:
        raise TraceError("a symbol is divided by the constant zero")
    return _scaled(x, 1.0 / c)


def _pair(op: str, a: Symbol, b: Symbol) -> Any:
    if a.graph is not b.graph:
        raise TraceError(MIXED)
    return a.graph.node(op, (a, b), (a.id, b.id))


def _operator(
    with_symbol: Callable[[Symbol, Symbol], Any], with_number: Callable[[Symbol, float], Any]
) -> Callable[[Symbol, Any], Any]:
    """Return a method that dispatches on its operands, symbols or numbers."""

    def operator(self: Symbol, other: Any) -> Any:
        if type(other) is Symbol:
            return with_symbol(self, other)
        if isinstance(other, NUMBER):
            return with_number(self, float(other))
        return NotImplemented

    return operator


def _comparison(op: str, *, reverse: bool = False) -> Callable[[Symbol, Any], Any]:
    def comparison(self: Symbol, other: Any) -> Any:
        if not isinstance(other, (Symbol, *NUMBER)):
            return NotImplemented
        operands = (other, self) if reverse else (self, other)
        return self.graph.operation(op, *operands, kind=Condition)

    return comparison


class Symbol(Node):
    """A node with a number for its value."""

    __slots__ = ()

    __add__ = __radd__ = _operator(_sum, _shifted)
    __mul__ = __rmul__ = _operator(_product, _scaled)
    __sub__ = _operator(_difference, lambda x, c: _shifted(x, -c))
    __rsub__ = _operator(lambda x, y: _difference(y, x), lambda x, c: _shifted(_negated(x), c))
    __truediv__ = _operator(_quotient, _divided)
    __rtruediv__ = _operator(lambda x, y: _quotient(y, x), _inverse)
    __lt__, __gt__ = _comparison(ops.LESS), _comparison(ops.LESS, reverse=True)
    __le__, __ge__ = _comparison(ops.LESS_EQUAL), _comparison(ops.LESS_EQUAL, reverse=True)
    __neg__ = _negated

    def __pos__(self) -> Symbol:
        return self

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int) or not 1 <= exponent <= 8:
            raise TraceError(f"only the powers 1 to 8 of a symbol can be traced; got {exponent!r}")
        power = self
        for _ in range(exponent - 1):
            power = power * self
        return power

    # np.sin and its like call these for the elements of an object array

    def sin(self) -> Any:
        if self.op is NEG:
            return -self.args[0].sin()
        return self.graph.trigonometric(ops.SIN, self)

    def cos(self) -> Any:
        if self.op is NEG:
            return self.args[0].cos()
        return self.graph.trigonometric(ops.COS, self)

    def sqrt(self) -> Any:
        return self.graph.node(ops.SQRT, (self,), (self.id,))

    def __float__(self) -> NoReturn:
        raise TraceError(
            "a symbol has no value while tracing: use sin, cos, sqrt, atan2 and select from "
            "mbs_dynamics.compiler, and object arrays where floats and symbols mix"
        )

    __int__ = __index__ = __complex__ = __float__


class ColumnLoop(NamedTuple):
    """A loop over the columns of a matrix."""

    given: Buffer
    """The matrix."""
    result: Buffer
    """The matrix of results."""
    call: ir.Call
    after: int
    """How many nodes come before it."""


class Graph:
    """The nodes of one trace in the order of their creation, and the stores."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        """Arguments before their users."""
        self.known: dict[tuple[Any, ...], Node] = {}
        """The nodes by operation and operands."""
        self.guards: dict[int, tuple[Symbol, Any]] = {}
        """Symbols that must be positive, by id, each with the message if one is not."""
        self.inputs: dict[str, Buffer] = {}
        self.stores: dict[tuple[Buffer, Index], tuple[Any, int]] = {}
        """Value stored at each place of an output, and the number of nodes before the store."""
        self.column_loops: list[ColumnLoop] = []
        self.constants = Buffer("constants", ir.SCRATCH, 0)
        """Memory of symbols that are the same for all columns of these loops."""
        self.places: dict[int, Index] = {}
        """Where they stand there, by id."""

    def input(self, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return an object array of new symbols, which are loaded from an input."""
        array = np.empty(shape, dtype=object)
        buffer = self.inputs[name] = Buffer(name, ir.INPUT, array.size)
        array.reshape(-1)[:] = [self.load(buffer, Index((), k)) for k in range(array.size)]
        return array

    def load(self, buffer: Buffer, at: Index) -> Any:
        """Return the node of the initial value at an address."""
        return self.node(LOAD, (buffer, at), (buffer, at))

    def node(
        self, op: str, args: tuple[Any, ...], key: tuple[Any, ...], kind: type[Node] = Symbol
    ) -> Any:
        """Return the unique node with this operation and these arguments."""
        key = (op, *key)
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = kind(self, op, args, len(self.nodes))
            self.nodes.append(known)
        return known

    def forget(self) -> None:
        """Release all nodes: their cycles with the graph would need the garbage collector."""
        for held in (self.known, self.guards, self.stores, self.nodes):  # the last node first
            held.clear()

    def trigonometric(self, op: str, x: Symbol) -> Any:
        """Return the sine or cosine of an angle without a sign."""
        return self.node(op, (x,), (x.id,))

    def operation(
        self,
        op: str,
        *operands: Any,
        when: tuple[Condition, ...] = (),
        kind: type[Node] = Symbol,
    ) -> Any:
        """Return the node of an operation, under a condition or none; see :meth:`node`.

        Raises TraceError for operands that are no symbols of this trace and no numbers.
        """
        args: list[Any] = [*when]
        for x in operands:
            if not isinstance(x, (Symbol, *NUMBER)):
                raise TraceError(
                    "atan2 and select take numbers and symbols, and arrays of them; got a "
                    + type(x).__name__
                )
            if isinstance(x, Symbol) and x.graph is not self:
                raise TraceError(MIXED)
            args.append(x if isinstance(x, Symbol) else float(x))
        key = tuple((x.id,) if isinstance(x, Node) else x for x in args)
        return self.node(op, tuple(args), key, kind)
