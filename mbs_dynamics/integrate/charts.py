# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""States of models as arrays, and how they move on the groups of the joints.

Schemes of Munthe-Kaas integrate the increments u of a step from zero, q = q_0 exp(u), with the
rates dexp(-u)^-1 qd: Mueller (dynamics), eqs. (88), (89). If displacements of all joints are added,
this is the scheme for vectors.
"""

# ruff: noqa: D102 (methods are described once, in the base class)

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.algorithms.configurations import displaced, increment_rates
from mbs_dynamics.integrate.runge_kutta import VECTORS, Chart
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import single_coordinates
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree


class Arrangement:
    """Arrangement of q (nq,), qd (n,) and further arrays (n,) in one: as rows, or concatenated.

    As rows (m, n) if q is a vector with the rate qd.
    """

    def __init__(self, model: Model) -> None:
        self.n, self.nq = model.n, model.nq
        self.flat = not all(joint.group.is_commutative for joint in model.joints)
        self.axes = 1 if self.flat else 2

    def shape(self, parts: int = 2) -> tuple[int, ...]:
        """Return the shape of q and other arrays, ``parts`` in all."""
        return (self.nq + (parts - 1) * self.n,) if self.flat else (parts, self.n)

    def joined(self, *parts: Array) -> Array:
        """Return the array of q, or of a rate (n,), and others."""
        return np.concatenate(parts, axis=-1) if self.flat else np.stack(parts, axis=-2)

    def parts(self, x: Array, first: int | None = None) -> list[Array]:
        """Return q, or ``first`` entries of a rate, and the others."""
        if not self.flat:
            return [x[..., k, :] for k in range(x.shape[-2])]
        begin = self.nq if first is None else first
        return np.split(x, np.arange(begin, x.shape[-1], self.n), axis=-1)


class JointChart(Chart):
    """Increments (u, z) of states (q, qd), for a model, or a tree with symbols."""

    def __init__(self, model: Model | Tree, arrangement: Arrangement) -> None:
        self.model: Any = model
        self.arrangement = arrangement

    def moved(self, y: Array, z: Array) -> Array:
        (q, qd), (u, change) = self.arrangement.parts(y), self._increments(z)
        return self.arrangement.joined(displaced(self.model, q, u), qd + change)

    def lifted(self, y: Array, z: Array, rate: Array) -> Array:
        (u, _), (velocity, acceleration) = self._increments(z), self._increments(rate)
        return self.arrangement.joined(increment_rates(self.model, u, velocity), acceleration)

    def sizes(self, y: Array, z: Array) -> Array:
        """Return the sizes of the increment of q, and of qd."""
        qd = self.arrangement.parts(y)[1]
        return np.abs(self.arrangement.joined(self._increments(z)[0], qd))

    def _increments(self, z: Array) -> list[Array]:
        return self.arrangement.parts(z, self.arrangement.n)


def chart_of(model: Model | Tree, arrangement: Arrangement) -> Chart:
    """Return the chart in which states of a model move."""
    return JointChart(model, arrangement) if arrangement.flat else VECTORS


def by_velocity(model: Tree, q: Array) -> Array:
    """Return the positions of single coordinates (n,) in the order of qd, zero for others."""
    positions = np.full(model.n, 0.0, dtype=object)
    for at, k in single_coordinates(model.model.joints):
        positions[k] = q[at]
    return positions
