# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Sensitivity of the torques to the placement of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.derivatives import motion_of
from mbs_dynamics.algorithms.newton_euler import NO_LOADS
from mbs_dynamics.algorithms.sensitivity import moved_bodies
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.tree import Model
from mbs_dynamics.representation import BodyAxes


@algorithm(invariant=True)
def torque_sensitivity(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    screws: ArrayLike,
    joints: Sequence[str],
) -> FloatArray:
    """Return dtau/dpi (..., n, m), the derivatives of the torques by m geometric parameters.

    tau is that of :func:`mbs_dynamics.inverse_dynamics`; the parameters are those of
    :func:`mbs_dynamics.pose_sensitivity`: ``screws`` (..., m, 6) are the U_k, each in the frame
    that the body moved by ``joints[k]`` has at position zero. A parameter acts as a joint before
    joint i that stands still at zero, and so it is a column of dtau/dq for that joint: Mueller
    (dynamics), section 6.2.

    q, qd, qdd (..., n). Raises ArgumentError for a wrong shape or type, UnknownJointError.
    """
    rep = BodyAxes(model, q)
    V, A, M, B, W = motion_of(model, rep, qd, qdd, NO_LOADS)
    position = model.joint_positions(q)
    columns = []
    for i, U in zip(moved_bodies(model, joints), np.asarray(screws), strict=True):
        S = se3.Ad(se3.exp_screw(model.bodies[i].joint.screw, -position[i])) @ U
        Y, Z = rep.rates_of_screw(i, S, V, A)
        column: list[Any] = [0.0] * model.nb
        moved = 2.0 * (B[i] @ Y) + M[i] @ Z + se3.ad_dual(W[i]) @ S
        child, j = i, model.parents[i]
        while j != GROUND:  # joints before the parameter stay where they are
            moved = rep.carry(child).T @ moved
            column[j] = rep.screw(j) @ moved
            child, j = j, model.parents[j]
        for j, (turned, Z_j) in _of_joints_beyond(model, rep, i, Y, Z).items():  # these move along
            S_j = rep.screw(j)
            column[j] = 2.0 * (B[j].transposed(S_j) @ turned) + (M[j] @ S_j) @ Z_j
        columns.append(model.generalized(column))
    return np.asarray(np.array(columns).reshape(-1, model.n).T)


def _of_joints_beyond(
    model: Model, rep: BodyAxes, i: int, Y: Array, Z: Array
) -> dict[int, tuple[Array, Array]]:
    """Return the angular part of a twist Y and a twist Z of body i, seen from all bodies beyond."""
    seen = {i: (Y[:3], Z)}
    for j, p in model.outward():
        if p in seen:
            turned, Z_p = seen[p]
            seen[j] = rep.carry(j).turned(turned), rep.carry(j) @ Z_p
    return seen
