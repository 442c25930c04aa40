# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of inverse and forward dynamics by state, torque and placement of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.coriolis import composite_gyrations
from mbs_dynamics.algorithms.factorization import factorize
from mbs_dynamics.algorithms.mass_matrix import composite_inertias, mass_matrix
from mbs_dynamics.algorithms.newton_euler import (
    Loads,
    Wrenches,
    inverse_dynamics,
    newton_euler,
    recursion,
)
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import ad, ad_dual
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.representation import BodyAxes, to_ancestors
from mbs_dynamics.representation.tree import Tree

__all__ = [
    "ForwardDynamicsDerivatives",
    "InverseDynamicsDerivatives",
    "Linearization",
    "TorqueRates",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_rates",
    "linearize",
    "torque_sensitivity",
]


class InverseDynamicsDerivatives(NamedTuple):
    """Result of :func:`inverse_dynamics_derivatives`, each (..., n, n)."""

    dtau_dq: FloatArray
    dtau_dqd: FloatArray
    dtau_dqdd: FloatArray
    """The mass matrix M."""


class ForwardDynamicsDerivatives(NamedTuple):
    """Result of :func:`forward_dynamics_derivatives`, each (..., n, n)."""

    dqdd_dq: FloatArray
    dqdd_dqd: FloatArray
    dqdd_dtau: FloatArray
    """The inverse of the mass matrix."""


class Linearization(NamedTuple):
    """Result of :func:`linearize`: d/dt dx = A dx + B dtau with dx = (dq, dqd)."""

    A: FloatArray
    """(..., 2n, 2n)."""
    B: FloatArray
    """(..., 2n, n)."""


class TorqueRates(NamedTuple):
    """Result of :func:`inverse_dynamics_rates`, each (..., n)."""

    taud: FloatArray
    """In N m/s or N/s."""
    taudd: FloatArray
    """In N m/s^2 or N/s^2."""


@algorithm(invariant=True, joint_space_only=True)
def inverse_dynamics_derivatives(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: Wrenches | None = None,
) -> InverseDynamicsDerivatives:
    """Return dtau/dq, dtau/dqd and dtau/dqdd = M (..., n, n) of :func:`inverse_dynamics`.

    From composite inertias and gyrations in O(n d): derivations.md, (3) to (10). Mueller
    (dynamics), section 6.1, obtains the same sensitivities from brackets of joint screws.
    """
    dq, dqd, dqdd, _ = _derivatives(model, q, qd, qdd, wrenches)
    return InverseDynamicsDerivatives(
        model.to_coordinates(dq, 2),
        model.to_coordinates(dqd, 2),
        model.to_coordinates(dqdd, 2, symmetric=True),
    )


@algorithm(invariant=True, joint_space_only=True)
def forward_dynamics_derivatives(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    wrenches: Wrenches | None = None,
) -> ForwardDynamicsDerivatives:
    """Return dqdd/dq, dqdd/dqd and dqdd/dtau = M^-1 (..., n, n) of :func:`forward_dynamics`.

    dqdd/dx = -M^-1 dtau/dx, evaluated at the acceleration that tau causes: derivations.md, (11).
    The part of the torques that accelerates a free base alone needs no solution: (11a).

    Raises SingularError if the mass matrix is not positive definite.
    """
    factors = factorize(model, mass_matrix(model, q, representation="body_fixed"))
    h = newton_euler(model, q, qd, np.zeros(model.n), "body_fixed", Loads(wrenches))
    qdd = factors.solution(np.asarray(tau) - h)
    roots = [i for i, p in model.outward() if p == GROUND and model.bodies[i].joint.nv == 6]
    dq, dqd, _, left_out = _derivatives(model, q, qd, qdd, wrenches, roots)
    free = {
        i: [np.linalg.inv(model.bodies[i].joint.screws) @ x for x in pair]
        for i, pair in left_out.items()
    }
    for i, pair in free.items():  # the armature has no part in what is left out
        for matrix, x in zip((dq, dqd), pair, strict=True):
            matrix[i, i] = matrix[i, i] - model.rotor(i) @ x
    by_q, by_qd = (
        np.array(factors.solution(-model.to_coordinates(x, 2)), dtype=object) for x in (dq, dqd)
    )
    for i, pair in free.items():  # (11a)
        at = np.ix_(*[model.bodies[i].joint.velocities] * 2)
        for matrix, x in zip((by_q, by_qd), pair, strict=True):
            matrix[at] = matrix[at] - x
    return ForwardDynamicsDerivatives(by_q, by_qd, factors.inverse())


