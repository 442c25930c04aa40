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

from collections.abc import Callable, Iterable, Iterator
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
        self.coordinates = [body.joint.coordinate for body in model.bodies]
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

    def solve(self, B: Array) -> Array:
        """Return M^-1 B (n, m) of columns of forces B (n, m), each in O(n)."""
        n, m = np.shape(B)
        k = self.coordinates
        forces = [dict(enumerate(B[k[i]])) for i in range(n)]
        X: Array = np.full((n, m), 0.0, dtype=object)
        for i, column, value in self._solutions(forces, lambda i: range(m)):
            X[k[i], column] = value
        return X

    def inverse(self) -> Array:
        """Return M^-1 (n, n), symmetric, in O(n d)."""
        n, k = self.model.n, self.coordinates
        X: Array = np.full((n, n), 0.0, dtype=object)
        units = [{i: 1.0} for i in range(n)]
        for i, j, value in self._solutions(units, lambda i: range(i, n)):
            X[k[i], k[j]] = X[k[j], k[i]] = value
        return X

    def _solutions(
        self, forces: list[dict[int, Any]], wanted: Callable[[int], Iterable[int]]
    ) -> Iterator[tuple[int, int, Any]]:
        """Yield body i, column j and x_ij with M x_j = b_j, for the wanted columns of each body.

        ``forces`` holds what is not zero: for each body its entry of b_j, by column. Columns stand
        side by side in the loops over the bodies, so that they can be computed side by side.
        """
        model, rep = self.model, self.rep
        eta: list[dict[int, Array]] = [{} for _ in range(model.nb)]
        phi: list[dict[int, Any]] = [{} for _ in range(model.nb)]
        for i, p in model.inward():  # U^-1 b: (32)
            S, psi = rep.screw(i), self.psi[i]
            for j in sorted({*eta[i], *forces[i]}):
                arrived, force = eta[i].get(j), forces[i].get(j, 0.0)
                phi[i][j] = force if arrived is None else force - S @ arrived
                if p != GROUND:
                    own = psi * phi[i][j]
                    passed = rep.carry(i).T @ (own if arrived is None else arrived + own)
                    eta[p][j] = eta[p][j] + passed if j in eta[p] else passed
        mu: list[dict[int, Array]] = [{} for _ in range(model.nb)]
        for i, p in model.outward():  # U^-T D^-1 of that: (34)-(37)
            S, psi = rep.screw(i), self.psi[i]
            for j in wanted(i):
                value = phi[i].get(j, 0.0) * self.inverse_pivot[i]
                moved = rep.carry(i) @ mu[p][j] if p != GROUND else None
                value = value if moved is None else value - psi @ moved
                mu[i][j] = S * value if moved is None else moved + S * value
                yield i, j, value


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
