# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The inverse of the mass matrix by articulated bodies: products with it in O(n)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.factorization import pivots, symmetric
from mbs_dynamics.algorithms.mass_matrix import carried
from mbs_dynamics.compiler import ALL, BEYOND, SINCE
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import Representation, common_frame
from mbs_dynamics.representation.pairs import CommonFrame
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

    def eliminate(self, i: Any, p: Any) -> tuple[Array, Array, Array]:
        """Return U (k, 6) and d (k,) of a joint, and the inertia that is left, carried to parent p.

        With the screws S_1, ..., S_k eliminated from the last one on, as if each were that of a
        joint of its own: U_c = M S_c, d_c = S_c^T U_c, and M - U_c U_c^T / d_c is left for the next
        one, in the end M - U D^-1 U^T with U = M S and D = S^T U of all together. An ``armature``
        (n,), and that of the model, are added to d. Raises SingularError, naming the joint, if one
        d_c is not positive.
        """
        rest, armature, rotor = self.M[i], self.armature, self.model.rotor(i).diagonal().tolist()
        free = armature is None and not self.model.has_armature
        columns = zip(
            self.model.bodies[i].joint.velocities, self.rep.screw(i).T, rotor, strict=True
        )
        U, d = [], []
        for k, S, own in reversed(list(columns)):
            U.append(rest @ S)
            added = own if armature is None else own + armature[k]
            d.append(self.pivot(k, S @ U[-1] + added))
            rest = without(rest, S, U[-1], d[-1], free=free)
        self.M[p] = plus(self.M[p], carried(self.rep.transform(i), rest))
        return np.array(U[::-1]), np.array(d[::-1]), rest


