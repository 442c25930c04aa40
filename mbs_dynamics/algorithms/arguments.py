# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the arguments of algorithms, for docstrings and exported headers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

MEANINGS: dict[str, tuple[str, str]] = {
    "q": ("..., nq", "positions of the joints, rad or m"),
    "q2": ("..., nq", "other positions of the joints, rad or m"),
    "v": ("..., n", "displacements of the joints, velocities times a time, rad or m"),
    "qd": ("..., n", "velocities of the joints, rad/s or m/s"),
    "qdd": ("..., n", "accelerations of the joints, rad/s^2 or m/s^2"),
    "qddd": ("..., n", "jerks of the joints, rad/s^3 or m/s^3"),
    "qdddd": ("..., n", "fourth derivatives of the positions of the joints, rad/s^4 or m/s^4"),
    "tau": ("..., n", "torques or forces of the joints, N m or N"),
    "motion": (
        "..., order + 2, n",
        "positions of the joints and their time derivatives, one row each",
    ),
    "wrenches": (
        "..., nb, 6",
        "applied wrenches on the bodies, one row (moment N m, force N) each",
    ),
    "base_twist": ("..., 6", "body-fixed twist of the base (angular rad/s, linear m/s)"),
    "base_acceleration": ("..., 6", "rate of the components of base_twist, rad/s^2 and m/s^2"),
    "damping": ("...", "damping of the task, kg^-1/2"),
    "point": ("..., 3", "a point in the frame of the body, m"),
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
"""Shapes, meanings and units of arrays."""

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
