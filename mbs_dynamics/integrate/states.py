# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The states of a motion in the coordinates of a model, a floating base included."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics, jacobian
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate.floating import BASE
from mbs_dynamics.integrate.results import FloatingMotion, Motion
from mbs_dynamics.lie import se3
from mbs_dynamics.model.model import Model


def check_joints(model: Model, motion: Motion | FloatingMotion) -> None:
    """Raise ArgumentError unless motion and model have the same joints."""
    names = model.joint_names[6 if isinstance(motion, FloatingMotion) else 0 :]
    if motion.joint_names != names:
        raise ArgumentError(
            f"the motion has the joints {', '.join(motion.joint_names)}; the model has "
            f"{', '.join(names)}"
        )


def states_of(model: Model, motion: Motion | FloatingMotion) -> tuple[FloatArray, FloatArray]:
    """Return positions and rates (N, n) of a single motion.

    Raises ArgumentError for a motion of other joints.
    """
    check_joints(model, motion)
    if isinstance(motion, Motion):
        return motion.q, motion.qd
    return with_base(model, motion.C, motion.V, motion.q, motion.qd)


def with_base(
    model: Model, C: FloatArray, V: FloatArray, q: FloatArray, qd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return positions and rates (..., n) from pose C (..., 4, 4) and twist V (..., 6) of a base.

    Its coordinates are those of the free joint: three translations, then three angles with
    R = Rx Ry Rz. At a singularity of the angles the rates are a least-squares solution.
    """
    home = forward_kinematics(model, np.zeros(model.n))[BASE]
    M = se3.inverse(home) @ C
    R = M[..., :3, :3]
    x = np.arctan2(-R[..., 1, 2], R[..., 2, 2])
    y = np.arcsin(np.clip(R[..., 0, 2], -1.0, 1.0))
    z = np.arctan2(-R[..., 0, 1], R[..., 0, 0])
    positions = np.concatenate([M[..., :3, 3], np.stack([x, y, z], axis=-1), q], axis=-1)
    J = jacobian(model, positions, model.body_names[BASE])[..., :6]
    rates = (np.linalg.pinv(J) @ V[..., None])[..., 0]
    return positions, np.concatenate([rates, qd], axis=-1)
