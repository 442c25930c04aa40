# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Articulated inertias, and products with the inverse of the mass matrix in O(n)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.algorithms.factorization import pivots
from mbs_dynamics.algorithms.mass_matrix import carried
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import Representation
from mbs_dynamics.representation.tree import Tree


class ArticulatedInertias:
    """Articulated inertia of each joint, all joints beyond it being free: Featherstone's recursion.

    Mohan and Saha, (28), call it M_hat. :meth:`eliminate` is for an inward loop over all bodies.
    """

    def __init__(self, model: Tree, rep: Representation) -> None:
        self.model, self.rep, self.pivot = model, rep, pivots(model)
        self.M: list[Any] = [*(rep.inertia(i) for i in range(model.nb)), np.zeros((6, 6))]

    def eliminate(self, i: int, p: int) -> tuple[Array, Array, Array]:
        """Return U (k, 6) and d (k,) of a joint, and the inertia that is left, carried to parent p.

        With the screws S_1, ..., S_k eliminated from the last one on, as if each were that of a
        joint of its own: U_c = M S_c, d_c = S_c^T U_c, and M - U_c U_c^T / d_c is left for the next
        one, in the end M - U D^-1 U^T with U = M S and D = S^T U of all together. The armature is
        added to d. Raises SingularError, naming the joint, if one d_c is not positive.
        """
        rest, rotor = self.M[i], self.model.rotor(i).diagonal().tolist()
        coordinates = self.model.bodies[i].joint.velocities
        U, d = [], []
        for k, S, inertia in reversed([*zip(coordinates, self.rep.screw(i).T, rotor, strict=True)]):
            U.append(rest @ S)
            d.append(self.pivot(k, S @ U[-1] + inertia))
            rest = without(rest, S, U[-1], d[-1], free=not self.model.has_armature)
        moved = carried(self.rep.transform(i), rest)
        self.M[p] = (self.M[p] if isinstance(moved, Inertia) else _matrix(self.M[p])) + moved
        return np.array(U[::-1]), np.array(d[::-1]), rest


class Articulated:
    """The factors of M = U D U^T as psi and m_hat of Mohan and Saha, (28), for each body.

    Both are arrays with an entry for each screw of the joint, S, psi (k, 6) and m_hat (k,); screws
    of one joint are treated as those of joints in series. For trees in which every joint has
    coordinates of its own.
    """

    def __init__(self, model: Tree, rep: Representation) -> None:
        self.model, self.rep = model, rep
        self.psi, self.inverse_pivot = model.per_body(), model.per_body()
        inertias = ArticulatedInertias(model, rep)
        for i, p in model.inward():
            U, d, _ = inertias.eliminate(i, p)
            self.inverse_pivot[i] = 1.0 / d
            self.psi[i] = U * self.inverse_pivot[i][:, None]

    def solution(self, b: Array) -> Array:
        """Return M^-1 b (n,) of torques b (n,)."""
        model, rep, psi = self.model, self.rep, self.psi
        phi, x, mu = model.per_body(), model.per_body(), model.per_body(np.zeros(6))
        eta, given = [np.zeros(6)] * (model.nb + 1), model.of_joints(b)
        for i, p in model.inward():  # phi = U^-1 b: (32)
            phi[i], screws = np.array(given[i], dtype=object), rep.screw(i).T
            for c in reversed(range(len(screws))):
                phi[i][c] = phi[i][c] - screws[c] @ eta[i]
                eta[i] = eta[i] + psi[i][c] * phi[i][c]
            eta[p] = eta[p] + rep.transform(i).T @ eta[i]
        for i, p in model.outward():  # x = U^-T D^-1 phi: (34)-(37)
            mu[i], screws = rep.transform(i) @ mu[p], rep.screw(i).T
            x[i] = phi[i] * self.inverse_pivot[i]
            for c in range(len(screws)):
                x[i][c] = x[i][c] - psi[i][c] @ mu[i]
                mu[i] = mu[i] + screws[c] * x[i][c]
        return model.to_coordinates(x)


def without(M: Any, S: Array, U: Array, d: Any, free: bool = True) -> Array:
    """Return M - U U^T / d (6, 6), U = M S, the inertia beyond a free joint; symmetric.

    It maps S to zero, and has a row and a column of zeros if S is a coordinate axis, where d = S^T
    U: if the joint is ``free``, without an armature.
    """
    M, scaled = np.array(_matrix(M), dtype=object), U * (1.0 / d)
    along = [k for k in range(6) if not (isinstance(S[k], float) and S[k] == 0.0)]
    gone = along if free and len(along) == 1 else []
    for i in range(6):
        for j in range(i, 6):
            left = 0.0 if i in gone or j in gone else M[i, j] - U[i] * scaled[j]
            M[i, j] = M[j, i] = left
    return M


def _matrix(M: Any) -> Array:
    return M.matrix() if isinstance(M, Inertia) else M
