# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tree that equations are written for: loops over bodies, and containers for their results."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend.domains import ALL, BEYOND
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.lie.arrays import Array, blocks
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path
from mbs_dynamics.model.payloads import loaded


class Tree:
    """The bodies of a model with their loads, and the loops and containers of the equations.

    Gravity (3,) and loads, (10,) for each body that carries some, are numbers or symbols; by
    default those of the model. A :class:`mbs_dynamics.representation.generic_tree.GenericTree`
    has one body in place of all of its kind.
    """

    def __init__(self, model: Model, gravity: Any = None, loads: Any = None) -> None:
        self.model = model
        self.n, self.nb, self.joint_names = model.n, model.nb, model.joint_names
        self.gravity: Any = model.gravity if gravity is None else gravity
        self.loads: Any = model.payloads.parameters if loads is None else loads
        self.bodies: Any = loaded(model.bodies, zip(model.payloads.bodies, self.loads, strict=True))
        self.parents: Any = model.parents

    def under(self, gravity: Any) -> Tree:
        """Return this tree under another gravity (3,), in m/s^2, inertial frame."""
        tree = copy.copy(self)
        tree.gravity = gravity
        return tree

    def frame(self, name: str) -> Frame:
        """Return the frame of a body or merged link; UnknownBodyError lists the valid names."""
        return self.model.frames[name]

    def path(self, i: Any) -> list[Any]:
        """Return the bodies from the root to body i, both included."""
        return path(self.model, i)

    def outward(self) -> Iterator[tuple[Any, Any]]:
        """Yield (body, parent), parents before children."""
        return enumerate(self.parents)

    def inward(self) -> Iterator[tuple[Any, Any]]:
        """Yield (body, parent), children before parents."""
        return iter(list(self.outward())[::-1])

    def outward_to(self, i: int) -> Iterator[tuple[int, int]]:
        """Yield (body, parent) for the bodies from the root to body i, both included."""
        return ((k, self.parents[k]) for k in self.path(i))

    def inward_to(self, i: int) -> Iterator[tuple[int, int]]:
        """Yield (body, parent) for the bodies from body i to the root, both included."""
        return ((k, self.parents[k]) for k in reversed(self.path(i)))

    def depth(self, i: int) -> int:
        """Return how many joints move body i."""
        return len(self.path(i))

    def mean_depth(self, power: int = 1) -> float:
        """Return the mean number of joints that move a body, or the mean of its powers."""
        depths = [float(len(path(self.model, i))) for i in range(self.nb)]
        return float(np.mean(np.power(depths or [0.0], power)))

    def supporting(self, i: int) -> Iterator[tuple[int, int]]:
        """Yield the bodies between body i and the ground, each with its child on the way to i."""
        j = self.parents[i]
        while j != GROUND:
            yield j, i
            i, j = j, self.parents[j]

    def per_body(self, ground: Any = None) -> Any:
        """Return an empty list for one entry per body, with ``ground`` at index GROUND (-1)."""
        return [None] * self.nb + [ground]

    def zeros_per_body(self, size: int) -> Any:
        """Return a container with a zero vector for each body and the ground, to add to."""
        zeros = self.per_body(np.zeros(size))
        for i, _ in self.outward():
            zeros[i] = np.zeros(size)
        return zeros

    def per_pair(self, size: int = 1, *, adjacent: bool = False) -> Any:
        """Return zeros for each pair of bodies, (nb, nb), or vectors (nb, nb, size).

        ``adjacent`` are the entries of the vectors of a row in a result; see generalized_rows.
        """
        return np.full((self.nb, self.nb, size)[: 2 + (size > 1)], 0.0, dtype=object)

    @property
    def positions_are_coordinates(self) -> bool:
        """Whether the position of each joint is a separate coordinate, up to an offset."""
        direct = all(body.joint.ratio == 1.0 for body in self.bodies)
        return direct and self.n == self.nb

    def per_column(self, size: int) -> Any:
        """Return a container with a zero vector for each body and column."""
        return defaultdict(lambda: np.zeros(size))

    # -- what is attached to bodies, any number to each -------------------------------------------

    def moved_by(self, joints: Sequence[str]) -> list[int]:
        """Return the bodies that the named joints move, mimic joints included.

        Raises ArgumentError if ``joints`` is not a sequence of names, UnknownJointError.
        """
        if isinstance(joints, str) or not isinstance(joints, Sequence):
            raise ArgumentError(f"joints must be a sequence of names; got {joints!r}")
        index = {body.joint.name: i for i, body in enumerate(self.bodies)}
        for name in joints:
            if name not in index:
                raise UnknownJointError(name, index)
        return [index[name] for name in joints]

    def attached(self, to: Sequence[int], tip: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield the number in ``to`` and the body; only of those on the path to a body ``tip``."""
        on_path = None if tip is None else set(self.path(tip))
        return ((k, i) for k, i in enumerate(to) if on_path is None or i in on_path)

    def since(self, k: int, i: int, tip: int | None = None) -> Iterable[int]:
        """Yield body i, to which k is attached, and those beyond it; on the path to a ``tip``."""
        if tip is None:
            return self.columns(i, BEYOND)
        to_tip = self.path(tip)
        return to_tip[to_tip.index(i) :]

    def columns(self, i: int, domain: str) -> Iterable[int]:
        """Yield columns, of which there is one for each body.

        ALL of them, those of what joint i moves (BEYOND), or all from that of body i on (SINCE).
        Columns of other trees may be omitted, since they do not depend on the body.
        """
        if domain != BEYOND:
            return range(0 if domain == ALL else i, self.nb)
        moved = {i: None}
        for k in range(i + 1, self.nb):
            if self.parents[k] in moved:
                moved[k] = None
        return moved

    def unit(self, i: Any, k: Any) -> Any:
        """Return an entry of the identity matrix."""
        return float(i == k)

    def per_coordinate(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values indexed by coordinate."""
        return values

    def joint_positions(self, q: Any) -> Any:
        """Return the position of each body's joint from the coordinates, mimic joints included."""
        joints = [body.joint for body in self.bodies]
        return [joint.ratio * q[joint.coordinate] + joint.offset for joint in joints]

    def joint_rates(self, qd: Any) -> Any:
        """Return the rate (or acceleration) of each body's joint from those of the coordinates."""
        joints = [body.joint for body in self.bodies]
        return [joint.ratio * qd[joint.coordinate] for joint in joints]

    def generalized(
        self, values: Any, axes: int = 1, *, weighted: bool = True, symmetric: bool = False
    ) -> Any:
        """Return values of joints, (nb,) or more ``axes`` of nb, for the n coordinates.

        Values of joints that share a coordinate are summed, ``weighted`` by the ratios of the
        joints. Vectors (..., size) become (size, ...). None means zero, and a last value, of the
        ground, is ignored. A ``symmetric`` matrix is exactly symmetric also where joints share a
        coordinate.
        """
        joints = [body.joint for body in self.bodies]
        if isinstance(values, list):
            like = next((x for x in values if x is not None), 0.0)
            given, values = values, np.full((self.nb, *np.shape(like)), 0.0, dtype=object)
            for i, x in enumerate(given[: self.nb]):
                values[i] = np.zeros(np.shape(like)) if x is None else x
        found: Array = np.full((self.n,) * axes + values.shape[axes:], 0.0, dtype=object)
        where = np.ix_(*[np.array([joint.coordinate for joint in joints], dtype=int)] * axes)
        if self.positions_are_coordinates:
            found[where] = values
        else:
            for k in range(axes if weighted else 0):
                ratio = np.array([joint.ratio for joint in joints])
                values = ratio.reshape([-1 if x == k else 1 for x in range(values.ndim)]) * values
            np.add.at(found, where, values)
        if symmetric:
            for j in range(self.n):
                found[j + 1 :, j] = found[j, j + 1 :]
        return np.moveaxis(found, -1, 0) if found.ndim > axes else found

    def generalized_rows(self, values: Any) -> Any:
        """Return (n, nb m), vectors (m,) of pairs of bodies, for the coordinates of the first."""
        return self.generalized(values.reshape(self.nb, self.nb * values.shape[-1])).T

    def by_body(self, values: Any) -> Any:
        """Return (nb, 6), the vectors of the bodies in order, without that of the ground."""
        return np.array(values[: self.nb]).reshape(-1, 6)

    def assembled(self, rows: list[list[Array]]) -> Array:
        """Return the matrix that is made of these blocks."""
        return blocks(rows)
