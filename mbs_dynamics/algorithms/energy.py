# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Energies and momenta of a mechanism."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.kinematics import twists_of
from mbs_dynamics.algorithms.mass_matrix import composite_inertias
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import positive
from mbs_dynamics.lie import so3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import BodyFixed, operators
from mbs_dynamics.representation.tree import Tree

__all__ = [
    "GeneralizedMomentum",
    "center_of_mass",
    "centroidal_momentum",
    "generalized_momentum",
    "kinetic_energy",
    "momenta",
    "potential_energy",
]


class GeneralizedMomentum(NamedTuple):
    """Result of :func:`generalized_momentum`, each (..., n)."""

    p: FloatArray
    """M qd, in N m s or N s, with armature in M."""
    rate: FloatArray
    """C^T qd - g, in N m or N: with the torques at the joints, the rate of ``p``."""


@algorithm(invariant=True, frame_free=True)
def kinetic_energy(
    model: Tree, q: ArrayLike, qd: ArrayLike, *, representation: str = "auto"
) -> FloatArray:
    """Return the kinetic energy T = 1/2 sum V_i^T M_i V_i (...) in J, with that of armature."""
    rep = operators(representation, model, q)
    rate = model.joint_rates(qd)
    V = twists_of(model, rep, rate)
    of_bodies = sum(V[i] @ (rep.inertia(i) @ V[i]) for i in range(model.nb))
    rotors = sum(rate[i] @ (model.rotor(i) @ rate[i]) for i in range(model.nb))
    return np.asarray(0.5 * (of_bodies + rotors))


@algorithm(invariant=True, frame_free=True)
def potential_energy(model: Tree, q: ArrayLike) -> FloatArray:
    """Return the gravitational potential energy U = - sum m_i g^T c_i (...) of the bodies in J.

    U is zero for masses at the height of the inertial origin. Its gradient by q is
    :func:`gravity_torques`. Masses that do not move are not included.
    """
    total = composite_inertias(model, BodyFixed(model, q))[GROUND]
    return np.asarray(-(np.asarray(model.gravity) @ total.moment))


@algorithm(invariant=True, frame_free=True)
def center_of_mass(model: Tree, q: ArrayLike) -> FloatArray:
    """Return the centre of mass (..., 3) of the moving bodies in m, in the inertial frame.

    Raises SingularError if no moving body has mass.
    """
    return center_of(composite_inertias(model, BodyFixed(model, q))[GROUND])


@algorithm(invariant=False)
def momenta(
    model: Tree, q: ArrayLike, qd: ArrayLike, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the momentum co-screws Pi_i = M_i V_i (..., nb, 6), angular part first.

    The angular momentum in N m s is about the point where the twist is measured, the linear one is
    in N s.

    Mueller (dynamics), eqs. (36), (41), (51); the mixed form has the matrix of (56), (57).
    """
    rep = operators(representation, model, q)
    V = twists_of(model, rep, model.joint_rates(qd))
    return np.array([rep.inertia(i) @ V[i] for i in range(model.nb)]).reshape(-1, 6)


@algorithm(invariant=True, joint_space_only=True)
def generalized_momentum(
    model: Tree, q: ArrayLike, qd: ArrayLike, *, representation: str = "auto"
) -> GeneralizedMomentum:
    """Return p = M qd and dL/dq = C^T qd - g, (..., n) each, in O(n), without M and C.

    These are Lagrange's equations in Hamilton's form, pd = tau + dL/dq with L = T - U, as a
    momentum observer integrates them. C is :func:`coriolis_matrix` or any other one for which Mdot
    - 2 C is skew-symmetric.

    derivations.md, (M1) and (M2).
    """
    rep, qdot = operators(representation, model, q), model.joint_rates(qd)
    V = twists_of(model, rep, qdot)
    fall = model.per_body(np.concatenate([np.zeros(3), -np.asarray(model.gravity)]))
    P, W = model.per_body(np.zeros(6)), model.per_body(np.zeros(6))
    for i, parent in model.outward():
        fall[i] = rep.transform(i) @ fall[parent]
        P[i], W[i] = rep.inertia(i) @ V[i], rep.inertia(i) @ fall[i]
    p, rate = model.per_body(), model.per_body()
    for i, parent in model.inward():
        p[i] = rep.screw(i).T @ P[i] + model.rotor(i) @ qdot[i]  # (M1)
        rate[i] = rep.screw_rate(i, V[i]).T @ P[i] - rep.screw(i).T @ W[i]  # (M2)
        P[parent] = P[parent] + rep.transform(i).T @ P[i]
        W[parent] = W[parent] + rep.transform(i).T @ W[i]
    return GeneralizedMomentum(model.to_coordinates(p), model.to_coordinates(rate))


@algorithm(invariant=True, frame_free=True)
def centroidal_momentum(model: Tree, q: ArrayLike, qd: ArrayLike) -> FloatArray:
    """Return the total momentum (..., 6) about the centre of mass, angular part first.

    It is resolved in the inertial frame, in N m s and N s.

    The sum over the joints of M^c_i S_i qd_i, the momentum that each adds with the composite
    inertia of all that it moves.

    Raises SingularError if no moving body has mass.
    """
    rep, rate = BodyFixed(model, q), model.joint_rates(qd)
    Mc, P = composite_inertias(model, rep), [np.zeros(6)] * (model.nb + 1)
    for i, p in model.inward():  # momenta of all that joint i moves, relative to its parent
        P[p] = P[p] + rep.transform(i).T @ (P[i] + Mc[i] @ (rep.screw(i) @ rate[i]))
    about_origin, linear = P[GROUND][:3], P[GROUND][3:]
    return np.concatenate([about_origin - so3.hat(center_of(Mc[GROUND])) @ linear, linear])


def center_of(total: Inertia) -> FloatArray:
    """Return the centre of mass (3,) of all moving bodies, whose inertia this is."""
    no_center = "there is no centre of mass: nothing moves that has mass"
    return np.asarray(total.moment / positive(total.mass, no_center))
