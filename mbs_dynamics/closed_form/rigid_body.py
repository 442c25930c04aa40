# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The Newton-Euler equations of one rigid body, in every form of the papers.

Equations are those of section 3 of Mueller, ... in multibody dynamics; BK stands for Bongardt and
Kirchner, Newton-Euler equations in general coordinates. Where a printed equation is wrong, the
docstring states the correction.

The wrench on the body is W = (t, f) (6,), moment first; V (6,) is the twist, and Vd (6,) the time
derivative of its components. Inertia matrices M are (6, 6). For equations that separate moment and
force, a function takes an :class:`Inertia` about the origin of the body frame (mass, first moment
m d, tensor Theta), or the mass and the tensor Theta_c (3, 3) about the centre of mass. Floats and
traced symbols may be mixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.closed_form.accelerations import angular, linear
from mbs_dynamics.closed_form.kinematics import turn
from mbs_dynamics.lie import moving_reference, se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.moving_reference import swapped
from mbs_dynamics.lie.se3 import ad
from mbs_dynamics.model.inertia import Inertia

# -- spatial ---------------------------------------------------------------------------------------


def spatial_inertia_rate(M_s: Array, V_s: Array) -> Array:
    """Return d/dt M^s = -ad_V^T M - M ad_V (6, 6), with V = V^s: (37), BK (A 3)."""
    return -ad(V_s).T @ M_s - M_s @ ad(V_s)


def spatial_momentum_rate(M_s: Array, V_s: Array, Vd_s: Array) -> Array:
    """Return W^s = d/dt Pi^s, where Pi^s = M^s V^s: (36) and (37), the dot restored."""
    return M_s @ Vd_s + spatial_inertia_rate(M_s, V_s) @ V_s


def spatial_wrench(M_s: Array, V_s: Array, Vd_s: Array) -> Array:
    """Return W^s = M^s Vd^s - ad_{V^s}^T M^s V^s: (38)."""
    return M_s @ Vd_s - ad(V_s).T @ M_s @ V_s


# -- body-fixed ------------------------------------------------------------------------------------


def body_fixed_wrench(M_b: Array, V_b: Array, Vd_b: Array) -> Array:
    """Return W^b = d/dt Pi^b - ad_{V^b}^T Pi^b, where Pi^b = M^b V^b with M^b constant: (41)."""
    return moving_reference.wrench_rate(M_b @ V_b, M_b @ Vd_b, V_b)


def body_fixed_components(inertia: Inertia, V_b: Array, Vd_b: Array) -> Array:
    """Return t^b and f^b separately: (42), (43).

    t = Theta wd + w~ Theta w + m d~ (vd + w~ v), f = m (vd + w~ v + (wd~ + w~ w~) d). Corrected:
    the sign and the order of the last term of t.
    """
    Theta, md = inertia.tensor, inertia.moment
    w, wd = so3.hat(V_b[:3]), so3.hat(Vd_b[:3])
    a = Vd_b[3:] + w @ V_b[3:]
    t = Theta @ Vd_b[:3] + w @ Theta @ V_b[:3] + so3.hat(md) @ a
    return np.concatenate([t, inertia.mass * a + (wd + w @ w) @ md])


def body_fixed_wrench_at_com(M_c: Array, V_c: Array, Vd_c: Array) -> Array:
    """Return W_c^b = M_c^b Vd_c^b - ad_w^T M_c^b V_c^b, w = (omega^b, 0): (44), M_c^b as in (39).

    For a frame at the centre of mass, whose inertia has no first moment.
    """
    return M_c @ Vd_c - ad(angular(V_c)).T @ M_c @ V_c


def body_fixed_components_at_com(mass: Any, Theta_c: Array, V_c: Array, Vd_c: Array) -> Array:
    """Return t = Theta_c wd + w~ Theta_c w and f = m (vd + w~ v): (45), (46)."""
    w = so3.hat(V_c[:3])
    t = Theta_c @ Vd_c[:3] + w @ Theta_c @ V_c[:3]
    return np.concatenate([t, mass * (Vd_c[3:] + w @ V_c[3:])])


