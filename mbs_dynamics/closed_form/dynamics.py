# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of motion as products of system matrices: section 5 of Mueller (dynamics).

Equations are those of that paper. Where a printed equation is wrong, the docstring states the
correction. A sum over bodies l >= max(i, j, k) runs over the bodies that all three joints move.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.closed_form.accelerations import MovingSystem
from mbs_dynamics.closed_form.kinematics import turn
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import ad, ad_dual
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.model import Model


class DynamicSystem(MovingSystem):
    """The equations of motion of a model at q (nq,), qd, qdd (n,), under applied wrenches (nb, 6).

    The wrenches are body-fixed external loads, moment first; None means zero. They are numbers; all
    other arguments may be traced symbols. qdd defaults to zero. Payloads of the model are included.
    Torques, Q in the paper, are (n,) and matrices (n, n). If joints share coordinates, X N replaces
    X. Raises ArgumentError if an array has another shape or is not finite.
    """

    def __init__(
        self,
        model: Model,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike | None = None,
        wrenches: ArrayLike | None = None,
    ) -> None:
        super().__init__(model.loaded(), q, qd, qdd)
        given = np.zeros((model.nb, 6)) if wrenches is None else wrenches
        self.M_body: Array = np.array([body.inertia.matrix() for body in self.model.bodies])
        """(nb, 6, 6) M_i^b, the inertia matrices in the frames of the bodies: (40)."""
        self.W_app: Array = checks.numbers("wrenches", given, (model.nb, 6)).reshape(-1)
        """(6 nb,) W^app, the applied wrenches, body-fixed."""

    @cached_property
    def M_b(self) -> Array:
        """M^b = diag(M_1^b, ..., M_n^b) (6 nb, 6 nb): below (81)."""
        return self.diagonal(self.M_body)

    @cached_property
    def M_s(self) -> Array:
        """diag(M_1^s, ..., M_n^s), with M_i^s = Ad_{C_i}^-T M_i^b Ad_{C_i}^-1: (34)."""
        back = self.diagonal([se3.Ad(se3.inverse(C)) for C in self.C])
        return back.T @ self.M_b @ back

    @cached_property
    def W_gravity(self) -> Array:
        """(6 nb,) the weights of the bodies, M_i^b Ad_{R_i}^-1 (0, g), body-fixed."""
        g = np.concatenate([np.zeros(3), self.model.gravity])
        fall = np.concatenate([turn(R.T, R.T) @ g for R in self.R])
        return self.M_b @ fall

    @cached_property
    def W_b(self) -> Array:
        """(6 nb,) M_i^b Vd_i^b - ad_{V_i}^T M_i^b V_i^b of all bodies: (41), in (77)."""
        return self.M_b @ self.Vd_b - self.b_b.T @ self.M_b @ self.V_b

    @cached_property
    def W_joints(self) -> Array:
        """(6 nb,) wrenches of the joints on each body, drives and constraints included: (77).

        The wrench that the body's own joint transmits, minus those transmitted to its children.
        """
        return self.W_b - self.W_gravity - self.W_app

    @cached_property
    def torques(self) -> Array:
        """tau = (J^b)^T (M Vd - ad_V^T M V - W^gravity - W^app): (78).

        The printed left-hand side is zero, because W^app includes the drives there.
        """
        return self.J_b.T @ self.W_joints

    @cached_property
    def Pi_s(self) -> Array:
        """(6 nb,) Pi_i^s = M_i^s J_i^s qd: (79)."""
        return self.M_s @ self.J_s @ self.qd

    @cached_property
    def Pid_s(self) -> Array:
        """(6 nb,) d/dt Pi_i^s, with d/dt M_i^s = -ad_V^T M - M ad_V of (37): (36), in (79)."""
        rate = -self.b_s.T @ self.M_s - self.M_s @ self.b_s
        return self.M_s @ self.Vd_s + rate @ self.V_s

    @cached_property
    def torques_from_momenta(self) -> Array:
        """tau = (J^s)^T (d/dt Pi^s - W^{s,gravity} - W^{s,app}): (79), with tau as in (78)."""
        to_space = self.diagonal([se3.Ad(se3.inverse(C)).T for C in self.C])
        return self.J_s.T @ (self.Pid_s - to_space @ (self.W_gravity + self.W_app))

    @cached_property
    def kinetic_energy(self) -> Array:
        """T = 1/2 (V^b)^T M^b V^b: above (81)."""
        return 0.5 * (self.V_b @ self.M_b @ self.V_b)

    @cached_property
    def mass_matrix(self) -> Array:
        """M(q) = (J^b)^T M^b J^b: (81)."""
        return self.J_b.T @ self.M_b @ self.J_b

    @cached_property
    def mass_matrix_rate(self) -> Array:
        """d/dt M(q) = K + K^T, where K = (J^b)^T M^b d/dt J^b and d/dt J^b = -A^b a^b J^b."""
        K = self.J_b.T @ self.M_b @ self.Jd_b
        return K + K.T

    @cached_property
    def b_b(self) -> Array:
        """b^b = diag(ad_{V_1^b}, ..., ad_{V_n^b}) (6 nb, 6 nb): (82), the last index n for 2."""
        return self.diagonal([ad(V) for V in self.bodies(self.V_b)])

    @cached_property
    def momentum(self) -> Array:
        """(dT/dqd)^T = (J^b)^T M^b V^b (n,), the conjugate momentum: below (81)."""
        return self.J_b.T @ self.M_b @ self.V_b

    @cached_property
    def momentum_rate(self) -> Array:
        """d/dt (dT/dqd)^T = M qdd - (J^b)^T ((M^b A^b a^b)^T + M^b A^b a^b) J^b qd: below (81)."""
        K = self.J_b.T @ self.M_b @ self.A_b @ self.aJ_b
        return self.mass_matrix @ self.qdd - (K.T + K) @ self.qd

    @cached_property
    def kinetic_energy_gradient(self) -> Array:
        """(dT/dq)^T = (M^b A^b b^b X^b)^T J^b qd (n,): above (82); joints have one screw."""
        check_single(
            self.model.joints,
            "kinetic_energy_gradient",
            instead="mbs_dynamics.generalized_momentum and its rate",
        )
        return (self.M_b @ self.A_b @ self.b_b @ self.X_b @ self.N).T @ self.J_b @ self.qd

    @cached_property
    def gravity_torques(self) -> Array:
        """g(q) = -(J^b)^T W^gravity, which is part of the right-hand side of (80)."""
        return -(self.J_b.T @ self.W_gravity)

    @cached_property
    def C_from_lagrange(self) -> Array:
        """C = -(a^b J^b + b^b X^b)^T (A^b)^T M^b J^b - (J^b)^T M^b A^b a^b J^b: (83).

        For joints with one screw each.
        """
        check_single(
            self.model.joints,
            "C_from_lagrange",
            instead="C_christoffel or mbs_dynamics.coriolis_matrix",
        )
        first = self.a_b @ self.J_b + self.b_b @ self.X_b @ self.N
        MA = self.M_b @ self.A_b
        return -(first.T @ MA.T @ self.J_b) - self.J_b.T @ MA @ self.a_b @ self.J_b

    @cached_property
    def C_b(self) -> Array:
        """C = -(J^b)^T (M^b A^b a^b + (b^b)^T M^b) J^b: (84).

        C qd is correct, but d/dt M - 2 C is not skew-symmetric, and C is not the matrix of the
        Christoffel symbols; see C_skew and C_christoffel.
        """
        K = self.M_b @ self.A_b @ self.aJ_b + self.b_b.T @ self.M_b @ self.J_b
        return -(self.J_b.T @ K)

    @cached_property
    def C_skew(self) -> Array:
        """C' = C + (J^b)^T M^b b^b J^b, with C of (84).

        C' qd = C qd since b^b V^b = 0, and d/dt M - 2 C' is skew. Not in the paper.
        """
        return self.C_b + self.J_b.T @ self.M_b @ self.b_b @ self.J_b

    @cached_property
    def C_christoffel(self) -> Array:
        """C'' with the entries sum_k Gamma_ijk qd_k; C'' qd = C qd, and d/dt M - 2 C'' is skew.

        C'' = (J^b)^T (M^b (d/dt J^b + b^b J^b) + 1/2 (-(b^b)^T M^b - M^b b^b + F) J^b), where F is
        the diagonal of the F_i with F_i x = -ad_x^T M_i^b V_i^b. Not in the paper.
        """
        F = self.diagonal([ad_dual(Pi) for Pi in self.bodies(self.M_b @ self.V_b)])
        gyration = 0.5 * (-(self.b_b.T @ self.M_b) - self.M_b @ self.b_b + F)
        carried = self.M_b @ (self.Jd_b + self.b_b @ self.J_b)
        return self.J_b.T @ (carried + gyration @ self.J_b)

    @cached_property
    def torques_from_lagrange(self) -> Array:
        """tau = M qdd + C qd + g - (J^b)^T W^app: (80) with (81) and (84)."""
        motion = self.mass_matrix @ self.qdd + self.C_b @ self.qd
        return motion + self.gravity_torques - self.J_b.T @ self.W_app

    @cached_property
    def torques_by_component(self) -> Array:
        """tau_i = sum_j M_ij qdd_j + sum_jk Gamma_ijk qd_j qd_k + g_i - W^app: (85) with (86)."""
        motion = self.mass_matrix @ self.qdd + self.christoffel_symbols @ self.qd @ self.qd
        return motion + self.gravity_torques - self.J_b.T @ self.W_app

    @cached_property
    def christoffel_symbols(self) -> Array:
        """(n, n, n) Gamma_ijk, of the first kind, symmetric in j and k, by brackets: (86).

        Gamma_ijk = 1/2 sum_l (J_k^T M_l [J_i, J_j] + J_j^T M_l [J_i, J_k] + J_i^T M_l [J_s, J_r]),
        with J_i = J_l,i^b. Corrected: r = max(j, k) and s = min(j, k), and any i and j <= k are
        allowed if l runs from max(i, j, k).
        """

        def term(l: int, i: int, j: int, k: int) -> Array:
            J, M = self._columns[l], self.M_body[l]
            first = J[k] @ M @ ad(J[i]) @ J[j] + J[j] @ M @ ad(J[i]) @ J[k]
            return 0.5 * (first + J[i] @ M @ ad(J[j]) @ J[k])

        return self._symbols(term)

    @cached_property
    def christoffel_symbols_by_binet(self) -> Array:
        """(n, n, n) Gamma_ijk by Binet's tensor theta_l = 1/2 tr(Theta_c) I - Theta_c: (87).

        Gamma_ijk = sum_l (e_j . theta_l (e_k x e_i) + m_l v_i . (e_j x v_k)) for j <= k, with the
        angular part e and the velocity v of the centre of mass in J_l,i^b, Theta_c about it.
        Corrected: the printed form fails in every reading.
        """

        def term(l: int, i: int, j: int, k: int) -> Array:
            inertia = self.model.bodies[l].inertia
            Theta = inertia.tensor_at_com
            binet = 0.5 * np.trace(Theta) * np.eye(3) - Theta
            J, d = self._columns[l], so3.hat(inertia.com)
            e = {m: J[m][:3] for m in (i, j, k)}
            v = {m: J[m][3:] - d @ J[m][:3] for m in (i, j, k)}
            turning = e[j] @ binet @ so3.hat(e[k]) @ e[i]
            return turning + inertia.mass * (v[i] @ so3.hat(e[j]) @ v[k])

        return self._symbols(term)

    @cached_property
    def _columns(self) -> list[dict[int, Array]]:
        """For each body l, the columns J_l,j^b (6,) of the joints j on its path."""
        J = self.A_b @ self.X_b
        return [{j: J[6 * l : 6 * l + 6, j] for j in path} for l, path in enumerate(self.paths)]

    def _symbols(self, term: Callable[[int, int, int, int], Array]) -> Array:
        """Return the sum over bodies l of ``term(l, i, j, k)``, given for j <= k on the path to l.

        N transforms each index from joints to coordinates.
        """
        check_single(
            self.model.joints,
            "christoffel_symbols and torques_by_component by sums over joints",
            instead="mbs_dynamics.christoffel_symbols or C_christoffel",
        )
        n, N = self.model.n, self.N
        slices: list[Array] = [np.zeros((n, n)) for _ in range(n)]
        for l, path in enumerate(self.paths):
            for i in path:
                for position, j in enumerate(path):
                    for k in path[position:]:
                        value = term(l, i, j, k)
                        pair = np.outer(N[j], N[k])
                        pair = pair if j == k else pair + pair.T
                        c = self.model.bodies[i].joint.coordinate
                        slices[c] = slices[c] + (N[i, c] * value) * pair
        return np.stack(slices)
