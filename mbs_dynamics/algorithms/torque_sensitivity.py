# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sensitivity of the torques to the placement of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.derivatives import composites_of
from mbs_dynamics.algorithms.newton_euler import NO_LOADS
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.se3 import ad_dual
from mbs_dynamics.representation import BodyAxes, common_frame
from mbs_dynamics.representation.tree import Tree

__all__ = ["torque_sensitivity"]


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

    tau is that of :func:`mbs_dynamics.inverse_dynamics`; the parameters are those of
    :func:`mbs_dynamics.pose_sensitivity`.

    ``screws`` (..., m, 6) are the U_k, each in the frame that the body moved by ``joints[k]`` has
    at position zero.

    A parameter acts as a joint before joint i, at rest at zero, so that dtau/dpi is the
    column of dtau/dq for that joint: Mueller (dynamics), section 6.2; derivations.md, (16) and
    (17).
    """
    rep, moved = BodyAxes(model, q), model.moved_by(joints)
    V, A, M, B, W = composites_of(model, rep, qd, qdd, NO_LOADS)
    U: Any = screws
    common: Any = common_frame(rep)
    dtau: Any = [np.full((len(moved), body.joint.nv), 0.0, dtype=object) for body in model.bodies]
    S_common = common.screws()
    of_parent, to_now, row, row_rate = (model.per_body() for _ in range(4))
    for j, _ in model.outward():
        S = rep.screw(j)
        of_parent[j], to_now[j] = rep.motion_of_parent(j, V, A), rep.from_zero(j)
        row_rate[j] = common.wrench(j, M[j] @ S)
        row[j] = common.moment(j, B[j].transposed(S))
    for k, i in model.attached(moved):
        S = to_now[i] @ U[k]
        Y, Z = of_parent[i].rates(S)
        twice = 2.0 * Y
        changed = B[i] @ twice + M[i] @ Z + ad_dual(W[i]) @ S
        for j, (W_j,) in common.carried_inward(i, changed):  # these stay where they are
            dtau[j][k] = S_common[j].T @ W_j
        turn, Z_common, outward = common.moment(i, twice[:3]), common.twist(i, Z), common.outward()
        for j in model.since(k, i):  # these move along
            turned, Z_j = outward(j, turn, Z_common)
            dtau[j][k] = row[j].T @ turned + row_rate[j].T @ Z_j
    return np.asarray(model.generalized(dtau).T)
