# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The wrenches that joints transmit, and the part of them that the bearings bear."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.newton_euler import Loads, recursion
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.representation import dynamic_moves, to_body_fixed
from mbs_dynamics.representation.tree import Tree


@algorithm(invariant=False, generic=True)
def joint_wrenches(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: ArrayLike | None = None,
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the wrench W_i (..., nb, 6), moment first, that each joint transmits to its body.

    It is what a force-torque sensor in the joint reads, actuator and bearing together, at the
    origin of body i: the W_i of :func:`inverse_dynamics`, Mueller (dynamics), eqs. (67a), (71b),
    (76b). ``wrenches`` (..., nb, 6) act on the bodies from outside, in the same representation;
    auto means body_fixed.

    q, qd, qdd (..., n); moments in N m, forces in N. Raises ArgumentError for a wrong shape or
    type, UnknownRepresentationError.
    """
    rep = dynamic_moves(representation, model, q)
    transmitted: FloatArray = model.by_body(recursion(model, rep, qd, qdd, Loads(wrenches))[2])
    return transmitted


@algorithm(invariant=False, generic=True)
def joint_reactions(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: ArrayLike | None = None,
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the reaction wrench (..., nb, 6) that the bearing of each joint bears, moment first.

    It is :func:`joint_wrenches` without what the actuator exerts: a couple tau e about the axis of
    a revolute or screw joint, a force tau e along a prismatic one. It is reciprocal to the joint
    screw, S_i^T W = 0, and is the constraint wrench that Mueller (dynamics) leaves out of (67a).
    auto means body_fixed.

    q, qd, qdd (..., n); moments in N m, forces in N. Raises ArgumentError for a wrong shape or
    type, UnknownRepresentationError.
    """
    rep = dynamic_moves(representation, model, q)
    W, reactions = recursion(model, rep, qd, qdd, Loads(wrenches))[2], model.per_body()
    zero = np.zeros(3)
    for i, _ in model.outward():
        joint = model.bodies[i].joint
        e, m = joint.screw[:3], joint.screw[3:]
        actuator = np.concatenate([zero, m] if joint.kind == "prismatic" else [e, zero])
        if rep.name != "body_fixed":
            actuator = to_body_fixed(rep.C(i), rep.name).T @ actuator
        reactions[i] = W[i] - actuator * (rep.screw(i) @ W[i])
    borne: FloatArray = model.by_body(reactions)
    return borne
