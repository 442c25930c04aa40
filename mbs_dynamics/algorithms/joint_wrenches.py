# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrenches that joints transmit, and their constraint part, borne by the bearings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.newton_euler import Loads, Wrenches, recursion
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.separation import wrench_links
from mbs_dynamics.representation import dynamic_operators, to_body_fixed
from mbs_dynamics.representation.tree import Tree

__all__ = ["joint_reactions", "joint_wrenches"]


@algorithm(invariant=False, fixed_joints=True)
def joint_wrenches(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: Wrenches | None = None,
    *,
    joints: Sequence[str] | None = None,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the wrench W_i (..., nb, 6), moment first, that each joint transmits to its body.

    This is the reading of a force-torque sensor in the joint, actuator and bearing together, at the
    origin of body i, in N m and N.

    With names of ``joints`` it is (..., k, 6), that of each of them in turn. These may also be
    fixed joints, where most sensors are: :attr:`Model.fixed_joints`. A fixed joint moves a body
    with k = 0 degrees of freedom, which consists of the links beyond it: see
    ``mbs_dynamics.model.separation.separated``. Its wrench acts at the origin of its child
    link, in the frame of that link. ``wrenches`` by link name act on the body to which the link
    belongs. An array of ``wrenches`` has one more row for each of the named fixed joints, in their
    order, after those of the moving bodies; it is in the frame of the child link.

    The W_i of :func:`inverse_dynamics`: Mueller (dynamics), eqs. (67a), (71b), (76b).
    """
    rep = dynamic_operators(representation, model, q)
    if joints is None:
        return model.by_body(recursion(model, rep, qd, qdd, Loads(wrenches))[2])
    moved = model.moved_by(joints)
    if len(set(joints)) < len(joints):
        raise ArgumentError(f"joints must be different; got {list(joints)}")
    applied: Any = None
    if wrenches is not None:
        applied = model.per_body()
        links = wrench_links(model.model, joints)
        for link, wrench in zip(links, np.asarray(wrenches), strict=True):
            frame = model.frames[link]
            applied[frame.body] = rep.at(frame).T @ wrench
    W = recursion(model, rep, qd, qdd, Loads(applied))[2]
    fixed = model.model.fixed_joints
    results = [
        rep.wrench_at(model.frames[fixed[name].child.name], W[i]) if name in fixed else W[i]
        for name, i in zip(joints, moved, strict=True)
    ]
    return np.array(results).reshape(-1, 6)


@algorithm(invariant=False)
def joint_reactions(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: Wrenches | None = None,
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the constraint wrench (..., nb, 6) in the bearing of each joint, moment first.

    It equals :func:`joint_wrenches` minus the actuator wrench: a couple tau e for each rotation of
    the joint about an axis e, a force for each translation. It is reciprocal to the joint screws,
    S_i^T W = 0. Moments are in N m, forces in N.

    The constraint wrench that Mueller (dynamics) omits from (67a).
    """
    rep = dynamic_operators(representation, model, q)
    W, reactions = recursion(model, rep, qd, qdd, Loads(wrenches))[2], model.per_body()
    for i, _ in model.outward():
        actuator = model.bodies[i].joint.group.actuators
        if rep.name != "body_fixed":
            actuator = to_body_fixed(rep.C(i), rep.name).T @ actuator
        reactions[i] = W[i] - actuator @ (rep.screw(i).T @ W[i])
    return model.by_body(reactions)
