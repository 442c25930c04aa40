# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Accelerations, jerks and Jacobian rates: time derivatives of the recursions, of any order.

The equations of twists and Jacobians are evaluated with truncated Taylor series in place of
numbers, expanded at the present pose. The first order yields the acceleration recursions of Mueller
(dynamics), eqs. (66c), (70d) and (75d), the second order his jerks. The order is not limited; the
cost is O(n) and grows with the square of the order.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.kinematics import jacobian, twists
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation.tree import Tree

__all__ = ["accelerations", "jacobian_rate", "jacobian_second_rate", "jerks", "twist_derivatives"]


@algorithm(invariant=False)
def accelerations(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    bodies: Sequence[str] | None = None,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the time derivatives Vdot_i (..., nb, 6) of all twists, or of the named bodies.

    These are the derivatives of the components of :func:`twists`: angular part in rad/s^2 first,
    then linear part in m/s^2, without gravity. The linear part is the acceleration of the body's
    origin in the hybrid and the mixed representation only.

    Mueller (dynamics), eqs. (6), (17), (29), (33), by the recursions (66c), (70d), (75d).
    """
    return _derivative_of_twists(model, [q, qd, qdd], bodies, representation)


@algorithm(invariant=False)
def jerks(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    qddd: ArrayLike,
    *,
    bodies: Sequence[str] | None = None,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the second derivatives Vddot_i (..., nb, 6) of all twists, or of the named bodies.

    These are the second derivatives of the components of :func:`twists`, in rad/s^3 and m/s^3.

    Mueller (dynamics), eqs. (13), (21), (31), (33). Corrected: in (13) the factor 2 is 1 for k = r,
    and (33) lacks the rate of R^T.
    """
    return _derivative_of_twists(model, [q, qd, qdd, qddd], bodies, representation)


@algorithm(invariant=False)
def twist_derivatives(
    model: Tree,
    motion: ArrayLike,
    order: int,
    *,
    bodies: Sequence[str] | None = None,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return d^k V_i / dt^k (..., nb, 6) for k = ``order``, of all bodies or of the named ones.

    Order 0 returns the twists, 1 the accelerations, 2 the jerks, 3 the snaps, and so on.

    Raises ArgumentError for a negative order.
    """
    return _derivative_of_twists(model, list(motion), bodies, representation)  # type: ignore[arg-type]


@algorithm(invariant=False)
def jacobian_rate(
    model: Tree, q: ArrayLike, qd: ArrayLike, body: str, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the time derivative Jdot (..., 6, n) of the Jacobian of a body or link.

    Vdot = J qdd + Jdot qd.

    Mueller (dynamics), eqs. (7), (16), (26), (33), the last two as corrected for :func:`jerks`.
    """
    return _derivative_of_jacobian(model, [q, qd], body, representation)


@algorithm(invariant=False)
def jacobian_second_rate(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    body: str,
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the second time derivative Jddot (..., 6, n) of the Jacobian of a body or link.

    Vddot = J qddd + 2 Jdot qdd + Jddot qd.
    """
    return _derivative_of_jacobian(model, [q, qd, qdd], body, representation)


def _derivative_of_twists(
    model: Tree, motion: Sequence[Array], bodies: Sequence[str] | None, representation: str
) -> FloatArray:
    """Return the derivative of the twists of order ``len(motion) - 2``."""
    q, qd = model.position_series(motion[:-1]), series_of(motion[1:])
    V = twists(model, q, qd, bodies=bodies, representation=representation)
    return derivative_of(V, len(motion) - 2)


def _derivative_of_jacobian(
    model: Tree, motion: Sequence[Array], body: str, representation: str
) -> FloatArray:
    J = jacobian(model, model.position_series(motion), body, representation=representation)
    return derivative_of(J, len(motion) - 1)
