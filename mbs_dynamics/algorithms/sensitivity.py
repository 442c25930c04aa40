# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Geometric sensitivity: derivatives of poses and Jacobians by the placement of bodies.

Mueller (dynamics), section 6.2. The pose of a body relative to its parent at q = 0 depends on
parameters pi by B_i(pi) = B_i exp(U_1 pi_1) ... exp(U_m pi_m). The derivatives are those at pi = 0,
where the order of the factors does not matter. The relative pose is B_i exp(U pi) exp(X_i q_i), so
that U acts as a joint inserted before joint i, at rest at zero. The sensitivity of a pose is a
column of a Jacobian, and that of a Jacobian a bracket of columns.

A screw U (6,), angular part first, is given in the frame that body i has at q_i = 0. U = (0, e)
displaces joint i and everything beyond it along e, pi in m; U = (e, p x e) rotates them about the
axis e through p, pi in rad. U need not have unit length. Calibration uses all six unit screws of
each joint; the joint's own screw X_i is equivalent to an offset of q_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.partials import Column, JacobianColumns
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.representation import operators, parameters_at
from mbs_dynamics.representation.tree import Tree

__all__ = ["jacobian_sensitivity", "pose_sensitivity"]


@algorithm(invariant=False)
def pose_sensitivity(
    model: Tree,
    q: ArrayLike,
    screws: ArrayLike,
    body: str,
    joints: Sequence[str],
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the twists (..., 6, m) of a body or link per unit of m geometric parameters.

    Column k is the derivative of the pose C by pi_k as a twist: C^-1 dC/dpi_k if body-fixed,
    dC/dpi_k C^-1 if spatial. Columns of joints that do not move the body are zero.

    ``screws`` (..., m, 6) are the U_k, each in the frame that the body moved by ``joints[k]`` has
    at position zero; a joint may occur repeatedly.

    Mueller (dynamics), section 6.2.
    """
    rep, moved = operators(representation, model, q), model.moved_by(joints)
    K = parameters_at(rep, model.frames[body], screws, moved)
    return np.asarray(np.array(K).reshape(-1, 6).T)


@algorithm(invariant=False)
def jacobian_sensitivity(
    model: Tree,
    q: ArrayLike,
    screws: ArrayLike,
    body: str,
    joints: Sequence[str],
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the derivatives dJ/dpi_k (..., 6, n, m) of a Jacobian by m geometric parameters.

    J is :func:`mbs_dynamics.jacobian`; the arguments are those of :func:`pose_sensitivity`.

    With the column K of :func:`pose_sensitivity`, the body-fixed dJ_j/dpi is [J_j, K] for the
    joints j before the parameter on the path to the body, and the spatial one is [K, J_j] for the
    others; compare Mueller (dynamics), eqs. (5) and (15).
    """
    of, moved = JacobianColumns(model, q, body, representation), model.moved_by(joints)
    K = parameters_at(of.rep, of.frame, screws, moved)
    turning = parameters_at(of.turning, of.frame, screws, moved)
    path = model.path(of.frame.body)
    dJ: Any = np.full((6, model.n, len(moved)), 0.0, dtype=object)
    for k, i in enumerate(moved):
        if i in path:
            parameter = Column(i - 0.5, K[k], turning[k])
            for column, j in of.columns:
                dJ[:, j, k] = dJ[:, j, k] + of.derivative(column, (parameter,))
    return np.asarray(dJ)
