# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The centroidal momentum matrix, the Jacobian of the centre of mass, and their rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.energy import center_of, center_of_mass
from mbs_dynamics.algorithms.kinematics import twists_of
from mbs_dynamics.algorithms.mass_matrix import carried, composite_inertias
from mbs_dynamics.algorithms.newton_euler import recursion
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import InverseAdjoint, ad
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import BodyFixed
from mbs_dynamics.representation.tree import Tree

__all__ = [
    "center_of_mass_jacobian",
    "center_of_mass_jacobian_rate",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
]


@algorithm(invariant=True, frame_free=True)
def centroidal_momentum_matrix(model: Tree, q: ArrayLike) -> FloatArray:
    """Return A (..., 6, n) with :func:`centroidal_momentum` A qd, angular part first.

    The momentum is about the centre of mass and resolved in the inertial frame.

    A_i = Ad_i^-T M^c_i S_i with the composite inertia M^c_i of all that joint i moves, and the pose
    of body i relative to the centre of mass: Orin, Goswami and Lee, Centroidal dynamics of a
    humanoid robot (2013), eq. (27).

    Raises SingularError if no moving body has mass.
    """
    rep = BodyFixed(model, q)
    Mc, A = composite_inertias(model, rep), model.per_body()
    c = center_of(Mc[GROUND])
    for i, _ in model.outward():
        A[i] = _about(c, rep, i).T @ (Mc[i] @ rep.screw(i))
    return model.to_coordinates(A)


@algorithm(invariant=True, frame_free=True)
def centroidal_momentum_matrix_rate(model: Tree, q: ArrayLike, qd: ArrayLike) -> FloatArray:
    """Return the time derivative (..., 6, n) of :func:`centroidal_momentum_matrix`.

    Mdot^c_i S_i - ad_V^T M^c_i S_i in place of M^c_i S_i, with the rate of the composite inertia in
    the frame of body i, and the twist V of body i relative to the centre of mass: derivations.md,
    (CM1) and (CM2).

    Raises SingularError if no moving body has mass.
    """
    rep, rate = BodyFixed(model, q), model.joint_rates(qd)
    V, Mc = twists_of(model, rep, rate), composite_inertias(model, rep)
    Md = [Inertia.zero()] * (model.nb + 1)
    for i, p in model.inward():
        turning = Mc[i].rate(rep.screw(i) @ rate[i])
        Md[p] = Md[p] + carried(rep.transform(i), Md[i] + turning)  # (CM2)
    c = center_of(Mc[GROUND])
    velocity, Ad = Md[GROUND].moment * (1.0 / Mc[GROUND].mass), model.per_body()
    for i, _ in model.outward():
        V_c = np.concatenate([V[i][:3], V[i][3:] - rep.R(i).T @ velocity])
        F = Mc[i] @ rep.screw(i)
        Ad[i] = _about(c, rep, i).T @ (Md[i] @ rep.screw(i) - ad(V_c).T @ F)  # (CM1)
    return model.to_coordinates(Ad)


@algorithm(invariant=True, frame_free=True)
def centroidal_momentum_bias(model: Tree, q: ArrayLike, qd: ArrayLike) -> FloatArray:
    """Return Adot qd (..., 6), the rate of the centroidal momentum at qdd = 0, in O(n).

    The rate is A qdd + Adot qd, and the sum of all external wrenches about the centre of mass.

    The total wrench of the recursion of :func:`inverse_dynamics` without gravity.
    """
    rep, falling, rest = BodyFixed(model, q), model.with_gravity(np.zeros(3)), np.zeros(model.n)
    W = recursion(falling, rep, np.asarray(qd), rest)[2][GROUND]
    return np.concatenate([W[:3] - so3.hat(center_of_mass(model, q)) @ W[3:], W[3:]])


@algorithm(invariant=True, frame_free=True)
def center_of_mass_jacobian(model: Tree, q: ArrayLike) -> FloatArray:
    """Return the Jacobian (..., 3, n) of :func:`center_of_mass`, resolved in the inertial frame.

    Its product with qd is the velocity of the centre of mass in m/s.

    The linear part of :func:`centroidal_momentum_matrix` over the mass.

    Raises SingularError if no moving body has mass.
    """
    return np.asarray(centroidal_momentum_matrix(model, q)[3:] * (1.0 / total_mass(model)))


@algorithm(invariant=True, frame_free=True)
def center_of_mass_jacobian_rate(model: Tree, q: ArrayLike, qd: ArrayLike) -> FloatArray:
    """Return the time derivative (..., 3, n) of :func:`center_of_mass_jacobian`.

    The acceleration of the centre of mass is J qdd + Jdot qd. Source and errors are those of
    :func:`centroidal_momentum_matrix_rate`.
    """
    rate = centroidal_momentum_matrix_rate(model, q, qd)
    return np.asarray(rate[3:] * (1.0 / total_mass(model)))


def total_mass(model: Tree) -> Any:
    """Return the mass of all moving bodies; :func:`center_of_mass` checks that there is some."""
    return sum(body.inertia.mass for body in model.bodies)


def _about(c: Array, rep: BodyFixed, i: int) -> InverseAdjoint:
    """Return the map of twists at the centre of mass, in inertial axes, to body i."""
    return InverseAdjoint(rep.R(i), rep.r(i) - c)
