# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint rates and accelerations from the twists of all bodies.

Two functions agree for twists of a possible motion and differ for others:

- :func:`joint_rates_from_twists` treats one joint after the other, by the twist of its body
  relative to the parent. It costs O(n) and rejects inconsistent twists.
- :func:`fit_joint_rates` treats all joints together and returns the rates whose twists are nearest
  to the given ones, as measured twists require.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import Representation, moves, screws_at, to_body_fixed
from mbs_dynamics.representation.tree import Tree

__all__ = ["fit_joint_rates", "joint_accelerations_from_twists", "joint_rates_from_twists"]

CONSISTENCY_TOLERANCE = 1e-8
"""How far twists may be from a motion of the mechanism, relative to 1 + their largest component."""


def joint_rates_from_twists(
    model: Model,
    q: ArrayLike,
    V: ArrayLike,
    *,
    representation: str = "body_fixed",
    tolerance: float = CONSISTENCY_TOLERANCE,
) -> FloatArray:
    """Return the joint rates qd (..., n) of bodies with the twists V (..., nb, 6).

    The result is exact if V = J qd for some qd. For other V it minimises the sum of the squares of
    e_i - X_i qd_i over all joints, see below, which is the same in all four representations, and
    not that of V - J qd, as Remark 9 states; see :func:`fit_joint_rates`. Twists are rejected if a
    component of e_i - X_i qd_i exceeds ``tolerance`` times 1 + the largest component of V;
    ``tolerance=inf`` accepts all.

    ``q`` (..., n); ``V`` in rad/s and m/s, in the order of ``model.body_names``. ``representation``
    is ``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``; ``"auto"`` means body-fixed.

    qd_i = X_i^T e_i / (X_i^T X_i), where e_i is the twist of body i relative to its parent,
    measured at body i and resolved in it: Mueller (kinematics), eq. (26), and Remark 14 for spatial
    twists. For mimic joints that share a coordinate, numerator and denominator are sums over the
    joints, weighted by the ratios and their squares.

    Raises ArgumentError for a wrong shape or type, and for inconsistent twists, with the body and
    the deviation; UnknownRepresentationError.
    """
    qd, misfit = joint_rates_and_misfit(model, q, V, representation=representation)
    _check("V", "rad/s, m/s", model, misfit, tolerance, V)
    return np.asarray(qd)


def joint_accelerations_from_twists(
    model: Model,
    q: ArrayLike,
    V: ArrayLike,
    Vd: ArrayLike,
    *,
    representation: str = "body_fixed",
    tolerance: float = CONSISTENCY_TOLERANCE,
) -> FloatArray:
    """Return the joint accelerations qdd (..., n) from twists V and their derivatives Vd.

    The result is exact if V = J qd and Vd = J qdd + Jd qd for some qd and qdd. For other V and Vd
    it minimises the sum of the squares of e_i - X_i qdd_i over all joints, see below. They are
    rejected if V is, or if a component of e_i - X_i qdd_i exceeds ``tolerance`` times 1 + the
    largest component of V and Vd; ``tolerance=inf`` accepts all.

    ``q`` (..., n); ``V`` (..., nb, 6) in rad/s and m/s; ``Vd`` (..., nb, 6) in rad/s^2 and m/s^2,
    the derivatives of the components of V without gravity, as :func:`accelerations` returns them.
    ``representation`` is ``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``; ``"auto"``
    means body-fixed.

    qdd_i = X_i^T e_i / (X_i^T X_i) with, body-fixed, e_i = Vd_i - Ad_{C_i,p} Vd_p + qd_i [X_i,
    V_i]: Mueller (dynamics), eq. (11). Mimic joints are treated as by
    :func:`joint_rates_from_twists`, which yields the qd_i.

    Raises ArgumentError for a wrong shape or type, and for inconsistent V and Vd, with the body and
    the deviation; UnknownRepresentationError.
    """
    qdd, misfit_V, misfit_Vd = joint_accelerations_and_misfit(
        model, q, V, Vd, representation=representation
    )
    _check("V", "rad/s, m/s", model, misfit_V, tolerance, V)
    _check("Vd", "rad/s^2, m/s^2", model, misfit_Vd, tolerance, V, Vd)
    return np.asarray(qdd)


