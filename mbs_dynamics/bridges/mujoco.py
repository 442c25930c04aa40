# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""States in MuJoCo's coordinates; :mod:`mbs_dynamics.model.mjcf` lists the differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie import so3
from mbs_dynamics.model.mjcf import XYZW
from mbs_dynamics.model.model import Model

WXYZ = (3, 0, 1, 2)
"""Entries of a quaternion of this package in the order of MuJoCo."""


class MujocoState(NamedTuple):
    """A state in MuJoCo's coordinates: qpos (..., nq) and (..., nv), None for what is not given."""

    qpos: FloatArray
    qvel: FloatArray | None
    qacc: FloatArray | None
    qfrc: FloatArray | None


class JointState(NamedTuple):
    """The same here: positions (..., nq), then rates, accelerations and torques (..., n)."""

    q: FloatArray
    qd: FloatArray | None
    qdd: FloatArray | None
    tau: FloatArray | None


def to_mujoco(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> MujocoState:
    """Return positions, velocities, accelerations and torques in MuJoCo's coordinates.

    Quaternions are w, x, y, z there, and the linear parts of free joints are resolved in the world:
    v = R v_b, vdot = R (vdot_b + omega x v_b), f = R f_b. All else is the same. Arrays are
    (..., nq) and (..., n); accelerations need velocities, and None stays None.

    Raises ArgumentError for a wrong shape or type, ModelError for a joint that MuJoCo has not.
    """
    positions, *rates = _arrays(model, q=q, qd=qd, qdd=qdd, tau=tau)
    for at, k, free in _orientations(model):
        R = so3.from_quaternion(positions[..., at]).astype(float)
        positions[..., at] = positions[..., at][..., WXYZ]
        angular, linear = slice(k, k + 3), slice(k + 3, k + 6)
        if free and rates[1] is not None:
            rates[1][..., linear] += np.cross(rates[0][..., angular], rates[0][..., linear])
        for x in rates:
            if free and x is not None:
                resolved = (R @ x[..., linear, None])[..., 0]
                x[..., k : k + 6] = np.concatenate([resolved, x[..., angular]], axis=-1)
    return MujocoState(positions, *rates)


def from_mujoco(
    model: Model,
    qpos: ArrayLike,
    qvel: ArrayLike | None = None,
    qacc: ArrayLike | None = None,
    qfrc: ArrayLike | None = None,
) -> JointState:
    """Return positions, velocities, accelerations and torques from MuJoCo's; see :func:`to_mujoco`.

    With T (n, n), the velocities ``from_mujoco(model, qpos, np.eye(n)).qd.T``, MuJoCo's mass matrix
    is T^T M T, and its Jacobians are J T.
    """
    positions, *rates = _arrays(model, qpos=qpos, qvel=qvel, qacc=qacc, qfrc=qfrc)
    for at, k, free in _orientations(model):
        positions[..., at] = positions[..., at][..., XYZW]
        R = so3.from_quaternion(positions[..., at]).astype(float)
        angular, linear = slice(k, k + 3), slice(k + 3, k + 6)
        for x in rates:
            if free and x is not None:  # MuJoCo's linear part comes first
                resolved = (x[..., None, angular] @ R)[..., 0, :]
                x[..., k : k + 6] = np.concatenate([x[..., linear], resolved], axis=-1)
        if free and rates[1] is not None:
            rates[1][..., linear] -= np.cross(rates[0][..., angular], rates[0][..., linear])
    return JointState(positions, *rates)


def _arrays(model: Model, **arrays: Any) -> list[Any]:
    """Return copies of positions and rates of one batch shape; None for what is not given."""
    names = list(arrays)
    if arrays[names[2]] is not None and arrays[names[1]] is None:
        raise ArgumentError(f"{names[2]} needs {names[1]} as well; got None")
    sizes = dict.fromkeys(names, model.n) | {names[0]: model.nq}
    given = {
        name: checks.numbers(name, x, (sizes[name],), batch=True)
        for name, x in arrays.items()
        if x is not None
    }
    batch = checks.batch_of(**{name: x.shape[:-1] for name, x in given.items()})
    full = {name: np.broadcast_to(x, (*batch, x.shape[-1])).copy() for name, x in given.items()}
    return [full.get(name) for name in names]


def _orientations(model: Model) -> Iterator[tuple[slice, int, bool]]:
    """Yield the entries of each quaternion, the first velocity, and whether the joint is free."""
    for joint in model.joints:
        if joint.nv == 1:
            continue
        if joint.kind not in ("spherical", "free"):
            raise ModelError(
                f"joint {joint.name!r} is {joint.kind}; MuJoCo has revolute, prismatic, spherical "
                "and free joints"
            )
        end = model.positions(joint).stop
        yield slice(end - 4, end), joint.coordinate, joint.kind == "free"
