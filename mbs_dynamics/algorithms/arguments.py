# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of algorithms: meanings, shapes, and texts about them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms.kernels import MODEL_INPUTS
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.model import Model

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
    "placements": ("..., k, 3, 4", "upper three rows of the poses of the placed links, m"),
}
"""Shapes, meanings and units of arrays; the last ones are those of the model."""

ARRAYS = tuple(name for name in MEANINGS if name not in MODEL_INPUTS)
"""Names of arrays whose shapes need not be declared, in the order of the inputs of kernels."""

SIZES = ("n", "nq", "nb")
"""Names for sizes of a model in the declared shapes of arrays."""

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


def declared_arrays(equations: Callable[..., Any]) -> dict[str, str]:
    """Return the axes of the array arguments of equations, written as in :data:`MEANINGS`.

    Arrays are annotated as such: ``q: ArrayLike`` where the name is one of :data:`ARRAYS`, which
    says the shape, and ``force: Annotated[ArrayLike, (3,)]`` for any other name, with integers and
    :data:`SIZES`. Every other argument is an option. The first argument is the model.

    Raises ArgumentError for an argument without an annotation, or without a valid shape.
    """
    name = equations.__name__
    try:
        annotations = inspect.get_annotations(equations, eval_str=True)
    except NameError as error:
        raise ArgumentError(f"{name}: an annotation cannot be evaluated: {error}") from error
    _, *arguments = inspect.signature(equations).parameters
    arrays = {}
    for argument in arguments:
        array = "ArrayLike" if argument in ARRAYS else "Annotated[ArrayLike, (3,)]"
        instead = f"write {argument}: {array} for an array"
        if argument not in annotations:
            raise ArgumentError(
                f"{name}: {argument} has no annotation; {instead}, or {argument}: str for an option"
            )
        alternatives = [annotations[argument], *get_args(annotations[argument])]
        origins = [get_origin(x) for x in alternatives]
        if Annotated in origins:
            shape = alternatives[origins.index(Annotated)].__metadata__[0]
            if not isinstance(shape, tuple) or not all(
                x in SIZES if isinstance(x, str) else isinstance(x, int) for x in shape
            ):
                raise ArgumentError(
                    f"{name}: the shape of {argument} must be a tuple of integers and names of "
                    f"sizes ({', '.join(SIZES)}), got {shape!r}"
                )
            arrays[argument] = ", ".join(["...", *map(str, shape)])
        elif _has_array_like(alternatives) or np.ndarray in origins:
            if argument not in ARRAYS:
                raise ArgumentError(f"{name}: {argument} has no shape; {instead}")
            arrays[argument] = MEANINGS[argument][0]
    return arrays


def _has_array_like(alternatives: Sequence[Any]) -> bool:
    """Return whether ArrayLike is among the alternatives of an annotation.

    It is an alias that stays one from NumPy 2.5 on, and a union, which is merged, before.
    """
    members = get_args(ArrayLike)
    return ArrayLike in alternatives or (bool(members) and set(members) <= {*alternatives})


def described(text: str | None, arrays: Mapping[str, str], options: Mapping[str, Any]) -> str:
    """Return the docstring of an algorithm with the descriptions of its arguments and errors."""
    lines = [
        f"- ``{x}`` ({axes}): {MEANINGS[x][1] if x in MEANINGS else 'an array'}"
        for x, axes in arrays.items()
    ]
    if "wrenches" in arrays:
        frames = "in the chosen representation, body-fixed for ``auto``"
        frames = frames if "representation" in options else "body-fixed: they turn with the bodies"
        by_link = "or a mapping from link names to wrenches (..., 6) in the frames of the links"
        k = list(arrays).index("wrenches")
        lines[k] += f"; {frames}; {by_link}"
    lines += [f"- ``{name}``: {OPTIONS[name]}" for name in options if name in OPTIONS]
    if "representation" in options:
        names = '``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``'
        lines.append(f'- ``representation``: {names}; ``"auto"`` means body-fixed')
    errors = dict.fromkeys(ERRORS[name] for name in (*arrays, *options) if name in ERRORS)
    listed = ", ".join(["Raises ArgumentError for a wrong shape or type", *errors])
    return "\n\n".join([inspect.cleandoc(text or ""), "\n".join(lines), f"{listed}."])


def shape_of(name: str, axes: str, model: Model, options: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an array argument with these axes, without batch axes."""
    sizes = {"n": model.n, "nq": model.nq, "nb": model.nb}
    if name == "motion":  # q and its time derivatives, as many as the equations with order need
        rows = [joint.name for joint in model.joints if joint.nq == joint.nv]
        instead = "twists, accelerations and jerks, which take arrays of any size"
        check_single(model.joints, "motion of twist_derivatives", *rows, instead=instead)
        sizes["order + 2"] = options["order"] + 2
    if name == "screws":  # one for each of the named joints
        joints = options["joints"]
        sizes["m"] = len(joints) if isinstance(joints, Sequence) else 0
    _, *names = axes.split(", ")
    return tuple(sizes[axis] if axis in sizes else int(axis) for axis in names)
