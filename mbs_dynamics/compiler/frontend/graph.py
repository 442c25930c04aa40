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
from typing import Any, NoReturn

import numpy as np

from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import INPUT, Buffer
from mbs_dynamics.compiler.ir.operations import ADD, DIV, MUL, NEG, SUB
from mbs_dynamics.errors import ArgumentError, TraceError

NUMBER = (float, int, np.floating, np.integer)

LOAD = "load"
"""The operation of nodes that are loaded, from a buffer at an index."""

BRANCH_HELP = (
    "a traced function cannot branch on a symbol, because the trace has to hold for every value; "
    "write select(less(a, b), x, y) from mbs_dynamics.compiler instead of `x if a < b else y`, "
    "a & b and ~a instead of `a and b` and `not a`, min and max instead of the built-in functions, "
    "and decide by the model's constants wherever the choice does not depend on the state"
)

MIXED = "symbols of two different traces were mixed in one expression"


LARGEST = 3_000_000
"""Nodes of a graph at which tracing ends; about two thirds of them become operations.

Tracing 1.3 million operations takes 8 s of CPU time; compiling 1.2 million takes 75 s and 1.4 GB.
"""

INSTEAD = (
    "Functions in O(n), such as inverse_dynamics and forward_dynamics, take far fewer operations "
    "than matrices and their derivatives, and functions of one body fewer than those of all; "
    "Pinocchio is the better choice for matrices of more than about 100 bodies"
)


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
) -> Callable[[Any, Any], Any]:
    """Return a method that dispatches on its operands, symbols, conditions or numbers."""

    def operator(self: Any, other: Any) -> Any:
        if type(self) is not Symbol:
            return operator(self.number, other)
        if type(other) is Symbol:
            return with_symbol(self, other)
        if isinstance(other, NUMBER):
            return with_number(self, float(other))
        if isinstance(other, Condition):
            return operator(self, other.number)
        return NotImplemented

    return operator


def _comparison(op: str, *, reverse: bool = False) -> Callable[[Symbol, Any], Any]:
    def comparison(self: Symbol, other: Any) -> Any:
        if not isinstance(other, (Node, *NUMBER)):
            return NotImplemented
        return self.graph.operation(op, (other, self) if reverse else (self, other))

    return comparison


class Node:
    """An input, or an operation on nodes and floats."""

    __slots__ = ("args", "graph", "id", "op")

    __add__ = __radd__ = _operator(_sum, _shifted)
    __mul__ = __rmul__ = _operator(_product, _scaled)
    __sub__ = _operator(_difference, lambda x, c: _shifted(x, -c))
    __rsub__ = _operator(lambda x, y: _difference(y, x), lambda x, c: _shifted(_negated(x), c))
    __truediv__ = _operator(_quotient, _divided)
    __rtruediv__ = _operator(lambda x, y: _quotient(y, x), _inverse)

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

    def operation(self, op: str, operands: tuple[Any, ...]) -> Any:
        """Return an operation of which an operand is this node."""
        return self.graph.operation(op, operands)


class Condition(Node):
    """A comparison of symbols. In arithmetic, and as a result, it is 1.0 if it holds, else 0.0."""

    __slots__ = ()

    @property
    def number(self) -> Any:
        """The symbol that is 1.0 if the condition holds, and else 0.0."""
        return self.graph.operation(ops.SELECT, (self, 1.0, 0.0))

    def __and__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # elementwise
        if isinstance(other, (bool, np.bool_)):
            return self if other else np.False_
        return self.graph.operation(ops.AND, (self, other))

    def __or__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, (bool, np.bool_)):
            return np.True_ if other else self
        return self.graph.operation(ops.OR, (self, other))

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return self.args[0] if self.op == ops.NOT else self.graph.operation(ops.NOT, (self,))


