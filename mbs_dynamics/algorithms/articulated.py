# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The inverse of the mass matrix by the articulated bodies of a tree: products with it in O(n)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.mass_matrix import carried, pivots
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.tree import Model
from mbs_dynamics.representation import Representation


class Articulated:
    """What Mohan and Saha call psi and m_hat, for each body: the factors of M = U D U^T, (28).

    For trees of which every joint has a coordinate of its own. A product with M^-1 takes two
    recursions, in place of products with rows of U, which grow with the depth of the tree.
    """

    def __init__(self, model: Model, rep: Representation) -> None:
        self.model = model
        self.rep = rep
        self.psi: list[Array] = [None] * model.nb
        self.inverse_pivot: list[Any] = [None] * model.nb
        pivot = pivots(model)
        M: list[Any] = [rep.inertia(i) for i, _ in model.outward()]
        for i, p in model.inward():
            S = rep.screw(i)
            U = M[i] @ S
            d = pivot(model.bodies[i].joint.coordinate, S @ U)
            self.inverse_pivot[i] = 1.0 / d
            self.psi[i] = U * self.inverse_pivot[i]
            if p != GROUND:
                M[p] = plus(M[p], carried(rep.carry(i), without(M[i], S, U, d)))

    def solve(self, b: Array) -> Array:
        """Return M^-1 b of forces b (n,), in O(n)."""
        model, coordinates = self.model, self._coordinates()
        forces = [b[k] for k in coordinates]
        phi = self._inward(model.inward(), forces)
        x: Array = np.full(model.n, 0.0, dtype=object)
        for i, value in self._outward(model.outward(), phi):
            x[coordinates[i]] = value
        return x

    def inverse(self) -> Array:
        """Return M^-1 (n, n), symmetric, in O(n d)."""
        model, coordinates = self.model, self._coordinates()
        inverse: Array = np.full((model.n, model.n), 0.0, dtype=object)
        for j, _ in model.inward():
            unit = [0.0] * j + [1.0]
            path = [(i, model.parents[i]) for i in reversed(model.path(j))]
            phi = self._inward(path, unit)
            before = enumerate(model.parents[: j + 1])  # the others follow by symmetry
            for i, value in self._outward(before, phi):
                a, b = coordinates[i], coordinates[j]
                inverse[a, b] = inverse[b, a] = value
        return inverse

    def _coordinates(self) -> list[int]:
        return [body.joint.coordinate for body in self.model.bodies]

    def _inward(self, bodies: Iterable[tuple[int, int]], b: list[Any]) -> list[Any]:
        """Return phi = U^-1 b of bodies that are given children first; else it is zero: (32)."""
        eta, phi = self.model.per_body(np.zeros(6)), [0.0] * self.model.nb
        for i, p in bodies:
            arrived = eta[i] is not None
            phi[i] = b[i] - self.rep.screw(i) @ eta[i] if arrived else b[i]
            own = self.psi[i] * phi[i]
            if p != GROUND:
                passed = self.rep.carry(i).T @ (eta[i] + own if arrived else own)
                eta[p] = passed if eta[p] is None else eta[p] + passed
        return phi

    def _outward(
        self, bodies: Iterable[tuple[int, int]], phi: list[Any]
    ) -> Iterable[tuple[int, Any]]:
        """Yield bodies and the entries of U^-T D^-1 phi, parents first: (34)-(37)."""
        mu = self.model.per_body(np.zeros(6))
        for i, p in bodies:
            carried_mu = self.rep.carry(i) @ mu[p]
            value = phi[i] * self.inverse_pivot[i] - self.psi[i] @ carried_mu
            mu[i] = carried_mu + self.rep.screw(i) * value
            yield i, value


def plus(A: Any, B: Any) -> Any:
    """Return the sum of two inertias, rigid or articulated."""
    return A + B if isinstance(B, Inertia) else _matrix(A) + B


def without(M: Any, S: Array, U: Array, d: Any) -> Array:
    """Return M - U U^T / d (6, 6), U = M S: what is felt through a joint that gives way.

    Symmetric. It takes S to zero, and has a row and a column of zeros if S is a coordinate axis.
    """
    M, scaled = np.array(_matrix(M), dtype=object), U * (1.0 / d)
    along = [k for k in range(6) if not (isinstance(S[k], float) and S[k] == 0.0)]
    gone = along if len(along) == 1 else []
    for i in range(6):
        for j in range(i, 6):
            left = 0.0 if i in gone or j in gone else M[i, j] - U[i] * scaled[j]
            M[i, j] = M[j, i] = left
    return M


def _matrix(M: Any) -> Array:
    return M.matrix() if isinstance(M, Inertia) else M
