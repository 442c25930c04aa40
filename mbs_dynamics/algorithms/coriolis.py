# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The Coriolis matrix and the Christoffel symbols, by composite body matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.kinematics import twists_of
from mbs_dynamics.algorithms.mass_matrix import composite_inertias
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import ad
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import BodyFixed, to_ancestors
from mbs_dynamics.representation.tree import Tree

__all__ = ["christoffel_symbols", "coriolis_matrix"]


@algorithm(invariant=True, joint_space_only=True)
def coriolis_matrix(model: Tree, q: ArrayLike, qd: ArrayLike) -> FloatArray:
    """Return the Coriolis matrix C(q, qd) (..., n, n) for which Mdot - 2 C is skew-symmetric.

    C qd is the Coriolis and centrifugal part of :func:`bias_torques`.

    C_ij = sum_k Gamma_ijk qd_k with :func:`christoffel_symbols`, in O(n d) from composite inertias
    and gyrations: derivations.md, (C1) and (C2). Mueller (dynamics), eq. (84), prints another
    matrix with the same C qd, for which Mdot - 2 C is not skew-symmetric.
    """
    rep = BodyFixed(model, q)
    rate = model.joint_rates(qd)
    V = twists_of(model, rep, rate)
    M, B = composite_inertias(model, rep), composite_gyrations(model, rep, V)
    C = model.per_pair()
    Sd = [ad(V[i]) @ rep.screw(i) for i in range(model.nb)]  # rates of the screws in space
    for j, _ in model.inward():
        S_j = rep.screw(j)
        own = M[j] @ Sd[j] + B[j] @ S_j
        C[j, j] = S_j.T @ own
        loads = own, M[j] @ S_j, B[j].transposed(S_j)
        for i, (column, row_rate, row) in to_ancestors(rep, j, *loads):
            C[i, j] = rep.screw(i).T @ column  # (C1)
            C[j, i] = row.T @ rep.screw(i)[:3] + row_rate.T @ Sd[i]  # (C2)
    return model.to_coordinates(C, 2)


@algorithm(invariant=True, joint_space_only=True)
def christoffel_symbols(model: Tree, q: ArrayLike) -> FloatArray:
    """Return the Christoffel symbols of the first kind Gamma (..., n, n, n) of the mass matrix.

    C_ij = sum_k Gamma_ijk qd_k is :func:`coriolis_matrix`: Mueller (dynamics), eq. (86) with its
    indices corrected. The evaluation takes O(n d^2): derivations.md, (C3). B_k is the composite
    gyration for unit rate of screw k alone. For i, j, k in outward order (equal ones included),
    Gamma_ijk = S_i^T B_k S_j and Gamma_jik = -Gamma_kij = S_j^T B_k S_i. For different joints
    Gamma_ijk = Gamma_ikj. For two screws j, k of one joint Gamma_ijk = S_i^T B_j S_k, whose
    antisymmetric part follows from the structure constants. All other symbols are zero.
    """
    rep = BodyFixed(model, q)
    M, of = composite_inertias(model, rep), model.columns_of
    gamma = np.full((sum(body.joint.nv for body in model.bodies),) * 3, 0.0, dtype=object)
    for body, _ in model.inward():
        S_k, own = rep.screw(body), of[body]
        for k, S_a in enumerate(S_k.T, own.start):
            B_k = Gyration.of(M[body], S_a)
            gamma[own, k, own] = S_k.T @ (B_k @ S_k)
            beyond = B_k.transposed(S_k) if S_k.shape[1] > 1 else np.zeros((3, 1))
            for b, (W_k, m_k, B) in to_ancestors(rep, body, B_k @ S_k, beyond, B_k):
                j, S_j = of[b], rep.screw(b)
                gamma[j, k, own] = S_j.T @ W_k
                gamma[own, k, j] = gamma[own, j, k] = m_k.T @ S_j[:3]
                own_loads = B @ S_j, B.transposed(S_j)
                for c, (W_i, m_i) in [(b, own_loads), *to_ancestors(rep, b, *own_loads)]:
                    i, S_i = of[c], rep.screw(c)
                    y = m_i.T @ S_i[:3]
                    gamma[j, i, k] = gamma[j, k, i] = y
                    gamma[k, i, j] = -y.T
                    gamma[k, j, i] = -y
                    gamma[i, j, k] = gamma[i, k, j] = S_i.T @ W_i
    return model.to_coordinates(gamma, 3)


@dataclass(frozen=True, eq=False)
class Gyration:
    """Gyration B (6, 6) of one or several bodies: the velocity wrench is B V.

    B = 1/2 (-ad_V^T M - M ad_V + F) with F X = -ad_X^T (M V). B V is the velocity wrench of Mueller
    (dynamics), eq. (41), and B + B^T is the rate of M along V. For mass elements at x with velocity
    u, B = -int [[x~ u~, 0], [u~, 0]]. For one body B = -[[omega~ Sigma + m d~ v~, 0], [p~, 0]] with
    Binet's tensor Sigma of second moments and the linear momentum p: derivations.md, (1) and (2).
    """

    moments: Array
    """(3, 3) int x~ u~, in the frame of the body."""
    momentum: Array
    """(3,) p."""

    @classmethod
    def of(cls, M: Inertia, V: Array) -> Gyration:
        """Return the matrix of a body with the body-fixed twist V (6,)."""
        moments = so3.hat(V[:3]) @ M.second_moments + so3.hat(M.moment) @ so3.hat(V[3:])
        return cls(moments, (M @ V)[3:])

    def __add__(self, other: Gyration) -> Gyration:
        return Gyration(self.moments + other.moments, self.momentum + other.momentum)

    def __matmul__(self, X: Array) -> Array:
        """Return B X (6,) of a twist X (6,)."""
        return -np.concatenate([self.moments @ X[:3], so3.hat(self.momentum) @ X[:3]])

    def transposed(self, X: Array) -> Array:
        """Return B^T X of a twist X (6,): a moment (3,) without a force."""
        return so3.hat(self.momentum) @ X[3:] - self.moments.T @ X[:3]

    def carried(self, carry: Any) -> Gyration:
        """Return carry^T B carry: B in the frame of the parent."""
        p = carry.back(self.momentum)
        return Gyration(carry.conjugate(self.moments) + so3.hat(carry.r) @ so3.hat(p), p)


def composite_gyrations(model: Tree, rep: BodyFixed, V: Any) -> Any:
    """Return for each body the sum of the gyrations of all bodies that its joint moves."""
    B = [Gyration.of(rep.inertia(i), V[i]) for i in range(model.nb)]
    B.append(Gyration(np.zeros((3, 3)), np.zeros(3)))
    for i, p in model.inward():
        B[p] = B[p] + B[i].carried(rep.transform(i))
    return B
