# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An independent check of what the node publishes: finite differences of poses, and no kernel.

Knows no ROS.
"""

from __future__ import annotations

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model import GROUND, Model

STEP = 1e-4
"""Step of the central differences, in rad or m. Their error goes with its square."""

TOLERANCE = 1e-6
"""Largest error, relative to 1 plus the largest value, that still counts as agreement."""


def poses(model: Model, q: FloatArray) -> list[FloatArray]:
    """Return the poses of all bodies: C_i = C_p B_i exp(X_i q_i), Mueller (kinematics), eq. (8)."""
    C: list[FloatArray] = []
    for body in model.bodies:
        joint = body.joint
        angle = joint.ratio * q[joint.coordinate] + joint.offset
        parent = np.eye(4) if body.parent == GROUND else C[body.parent]
        C.append(parent @ body.home_rel @ np.asarray(se3.exp(joint.screw * angle)))
    return C


def potential_energy(model: Model, q: FloatArray) -> float:
    """Return U = - sum of m_i g . c_i, in J."""
    C = poses(model, q)
    weighted = sum(
        body.inertia.mass * C[i][:3, 3] + C[i][:3, :3] @ body.inertia.moment
        for i, body in enumerate(model.bodies)
    )
    return -float(model.gravity @ weighted)


def gravity_torques(model: Model, q: FloatArray) -> FloatArray:
    """Return the gradient of the potential energy: the torques that hold the robot still."""
    steps = STEP * np.eye(model.n)
    rise = [potential_energy(model, q + s) - potential_energy(model, q - s) for s in steps]
    return np.array(rise) / (2.0 * STEP)


def hybrid_twist(model: Model, q: FloatArray, qd: FloatArray, body: str) -> FloatArray:
    """Return the twist of a body or link, resolved in the root's axes, angular part first."""
    frame = model.frame(body)
    h = STEP / max(1.0, float(np.abs(qd).max()))
    after, before = (poses(model, q + s * qd)[frame.body] @ frame.placement for s in (h, -h))
    turned = np.asarray(so3.log(after[:3, :3] @ before[:3, :3].T))
    return np.concatenate([turned, after[:3, 3] - before[:3, 3]]) / (2.0 * h)


def error(found: FloatArray, expected: FloatArray) -> float:
    """Return the largest difference, relative to 1 plus the largest expected value."""
    scale = 1.0 + float(np.abs(expected).max())
    return float(np.abs(found - expected).max()) / scale
