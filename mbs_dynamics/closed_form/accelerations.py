# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Accelerations as products of system matrices: section 2 of Mueller, ... in multibody dynamics.

Equations are those of that paper, K those of the one on kinematics. Where a printed equation is
wrong, the docstring states the correction.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.closed_form.kinematics import System, shift, turn, vector
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import ad
from mbs_dynamics.model.model import Model


class MovingSystem(System):
    """The system matrices and their rates for a model in motion: q (nq,), qd, qdd, qddd (n,).

    qdd and qddd are zero if they are not given. V and Vd are (6 nb,), J and Jd (6 nb, n), a and b
    (6 nb, 6 nb); letters as in :class:`System`. Raises ArgumentError if q is not nq finite numbers,
    or another array not n.
    """

    def __init__(
        self,
        model: Model,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike | None = None,
        qddd: ArrayLike | None = None,
    ) -> None:
        super().__init__(model, q)
        rest = np.zeros(model.n)
        self.qd = vector("qd", qd, model.n)
        self.qdd = vector("qdd", rest if qdd is None else qdd, model.n)
        self.qddd = vector("qddd", rest if qddd is None else qddd, model.n)
        self.rate, self.rate2, self.rate3 = self.N @ self.qd, self.N @ self.qdd, self.N @ self.qddd

    @cached_property
    def V_b(self) -> Array:
        """V^b = J^b qd: (111)."""
        return self.J_b @ self.qd

    @cached_property
    def a_b(self) -> Array:
        """a^b = diag(qd_1 ad_{1X_1}, ..., qd_n ad_{nX_n}): (9)."""
        pairs = zip(self.screws_body, self.of_joint, strict=True)
        return self.diagonal([ad(X @ self.rate[columns]) for X, columns in pairs])

    @cached_property
    def aJ_b(self) -> Array:
        """a^b J^b, less a^b X^b, which is zero for joints with one screw."""
        return self.a_b @ (self.J_b - self.X_b @ self.N)

    @cached_property
    def Jd_b(self) -> Array:
        """d/dt J^b = -A^b a^b J^b: (8), from (7)."""
        return -(self.A_b @ self.aJ_b)

    @cached_property
    def Vd_b(self) -> Array:
        """d/dt V^b = J^b qdd - A^b a^b V^b: (10)."""
        return self.J_b @ self.qdd - self.A_b @ self.a_b @ self.V_b

    def accelerations_from_twists(self, Vd_b: Array) -> Array:
        """Return qdd (n,) from the body-fixed accelerations Vd_b (6 nb,) of all bodies: (11).

        qdd = (X^T X)^-1 X^T ((I - D^b) Vd^b + a^b V^b), with X N for X.
        """
        X = self.X_b @ self.N
        motion = self.A_b_inverse @ np.asarray(Vd_b) + self.a_b @ self.V_b
        return np.linalg.solve(X.T @ X, X.T @ motion)

    @cached_property
    def V_s(self) -> Array:
        """V^s = J^s qd: (111)."""
        return self.J_s @ self.qd

    @cached_property
    def screws_s(self) -> Array:
        """(nb, 6) J_j^s of joints with one degree of freedom each; ModelError for others."""
        return self.single(self.columns_s, "screws_s", "columns_s")

    @cached_property
    def columns_s(self) -> list[Array]:
        """nb matrices (6, k) J_j^s = Ad_{C_j A_j^-1} Y_j, the same for all bodies: (104)."""
        return [
            se3.Ad(C @ se3.inverse(A)) @ Y
            for C, A, Y in zip(self.C, self.home, self.screws_spatial, strict=True)
        ]

    @cached_property
    def b_s(self) -> Array:
        """b^s = diag(ad_{V_1^s}, ..., ad_{V_n^s}): (19), the indices of the bodies restored."""
        return self.diagonal([ad(V) for V in self.bodies(self.V_s)])

    @cached_property
    def L(self) -> Array:
        """L, with I for j <= i: (18)."""
        return self.over_paths(lambda i, j: np.eye(6))

    @cached_property
    def Jd_s(self) -> Array:
        """d/dt J^s = L b^s diag(J_1^s, ..., J_n^s) N, whose blocks are [V_j^s, J_j^s]: (16)."""
        return self.L @ self.b_s @ self.diagonal(self.columns_s) @ self.N

    @cached_property
    def Vd_s(self) -> Array:
        """d/dt V^s = J^s qdd + L b^s diag(J_1^s, ..., J_n^s) qd: (18)."""
        return self.J_s @ self.qdd + self.Jd_s @ self.qd

    @cached_property
    def V_h(self) -> Array:
        """V^h = J^h qd: (111)."""
        return self.J_h @ self.qd

    @cached_property
    def Jd_h(self) -> Array:
        """d/dt J^h, with the blocks Ad_{r_i,j} (ad_{V_j^h} - ad_{rdot_i}) 0X_j^j: (27), last form.

        Corrected: r_i,j for r_i,j-1, and V_j^h for V_j^s.
        """
        V = self.bodies(self.V_h)
        still = self.over_paths(
            lambda i, j: shift(self.r_rel(i, j)) @ (ad(V[j]) - ad(linear(V[i])))
        )
        return still @ self.X_h @ self.N

    @cached_property
    def Vd_h(self) -> Array:
        """d/dt V^h = J^h qdd + (d/dt J^h) qd: (29), summed over j <= i."""
        return self.J_h @ self.qdd + self.Jd_h @ self.qd

    @cached_property
    def V_m(self) -> Array:
        """V^m = J^m qd: K (53)."""
        return self.J_m @ self.qd

    @cached_property
    def Jd_m(self) -> Array:
        """d/dt J^m = diag(R^T, I) d/dt J^h - diag(omega^b~ R^T, 0) J^h: (33).

        Corrected: the second term, for the rate of R^T, is missing in print.
        """
        omega = self.bodies(self.V_b)[:, :3]
        zero = np.zeros((3, 3))
        turning = self.diagonal(
            [turn(so3.hat(w) @ R.T, zero) for w, R in zip(omega, self.R, strict=True)]
        )
        return self.to_mixed @ self.Jd_h - turning @ self.J_h

    @cached_property
    def Vd_m(self) -> Array:
        """d/dt V^m = diag(R^T, I) d/dt V^h: (33)."""
        return self.to_mixed @ self.Vd_h

    @property
    def to_mixed(self) -> Array:
        """diag(R_1^T, I, ..., R_n^T, I), which maps hybrid twists to mixed ones: (100)."""
        return self.diagonal([turn(R.T, np.eye(3)) for R in self.R])

    def bodies(self, V: Array) -> Array:
        """Return a column (6 nb,) as one row per body (nb, 6)."""
        return np.asarray(V).reshape(self.model.nb, 6)


def linear(V: Array) -> Array:
    """Return (0, v) of V = (omega, v): (118)."""
    return np.concatenate([np.zeros(3), V[3:]])


def angular(V: Array) -> Array:
    """Return (omega, 0) of V = (omega, v): (118)."""
    return np.concatenate([V[:3], np.zeros(3)])