class Symbol(Node):
    """A node with a number for its value."""

    __slots__ = ()

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

    def __abs__(self) -> Any:
        return self.graph.operation(ops.ABS, (self.args[0] if self.op is NEG else self,))

    def __round__(self, digits: int = 0) -> Any:
        if digits:
            raise TraceError(f"a symbol can be rounded to an integer only; got {digits} digits")
        return self.graph.operation(ops.ROUND, (self,))

    def operation(self, op: str, operands: tuple[Any, ...]) -> Any:
        """Return an operation of which an operand is this symbol; signs of operands are removed."""
        if op == ops.SIN and self.op is NEG:
            return -self.args[0].sin()
        if op == ops.COS and self.op is NEG:
            return self.args[0].cos()
        return abs(self) if op == ops.ABS else self.graph.operation(op, operands)

    # np.sin and its like call these for the elements of an object array

    def sin(self) -> Any:
        return self.operation(ops.SIN, (self,))

    def cos(self) -> Any:
        return self.operation(ops.COS, (self,))

    def sqrt(self) -> Any:
        return self.operation(ops.SQRT, (self,))

    def hypot(self, other: Any) -> Any:
        return self.operation(ops.HYPOT, (self, other))

    def arctan2(self, other: Any) -> Any:
        return self.operation(ops.ATAN2, (self, other))

    def rint(self) -> Any:
        return self.operation(ops.ROUND, (self,))

    def __float__(self) -> NoReturn:
        raise TraceError(
            "a symbol has no value while tracing: use the functions of mbs_dynamics.compiler, and "
            "object arrays where floats and symbols mix"
        )

    __int__ = __index__ = __complex__ = __float__


class Graph:
    """The nodes of one trace in the order of their creation."""

    def __init__(self, name: str = "the function") -> None:
        self.name = name
        """Name of the traced function, for messages."""
        self.nodes: list[Node] = []
        """Arguments before their users."""
        self.known: dict[tuple[Any, ...], Node] = {}
        """The nodes by operation and operands."""
        self.guards: dict[int, tuple[Symbol, Any]] = {}
        """Symbols that must be positive, by id, each with the message if one is not."""
        self.inputs: dict[str, Buffer] = {}

    def input(self, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return an object array of new symbols, which are loaded from an input."""
        array = np.empty(shape, dtype=object)
        buffer = self.inputs[name] = Buffer(name, INPUT, array.size)
        array.reshape(-1)[:] = [self.node(LOAD, (buffer, k), (name, k)) for k in range(array.size)]
        return array

    def node(
        self, op: str, args: tuple[Any, ...], key: tuple[Any, ...], kind: type[Node] = Symbol
    ) -> Any:
        """Return the unique node with this operation and these arguments."""
        key = (op, *key)
        known = self.known.get(key)
        if known is None:
            if len(self.nodes) == LARGEST:
                raise ArgumentError(
                    f"{self.name}: the trace of the model takes more than {LARGEST} operations. "
                    f"{INSTEAD}"
                )
            known = self.known[key] = kind(self, op, args, len(self.nodes))
            self.nodes.append(known)
        return known

    def forget(self) -> None:
        """Release all nodes: their cycles with the graph would need the garbage collector."""
        for held in (self.known, self.guards, self.nodes):  # the last node first
            held.clear()

    def operation(self, op: str, operands: tuple[Any, ...]) -> Any:
        """Return the node of an operation of :data:`ir.operations.TABLE`; see :meth:`node`.

        Conditions count as numbers where the operation takes numbers. Raises TraceError for
        operands of other kinds, and of another trace.
        """
        row = ops.TABLE[op]
        args: list[Any] = []
        for x, kind in zip(operands, row.signature, strict=False):
            if kind == "n" and isinstance(x, Condition):
                x = x.number
            if isinstance(x, Condition if kind == "c" else Symbol):
                if x.graph is not self:
                    raise TraceError(MIXED)
                args.append(x)
            elif kind == "n" and isinstance(x, (*NUMBER, np.bool_)):
                args.append(float(x))
            else:
                valid = "comparisons" if kind == "c" else "numbers, symbols and comparisons"
                raise TraceError(f"{op} takes {valid}, and arrays of them; got {type(x).__name__}")
        key = tuple((x.id,) if isinstance(x, Node) else x for x in args)
        return self.node(op, tuple(args), key, Condition if row.is_condition else Symbol)
