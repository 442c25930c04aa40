# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of algorithms: meanings, shapes, and wrenches that are given by link names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.kernels import MODEL_INPUTS
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.representation import AUTO, convert_wrench

MEANINGS: dict[str, tuple[str, str]] = {
    "q": ("..., nq", "positions of the joints, rad or m"),
    "qd": ("..., n", "velocities of the joints, rad/s or m/s"),
    "qdd": ("..., n", "accelerations of the joints, rad/s^2 or m/s^2"),
    "qddd": ("..., n", "jerks of the joints, rad/s^3 or m/s^3"),
    "qdddd": ("..., n", "fourth derivatives of the positions of the joints, rad/s^4 or m/s^4"),
    "tau": ("..., n", "torques or forces of the joints, N m or N"),
    "u": ("..., n", "increments of the positions of the joints, rad or m"),
    "v": ("..., n", "displacements of the joints, velocities times a time, rad or m"),
    "q2": ("..., nq", "other positions of the joints, rad or m"),
    "motion": (
        "..., order + 2, n",
        "positions of the joints and their time derivatives, one row each",
    ),
    "wrenches": (
        "..., nb, 6",
        "applied wrenches on the bodies, one row (moment N m, force N) each",
    ),
    "damping": ("...", "damping of the task, kg^-1/2"),
    "point": ("..., 3", "a point in the frame of the body, m"),
    "target": ("..., 4, 4", "pose that the body is to reach"),
    "base_twist": ("..., 6", "body-fixed twist of the base (angular rad/s, linear m/s)"),
    "base_acceleration": ("..., 6", "rate of the components of base_twist, rad/s^2 and m/s^2"),
    "screws": ("..., m, 6", "one screw for each of the named joints, angular part first"),
    "gravity": ("..., 3", "acceleration of free fall in the inertial frame, m/s^2"),
    "payload": (
        "..., k, 10",
        "one row per payload: mass kg, m c (x, y, z) kg m, "
        "inertia about the body's origin (xx, xy, xz, yy, yz, zz) kg m^2",
    ),
    "armature": ("..., n", "rotor inertia as seen by each joint, kg m^2 or kg"),
    "payload_beyond": (
        "..., k, 10",
        "the same ten numbers, one row per fixed joint on a body with payloads: of those beyond it",
    ),
    "placements": ("..., k, 3, 4", "upper three rows of the poses of the placed links, m"),
}
"""Shapes, meanings and units of arrays; the last ones are those of the model."""

ARRAYS = tuple(name for name in MEANINGS if name not in MODEL_INPUTS)
"""Names of the arguments of equations that are arrays; every other argument is an option."""

BODY_LEVEL = frozenset({"wrenches"})
"""Arrays whose meaning depends on the representation."""

NAMES = '``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``'

OPTIONS = {
    "body": "name of a body, merged link or added frame",
    "bodies": "names of bodies, links or frames; None means ``model.body_names``",
    "joints": "names of joints, or indices of velocities",
}

ERRORS = {
    "body": "UnknownBodyError",
    "bodies": "UnknownBodyError",
    "wrenches": "UnknownBodyError",
    "joints": "UnknownJointError",
    "method": "UnknownMethodError",
    "representation": "UnknownRepresentationError",
}


def described(
    text: str | None, arrays: Sequence[str], options: Mapping[str, Any], *, invariant: bool
) -> str:
    """Return the docstring of an algorithm with the descriptions of its arguments and errors."""
    known = {x: MEANINGS[x] for x in arrays if x in MEANINGS}
    lines = [f"- ``{x}`` ({shape}): {meaning}" for x, (shape, meaning) in known.items()]
    if "wrenches" in arrays:
        frames = "in the chosen representation, body-fixed for ``auto``"
        frames = frames if "representation" in options else "body-fixed: they turn with the bodies"
        by_link = "or a mapping from link names to wrenches (..., 6) in the frames of the links"
        k = list(arrays).index("wrenches")
        lines[k] += f"; {frames}; {by_link}"
    lines += [f"- ``{name}``: {OPTIONS[name]}" for name in options if name in OPTIONS]
    if "representation" in options:
        auto = "the one with the fewest operations" if invariant else "body-fixed"
        lines.append(f'- ``representation``: {NAMES}; ``"auto"`` means {auto}')
    errors = dict.fromkeys(ERRORS[name] for name in (*arrays, *options) if name in ERRORS)
    listed = ", ".join(["Raises ArgumentError for a wrong shape or type", *errors])
    return "\n\n".join([inspect.cleandoc(text or ""), "\n".join(lines), f"{listed}."])


def shape_of(name: str, model: Model, options: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an array argument, without batch axes."""
    sizes = {"n": model.n, "nq": model.nq, "nb": model.nb}
    if name == "wrenches":
        sizes["nb"] += len(fixed_among(model, options))
    if name == "motion":  # q and its time derivatives, as many as the equations with order need
        rows = [joint.name for joint in model.joints if joint.nq == joint.nv]
        instead = "twists, accelerations and jerks, which take arrays of any size"
        check_single(model.joints, "motion of twist_derivatives", *rows, instead=instead)
        sizes["order + 2"] = options["order"] + 2
    if name == "screws":  # one for each of the named joints
        joints = options["joints"]
        sizes["m"] = len(joints) if isinstance(joints, Sequence) else 0
    _, *axes = MEANINGS[name][0].split(", ")
    return tuple(sizes[axis] if axis in sizes else int(axis) for axis in axes)


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
    W = body_wrenches(model, by_link)  # raises for what are no wrenches
    for link, wrench in by_link.items():
        carrying = [k for k, joint in enumerate(joints) if link in joint.links]
        row = min(carrying, key=lambda k: len(joints[k].links), default=-1)
        by_row[row + 1][link] = wrench
    if joints:
        beyond = [
            body_wrenches(model, some)[..., joint.child.body, :] @ se3.Ad(joint.child.placement)
            for joint, some in zip(joints, by_row[1:], strict=True)
        ]
        rows = [*np.moveaxis(body_wrenches(model, by_row[0]), -2, 0), *beyond]
        W = np.stack(np.broadcast_arrays(*rows), axis=-2)
    representation = options.get("representation", AUTO)
    if representation in (AUTO, "body_fixed"):
        return W
    from mbs_dynamics.algorithms.kinematics import forward_kinematics

    links = [*model.body_names, *(joint.child.name for joint in joints)]
    C = forward_kinematics(model, q, bodies=links)
    return np.asarray(convert_wrench(W, C, source="body_fixed", target=representation))