@algorithm(invariant=True, joint_space_only=True)
def inverse_dynamics_rates(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    qddd: ArrayLike,
    qdddd: ArrayLike,
    *,
    representation: str = "auto",
) -> TorqueRates:
    """Return the time derivatives taud and taudd (..., n) of the torques along a motion.

    They are needed for the control of robots with elastic joints.

    The recursion of :func:`inverse_dynamics` in truncated Taylor series: Mueller (dynamics),
    section 6.3.
    """
    motion = q, qd, qdd, qddd, qdddd
    arguments = [model.position_series(motion[:3]), *(series_of(motion[k : k + 3]) for k in (1, 2))]
    tau = inverse_dynamics(model, *arguments, representation=representation)
    return TorqueRates(derivative_of(tau, 1), derivative_of(tau, 2))


@algorithm(invariant=True, joint_space_only=True)
def linearize(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    wrenches: Wrenches | None = None,
) -> Linearization:
    """Return A (..., 2n, 2n) and B (..., 2n, n) of the dynamics linearized about a state.

    With x = (q, qd) and xdot = f(x, tau) = (qd, qdd), A = df/dx and B = df/dtau: a small deviation
    dx = (dq, dqd) from the motion obeys d/dt dx = A dx + B dtau. For joints with several degrees of
    freedom dq is the displacement of :func:`displaced`, with d/dt dq = dqd - [qd, dq], the bracket
    of their algebra. The state need not be an equilibrium. Damping and friction of the joints are
    not included.

    From :func:`forward_dynamics_derivatives`, which has the same arguments and errors.
    """
    by = forward_dynamics_derivatives(model, q, qd, tau, wrenches)
    zero, eye = np.zeros((model.n, model.n)), np.eye(model.n)
    turning: Any = np.full(zero.shape, 0.0, dtype=object)
    for joint in model.model.joints:
        if joint.nv > 1:
            k, structure = joint.velocities, joint.group.structure.astype(object)
            turning[np.ix_(k, k)] = -np.einsum("bac,a->bc", structure, np.asarray(qd)[k])
    A = np.block([[turning, eye], [by.dqdd_dq, by.dqdd_dqd]])
    B = np.block([[zero], [by.dqdd_dtau]])
    return Linearization(A, B)


