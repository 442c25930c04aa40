# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The body-fixed operators of dynamics, with the acceleration of the body's origin."""

# ruff: noqa: D102 (operators are described once, in the base class)

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array, symmetric
from mbs_dynamics.representation.operators import (
    REPRESENTATIONS,
    BodyFixed,
    Representation,
    checked,
)
from mbs_dynamics.representation.tree import Tree


class BodyAxes(BodyFixed):
    """Hybrid equations resolved in the bodies: the ``body_fixed`` operators of dynamics.

    V^h resolved in the body is V^b, and so twists and wrenches are the body-fixed ones. Only the
    accelerations differ: A = (omegadot, R^T rddot) = Vdot^b + (0, omega x v), which do not mix with
    the velocity of the origin. This needs a fifth fewer operations than D (66c) with D (41). With
    the matrix K = omegadot~ + omega~ omega~ a point at x from the origin has the acceleration a + K
    x: the linear parts of D (75d) and D (53) are K r and K m d.
    """

    of_origin = True

    def velocity_product(self, i: int, V: list[Array], rate: Any) -> Array:
        p, T = self.model.bodies[i].parent, self.transform(i)
        transport = T.rotated(_square(V[p][:3]) @ T.r)  # -ad_rdot omega_p, without S_i
        return self._turn(i, V, rate) + np.concatenate([np.zeros(3), transport])  # D (75d)

    def bias(self, i: int, V: Array) -> Array:
        M, omega = self.inertia(i), V[:3]
        return np.concatenate([so3.hat(omega) @ (M.tensor @ omega), _square(omega) @ M.moment])

    def acceleration(
        self, i: int, V: list[Array], A: list[Array], rate: Any, joint_acceleration: Any
    ) -> Array:
        p, T = self.model.bodies[i].parent, self.transform(i)
        linear = T.rotated(A[p][3:] + _matrix(V[p], A[p]) @ T.r)
        of_parent = np.concatenate([T.rotated(A[p][:3]), linear])
        return of_parent + self.screw(i) @ joint_acceleration + self._turn(i, V, rate)

    def wrench(self, i: int, V: Array, A: Array) -> Array:
        M, K, a = self.inertia(i), _matrix(V, A), A[3:]
        turning = K @ M.second_moments
        moment = so3.vee(turning - turning.T) + so3.hat(M.moment) @ a
        return np.concatenate([moment, a * M.mass + K @ M.moment])

    def rates_on_parent(
        self, i: int, V: list[Array], A: list[Array], S: Array
    ) -> tuple[Array, Array]:
        """Return the first and second rates of screws S (6, k) in body i, fixed to its parent.

        They are ad_V S and (ad_Vdot + ad_V ad_V) S with the twist V of the parent, here in terms of
        the acceleration A.
        """
        p, T = self.model.bodies[i].parent, self.transform(i)
        V_p = T @ V[p]
        K = _matrix(V_p, T.rotated(A[p][:3]))
        a = T.rotated(A[p][3:] + _matrix(V[p], A[p]) @ T.r)  # of the parent at the origin of body i
        Y = se3.ad(V_p) @ S
        linear = so3.hat(a) @ S[:3] + 2.0 * (so3.hat(V_p[3:]) @ Y[:3])
        return Y, np.concatenate([K @ S[:3], K @ S[3:] + linear])

    def _turn(self, i: int, V: list[Array], rate: Any) -> Array:
        """The part of D (75d) with S_i = (e, m): omega_i x e, and (omega_i + omega_p) x m."""
        e, m = self.screw(i)[:3], self.screw(i)[3:]
        omega = V[i][:3]
        omega_p = self.transform(i).rotated(V[self.model.bodies[i].parent][:3])
        turn = np.concatenate([so3.hat(omega) @ e, so3.hat(omega + omega_p) @ m])
        return turn @ rate


def _square(omega: Array) -> Array:
    """omega~ omega~, symmetric."""
    return symmetric(so3.hat(omega) @ so3.hat(omega))


def _matrix(V: Array, A: Array) -> Array:
    """K = omegadot~ + omega~ omega~."""
    return so3.hat(A[:3]) + _square(V[:3])


def dynamic_operators(representation: str, model: Tree, q: Array) -> Representation:
    """Return the operators for algorithms of wrenches or joint accelerations.

    Accelerations are rates of twists in the named representation; for ``"body_fixed"`` their linear
    part is that of the origin of the body. Raises UnknownRepresentationError.
    """
    kind = REPRESENTATIONS[checked(representation)]
    return (BodyAxes if kind is BodyFixed else kind)(model, q)
