# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The coordinates of a model, as used in the search for poses of one body."""

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
    """The coordinates that may move a body, and the properties of all n.

    Those of joints with several degrees of freedom have no value: they are displacements from a
    configuration, and 0 in arrays of values.
    """

    model: Model
    moved: list[int]
    """The p coordinates that may move the body."""
    lower: FloatArray
    """(n,) limits, infinite where there are none."""
    upper: FloatArray
    """(n,)"""
    periodic: Array
    """(n,) bool: whether it is one of these, and a whole turn of it changes no pose."""
    slides: Array
    """(n,) bool: whether the coordinate is a length."""
    reach: float
    """Length in m of the path from the first joint to the body; see :func:`reach`."""

    @classmethod
    def of(cls, model: Model, body: str, held: Sequence[str] = ()) -> Coordinates:
        """Return those of a model without the held ones, named by joint or by velocity.

        Raises ModelError if limits leave a coordinate no value, UnknownJointError.
        """
        moved = moving_coordinates(model, body)
        if isinstance(held, str) or not all(isinstance(name, str) for name in held):
            raise ArgumentError(f"held must be a sequence of names of joints; got {held!r}")
        for name in held:
            if name in velocity_names(model.joints):
                gone = [velocity_names(model.joints).index(name)]
            else:
                gone = list(model.joint(name).velocities)
            moved = [k for k in moved if k not in gone]
        if not moved:
            raise ArgumentError(f"held leaves no joint that moves {body!r}; got {list(held)}")
        lower, upper = model.lower, model.upper
        periodic, slides = np.isin(np.arange(model.n), moved), np.zeros(model.n, bool)
        for joint in (each.joint for each in model.bodies):
            own = joint.velocities
            periodic[own] &= joint.is_periodic and joint.ratio == round(joint.ratio)
            slides[own] |= ~joint.screws[:3].any(axis=0)
        for k, message in contradictions(lower, upper).items():
            if k in moved:
                raise ModelError(f"joint {velocity_names(model.joints)[k]!r}: {message}")
        return cls(model, moved, lower, upper, periodic, slides, reach(model, body))

    def values(self, q: FloatArray) -> FloatArray:
        """Return the values (..., n) of single coordinates of q (..., nq), 0 for others."""
        at, k = single_coordinates(self.model.joints).T
        x = np.zeros((*q.shape[:-1], self.model.n))
        x[..., k] = q[..., at]
        return x

    def with_values(self, q: FloatArray, x: FloatArray) -> FloatArray:
        """Return q (..., nq) with single coordinates from x (..., n) and others displaced by it."""
        at, k = single_coordinates(self.model.joints).T
        moved: FloatArray = q.copy()
        if len(k) < self.model.n:
            v = x.copy()
            v[..., k] = 0.0
            moved = np.array(displaced(self.model, q, v), dtype=float)
        moved[..., at] = x[..., k]
        return moved

    @property
    def metric(self) -> FloatArray:
        """(n,) the order of the diagonal of J^T J, where J has lengths divided by the reach."""
        return np.where(self.slides, self.reach**-2, 1.0)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Return the range (n,) of starts of searches: the limits, or half a turn or the reach."""
        inside, far = np.clip(0.0, self.lower, self.upper), np.where(self.slides, self.reach, np.pi)
        low = np.where(np.isfinite(self.lower), self.lower, inside - far)
        high = np.where(np.isfinite(self.upper), self.upper, inside + far)
        return low, high

    def near(self, positions: FloatArray, start: FloatArray) -> FloatArray:
        """Return positions (..., nq), turned by whole turns to be within the limits if possible.

        They are then as few turns from the start (..., nq) as the limits allow, else as near as
        possible.
        """
        q, q0 = self.values(positions), self.values(start)
        turns = np.where(self.periodic, -np.round((q - q0) / TURN), 0.0)
        nearest = q + TURN * turns
        turns += self.periodic & (nearest < self.lower)
        turns -= self.periodic & (nearest > self.upper)
        other = q + TURN * turns
        x = np.where((other < self.lower) | (other > self.upper), nearest, other)
        return self.with_values(positions, x)

    def clipped(self, q: FloatArray) -> FloatArray:
        """Return q (..., nq) with the moved coordinates at the nearest positions in the limits."""
        x, k = self.values(q), self.moved
        x[..., k] = np.clip(x[..., k], self.lower[k], self.upper[k])
        return self.with_values(q, x)

    def outside(self, q: FloatArray) -> Array:
        """Return (..., p) which of the moved coordinates of q (..., nq) are beyond their limits."""
        x = self.values(q)
        return ((x < self.lower) | (x > self.upper))[..., self.moved]


def reach(model: Model, body: str) -> float:
    """Return the length in m of the path from the first joint to a body; 1 if that is zero."""
    frame = model.frames[body]
    links = [model.bodies[i].home_rel[:3, 3] for i in path(model, frame.body)[1:]]
    length = sum(float(np.linalg.norm(r)) for r in (*links, frame.placement[:3, 3]))
    return length if length > 0.0 else 1.0
