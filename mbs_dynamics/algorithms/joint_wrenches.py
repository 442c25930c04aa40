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
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.fixed_joints import FixedJoint
from mbs_dynamics.representation import dynamic_operators, to_body_fixed
from mbs_dynamics.representation.tree import Tree

__all__ = ["joint_reactions", "joint_wrenches"]


@algorithm(invariant=False)
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
    fixed joints, where most sensors are: :attr:`Model.fixed_joints`. Such a joint transmits its
    wrench to the link beyond it, and all that hangs on that, at the origin of the link, in its
    frame. ``wrenches`` by link name then count where the links are; an array has a further row for
    each of the named fixed joints, in their order: for what is fixed beyond it on the same body, up
    to the next of them, in the frame of the link.

    The W_i of :func:`inverse_dynamics`: Mueller (dynamics), eqs. (67a), (71b), (76b).
    """
    rep = dynamic_operators(representation, model, q)
    if joints is None:
        return model.by_body(recursion(model, rep, qd, qdd, Loads(wrenches))[2])
    if isinstance(joints, str) or not isinstance(joints, Sequence):
        raise ArgumentError(f"joints must be a sequence of names; got {joints!r}")
    if len(set(joints)) < len(joints):
        raise ArgumentError(f"joints must be different; got {list(joints)}")
    named = {name: model.fixed_joint(name) for name in joints}
    fixed = [joint for joint in named.values() if joint is not None]
    beyond = [np.zeros(6)] * len(fixed)
    on_bodies = None
    if wrenches is not None:
        on_bodies = list(np.asarray(wrenches)[: model.nb])
        for k, joint in enumerate(fixed):
            beyond[k] = rep.at(joint.child).T @ np.asarray(wrenches)[model.nb + k]
            if joint.child.body != GROUND:
                on_bodies[joint.child.body] = on_bodies[joint.child.body] + beyond[k]
    V, A, W = recursion(model, rep, qd, qdd, Loads(on_bodies))
    results = []
    for name, one in named.items():
        if one is None:
            results.append(W[model.moved_by([name])[0]])
            continue
        total = _of_links(model, q, representation, one, V, A)
        for i in one.bodies:
            total = total + rep.transform(i).T @ W[i]
        for other, wrench in zip(fixed, beyond, strict=True):
            if other.child.name in one.links:
                total = total - wrench
        results.append(rep.wrench_at(one.child, total))
    return np.array(results).reshape(-1, 6)


def _of_links(model: Tree, q: Any, representation: str, joint: FixedJoint, V: Any, A: Any) -> Array:
    """Return the wrench (6,) that the links beyond a fixed joint need, at the body they are on."""
    on = joint.child.body
    if on == GROUND:  # at rest, where all representations agree
        return joint.inertia @ A[GROUND]
    rep = dynamic_operators(representation, model.with_inertia(on, joint.inertia), q)
    return rep.wrench(on, V[on], A[on])


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
    S_i^T W = 0. Moments are in N m, forces in N. Arguments and errors are those of
    :func:`joint_wrenches`.

    The constraint wrench that Mueller (dynamics) omits from (67a).
    """
    rep = dynamic_operators(representation, model, q)
    W, reactions = recursion(model, rep, qd, qdd, Loads(wrenches))[2], model.per_body()
    for i, _ in model.outward():
        actuator = model.bodies[i].joint.actuators
        if rep.name != "body_fixed":
            actuator = to_body_fixed(rep.C(i), rep.name).T @ actuator
        reactions[i] = W[i] - actuator @ (rep.screw(i).T @ W[i])
    return model.by_body(reactions)
