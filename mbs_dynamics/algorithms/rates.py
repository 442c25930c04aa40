# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Accelerations, jerks and Jacobian rates: time derivatives of the recursions, of any order.

The equations of twists and Jacobians are evaluated with truncated Taylor series in place of
numbers, expanded about the present pose. To first order this gives the acceleration recursions of
Mueller (dynamics), eqs. (66c), (70d) and (75d), and to second order his jerks; the order is not
limited, and the cost is O(n) in the bodies and grows with the square of the order.
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


@algorithm(invariant=False, generic=True)
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

    These are the derivatives of the components of :func:`twists`, angular part (rad/s^2) first,
    then linear (m/s^2). Gravity is not in them. Only in the hybrid and the mixed form is the linear
    part the acceleration of the body's origin. Mueller (dynamics), eqs. (6), (17), (29), (33) and
    the recursions (66c), (70d), (75d); auto means body_fixed.

    q, qd, qdd (..., n). Raises ArgumentError for a wrong shape or type, UnknownBodyError,
    UnknownRepresentationError.
    """
    return _derivative_of_twists(model, [q, qd, qdd], bodies, representation)


@algorithm(invariant=False, generic=True)
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

    These are the second derivatives of the components of :func:`twists`. Mueller (dynamics), eqs.
    (13), (21), (31), (33), as corrected: in (13) the factor 2 is 1 for k = r, and in (33) the rate
    of R^T is missing; auto means body_fixed.

    q, qd, qdd, qddd (..., n). Raises ArgumentError for a wrong shape or type, UnknownBodyError,
    UnknownRepresentationError.
    """
    return _derivative_of_twists(model, [q, qd, qdd, qddd], bodies, representation)


@algorithm(invariant=False, generic=True)
def twist_derivatives(
    model: Tree,
    motion: ArrayLike,
    order: int,
    *,
    bodies: Sequence[str] | None = None,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return d^k V_i / dt^k (..., nb, 6) for k = ``order``, of all bodies or the named ones.

    Order 0 is the twists, 1 the accelerations, 2 the jerks, 3 the snap, and so on. ``motion`` (...,
    order + 2, n) holds q and its time derivatives up to the one of order + 1, in SI units. auto
    means body_fixed.

    Raises ArgumentError for an order that is no integer of at least 0 or a wrong shape or type,
    UnknownBodyError, UnknownRepresentationError.
    """
    return _derivative_of_twists(model, list(motion), bodies, representation)  # type: ignore[arg-type]


@algorithm(invariant=False, generic=True)
def jacobian_rate(
    model: Tree, q: ArrayLike, qd: ArrayLike, body: str, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the time derivative Jdot (..., 6, n) of the Jacobian of a body or link.

    Vdot = J qdd + Jdot qd. Mueller (dynamics), eqs. (7), (16), (26), (33), the latter two as
    corrected; auto means body_fixed.

    q, qd (..., n). Raises ArgumentError for a wrong shape or type, UnknownBodyError,
    UnknownRepresentationError.
    """
    return _derivative_of_jacobian(model, [q, qd], body, representation)


@algorithm(invariant=False, generic=True)
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

    Vddot = J qddd + 2 Jdot qdd + Jddot qd. auto means body_fixed.

    q, qd, qdd (..., n). Raises ArgumentError for a wrong shape or type, UnknownBodyError,
    UnknownRepresentationError.
    """
    return _derivative_of_jacobian(model, [q, qd, qdd], body, representation)


def _derivative_of_twists(
    model: Tree, motion: Sequence[Array], bodies: Sequence[str] | None, representation: str
) -> FloatArray:
    """Return the derivative of the twists of the order that the last entry of motion allows."""
    q, qd = series_of(motion[:-1]), series_of(motion[1:])
    V = twists(model, q, qd, bodies=bodies, representation=representation)
    derivative: FloatArray = derivative_of(V, len(motion) - 2)
    return derivative


def _derivative_of_jacobian(
    model: Tree, motion: Sequence[Array], body: str, representation: str
) -> FloatArray:
    J = jacobian(model, series_of(motion), body, representation=representation)
    derivative: FloatArray = derivative_of(J, len(motion) - 1)
    return derivative
