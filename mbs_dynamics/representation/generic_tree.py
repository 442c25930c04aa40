# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tree as loops see it that are traced once: one body stands for all of its kind.

It has what equations ask of a :class:`Tree`, with tables in place of the constants of the bodies
and containers in place of lists. Bodies are of one kind if they have the same kind of joint and the
same zeros and ones, and so the same operations. See :mod:`mbs_dynamics.compiler.frontend.loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler import Symbol
from mbs_dynamics.compiler.frontend.containers import Block, Matrix, Values
from mbs_dynamics.compiler.frontend.loop_ports import Assembled, Entries, Result, Texts
from mbs_dynamics.compiler.frontend.loops import (
    INWARD,
    LAST,
    OUTWARD,
    UNKNOWN,
    Forest,
    Loops,
    Member,
    Unsuitable,
)
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

KINDS = 6
"""Most kinds of bodies; if zeros and ones make more, they are treated as any numbers."""


def forest_of(model: Model, loaded: Collection[int]) -> Forest:
    """Return the bodies, numbered depth first, as what loops run over, with their kinds.

    Those that carry a payload are of kinds of their own.
    """
    for finely in (True, False):
        keys = [(_kind(model, i, finely), i in loaded) for i in range(model.nb)]
        order: dict[Any, int] = {}
        kinds = tuple(order.setdefault(key, len(order)) for key in keys)
        if len(order) <= KINDS:
            break
    return Forest(model.parents, kinds)


def _kind(model: Model, i: int, finely: bool) -> Any:
    body = model.bodies[i]
    key = body.parent == GROUND, body.joint.kind
    if not finely:
        return key
    numbers = np.concatenate([body.home_rel.flat, body.joint.screw, body.inertia.parameters])
    return key, np.where(np.isin(numbers, (-1.0, 0.0, 1.0)), numbers, np.nan).tobytes()


@dataclass(frozen=True, eq=False)
class _Joint:
    """A generic joint; its coordinate is known by the body."""

    kind: str
    screw: Array
    offset: Any
    coordinate: Member
    ratio: ClassVar[float] = 1.0


@dataclass(frozen=True, eq=False)
class _Body:
    parent: Any
    home_rel: Array
    joint: _Joint
    inertia: Inertia


class GenericTree(Tree):
    """A model numbered depth first, or the path to a frame of one, within loops.

    The position of each joint is a coordinate of its own, of the ``n`` that the whole model has.
    ``payload`` has an entry for each body that carries one.
    """

    positions_are_coordinates = True

    def __init__(
        self,
        model: Model,
        loops: Loops,
        gravity: Any,
        payload: Any,
        loaded: Collection[int],
        n: int,
    ) -> None:
        self.model, self.loops, self.gravity, self.payload = model, loops, gravity, payload
        self._loaded = {loops.forest.kinds[i] for i in loaded}
        self.joint_names = model.joint_names
        self.n, self.nb = n, model.nb
        self.bodies = _Lookup(self._body)
        self.parents = _Lookup(lambda i: i.parent)
        self._columns = _constants(model)
        self._known: dict[Member, _Body] = {}

    def _body(self, i: Any) -> _Body:
        if i.kind is None or self.loops.scope is None:
            raise Unsuitable
        if i not in self._known:
            flat = [self.loops.table(column, i) for column in self._columns]
            entries = np.array(flat, dtype=object)
            kind = next(
                body.joint.kind
                for body, k in zip(self.model.bodies, self.loops.forest.kinds, strict=True)
                if k == i.kind
            )
            joint = _Joint(kind, _numbers(entries[16:22]), flat[32], i)
            home_rel = _numbers(entries[:16]).reshape(4, 4)
            own = entries[22:32]
            if i.kind in self._loaded:
                own = own + self.payload[i]
            inertia = Inertia.from_parameters(own)
            self._known[i] = _Body(i.parent, home_rel, joint, inertia)
        return self._known[i]

    def outward(self) -> Iterator[tuple[Any, Any]]:
        """Yield (body, parent), parents before children."""
        return self.loops.rows(OUTWARD)

    def inward(self) -> Iterator[tuple[Any, Any]]:
        """Yield (body, parent), children before parents."""
        return self.loops.rows(INWARD)

    def frame(self, name: str) -> Frame:
        """Return the frame at the end of a path."""
        if name not in self.model.frames:  # of what is not the end of a path
            raise Unsuitable
        frame = self.model.frames[name]
        if not self.loops.forest.is_chain or frame.body != self.nb - 1:
            raise Unsuitable
        return frame._replace(body=Member(LAST))  # type: ignore[arg-type]

    def outward_to(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Yield (body, parent) along a path."""
        if i.row != LAST:
            raise Unsuitable
        return self.outward()

    def supporting(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the bodies between body i and the ground.

        Each comes with what stands for its child on the way to i, of which nothing is known.
        """
        return ((j, Member(UNKNOWN)) for j in self.loops.pairs(i))

    def inward_to(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Raise Unsuitable: nothing is handed on from body to body but by containers."""
        raise Unsuitable

    def depth(self, i: Any) -> int:
        """Return how many joints move the body at the end of a path."""
        if i.row != LAST:
            raise Unsuitable
        return self.nb

    def columns(self, i: Any, domain: str) -> Iterator[Any]:
        """Yield columns, of which there is one for each body; see :meth:`Loops.columns`."""
        return self.loops.columns(i, domain)

    def unit(self, i: Any, k: Member) -> Any:
        """Return an entry of the identity matrix."""
        return self.loops.unit(i, k)

    def path(self, i: Any) -> list[Member]:
        """Return the body alone: within a loop those before it are done with."""
        return [i]

    def per_body(self, ground: Any = None) -> Values:
        """Return a container with a value for each body."""
        return Values(self.loops, ground)

    def zeros_per_body(self, size: int) -> Values:
        """Return a container with a zero vector for each body."""
        zeros = self.per_body(np.zeros(size))
        for i, _ in self.outward():
            zeros[i] = np.zeros(size)
        return zeros

    def per_pair(self, entries: int = 1) -> Matrix:
        """Return a matrix of scalars, or of so many each, zero at first."""
        return Matrix(self.loops, (self.nb * entries, entries, 1), entries)

    def vector_per_pair(self, size: int) -> Matrix:
        """Return vectors for all pairs, zero at first, as one matrix for each entry."""
        return Matrix(self.loops, (self.nb, 1, self.nb**2), size)

    def per_column(self, size: int) -> Block:
        """Return a container with a vector for each body and column, zero at first."""
        return Block(self.loops, size)

    def per_coordinate(self, values: Sequence[Any]) -> Any:
        """Return what has these values, floats or strings, in the order of the coordinates."""
        own = [values[body.joint.coordinate] for body in self.model.bodies]
        if own and isinstance(own[0], str):
            texts = Texts(own)
            return _Lookup(lambda i: texts)
        return _Lookup(lambda i: self.loops.table(own, i))

    def joint_positions(self, q: Any) -> _Lookup:
        """Return the position of each body's joint."""
        return _Lookup(lambda i: _entry(q, i) + self._body(i).joint.offset)

    def joint_rates(self, qd: Any) -> _Lookup:
        """Return the rate (or acceleration) of each body's joint."""
        return _Lookup(lambda i: _entry(qd, i))

    def generalized(self, tau_joint: Values) -> Any:
        """Return the forces of the coordinates from those of the joints."""
        return self.by_coordinate(tau_joint)

    def generalized_rows(self, Y: Matrix) -> Any:
        """Return the rows of the coordinates from those of the joints."""
        width = self.nb * Y.entries
        return Result(Y, "coordinate", (self.n, width), (width, Y.entries, 1), "body")

    def generalized_columns(self, S: Values) -> Any:
        """Return (6, n), the columns of the coordinates from those of joints."""
        J = Values(self.loops, whole=True)
        for i, _ in self.outward():
            J[i] = S[i]
        return Result(J, "coordinate", (6, self.n), strides=(1, 0, self.n))

    def by_body(self, values: Values) -> Any:
        """Return (nb, 6), what bodies have in their order."""
        of_bodies = Values(self.loops, whole=True)
        for i, _ in self.outward():
            of_bodies[i] = values[i]
        return Result(of_bodies, "body", (self.nb, 6), strides=(6, 0, 1))

    def by_coordinate(self, values: Values) -> Any:
        """Return what bodies have in the order of the coordinates."""
        return Result(values, "coordinate", (self.n,), (1, 0, 0))

    def generalized_matrix(self, M: Matrix, *, symmetric: bool = False) -> Any:
        """Return the matrix of the coordinates from that of the joints."""
        return Result(M, "coordinate", (self.n, self.n), strides=(self.n, 1, 1))

    def generalized_vectors(self, H: Matrix) -> Any:
        """Return the vectors of pairs of coordinates from those of pairs of joints."""
        shape = H.entries, self.n, self.n
        return Result(H, "coordinate", shape, strides=(self.n, 1, self.n**2))

    def assembled(self, rows: list[list[Any]]) -> Any:
        """Return the matrix that is made of these blocks."""
        return Assembled.of(rows)


class _Lookup:
    """What is computed for a generic body when it is asked for."""

    def __init__(self, of: Callable[[Member], Any]) -> None:
        self._of = of

    def __getitem__(self, i: Any) -> Any:
        if not isinstance(i, Member):
            raise Unsuitable
        return self._of(i)


def _constants(model: Model) -> list[NDArray[np.float64]]:
    """Return the constants of the bodies, each for all bodies."""
    rows = [
        [
            *body.home_rel.flat,
            *body.joint.screw,
            *body.inertia.parameters,
            body.joint.offset,
        ]
        for body in model.bodies
    ]
    return list(np.array(rows).T.copy())


def _numbers(entries: Array) -> Array:
    """Return an array of floats if it holds no symbols."""
    symbolic = any(isinstance(x, Symbol) for x in entries)
    return entries if symbolic else entries.astype(np.float64)


def _entry(q: Any, i: Member) -> Any:
    """Return the entry of a coordinate of an input, or of an array of the same numbers."""
    if isinstance(q, Entries):
        return q[i]
    if isinstance(q, Result) and isinstance(q.of, Values):
        return q.of[i]
    q = np.asarray(q)
    if q.dtype == object or (q != q[0]).any():
        raise Unsuitable
    return float(q[0])
