# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Articulated inertias, and products with the inverse of the mass matrix in O(n)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.factorization import pivots
from mbs_dynamics.algorithms.mass_matrix import carried
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import Representation
from mbs_dynamics.representation.tree import Tree


def eliminations(model: Tree, rep: Representation) -> Iterator[tuple[int, int, Array, Array, Any]]:
    """Yield (i, p, U, d, rest) for each body i with parent p, children first.

    Featherstone's recursion: joint i is eliminated from the articulated inertia M of body i, with
    all joints beyond it free; Mohan and Saha, (28), call M M_hat. The screws S_1, ..., S_k of a
    joint are eliminated from the last one on, each as a joint of its own: with U_c = M S_c and d_c
    = S_c^T U_c, M - U_c U_c^T / d_c is left for the next one. ``U`` (k, 6) and ``d`` (k,) have one
    entry for each screw. ``rest`` = M - U D^-1 U^T, with U = M S and D = S^T U of the whole joint,
    is carried to the parent. The armature is added to d. Raises SingularError, naming the joint, if
    one d_c is not positive.
    """
    pivot = pivots(model)
    M: list[Any] = [*(rep.inertia(i) for i in range(model.nb)), np.zeros((6, 6))]
    for i, p in model.inward():
        rest, rotor = M[i], model.rotor(i).diagonal().tolist()
        coordinates = model.bodies[i].joint.velocities
        U, d = [], []
        for k, S, inertia in reversed([*zip(coordinates, rep.screw(i).T, rotor, strict=True)]):
            U.append(rest @ S)
            d.append(pivot(k, S @ U[-1] + inertia))
            rest = without(rest, S, U[-1], d[-1], free=not model.has_armature)
        moved = carried(rep.transform(i), rest)
        M[p] = (M[p] if isinstance(moved, Inertia) else _matrix(M[p])) + moved
        yield i, p, np.array(U[::-1]), np.array(d[::-1]), rest


class Articulated:
    """The factors of M = U D U^T as psi and m_hat of Mohan and Saha, (28), for each body.

    Both are arrays with an entry for each screw of the joint, S, psi (k, 6) and m_hat (k,); screws
    of one joint are treated as those of joints in series. For trees in which every joint has
    coordinates of its own.
    """

    def __init__(self, model: Tree, rep: Representation) -> None:
        self.model, self.rep = model, rep
        self.psi, self.inverse_pivot = model.per_body(), model.per_body()
        for i, _, U, d, _ in eliminations(model, rep):
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
