# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The inverse of the mass matrix by articulated bodies: products with it in O(n)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.mass_matrix import carried, pivots
from mbs_dynamics.compiler.frontend.domains import ALL, BEYOND, SINCE
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import Representation, meeting
from mbs_dynamics.representation.tree import Tree


class ArticulatedInertias:
    """Articulated inertia of each joint, all joints beyond it being free: Featherstone's recursion.

    Mohan and Saha, (28), call it M_hat. :meth:`begin` is for a loop over all bodies,
    :meth:`eliminate` for the inward loop that follows.
    """

    def __init__(self, model: Tree, rep: Representation, armature: Array | None = None) -> None:
        self.model, self.rep, self.pivot = model, rep, pivots(model)
        self.armature = armature
        self.M = model.per_body(np.zeros((6, 6)))

    def begin(self, i: Any) -> None:
        """Start with the inertia of the body itself."""
        self.M[i] = self.rep.inertia(i)

    def eliminate(self, i: Any, p: Any) -> tuple[Array, Any, Array]:
        """Return U = M S, d = S^T U and M - U U^T / d of a joint, and carry the last to the parent.

        An ``armature`` (n,) is added to d.
        Raises SingularError, naming the joint, if d is not positive.
        """
        S = self.rep.screw(i)
        U = self.M[i] @ S
        k = self.model.bodies[i].joint.coordinate
        d = self.pivot(k, S @ U if self.armature is None else S @ U + self.armature[k])
        rest = without(self.M[i], S, U, d, free=self.armature is None)
        self.M[p] = plus(self.M[p], carried(self.rep.carry(i), rest))
        return U, d, rest


class Articulated:
    """The factors of M = U D U^T as psi and m_hat of Mohan and Saha, (28), for each body.

    Products with its inverse are those of derivations.md, (12) to (14). For trees in which
    every joint has a coordinate of its own. A product with M^-1 takes two recursions instead of
    products with rows of U, which grow with the depth of the tree.
    """

    def __init__(self, model: Tree, rep: Representation) -> None:
        self.model = model
        self.meet = meeting(rep)
        self.S, self.psi, self.inverse_pivot = (model.per_body() for _ in range(3))
        inertias = ArticulatedInertias(model, rep)
        for i, _ in model.outward():
            self.S[i] = self.meet.twist(i, rep.screw(i))
            inertias.begin(i)
        for i, p in model.inward():
            U, d, _ = inertias.eliminate(i, p)
            self.inverse_pivot[i] = 1.0 / d
            self.psi[i] = self.meet.wrench(i, U * self.inverse_pivot[i])

    def accelerations(self, tau: Array, h: Any) -> Array:
        """Return M^-1 (tau - h) by coordinate, of torques tau (n,) and those h of the bodies."""
        model, meet = self.model, self.meet
        phi, mu, x = (model.per_body(np.zeros(6)) for _ in range(3))
        eta = model.zeros_per_body(6)
        for i, p in model.inward():  # U^-1 b: (32)
            phi[i] = tau[model.bodies[i].joint.coordinate] - h[i] - self.S[i] @ eta[i]
            eta[p] = eta[p] + meet.carry(i).T @ (eta[i] + self.psi[i] * phi[i])
        for i, p in model.outward():  # U^-T D^-1 of that: (34)-(37)
            moved = meet.carry(i) @ mu[p]
            x[i] = phi[i] * self.inverse_pivot[i] - self.psi[i] @ moved
            mu[i] = moved + self.S[i] * x[i]
        return model.generalized(x)

    def response(self, dtau: Array) -> Array:
        """Return -M^-1 dtau (n, n), of a matrix dtau (nb, nb) of the bodies."""
        X = self.model.per_pair()
        for i, k, x in self._solutions(lambda i, k: -dtau[i, k], ALL, ALL):
            X[i, k] = x
        return self.model.generalized(X, 2)

    def inverse(self) -> Array:
        """Return M^-1 (n, n), symmetric, in O(n d)."""
        X = self.model.per_pair()
        for i, k, x in self._solutions(self.model.unit, BEYOND, SINCE):
            X[i, k] = X[k, i] = x
        return self.model.generalized(X, 2)

    def _solutions(
        self, force: Callable[[Any, Any], Any], there: str, wanted: str
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield body i, column k and x_ik with M x_k = b_k, for the wanted columns of each body.

        ``there`` is the domain in which the forces b_ik can be nonzero. Columns are an inner loop
        over independent values, which allows vector code.
        """
        model, meet, S, psi = self.model, self.meet, self.S, self.psi
        eta, mu, phi = model.per_column(6), model.per_column(6), model.per_pair()
        for i, p in model.inward():  # (32)
            for k in model.columns(i, there):
                phi[i, k] = minus_power(force(i, k), S[i], eta[i, k])
                carry = meet.carry(i).T  # what has to wait for phi_ik is added last
                eta[p, k] = (eta[p, k] + carry @ eta[i, k]) + carry @ (psi[i] * phi[i, k])
        for i, p in model.outward():  # (34)-(37)
            for k in model.columns(i, wanted):
                moved = meet.carry(i) @ mu[p, k]
                x = minus_power(phi[i, k] * self.inverse_pivot[i], psi[i], moved)
                mu[i, k] = moved + S[i] * x
                yield i, k, x


def plus(A: Any, B: Any) -> Any:
    """Return the sum of two inertias, rigid or articulated."""
    return A + B if isinstance(B, Inertia) else _matrix(A) + B


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


def minus_power(x: Any, V: Array, W: Array) -> Any:
    """Return x - V^T W of a twist and a wrench (6,), in two independent halves."""
    return (x - V[:3] @ W[:3]) - V[3:] @ W[3:]
