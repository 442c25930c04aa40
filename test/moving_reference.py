# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Time derivatives with respect to a moving reference frame: Bongardt and Kirchner.

A quantity resolved in a moving frame P has two derivatives. The *local* one, d/dt [x]_P, is the
derivative of its components. The *global* one, [d/dt x]_P, is the derivative with respect to the
inertial frame, resolved in P. They differ by the motion of P, "absolute = relative + observer":
eqs. (2.11) and (2.12). Every function takes a quantity in P, its local derivative and the
body-fixed twist V_P of P, and returns the global derivative; with ``-V_P`` it takes the global one
and returns the local one. By (2.13) derivatives change frames like the quantities.

The paper has twists (omega, v) and wrenches (f, tau) in ray order; here the moment comes first.
"""

import numpy as np

from mbs_dynamics.lie import se3, so3


def vector_rate(x, x_rate, V_P):
    """xdot + omega_P cross x of a free vector: a force, an angular velocity, or a difference."""
    return x_rate + so3.hat(V_P[:3]) @ x


def point_rate(x, x_rate, V_P):
    """xdot + v_P + omega_P cross x of a point, (2.11), (2.12)."""
    return vector_rate(x, x_rate, V_P) + V_P[3:]


def screw_rate(xi, xi_rate, V_P):
    """xidot + ad_{V_P} xi of a screw or twist, (A 4)."""
    return xi_rate + se3.ad(V_P) @ xi


def wrench_rate(W, W_rate, V_P):
    """Wdot - ad_{V_P}^T W of a wrench or momentum: the second line of (3.2) with the moment first.

    There ad_{V_P} acts on the wrench in ray order, and Delta ad Delta = -ad^T.
    """
    return W_rate - se3.ad(V_P).T @ W


def inertia_rate(M, M_rate, V_P):
    """Mdot - ad_{V_P}^T M - M ad_{V_P} of an inertia, (A 5), and with Mdot = 0 (A 3)."""
    return M_rate - se3.ad(V_P).T @ M - M @ se3.ad(V_P)


def swapped(S):
    """Delta S: (f, tau) of the paper as (tau, f), and back."""
    return np.concatenate([S[3:], S[:3]])