# -- hybrid ----------------------------------------------------------------------------------------


def hybrid_wrench_at_com(M_c: Array, V_c: Array, Vd_c: Array) -> Array:
    """Return W_c^h = M_c^h Vd_c^h + ad_w M_c^h (omega^s, 0), w = (omega^s, 0): (48).

    For a frame at the centre of mass. Corrected: only the angular part of the last V.
    """
    w = angular(V_c)
    return M_c @ Vd_c + ad(w) @ M_c @ w


def hybrid_components_at_com(mass: Any, Theta_c: Array, V_c: Array, Vd_c: Array) -> Array:
    """Return t = Theta_c^h wd + w~ Theta_c^h w and f = m rdd_c: (49), (50), a dot restored."""
    t = Theta_c @ Vd_c[:3] + so3.hat(V_c[:3]) @ Theta_c @ V_c[:3]
    return np.concatenate([t, mass * Vd_c[3:]])


def hybrid_wrench_from_momentum(Pi_h: Array, Pid_h: Array, V_h: Array) -> Array:
    """Return W^h = d/dt Pi^h - ad_{rd}^T Pi^h, rd = (0, d/dt r), with Pi^h = M^h V^h: (52).

    Corrected: the second term, (rd cross P, 0), is missing in print. Without it the equation holds
    only if the reference point is the centre of mass.
    """
    return moving_reference.wrench_rate(Pi_h, Pid_h, linear(V_h))


def hybrid_wrench(M_h: Array, V_h: Array, Vd_h: Array) -> Array:
    """Return W^h = M^h Vd^h + ad_w M^h w, with w = (omega^s, 0): (53)."""
    w = angular(V_h)
    return M_h @ Vd_h + ad(w) @ M_h @ w


def hybrid_components(inertia: Inertia, V_h: Array, Vd_h: Array) -> Array:
    """Return t = Theta wd + w~ Theta w + m d~ rdd and f = m (rdd + (wd~ + w~ w~) d): (54), (55).

    ``inertia`` is resolved in the inertial frame.
    """
    Theta, md = inertia.tensor, inertia.moment
    w, wd = so3.hat(V_h[:3]), so3.hat(Vd_h[:3])
    t = Theta @ Vd_h[:3] + w @ Theta @ V_h[:3] + so3.hat(md) @ Vd_h[3:]
    return np.concatenate([t, inertia.mass * Vd_h[3:] + (wd + w @ w) @ md])


# -- mixed -----------------------------------------------------------------------------------------


def mixed_components(inertia: Inertia, R: Array, V_m: Array, Vd_m: Array) -> Array:
    """Return t^b, resolved in the body, and f^h, in the inertial frame: (56), (57).

    t = Theta wd + w~ Theta w + m d~ R^T rdd, f = m (rdd + R (wd~ + w~ w~) d).
    """
    Theta, md = inertia.tensor, inertia.moment
    w, wd = so3.hat(V_m[:3]), so3.hat(Vd_m[:3])
    t = Theta @ Vd_m[:3] + w @ Theta @ V_m[:3] + so3.hat(md) @ R.T @ Vd_m[3:]
    return np.concatenate([t, inertia.mass * Vd_m[3:] + R @ (wd + w @ w) @ md])


def mixed_components_at_com(mass: Any, Theta_c: Array, V_c: Array, Vd_c: Array) -> Array:
    """Return t_c^b = Theta_c wd + w~ Theta_c w and f_c^h = m rdd_c: (58)."""
    return hybrid_components_at_com(mass, Theta_c, V_c, Vd_c)


# -- any representation ----------------------------------------------------------------------------


