# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics: joint accelerations from torques, by three methods behind one function."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.articulated import Articulated, eliminations
from mbs_dynamics.algorithms.factorization import Factors, factorize
from mbs_dynamics.algorithms.mass_matrix import mass_matrix
from mbs_dynamics.algorithms.newton_euler import Loads, Wrenches, ground_motion, newton_euler
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import UnknownMethodError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation import AUTO, Representation, dynamic_operators
from mbs_dynamics.representation.tree import Tree

__all__ = ["forward_dynamics"]

METHODS = ("articulated_body", "udut", "mass_matrix")

BY_MASS_MATRIX = 34
"""Mean square of the joints that move a body up to which accelerations are solved by the mass
matrix: counted for chains of 8 to 14 joints and for twelve robots."""


@algorithm(invariant=True, joint_space_only=True)
def forward_dynamics(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    wrenches: Wrenches | None = None,
    base_twist: ArrayLike | None = None,
    base_acceleration: ArrayLike | None = None,
    *,
    method: str = "auto",
    representation: str = "auto",
) -> FloatArray:
    """Return the joint accelerations qdd (..., n) that solve M qdd + h = tau + sum J_i^T W_i.

    Damping and friction of the joints are not included.

    For a moving base see :func:`inverse_dynamics`. ``method`` is one of

    - ``"articulated_body"``: Featherstone's recursion, O(n).
    - ``"udut"``: the recursion of Mohan and Saha, O(n), with the factors of M = U D U^T in closed
      form, eqs. (28)-(37). Corrected: phi includes the gyroscopic terms and gravity, psi has no
      additional factor A, and the last step is U^-T.
    - ``"mass_matrix"``: the mass matrix by composite inertias, factorized numerically, O(n^3).
    - ``"auto"``: the mass matrix for up to about nine joints in series, else the articulated body.

    The recursions need one coordinate per joint: models with mimic joints are solved by the mass
    matrix, whatever the method.

    Raises SingularError, which names the joint, if the mass matrix is not positive definite.
    """
    if method not in (*METHODS, AUTO):
        raise UnknownMethodError(method, (*METHODS, AUTO))
    if method == AUTO:
        # operations of the recursion grow with the bodies, those of M and its factors with the
        # squares of the numbers of joints that move them
        squares = sum(len(model.path(i)) ** 2 for i in range(model.nb))
        method = "mass_matrix" if squares <= BY_MASS_MATRIX * model.nb else "articulated_body"
    if not model.positions_are_coordinates:
        method = "mass_matrix"
    loads = Loads(wrenches, base_twist, base_acceleration)
    if method == "articulated_body":
        return _articulated_body(model, dynamic_operators(representation, model, q), qd, tau, loads)
    h = newton_euler(model, q, qd, np.zeros(model.n), representation, loads)
    factors: Factors | Articulated
    if method == "udut":
        factors = Articulated(model, dynamic_operators(representation, model, q))
    else:
        factors = factorize(model, mass_matrix(model, q, representation=representation))
    return np.asarray(factors.solution(np.asarray(tau) - h))


def _articulated_body(
    model: Tree, rep: Representation, qd: Array, tau: Array, loads: Loads
) -> FloatArray:
    """Return qdd (n,) by the articulated-body algorithm, with each screw as a joint of its own."""
    rate = model.joint_rates(qd)
    V, a = (model.per_body(x) for x in ground_motion(model, rep, loads))
    p, drift = model.per_body(np.zeros(6)), model.per_body()
    U, d, u, qdd = (model.per_body() for _ in range(4))
    given = model.of_joints(tau)
    for i, _ in model.outward():
        V[i] = rep.twist(i, V, rate[i])
        drift[i] = rep.velocity_product(i, V, rate[i])
        p[i] = rep.bias(i, V[i])
        if loads.wrenches is not None:
            p[i] = p[i] - loads.wrenches[i]
    for i, parent, U[i], d[i], rest in eliminations(model, rep):
        u[i], screws = np.array(given[i], dtype=object), rep.screw(i).T
        for k in reversed(range(len(screws))):
            u[i][k] = u[i][k] - screws[k] @ p[i]
            p[i] = p[i] + U[i][k] * (u[i][k] / d[i][k])
        p[parent] = p[parent] + rep.transform(i).T @ (p[i] + rest @ drift[i])
    for i, parent in model.outward():
        a[i], screws = rep.transform(i) @ a[parent] + drift[i], rep.screw(i).T
        qdd[i] = np.array(u[i], dtype=object)
        for k in range(len(screws)):
            qdd[i][k] = (u[i][k] - U[i][k] @ a[i]) / d[i][k]
            a[i] = a[i] + screws[k] * qdd[i][k]
    return model.to_coordinates(qdd)
