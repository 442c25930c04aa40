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

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from mbs_dynamics.compiler.ir.operations import (
    ADD,
    ATAN2,
    COS,
    DIV,
    LESS,
    LESS_EQUAL,
    MUL,
    NEG,
    SELECT,
    SIN,
    SQRT,
    SUB,
)
from mbs_dynamics.errors import TraceError

NUMBER = (float, int, np.floating, np.integer)

INPUT = "input"
"""The operation of a node that is an entry of an input."""

BRANCH_HELP = (
    "a traced function cannot branch on a symbol, because the trace has to hold for every value; "
    "write select(less(a, b), x, y) from mbs_dynamics.compiler instead of `x if a < b else y`, and "
    "decide by the model's constants wherever the choice does not depend on the state"
)

MIXED = "symbols of two different traces were mixed in one expression"


class Symbol:
    """A node of a graph: an input, or an operation on symbols and floats."""

    __slots__ = ("args", "graph", "id", "op")

    def __init__(self, graph: Graph, op: str, args: tuple[Any, ...], id: int) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.id = id

    def __repr__(self) -> str:
        return f"<{self.op} #{self.id}>"

    # -- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if type(other) is Symbol:
            return self.graph.sum(self, other)
        if type(other) is float and other == 0.0:
            return self
        if isinstance(other, NUMBER):
            return self.graph.shifted(self, float(other))
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Symbol:
            return self.graph.difference(self, other)
        if isinstance(other, NUMBER):
            return self.graph.shifted(self, -float(other))
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, NUMBER):
            return self.graph.shifted(-self, float(other))
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        if type(other) is Symbol:
            return self.graph.product(self, other)
        if type(other) is float and (other == 0.0 or other == 1.0):
            return self if other else 0.0  # most numbers, sooner than by `scaled`
        if isinstance(other, NUMBER):
            return self.graph.scaled(self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is Symbol:
            return self.graph.quotient(self, other)
        if isinstance(other, NUMBER):
            if other == 0:
                raise TraceError("a symbol is divided by the constant zero")
            return self.graph.scaled(self, 1.0 / float(other))
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, NUMBER):
            return self.graph.quotient(float(other), self)
        return NotImplemented

    def __neg__(self) -> Symbol:
        return self.graph.negated(self)

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
        """Sine."""
        return self.graph.sin(self)

    def cos(self) -> Any:
        """Cosine."""
        return self.graph.cos(self)

    def sqrt(self) -> Symbol:
        """Square root."""
        return self.graph.node(SQRT, (self,), (self.id,))

    # -- comparisons -----------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Any:
        return self.graph.condition(LESS, self, other)

    def __gt__(self, other: Any) -> Any:
        return self.graph.condition(LESS, other, self)

    def __le__(self, other: Any) -> Any:
        return self.graph.condition(LESS_EQUAL, self, other)

    def __ge__(self, other: Any) -> Any:
        return self.graph.condition(LESS_EQUAL, other, self)

    def __eq__(self, other: object) -> NoReturn:
        raise TraceError(f"whether two symbols are equal is not known while tracing: {BRANCH_HELP}")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TraceError(BRANCH_HELP)

    def __float__(self) -> NoReturn:
        raise TraceError(
            "a symbol has no value while tracing: use sin, cos, sqrt, atan2 and select from "
            "mbs_dynamics.compiler, and object arrays where floats and symbols mix"
        )

    __int__ = __float__
    __index__ = __float__
    __complex__ = __float__


class Condition:
    """A comparison of symbols; good for :func:`select` and for nothing else."""

    __slots__ = ("args", "graph", "id", "op")

    def __init__(self, graph: Graph, op: str, args: tuple[Any, ...], id: int) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.id = id

    def __bool__(self) -> NoReturn:
        raise TraceError(BRANCH_HELP)

    def __eq__(self, other: object) -> NoReturn:
        raise TraceError(BRANCH_HELP)

    __ne__ = __eq__
    __hash__ = object.__hash__


