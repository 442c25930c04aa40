# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Time derivatives with respect to a moving reference frame: Bongardt and Kirchner.

A quantity resolved in a moving frame P has two derivatives. The *local* one, d/dt [x]_P, is the
derivative of its components. The *global* one, [d/dt x]_P, is the derivative with respect to the
inertial frame, resolved in P. They differ by the motion of P, "absolute = relative + observer":
Bongardt and Kirchner, eqs. (2.11) and (2.12).

Every function takes a quantity in P, its local derivative and the body-fixed twist V_P (..., 6) of
P, and returns the global derivative. With ``-V_P`` it takes the global derivative and returns the
local one. Floats with leading batch axes and arrays of traced symbols may be mixed.

Derivatives transform between frames like the quantities, eq. (2.13): those of points rotate like
vectors, those of twists transform with Ad, those of wrenches with Ad^-T. The paper has twists
(omega, v) and wrenches (f, tau), both in ray order, so that power is W^T Delta V. This package has
the moment first, and power is W^T V; :func:`swapped` converts between the two.
"""

from __future__ import annotations

import numpy as np

from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array, shaped


def vector_rate(x: Array, x_rate: Array, V_P: Array) -> Array:
    """Return [d/dt x]_P (..., 3) of a free vector x: xdot + omega_P cross x.

    Free vectors are forces, angular velocities and differences of points. Raises ArgumentError
    for a wrong shape, as do all functions of this module.
    """
    x, x_rate, V_P = shaped(x=(x, (3,)), x_rate=(x_rate, (3,)), V_P=(V_P, (6,)))
    return x_rate + _on_vector(so3.hat(V_P[..., :3]), x)


def point_rate(x: Array, x_rate: Array, V_P: Array) -> Array:
    """Return [d/dt x]_P (..., 3) of a point x: xdot + v_P + omega_P cross x, eqs. (2.11), (2.12).

    The sum of its velocity relative to P and of the velocity of the coincident point of P.
    """
    return vector_rate(x, x_rate, V_P) + np.asarray(V_P)[..., 3:]


def pose_rate(X: Array, X_rate: Array, V_P: Array) -> Array:
    """Return [d/dt X]_P (..., 4, 4) of a pose X in P: Xdot + V_P^ X, appendix A.2."""
    X, X_rate, V_P = shaped(X=(X, (4, 4)), X_rate=(X_rate, (4, 4)), V_P=(V_P, (6,)))
    return X_rate + se3.hat(V_P) @ X


def screw_rate(xi: Array, xi_rate: Array, V_P: Array) -> Array:
    """Return [d/dt xi]_P (..., 6) of a screw or twist: xidot + ad_{V_P} xi, eq. (A 4)."""
    xi, xi_rate, V_P = shaped(xi=(xi, (6,)), xi_rate=(xi_rate, (6,)), V_P=(V_P, (6,)))
    return xi_rate + _on_vector(se3.ad(V_P), xi)


def wrench_rate(W: Array, W_rate: Array, V_P: Array) -> Array:
    """Return [d/dt W]_P (..., 6) of a wrench or momentum, moment first: Wdot - ad_{V_P}^T W.

    This is the second line of eq. (3.2), in which ad_{V_P} acts on the wrench in ray order:
    Delta ad Delta = -ad^T. With W the momentum M V of a body it is the wrench on the body, (3.1).
    """
    W, W_rate, V_P = shaped(W=(W, (6,)), W_rate=(W_rate, (6,)), V_P=(V_P, (6,)))
    return W_rate - _on_vector(_transposed(se3.ad(V_P)), W)


def inertia_rate(M: Array, M_rate: Array, V_P: Array) -> Array:
    """Return [d/dt M]_P (..., 6, 6) of an inertia: Mdot - ad_{V_P}^T M - M ad_{V_P}, eq. (A 5).

    If P is the body frame, in which the inertia is constant, this is the derivative of the spatial
    inertia resolved in the body frame, eq. (A 3).
    """
    M, M_rate, V_P = shaped(M=(M, (6, 6)), M_rate=(M_rate, (6, 6)), V_P=(V_P, (6,)))
    ad = se3.ad(V_P)
    return M_rate - _transposed(ad) @ M - M @ ad


def swapped(S: Array) -> Array:
    """Return Delta S (..., 6): (f, tau) of the paper as (tau, f) of this package, and back."""
    (S,) = shaped(S=(S, (6,)))
    return np.concatenate([S[..., 3:], S[..., :3]], axis=-1)


def _on_vector(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _transposed(A: Array) -> Array:
    return np.swapaxes(A, -1, -2)