def inertia_in_frame(M_s: Array, C_j: Array) -> Array:
    """Return jM_i = Ad_{C_j}^T M_i^s Ad_{C_j} (6, 6), for the frame of pose C_j: (61)."""
    A = se3.Ad(C_j)
    return A.T @ M_s @ A


def wrench_in_frame(M: Array, V: Array, Vd: Array, V_j: Array) -> Array:
    """Return jW_i = Ad_{C_j}^T W_i^s: (59), (60).

    jW_i = jM_i (jVd_i + ad_{jV_j} jV_i) - ad_{jV_i}^T jM_i jV_i, where V and Vd are of body i and
    V_j is the body-fixed twist of frame j. Corrected: C_j in (59), the transposition in (60).
    """
    return M @ (Vd + ad(V_j) @ V) - ad(V).T @ M @ V


def inertia_at_and_in(M_s: Array, C_j: Array, R_jk: Array) -> Array:
    """Return kM_i^j = Ad_{R_j,k}^T jM_i Ad_{R_j,k}, at frame j and in the axes of frame k: (64).

    Corrected: R_j,k for R_k,j, the rotation R_j^T R_k from frame k to frame j.
    """
    A = turn(R_jk, R_jk)
    return A.T @ inertia_in_frame(M_s, C_j) @ A


def wrench_at_and_in(M: Array, V: Array, Vd: Array, V_j: Array, omega_k: Array) -> Array:
    """Return kW_i^j, at frame j and in the axes of frame k: (62), (63).

    kW = kM (kVd_i + (ad_{kV_j} + ad_{omega_k - omega_j}) kV_i) - ad_{kV_i}^T kM kV_i. All arguments
    are measured at frame j and resolved in frame k: kM_i^j, kV_i^j and its rate, the twist V_j of
    frame j, and the absolute angular velocity omega_k (3,) of frame k. Corrected: omega_k - omega_j
    for omega_k; R_j,k and C_j in (62).
    """
    turning = np.concatenate([omega_k - V_j[:3], np.zeros(3)])
    return M @ (Vd + (ad(V_j) + ad(turning)) @ V) - ad(V).T @ M @ V


# -- any moving frame: Bongardt and Kirchner -------------------------------------------------------


def general_wrench(M: Array, Md: Array, V: Array, Vd: Array, V_P: Array) -> Array:
    """Return [W]_P in an arbitrarily moving frame P: BK (3.1), (3.2), (3.5).

    [W]_P = d/dt [Delta M V]_P + ad_{V_P} [Delta M V]_P, "absolute = relative + observer". M, V and
    the rates of their components Md, Vd are those of the body in P, V_P is the body-fixed twist of
    P. The equation is evaluated in the paper's ray order, (f, t); the result has the moment first.
    """
    momentum, relative = swapped(M @ V), swapped(Md @ V + M @ Vd)
    return swapped(relative + ad(V_P) @ momentum)


def own_wrench(M: Array, V: Array, Vd: Array) -> Array:
    """Return W, with Delta W = Delta M Vd + ad_V Delta M V in ray order: BK (3.3), (3.4).

    V and M are spatial in (3.3) and body-fixed in (3.4); ray order is (f, t). Corrected: the last
    term for (-ad_V)^T Delta M V, as Delta does not commute with ad_V.
    """
    return swapped(swapped(M @ Vd) + ad(V) @ swapped(M @ V))


def own_wrench_at_com(mass: Any, Theta_c: Array, V: Array, Vd: Array) -> Array:
    """Return (Theta_c wd + w cross Theta_c w, m vd + w cross m v): BK, below (3.3) and (3.4).

    At the centre of mass, in the axes of V. In the spatial form, below (3.3), V is the twist at the
    point of space that coincides with the centre of mass, and vd is not the acceleration of the
    centre of mass. Corrected: two vectors, printed as a matrix.
    """
    return body_fixed_components_at_com(mass, Theta_c, V, Vd)
