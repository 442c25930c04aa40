# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Contact forces with which a robot on a floating base stands still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics, inverse_dynamics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model, body_wrenches


class Contact(NamedTuple):
    """A point of a body that touches the floor."""

    body: int
    """Index of the body."""
    point: FloatArray
    """(3,) in m, in inertial axes."""


def floats(model: Model) -> bool:
    """Return whether a model is one tree whose first body moves freely."""
    one_tree = model.nb > 0 and GROUND not in model.parents[1:]
    return one_tree and model.bodies[0].joint.kind == "free"


def standing_forces(
    model: Model,
    q: FloatArray,
    contacts: Sequence[Contact],
    wrenches: Mapping[str, FloatArray] | None = None,
) -> list[tuple[Contact, FloatArray]]:
    """Return the smallest contact forces (3,) in N that hold a floating base at rest.

    No force pulls. ``wrenches`` are applied wrenches (6,) on links, in their frames. The result is
    empty if the contacts cannot hold the base, or if the model has no floating base.
    """
    if not contacts or not floats(model):
        return []
    joint, rest = model.joints[0], np.zeros(model.n)
    base = forward_kinematics(model, q)[0]
    applied = body_wrenches(model, wrenches) if wrenches else None
    needed = inverse_dynamics(model, q, rest, rest, applied)[joint.velocities]
    R, up = base[:3, :3], -np.asarray(model.gravity)
    pushing = list(contacts)
    while pushing:
        arms = np.stack([contact.point - base[:3, 3] for contact in pushing])
        moments = np.cross(arms[:, None], np.eye(3))  # rows: of unit forces
        columns = np.concatenate([moments @ R, np.tile(R, (len(arms), 1, 1))], axis=2)
        A = columns.reshape(-1, 6).T
        f = np.linalg.lstsq(A, needed, rcond=None)[0]
        if np.linalg.norm(A @ f - needed) > 1e-6 * np.linalg.norm(needed):
            return []
        forces = f.reshape(-1, 3)
        pushes = forces @ up
        if (pushes >= -1e-9 * np.abs(pushes).max()).all():
            return list(zip(pushing, forces, strict=True))
        del pushing[int(np.argmin(pushes))]
    return []