def fit_joint_rates(
    model: Model, q: ArrayLike, V: ArrayLike, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the joint rates qd (..., n) whose twists are nearest to V (..., nb, 6).

    They minimise the sum of the squares of all 6 nb components of V - J qd. The solution is unique.
    It weighs rad/s against m/s and therefore depends on the unit of length and on the body frames.
    The hybrid and the mixed form yield the body-fixed result, the spatial form another one.

    ``q`` (..., n); ``V`` in rad/s and m/s, in the order of ``model.body_names``. ``representation``
    is ``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``; ``"auto"`` means body-fixed.

    The system Jacobian J of Mueller (kinematics), eq. (23), as Remark 9 states of eq. (26).

    Raises ArgumentError for a wrong shape or type, UnknownRepresentationError.
    """
    J, given = system_jacobian_and_twists(model, q, V, representation=representation)
    Q, R = np.linalg.qr(J.reshape(*J.shape[:-3], 6 * model.nb, model.n))
    in_range = np.swapaxes(Q, -1, -2) @ given.reshape(*given.shape[:-2], 6 * model.nb, 1)
    return np.asarray(np.linalg.solve(R, in_range)[..., 0])


@algorithm(invariant=False)
def joint_rates_and_misfit(
    model: Tree, q: ArrayLike, V: ArrayLike, *, representation: str = "body_fixed"
) -> Any:
    """Return qd and e_i - X_i qd_i (nb, 6); see :func:`joint_rates_from_twists`."""
    rep = moves(representation, model, q)
    qd, misfit = _projected(model, _relative(rep, V))
    return {"qd": qd, "misfit": misfit}


@algorithm(invariant=False)
def joint_accelerations_and_misfit(
    model: Tree, q: ArrayLike, V: ArrayLike, Vd: ArrayLike, *, representation: str = "body_fixed"
) -> Any:
    """Return qdd and the misfits of V and Vd; see :func:`joint_accelerations_from_twists`."""
    rep = moves(representation, model, q)
    qd, misfit_V = _projected(model, _relative(rep, V))
    velocities, rate = _with_ground(V), model.joint_rates(qd)
    drift = [rep.drift(i, velocities, rate[i]) for i in range(model.nb)]
    qdd, misfit_Vd = _projected(model, _relative(rep, Vd, drift))
    return {"qdd": qdd, "misfit_V": misfit_V, "misfit_Vd": misfit_Vd}


@algorithm(invariant=False)
def system_jacobian_and_twists(
    model: Tree, q: ArrayLike, V: ArrayLike, *, representation: str = "body_fixed"
) -> Any:
    """Return J (nb, 6, n) of all bodies, and V, checked and broadcast with q."""
    rep = moves(representation, model, q)
    J = np.full((model.nb, 6, model.n), 0.0, dtype=object)
    for i, body in enumerate(model.bodies):
        J[i] = model.generalized(screws_at(rep, model.frame(body.name)))
    return {"J": J, "V": V}


def _relative(rep: Representation, V: Array, drift: Sequence[Array] | None = None) -> list[Array]:
    """Return V_i - carry V_p - drift_i of all bodies, measured at body i and resolved in it."""
    V = _with_ground(V)
    e = []
    for i, p in rep.model.outward():
        e_i = V[i] - rep.carry(i) @ V[p]
        if drift is not None:
            e_i = e_i - drift[i]
        e.append(to_body_fixed(rep.C(i), rep.name) @ e_i)
    return e


def _projected(model: Tree, e: list[Array]) -> tuple[Array, Array]:
    """Return (X^T X)^-1 X^T e for the coordinates (n,), and the remainder of e (nb, 6)."""
    duals, ratios = [], []
    for body in model.bodies:  # of several screws (X^T X)^-1 X^T at once
        X, k = body.joint.screws, body.joint.ratio
        duals.append(X if X.shape[1] == 1 else np.linalg.pinv(X).T)
        ratios.append(k * (duals[-1] * X).sum(0))
    along = model.generalized([X_i.T @ e_i for X_i, e_i in zip(duals, e, strict=True)])
    length2 = model.generalized(ratios)
    rates = np.array([x / y for x, y in zip(along, length2, strict=True)])
    pairs = zip(e, model.bodies, model.joint_rates(rates), strict=True)
    return rates, np.array([e_i - body.joint.screws @ r for e_i, body, r in pairs])


def _with_ground(V: Array) -> list[Array]:
    return [*V, np.zeros(6)]


def _check(
    name: str,
    units: str,
    model: Model,
    misfit: FloatArray,
    tolerance: float,
    *given: ArrayLike,
) -> None:
    """Raise ArgumentError if the misfit (..., nb, 6) exceeds the tolerance anywhere."""
    if not isinstance(tolerance, (int, float, np.floating)) or not tolerance >= 0.0:
        raise ArgumentError(f"tolerance must be a number of at least 0; got {tolerance!r}")
    if tolerance == np.inf:
        return
    size = np.abs(misfit).max(axis=-1)  # (..., nb)
    largest = [np.abs(np.asarray(x)).max(axis=(-2, -1)) for x in given]
    scale = 1.0 + functools.reduce(np.maximum, largest)
    relative = size / scale[..., None]
    if np.all(relative <= tolerance):  # which a NaN is not
        return
    worst = np.unravel_index(np.argmax(relative), relative.shape)
    *state, i = map(int, worst)
    body = model.bodies[i]
    parent = "the ground" if body.parent == GROUND else repr(model.bodies[body.parent].name)
    where = f"in state {tuple(state)}, " if state else ""
    raise ArgumentError(
        f"{name} is no motion of this mechanism: {where}{body.name!r} has, relative to {parent}, "
        f"{size[worst]:.3g} ({units}) that joint {body.joint.name!r} does not allow; valid is up "
        f"to {tolerance:g} times 1 + the largest component. See fit_joint_rates for measured twists"
    )
