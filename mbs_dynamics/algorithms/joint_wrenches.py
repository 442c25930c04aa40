# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrenches that joints transmit, and their constraint part, borne by the bearings."""

from __future__ import annotations

from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.newton_euler import Loads, Wrenches, recursion
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.representation import dynamic_moves, to_body_fixed
from mbs_dynamics.representation.tree import Tree

__all__ = ["joint_reactions", "joint_wrenches"]


@algorithm(invariant=False, generic=True)
def joint_wrenches(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: Wrenches | None = None,
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the wrench W_i (..., nb, 6), moment first, that each joint transmits to its body.

    This is the reading of a force-torque sensor in the joint, actuator and bearing together, at the
    origin of body i, in N m and N.

    The W_i of :func:`inverse_dynamics`: Mueller (dynamics), eqs. (67a), (71b), (76b).
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
    rep = dynamic_moves(representation, model, q)
    W, reactions = recursion(model, rep, qd, qdd, Loads(wrenches))[2], model.per_body()
    for i, _ in model.outward():
        actuator = model.bodies[i].joint.actuators
        if rep.name != "body_fixed":
            actuator = to_body_fixed(rep.C(i), rep.name).T @ actuator
        reactions[i] = W[i] - actuator @ (rep.screw(i).T @ W[i])
    borne: FloatArray = model.by_body(reactions)
    return borne
