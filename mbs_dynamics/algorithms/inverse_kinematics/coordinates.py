# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The coordinates that may move one body, as used in the search for its poses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms.configurations import displaced
from mbs_dynamics.algorithms.manipulability import moving_coordinates
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import contradictions, single_coordinates, velocity_names
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path

TURN = 2.0 * np.pi


class Coordinates(NamedTuple):
    """The p coordinates that may move a body, in the order of the velocities.

    Those of joints with several degrees of freedom have no value: they are displacements from a
    configuration, and 0 in arrays of values.
    """

    model: Model
    columns: list[int]
    """(p,) indices of their velocities."""
    places: Array
    """(p,) int: index in q, -1 for those without a value."""
    lower: FloatArray
    """(p,) limits, infinite where there are none."""
    upper: FloatArray
    """(p,)"""
    periodic: Array
    """(p,) bool: whether a whole turn changes no pose."""
    slides: Array
    """(p,) bool: whether the coordinate is a length."""
    reach: float
    """Length in m of the path from the first joint to the body; see :func:`reach`."""

    @classmethod
    def of(cls, model: Model, body: str, held: Sequence[str] = ()) -> Coordinates:
        """Return those of a model without the held ones, named by joint or by velocity.

        Raises ModelError if limits leave a coordinate no value, UnknownJointError.
        """
        if isinstance(held, str) or not all(isinstance(name, str) for name in held):
            raise ArgumentError(f"held must be a sequence of names of joints; got {held!r}")
        names = velocity_names(model.joints)
        gone: set[int] = set()
        for name in held:
            gone.update([names.index(name)] if name in names else model.joint(name).velocities)
        columns = [k for k in moving_coordinates(model, body) if k not in gone]
        if not columns:
            raise ArgumentError(f"held leaves no joint that moves {body!r}; got {list(held)}")
        for k, message in contradictions(model.lower, model.upper).items():
            if k in columns:
                raise ModelError(f"joint {names[k]!r}: {message}")
        places = np.full(model.n, -1)
        at, single = single_coordinates(model.joints).T
        places[single] = at
        periodic, slides = np.ones(model.n, bool), np.zeros(model.n, bool)
        for joint in (each.joint for each in model.bodies):
            own = joint.velocities
            periodic[own] &= joint.is_periodic and joint.ratio == round(joint.ratio)
            slides[own] |= ~joint.screws[:3].any(axis=0)
        return cls(
            model,
            columns,
            places[columns],
            model.lower[columns],
            model.upper[columns],
            periodic[columns],
            slides[columns],
            reach(model, body),
        )

    def values(self, q: FloatArray) -> FloatArray:
        """Return the values (..., p) in q (..., nq)."""
        return np.where(self.places >= 0, q[..., self.places], 0.0)

    def with_values(self, q: FloatArray, x: FloatArray) -> FloatArray:
        """Return q (..., nq) with values from x (..., p); other coordinates are displaced by it."""
        single = self.places >= 0
        moved: FloatArray = q.copy()
        if not single.all():
            v = np.zeros((*x.shape[:-1], self.model.n))
            v[..., self.columns] = np.where(single, 0.0, x)
            moved = np.array(displaced(self.model, q, v), dtype=float)
        moved[..., self.places[single]] = x[..., single]
        return moved

    @property
    def metric(self) -> FloatArray:
        """(p,) the order of the diagonal of J^T J, where J has lengths divided by the reach."""
        return np.where(self.slides, self.reach**-2, 1.0)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Return the range (p,) of starts of searches: the limits, or half a turn or the reach."""
        inside, far = np.clip(0.0, self.lower, self.upper), np.where(self.slides, self.reach, np.pi)
        low = np.where(np.isfinite(self.lower), self.lower, inside - far)
        high = np.where(np.isfinite(self.upper), self.upper, inside + far)
        return low, high

    def endless(self) -> Coordinates:
        """Return the coordinates without limits."""
        return self._replace(
            lower=np.full_like(self.lower, -np.inf), upper=np.full_like(self.upper, np.inf)
        )

    def near(self, positions: FloatArray, start: FloatArray) -> FloatArray:
        """Return positions (..., nq), turned by whole turns to be within the limits if possible.

        They are then as few turns from the start (..., nq) as the limits allow, else as near as
        possible.
        """
        x, x0 = self.values(positions), self.values(start)
        turns = np.where(self.periodic, -np.round((x - x0) / TURN), 0.0)
        nearest = x + TURN * turns
        turns += self.periodic & (nearest < self.lower)
        turns -= self.periodic & (nearest > self.upper)
        other = x + TURN * turns
        x = np.where((other < self.lower) | (other > self.upper), nearest, other)
        return self.with_values(positions, x)

    def clipped(self, q: FloatArray) -> FloatArray:
        """Return q (..., nq) with the coordinates at the nearest positions in the limits."""
        return self.with_values(q, np.clip(self.values(q), self.lower, self.upper))

    def outside(self, q: FloatArray) -> Array:
        """Return (..., p) which of the coordinates of q (..., nq) are beyond their limits."""
        x = self.values(q)
        return (x < self.lower) | (x > self.upper)


def reach(model: Model, body: str) -> float:
    """Return the length in m of the path from the first joint to a body; 1 if that is zero."""
    frame = model.frames[body]
    links = [model.bodies[i].home_rel[:3, 3] for i in path(model, frame.body)[1:]]
    length = sum(float(np.linalg.norm(r)) for r in (*links, frame.placement[:3, 3]))
    return length if length > 0.0 else 1.0
