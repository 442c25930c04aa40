# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays that algorithms take: their shapes, and wrenches that are given by link names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import AUTO, convert_wrench

ARRAYS = (
    "q",
    "qd",
    "qdd",
    "qddd",
    "qdddd",
    "tau",
    "u",
    "v",
    "q2",
    "motion",
    "wrenches",
    "damping",
    "point",
    "target",
    "V",
    "Vd",
    "base_twist",
    "base_acceleration",
    "screws",
)
"""Names of the arguments of equations that are arrays; every other argument is an option."""

BODY_LEVEL = frozenset({"wrenches"})
"""Arrays whose meaning depends on the representation."""


FIXED_SHAPES: dict[str, tuple[int, ...]] = {
    "base_twist": (6,),
    "base_acceleration": (6,),
    "damping": (),
    "point": (3,),
    "target": (4, 4),
}
"""Shapes that are the same for all models."""


def shape_of(name: str, model: Model, options: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an array argument."""
    if name in FIXED_SHAPES:
        return FIXED_SHAPES[name]
    if name == "wrenches":
        return (model.nb + len(fixed_among(model, options)), 6)
    if name in ("V", "Vd"):
        return (model.nb, 6)
    if name in ("q", "q2"):
        return (model.nq,)
    if name == "motion":  # q and its time derivatives, as many as the equations with order need
        rows = [joint.name for joint in model.joints if joint.nq == joint.nv]
        instead = "twists, accelerations and jerks, which take arrays of any size"
        model.check_single("motion of twist_derivatives", *rows, instead=instead)
        return (options["order"] + 2, model.n)
    if name == "screws":  # one for each of the named joints
        joints = options["joints"]
        return (len(joints) if isinstance(joints, Sequence) else 0, 6)
    return (model.n,)


def fixed_among(model: Model, options: Mapping[str, Any]) -> list[str]:
    """Return the fixed joints that the option ``joints`` names, in its order."""
    joints = options.get("joints")
    if not isinstance(joints, Sequence):
        return []
    return [x for x in joints if isinstance(x, str) and x in model.fixed_joints]


def wrenches_on(
    model: Model, by_link: Mapping[str, Any], q: Any, options: Mapping[str, Any]
) -> FloatArray:
    """Return wrenches (..., nb + m, 6) by link in the representation of the options.

    Those beyond the m fixed joints that the options name are in the last rows, each in the frame of
    the link beyond the joint; a wrench on a link counts for the joint that is nearest to it. The
    others are in the rows of the bodies.
    """
    joints = [model.fixed_joints[name] for name in fixed_among(model, options)]
    by_row: list[dict[str, Any]] = [{} for _ in (None, *joints)]
    W = model.wrenches(by_link)  # raises for what are no wrenches
    for link, wrench in by_link.items():
        carrying = [k for k, joint in enumerate(joints) if link in joint.links]
        row = min(carrying, key=lambda k: len(joints[k].links), default=-1)
        by_row[row + 1][link] = wrench
    if joints:
        beyond = [
            model.wrenches(some)[..., joint.child.body, :] @ se3.Ad(joint.child.placement)
            for joint, some in zip(joints, by_row[1:], strict=True)
        ]
        rows = [*np.moveaxis(model.wrenches(by_row[0]), -2, 0), *beyond]
        W = np.stack(np.broadcast_arrays(*rows), axis=-2)
    representation = options.get("representation", AUTO)
    if representation in (AUTO, "body_fixed"):
        return W
    from mbs_dynamics.algorithms.kinematics import forward_kinematics

    links = [*model.body_names, *(joint.child.name for joint in joints)]
    C = forward_kinematics(model, q, bodies=links)
    return np.asarray(convert_wrench(W, C, source="body_fixed", target=representation))