class Graph:
    """The nodes of one trace, in the order in which they came up: arguments before their users."""

    def __init__(self) -> None:
        """Start an empty trace."""
        self.nodes: list[Symbol | Condition] = []
        self.guards: dict[int, tuple[Symbol, str]] = {}
        """Symbols that must be positive, by id, each with what to say if one is not."""
        self._known: dict[tuple[Any, ...], Symbol | Condition] = {}

    def input(self, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return an object array of new input symbols; each has the args (name, flat index)."""
        array = np.empty(shape, dtype=object)
        flat = array.reshape(-1)
        for k in range(flat.size):
            flat[k] = self.node(INPUT, (name, k), (name, k))
        return array

    def node(self, op: str, args: tuple[Any, ...], key: tuple[Any, ...]) -> Symbol:
        """Return the one node with this operation and these arguments, made at need."""
        key = (op, *key)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Symbol(self, op, args, len(self.nodes))
            self.nodes.append(known)
        return known  # type: ignore[return-value]

    def condition(self, op: str, a: Any, b: Any) -> Any:
        """Return the node of a comparison, or NotImplemented, as comparisons in Python do."""
        if not all(isinstance(x, (Symbol, *NUMBER)) for x in (a, b)):
            return NotImplemented
        key = (op, *self._keys(a), *self._keys(b))
        known = self._known.get(key)
        if known is None:
            args = (_operand(a), _operand(b))
            known = self._known[key] = Condition(self, op, args, len(self.nodes))
            self.nodes.append(known)
        return known

    def forget_but(self, nodes: Sequence[Symbol | Condition]) -> None:
        """End the trace: let go of the nodes that no output needs, and of what finds them again."""
        self.nodes = list(nodes)
        self._known.clear()

    # -- folding ---------------------------------------------------------------------------------

    def negated(self, x: Symbol) -> Symbol:
        """Return -x."""
        if x.op is NEG:
            return x.args[0]  # type: ignore[no-any-return]
        return self.node(NEG, (x,), (x.id,))

    def scaled(self, x: Symbol, c: float) -> Any:
        """Return c x."""
        if c == 0.0:
            return 0.0
        if c == 1.0:
            return x
        if x.op is NEG:
            return self.scaled(x.args[0], -c)
        if c == -1.0:
            return self.negated(x)
        if c < 0.0:
            return self.negated(self.scaled(x, -c))
        if x.op == MUL and type(x.args[0]) is float:
            return self.scaled(x.args[1], c * x.args[0])
        return self.node(MUL, (c, x), ("c", c, x.id))

    def shifted(self, x: Symbol, c: float) -> Any:
        """Return x + c."""
        if c == 0.0:
            return x
        if x.op is NEG:
            y = x.args[0]
            if y.op in (ADD, SUB) and type(y.args[0]) is float:
                return self.shifted(-y.args[1] if y.op == ADD else y.args[1], c - y.args[0])
            return self.node(SUB, (c, y), ("c", c, y.id))
        if x.op == ADD and type(x.args[0]) is float:
            return self.shifted(x.args[1], c + x.args[0])
        if x.op == SUB and type(x.args[0]) is float:
            return self.shifted(-x.args[1], c + x.args[0])
        return self.node(ADD, (c, x), ("c", c, x.id))

    def product(self, a: Symbol, b: Symbol) -> Any:
        """Return a b."""
        if a.op is NEG:
            return self.negated(self.product(a.args[0], b))
        if b.op is NEG:
            return self.negated(self.product(a, b.args[0]))
        if a.graph is not b.graph:
            raise TraceError(MIXED)
        return self._binary(MUL, a, b) if a.id <= b.id else self._binary(MUL, b, a)

    def sum(self, a: Symbol, b: Symbol) -> Any:
        """Return a + b."""
        if b.op is NEG:
            return self.difference(a, b.args[0])
        if a.op is NEG:
            return self.difference(b, a.args[0])
        if a.graph is not b.graph:
            raise TraceError(MIXED)
        if a is b:
            return self.scaled(a, 2.0)
        return self._binary(ADD, a, b) if a.id <= b.id else self._binary(ADD, b, a)

    def difference(self, a: Symbol, b: Symbol) -> Any:
        """Return a - b."""
        if a is b:
            return 0.0
        if b.op is NEG:
            return self.sum(a, b.args[0])
        if a.op is NEG:
            return -self.sum(a.args[0], b)
        if a.graph is not b.graph:
            raise TraceError(MIXED)
        if a.id > b.id:
            return self.negated(self._binary(SUB, b, a))
        return self._binary(SUB, a, b)

    def quotient(self, a: Any, b: Symbol) -> Any:
        """Return a / b."""
        if isinstance(a, float):
            return 0.0 if a == 0.0 else self.node(DIV, (a, b), ("c", a, b.id))
        if a is b:
            return 1.0
        if a.graph is not b.graph:
            raise TraceError(MIXED)
        return self._binary(DIV, a, b)

    def sin(self, x: Symbol) -> Any:
        """Return sin(x)."""
        return -self.sin(x.args[0]) if x.op == NEG else self.node(SIN, (x,), (x.id,))

    def cos(self, x: Symbol) -> Any:
        """Return cos(x)."""
        return self.cos(x.args[0]) if x.op == NEG else self.node(COS, (x,), (x.id,))

    def atan2(self, y: Any, x: Any) -> Symbol:
        """Return the angle of (x, y)."""
        keys = (*self._keys(y), *self._keys(x))
        return self.node(ATAN2, (_operand(y), _operand(x)), keys)

    def select(self, condition: Condition, x: Any, y: Any) -> Any:
        """Return x where the condition holds, else y."""
        if x is y or (type(x) is float and type(y) is float and x == y):
            return x
        keys = (condition.id, *self._keys(x), *self._keys(y))
        return self.node(SELECT, (condition, _operand(x), _operand(y)), keys)

    def _binary(self, op: str, a: Symbol, b: Symbol) -> Symbol:
        """Return the node of an operation on two symbols; :meth:`node`, but faster."""
        key = (op, a.id, b.id)
        known = self._known.get(key)
        if known is None:
            nodes = self.nodes
            known = self._known[key] = Symbol(self, op, (a, b), len(nodes))
            nodes.append(known)
        return known  # type: ignore[return-value]

    def _keys(self, x: Any) -> tuple[Any, ...]:
        """Return what tells an operand apart, or raise TraceError if it is none."""
        if isinstance(x, NUMBER):
            return ("c", float(x))
        if not isinstance(x, Symbol):
            raise TraceError(
                "atan2 and select take numbers and symbols, and arrays of them; got a "
                + type(x).__name__
            )
        if x.graph is not self:
            raise TraceError(MIXED)
        return ("s", x.id)


def _operand(x: Any) -> Any:
    """Return a symbol as it is and any number as a float."""
    return x if isinstance(x, Symbol) else float(x)
