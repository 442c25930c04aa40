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
"""Geometric sensitivity: how poses and Jacobians change with the placement of bodies.

Mueller (dynamics), section 6.2. The pose of a body relative to its parent at q = 0 depends on
parameters pi by B_i(pi) = B_i exp(U_1 pi_1) ... exp(U_m pi_m); the derivatives here are those at
pi = 0, where the order of the factors does not matter. The relative pose is then B_i exp(U pi)
exp(X_i q_i), so that U acts as a joint that is inserted before joint i and stands at zero. The
sensitivity of a pose is a column of a Jacobian, and that of a Jacobian a bracket of columns.

A screw U (6,), angular part first, is given in the frame that body i has at q_i = 0. U = (0, e)
moves joint i and all beyond it along e, pi in m; U = (e, p x e) turns them about the axis e through
p, pi in rad. U need not be of unit length. Calibration takes all six unit screws of each joint; one
combination of them, the joint's own screw X_i, does what an offset of q_i does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.model.tree import Model
from mbs_dynamics.representation import Representation, from_body_fixed, moves, screws_at


@algorithm(invariant=False)
def pose_sensitivity(
    model: Model,
    q: ArrayLike,
    screws: ArrayLike,
    body: str,
    joints: Sequence[str],
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the twists (..., 6, m) of a body or link per unit of m geometric parameters.

    Column k is the derivative of the pose C by pi_k as a twist: C^-1 dC/dpi_k if body-fixed,
    dC/dpi_k C^-1 if spatial. ``screws`` (..., m, 6) are the U_k, each in the frame that the body
    moved by ``joints[k]`` has at position zero; a joint may occur more than once. Columns of joints
    that do not move the body are zero. See the module; auto means body_fixed.

    q (..., n) in rad or m. Raises ArgumentError for a wrong shape or type, UnknownJointError,
    UnknownBodyError, UnknownRepresentationError.
    """
    rep = moves(representation, model, q)
    K = _parameters(model, rep, q, screws, model.frame(body), moved_bodies(model, joints))
    twists: FloatArray = np.array(K).reshape(-1, 6).T
    return twists


@algorithm(invariant=False)
def jacobian_sensitivity(
    model: Model,
    q: ArrayLike,
    screws: ArrayLike,
    body: str,
    joints: Sequence[str],
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the derivatives dJ/dpi_k (..., 6, n, m) of a Jacobian by m geometric parameters.

    J is that of :func:`mbs_dynamics.jacobian`. With the column K of :func:`pose_sensitivity`, the
    body-fixed dJ_j/dpi is [J_j, K] for the joints j that come before the parameter on the way to
    the body, and the spatial one [K, J_j] for the others; compare Mueller (dynamics), eqs. (5) and
    (15). The arguments and errors are those of :func:`pose_sensitivity`; auto means body_fixed.
    """
    rep = moves(representation, model, q)
    frame = model.frame(body)
    R = np.eye(3) if frame.body == GROUND else rep.R(frame.body) @ frame.placement[:3, :3]
    S = screws_at(rep, frame)
    moved = moved_bodies(model, joints)
    derivatives = []
    for i, K in zip(moved, _parameters(model, rep, q, screws, frame, moved), strict=True):
        dJ: list[Array] = [np.zeros(6) for _ in range(model.n)]
        for j, S_j in S.items():
            joint = model.bodies[j].joint
            change = _change(rep.name, S_j, K, R, before=j < i)
            dJ[joint.coordinate] = dJ[joint.coordinate] + joint.ratio * change
        derivatives.append(np.array(dJ).reshape(-1, 6).T)
    stacked: FloatArray = np.moveaxis(np.array(derivatives).reshape(-1, 6, model.n), 0, -1)
    return stacked


def _parameters(
    model: Model, rep: Representation, q: Array, screws: Array, frame: Frame, moved: Sequence[int]
) -> list[Array]:
    """Return the instantaneous screw (6,) of each parameter, measured at a frame."""
    path, position = model.path(frame.body), model.joint_positions(q)
    K = []
    for i, U in zip(moved, screws, strict=True):
        if i not in path:
            K.append(np.zeros(6))
            continue
        back = se3.exp_screw(model.bodies[i].joint.screw, -position[i])
        K_i = from_body_fixed(rep.C(i), rep.name) @ (se3.Ad(back) @ U)
        for k in path[path.index(i) + 1 :]:
            K_i = rep.carry(k) @ K_i
        K.append(rep.at(frame) @ K_i)
    return K


def _change(kind: str, S: Array, K: Array, R: Array, *, before: bool) -> Array:
    """Return the derivative of a joint's column S by a parameter with the column K.

    A joint before the parameter stays where it is, and the frame, of rotation R, moves; joints
    after it move with the frame.
    """
    if kind == "body_fixed":
        return se3.ad(S) @ K if before else np.zeros(6)
    if kind == "spatial":
        return np.zeros(6) if before else se3.ad(K) @ S
    to_inertial = R if kind == "mixed" else np.eye(3)
    if before:
        turned = so3.hat(S[:3]) @ K[:3] if kind == "mixed" else np.zeros(3)
        return np.concatenate([turned, so3.hat(to_inertial @ S[:3]) @ K[3:]])
    turned = np.zeros(3) if kind == "mixed" else so3.hat(K[:3]) @ S[:3]
    return np.concatenate([turned, so3.hat(to_inertial @ K[:3]) @ S[3:]])


def moved_bodies(model: Model, joints: Sequence[str]) -> list[int]:
    """Return the bodies that the named joints move."""
    if isinstance(joints, str) or not isinstance(joints, Sequence):
        raise ArgumentError(f"joints must be a sequence of names; got {joints!r}")
    index = {body.joint.name: i for i, body in enumerate(model.bodies)}
    for name in joints:
        if name not in index:
            raise UnknownJointError(name, index)
    return [index[name] for name in joints]