class Articulated:
    """The factors of M = U D U^T as psi and m_hat of Mohan and Saha, (28), for each body.

    Both are arrays with an entry for each screw of the joint, S, psi (k, 6) and m_hat (k,); screws
    of one joint are treated as those of joints in series. Products with the inverse are those of
    derivations.md, (12) to (14). For trees in which every joint has coordinates of its own. A
    product with M^-1 takes two recursions instead of products with rows of U, which grow with the
    depth of the tree.
    """

    def __init__(
        self,
        model: Tree,
        rep: Representation,
        armature: Array | None = None,
        common: CommonFrame | None = None,
    ) -> None:
        self.model = model
        self.common = common or common_frame(rep)
        self.S, self.psi, self.inverse_pivot = (model.per_body() for _ in range(3))
        inertias = ArticulatedInertias(model, rep, armature)
        for i, _ in model.outward():
            self.S[i] = self.common.twist(i, rep.screw(i)).T
            inertias.begin(i)
        for i, p in model.inward():
            U, d, _ = inertias.eliminate(i, p)
            self.inverse_pivot[i] = 1.0 / d
            self.psi[i] = self.common.load(i, (U * self.inverse_pivot[i][:, None]).T).T

    def accelerations(self, tau: Array, h: Any) -> Array:
        """Return M^-1 (tau - h) by coordinate, of torques tau (n,) and those h of the bodies."""
        model, common = self.model, self.common
        phi, x = model.per_body(), model.per_body()
        mu, eta, given = model.per_body(np.zeros(6)), model.zeros_per_body(6), model.of_joints(tau)
        for i, p in model.inward():  # U^-1 b: (32)
            phi[i], added = forces(given[i] - h[i], self.S[i], self.psi[i], eta[i])
            eta[p] = eta[p] + common.transform(i).T @ (eta[i] + added)
        for i, p in model.outward():  # U^-T D^-1 of that: (34)-(37)
            moved = common.transform(i) @ mu[p]
            x[i], mu[i] = motions(phi[i] * self.inverse_pivot[i], self.S[i], self.psi[i], moved)
        return model.generalized(x)

    def response(self, dtau: Array) -> Array:
        """Return -M^-1 dtau (n, n), of a matrix dtau of the joints of the bodies."""
        X = self.model.per_pair()
        for i, k, x in self._solutions(lambda i, k: -dtau[i, k], ALL, ALL):
            X[i, k] = x
        return self.model.generalized(X, 2)

    def solution(self, B: Array) -> Array:
        """Return M^-1 B (n, m) of forces B by coordinate."""
        none = [np.zeros(body.joint.nv) for body in self.model.model.bodies]
        return np.array([self.accelerations(column, none) for column in B.T]).T

    def congruence(self, J: Array) -> Array:
        """Return J M^-1 J^T = Y^T D^-1 Y (m, m), Y = U^-1 J^T, symmetric: half of a solution."""
        model, m = self.model, len(J)
        eta, product = [np.zeros((6, m))] * (model.nb + 1), np.zeros((m, m))
        b = model.of_joints(J.T)
        for i, p in model.inward():  # (32)
            y, added = forces(b[i], self.S[i], self.psi[i], eta[i])
            eta[p] = eta[p] + self.common.transform(i).T @ (eta[i] + added)
            product = product + y.T @ (self.inverse_pivot[i][:, None] * y)
        return symmetric(product)

    def inverse(self) -> Array:
        """Return M^-1 (n, n), symmetric, in O(n d)."""
        X = self.model.per_pair()
        for i, k, x in self._solutions(self.model.unit, BEYOND, SINCE):
            X[i, k] = x
            X[k, i] = x.T
        return self.model.generalized(X, 2)

    def _solutions(
        self, force: Callable[[Any, Any], Any], there: str, wanted: str
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield body i, column k and x_ik with M x_k = b_k, for the wanted columns of each body.

        These are blocks (k_i, k_k), and k is a body whose joint has the columns. ``there`` is the
        domain in which the forces b_ik can be nonzero. Columns are an inner loop over independent
        values, which allows vector code.
        """
        model, common, S, psi = self.model, self.common, self.S, self.psi
        eta, mu, phi = model.per_column(6), model.per_column(6), model.per_pair()
        for i, p in model.inward():  # (32)
            for k in model.columns(i, there):
                phi[i, k], added = forces(force(i, k), S[i], psi[i], eta[i, k])
                carry = common.transform(i).T  # what has to wait for phi_ik is added last
                eta[p, k] = (eta[p, k] + carry @ eta[i, k]) + carry @ added
        for i, p in model.outward():  # (34)-(37)
            for k in model.columns(i, wanted):
                moved = common.transform(i) @ mu[p, k]
                scaled = phi[i, k] * self.inverse_pivot[i][:, None]
                x, mu[i, k] = motions(scaled, S[i], psi[i], moved)
                yield i, k, x


def forces(b: Array, S: Array, psi: Array, eta: Array) -> tuple[Array, Array]:
    """Return phi = U^-1 b at one joint, (32), and sum_c psi_c phi_c, what that adds to eta.

    Of forces b (k,) and a wrench eta (6,), or of m of them, (k, m) and (6, m).
    """
    phi: list[Any] = []
    added: Any = 0.0
    for b_c, S_c, psi_c in reversed(list(zip(b, S, psi, strict=True))):
        phi.append(minus_power(b_c, S_c, eta + added if phi else eta))
        added = np.multiply.outer(psi_c, phi[-1]) + added
    return np.array(phi[::-1]), added


def motions(scaled: Array, S: Array, psi: Array, moved: Array) -> tuple[Array, Array]:
    """Return x = U^-T D^-1 phi at one joint, (34)-(37), and the motion mu of its body.

    Of ``scaled`` D^-1 phi (k,) and a motion of the parent (6,), or of m of them.
    """
    x: list[Any] = []
    for scaled_c, S_c, psi_c in zip(scaled, S, psi, strict=True):
        x.append(minus_power(scaled_c, psi_c, moved))
        moved = moved + np.multiply.outer(S_c, x[-1])
    return np.array(x), moved


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
