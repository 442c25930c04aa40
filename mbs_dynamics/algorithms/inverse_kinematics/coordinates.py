# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The coordinates of a model, as used in the search for poses of one body."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms.manipulability import moving_coordinates
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import contradictions
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path

TURN = 2.0 * np.pi


class Coordinates(NamedTuple):
    """The coordinates that move a body, and the properties of all n."""

    moved: list[int]
    """The p coordinates that move the body."""
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
    def of(cls, model: Model, body: str) -> Coordinates:
        """Return those of a model, or raise ModelError if limits leave a coordinate no value."""
        moved = moving_coordinates(model, body)
        lower, upper = model.lower, model.upper
        periodic, slides = np.isin(np.arange(model.n), moved), np.zeros(model.n, bool)
        for joint in (each.joint for each in model.bodies):
            k = joint.coordinate
            periodic[k] &= joint.kind == "revolute" and joint.ratio == round(joint.ratio)
            slides[k] |= joint.kind == "prismatic"
        for k, message in contradictions(lower, upper).items():
            if k in moved:
                raise ModelError(f"joint {model.joint_names[k]!r}: {message}")
        return cls(moved, lower, upper, periodic, slides, reach(model, body))

    @property
    def metric(self) -> FloatArray:
        """(n,) the order of the diagonal of J^T J, where J has lengths divided by the reach."""
        return np.where(self.slides, self.reach**-2, 1.0)

    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends (n,) of where searches start: the limits, or half a turn or the reach."""
        inside, far = np.clip(0.0, self.lower, self.upper), np.where(self.slides, self.reach, np.pi)
        low = np.where(np.isfinite(self.lower), self.lower, inside - far)
        high = np.where(np.isfinite(self.upper), self.upper, inside + far)
        return low, high

    def near(self, q: FloatArray, q0: FloatArray) -> FloatArray:
        """Return q (..., n), turned by whole turns to be within the limits if that can be.

        It is then as few turns from q0 (..., n) as the limits allow, else as near as possible.
        """
        turns = np.where(self.periodic, -np.round((q - q0) / TURN), 0.0)
        nearest = q + TURN * turns
        turns += self.periodic & (nearest < self.lower)
        turns -= self.periodic & (nearest > self.upper)
        other = q + TURN * turns
        return np.where((other < self.lower) | (other > self.upper), nearest, other)

    def clipped(self, q: FloatArray) -> FloatArray:
        """Return q (..., n) with the moved coordinates at the nearest positions in the limits."""
        ends = self.lower[self.moved], self.upper[self.moved]
        found: FloatArray = q.copy()
        found[..., self.moved] = np.clip(q[..., self.moved], *ends)
        return found

    def outside(self, q: FloatArray) -> Array:
        """Return (..., p) which of the moved coordinates of q (..., n) are beyond their limits."""
        return ((q < self.lower) | (q > self.upper))[..., self.moved]


def reach(model: Model, body: str) -> float:
    """Return the length in m of the path from the first joint to a body; 1 if that is zero."""
    frame = model.frames[body]
    links = [model.bodies[i].home_rel[:3, 3] for i in path(model, frame.body)[1:]]
    length = sum(float(np.linalg.norm(r)) for r in (*links, frame.placement[:3, 3]))
    return length if length > 0.0 else 1.0