@algorithm(invariant=True)
def torque_sensitivity(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    screws: ArrayLike,
    joints: Sequence[str],
) -> FloatArray:
    """Return the derivatives dtau/dpi (..., n, m) of the torques by m geometric parameters.

    tau is the result of :func:`mbs_dynamics.inverse_dynamics`; the parameters are described in
    :func:`mbs_dynamics.pose_sensitivity`.

    ``screws`` (..., m, 6) are the U_k, each in the frame that the body moved by ``joints[k]`` has
    at position zero.

    A parameter acts as a joint before joint i, at rest at zero, so that dtau/dpi is the
    column of dtau/dq for that joint: Mueller (dynamics), section 6.2; derivations.md, (16) and
    (17).
    """
    rep, moved = BodyAxes(model, q), model.moved_by(joints)
    V, A, W = recursion(model, rep, qd, qdd)
    M, B = composite_inertias(model, rep), composite_gyrations(model, rep, V)
    U: Any = screws
    dtau: Any = [np.full((len(moved), body.joint.nv), 0.0, dtype=object) for body in model.bodies]
    for k, i in enumerate(moved):
        S = rep.from_zero(i) @ U[k]
        Y, Z = rep.rates_on_parent(i, V, A, S)
        twice = 2.0 * Y
        changed = B[i] @ twice + M[i] @ Z + ad_dual(W[i]) @ S
        for j, (W_j,) in to_ancestors(rep, i, changed):  # joints before the parameter
            dtau[j][k] = rep.screw(j).T @ W_j
        seen = {i: (twice[:3], Z)}
        for j in model.beyond(i):  # joints that the parameter displaces
            if j != i:
                carry, (turn_p, Z_p) = rep.transform(j), seen[model.parents[j]]
                seen[j] = carry.rotated(turn_p), carry @ Z_p
            turn, Z_j = seen[j]
            S_j = rep.screw(j)
            dtau[j][k] = B[j].transposed(S_j).T @ turn + (M[j] @ S_j).T @ Z_j
    return np.asarray(model.to_coordinates(dtau).T)


def _derivatives(
    model: Tree, q: Any, qd: Any, qdd: Any, wrenches: Any, free: Sequence[int] = ()
) -> tuple[Array, Array, Array, dict[int, tuple[Array, Array]]]:
    """Return dtau/dq, dtau/dqd and M as blocks (k_i, k_j) for pairs of bodies.

    For ``free`` bodies the products M Z and 2 M X are left out of the derivatives. The last result
    has their Z and 2 X by body. Equation numbers: derivations.md.
    """
    left_out: dict[int, tuple[Array, Array]] = {}
    rep = BodyAxes(model, q)
    V, A, W = recursion(model, rep, qd, qdd, Loads(wrenches))
    M, B = composite_inertias(model, rep), composite_gyrations(model, rep, V)
    dq, dqd, dqdd = (model.per_pair() for _ in range(3))
    X, Y, Z = (model.per_body() for _ in range(3))
    rate = model.joint_rates(qd)
    for i, _ in model.outward():
        S = rep.screw(i)
        Y[i], Z[i] = rep.rates_on_parent(i, V, A, S)  # (3), (4)
        X[i] = Y[i]
        if S.shape[1] > 1:  # with ad_(S s) S of the joint's own velocity s, zero for one screw
            X[i] = Y[i] + 0.5 * (ad(S @ rate[i]) @ S)
        if i in free:
            left_out[i] = Z[i], 2.0 * X[i]
            X[i] = Z[i] = np.zeros((6, 6))
    for i, _ in model.inward():
        S_i = rep.screw(i)
        by_q = 2.0 * (B[i] @ Y[i]) + M[i] @ Z[i]  # (6)
        by_qd = 2.0 * (B[i] @ S_i + M[i] @ X[i])  # (7)
        by_qdd = M[i] @ S_i
        dq[i, i], dqd[i, i], dqdd[i, i] = S_i.T @ by_q, S_i.T @ by_qd, S_i.T @ by_qdd
        dqdd[i, i] = dqdd[i, i] + model.rotor(i)
        # the joints before joint i do not turn with it: (8)
        loads = by_q + ad_dual(W[i]) @ S_i, by_qd, by_qdd, 2.0 * B[i].transposed(S_i)
        for j, (F_q, F_qd, F_qdd, m) in to_ancestors(rep, i, *loads):
            S_j = rep.screw(j)
            dq[j, i], dqd[j, i] = S_j.T @ F_q, S_j.T @ F_qd  # (8), (7)
            dq[i, j] = m.T @ Y[j][:3] + F_qdd.T @ Z[j]  # (9)
            dqd[i, j] = m.T @ S_j[:3] + 2.0 * (F_qdd.T @ X[j])  # (10)
            dqdd[j, i] = S_j.T @ F_qdd
            dqdd[i, j] = dqdd[j, i].T
    return dq, dqd, dqdd, left_out
