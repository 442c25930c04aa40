# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The Newton-Euler equations of one rigid body, in every form of the papers.

Equations are those of section 3 of Mueller, ... in multibody dynamics; BK stands for Bongardt and
Kirchner, Newton-Euler equations in general coordinates. The wrench on the body is W = (t, f), V is
the twist and Vd the time derivative of its components. Equations by components take an
:class:`Inertia` about the origin of the body frame, or the mass and the tensor Theta_c about the
centre of mass.
"""

import numpy as np
from moving_reference import swapped, wrench_rate

from mbs_dynamics.closed_form.accelerations import angular, linear
from mbs_dynamics.closed_form.kinematics import turn
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.se3 import ad


def spatial_inertia_rate(M, V):
    """d/dt M^s = -ad_V^T M - M ad_V: (37), BK (A 3)."""
    return -ad(V).T @ M - M @ ad(V)


def spatial_momentum_rate(M, V, Vd):
    """W^s = d/dt Pi^s, where Pi^s = M^s V^s: (36) and (37), the dot restored."""
    return M @ Vd + spatial_inertia_rate(M, V) @ V


def spatial_wrench(M, V, Vd):
    """W^s = M^s Vd^s - ad_{V^s}^T M^s V^s: (38)."""
    return M @ Vd - ad(V).T @ M @ V


def body_fixed_wrench(M, V, Vd):
    """W^b = d/dt Pi^b - ad_{V^b}^T Pi^b, where Pi^b = M^b V^b with M^b constant: (41)."""
    return wrench_rate(M @ V, M @ Vd, V)


def body_fixed_components(inertia, V, Vd):
    """t^b and f^b: (42), (43). Corrected: the sign and the order of the last term of t."""
    Theta, md = inertia.tensor, inertia.moment
    w, wd = so3.hat(V[:3]), so3.hat(Vd[:3])
    a = Vd[3:] + w @ V[3:]
    t = Theta @ Vd[:3] + w @ Theta @ V[:3] + so3.hat(md) @ a
    return np.concatenate([t, inertia.mass * a + (wd + w @ w) @ md])


def body_fixed_wrench_at_com(M, V, Vd):
    """W_c^b = M_c^b Vd_c^b - ad_w^T M_c^b V_c^b, w = (omega^b, 0): (44), M_c^b as in (39)."""
    return M @ Vd - ad(angular(V)).T @ M @ V


def body_fixed_components_at_com(mass, Theta_c, V, Vd):
    """t = Theta_c wd + w~ Theta_c w and f = m (vd + w~ v): (45), (46)."""
    w = so3.hat(V[:3])
    return np.concatenate([Theta_c @ Vd[:3] + w @ Theta_c @ V[:3], mass * (Vd[3:] + w @ V[3:])])


def hybrid_wrench_at_com(M, V, Vd):
    """W_c^h = M_c^h Vd_c^h + ad_w M_c^h w: (48). Corrected: w = (omega^s, 0) for the last V."""
    return M @ Vd + ad(angular(V)) @ M @ angular(V)


def hybrid_components_at_com(mass, Theta_c, V, Vd):
    """t = Theta_c^h wd + w~ Theta_c^h w and f = m rdd_c: (49), (50), a dot restored; (58)."""
    t = Theta_c @ Vd[:3] + so3.hat(V[:3]) @ Theta_c @ V[:3]
    return np.concatenate([t, mass * Vd[3:]])


def hybrid_wrench_from_momentum(Pi, Pid, V):
    """W^h = d/dt Pi^h - ad_{rd}^T Pi^h, rd = (0, d/dt r), with Pi^h = M^h V^h: (52).

    Corrected: the second term is missing in print, which holds at the centre of mass only.
    """
    return wrench_rate(Pi, Pid, linear(V))


def hybrid_wrench(M, V, Vd):
    """W^h = M^h Vd^h + ad_w M^h w, with w = (omega^s, 0): (53)."""
    return M @ Vd + ad(angular(V)) @ M @ angular(V)


def hybrid_components(inertia, V, Vd):
    """t^h and f^h, of an inertia resolved in the inertial frame: (54), (55)."""
    return mixed_components(inertia, np.eye(3), V, Vd)


def mixed_components(inertia, R, V, Vd):
    """t^b, resolved in the body, and f^h, in the inertial frame: (56), (57).

    t = Theta wd + w~ Theta w + m d~ R^T rdd, f = m (rdd + R (wd~ + w~ w~) d).
    """
    Theta, md = inertia.tensor, inertia.moment
    w, wd = so3.hat(V[:3]), so3.hat(Vd[:3])
    t = Theta @ Vd[:3] + w @ Theta @ V[:3] + so3.hat(md) @ R.T @ Vd[3:]
    return np.concatenate([t, inertia.mass * Vd[3:] + R @ (wd + w @ w) @ md])


def inertia_in_frame(M_s, C_j):
    """jM_i = Ad_{C_j}^T M_i^s Ad_{C_j}, for the frame of pose C_j: (61)."""
    return se3.Ad(C_j).T @ M_s @ se3.Ad(C_j)


def wrench_in_frame(M, V, Vd, V_j):
    """jW_i = jM_i (jVd_i + ad_{jV_j} jV_i) - ad_{jV_i}^T jM_i jV_i: (59), (60).

    V_j is the body-fixed twist of frame j. Corrected: C_j in (59), the transposition in (60).
    """
    return M @ (Vd + ad(V_j) @ V) - ad(V).T @ M @ V


def inertia_at_and_in(M_s, C_j, R_jk):
    """kM_i^j = Ad_{R_j,k}^T jM_i Ad_{R_j,k}: (64). Corrected: R_j,k = R_j^T R_k for R_k,j."""
    A = turn(R_jk, R_jk)
    return A.T @ inertia_in_frame(M_s, C_j) @ A


def wrench_at_and_in(M, V, Vd, V_j, omega_k):
    """kW_i^j, at frame j and in the axes of frame k, as are all arguments: (62), (63).

    kM (kVd_i + (ad_{kV_j} + ad_{omega_k - omega_j}) kV_i) - ad_{kV_i}^T kM kV_i. Corrected:
    omega_k - omega_j for omega_k; R_j,k and C_j in (62).
    """
    turning = np.concatenate([omega_k - V_j[:3], np.zeros(3)])
    return M @ (Vd + (ad(V_j) + ad(turning)) @ V) - ad(V).T @ M @ V


def general_wrench(M, Md, V, Vd, V_P):
    """[W]_P in an arbitrarily moving frame P: BK (3.1), (3.2), (3.5).

    d/dt [Delta M V]_P + ad_{V_P} [Delta M V]_P, "absolute = relative + observer", in ray order.
    """
    return swapped(swapped(Md @ V + M @ Vd) + ad(V_P) @ swapped(M @ V))


def own_wrench(M, V, Vd):
    """W, with Delta W = Delta M Vd + ad_V Delta M V: BK (3.3), (3.4).

    Corrected: the last term for (-ad_V)^T Delta M V, as Delta does not commute with ad_V.
    """
    return swapped(swapped(M @ Vd) + ad(V) @ swapped(M @ V))


def own_wrench_at_com(mass, Theta_c, V, Vd):
    """(Theta_c wd + w cross Theta_c w, m vd + w cross m v): BK, below (3.3) and (3.4).

    Below (3.3) V is the twist at the point of space that coincides with the centre of mass, and vd
    not its acceleration. Corrected: two vectors, printed as a matrix.
    """
    return body_fixed_components_at_com(mass, Theta_c, V, Vd)
