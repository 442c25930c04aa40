# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""States in MuJoCo's coordinates, and in those of this package."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie import so3
from mbs_dynamics.model.mjcf import XYZW

WXYZ = (3, 0, 1, 2)
"""The other way around."""


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
    model: Any,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
) -> MujocoState:
    """Return positions, velocities, accelerations and torques in MuJoCo's coordinates.

    Quaternions are w, x, y, z there, and the linear parts of free joints are resolved in the world:
    v = R v_b, vdot = R (vdot_b + omega x v_b), f = R f_b. All else is the same. Arrays (..., nq)
    and (..., n), of which those that are None are left out; accelerations need velocities.

    Raises ArgumentError for a wrong shape or type, ModelError for a joint that MuJoCo has not.
    """
    return MujocoState(*_converted(model, {"q": q, "qd": qd, "qdd": qdd, "tau": tau}, to=True))


def from_mujoco(
    model: Any,
    qpos: ArrayLike,
    qvel: ArrayLike | None = None,
    qacc: ArrayLike | None = None,
    qfrc: ArrayLike | None = None,
) -> JointState:
    """Return positions, velocities, accelerations and torques from MuJoCo's; see :func:`to_mujoco`.

    With T (n, n), the velocities ``from_mujoco(model, qpos, np.eye(n)).qd.T``, MuJoCo's mass matrix
    is T^T M T, and its Jacobians are J T.
    """
    arrays = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "qfrc": qfrc}
    return JointState(*_converted(model, arrays, to=False))


def _converted(model: Any, arrays: dict[str, Any], *, to: bool) -> list[Any]:
    """Return positions, velocities, accelerations and forces converted to MuJoCo, or from it."""
    sizes = (model.nq, model.n, model.n, model.n)
    given = {
        name: checks.numbers(name, x, (size,), batch=True)
        for (name, x), size in zip(arrays.items(), sizes, strict=True)
        if x is not None
    }
    names = list(arrays)
    if names[2] in given and names[1] not in given:
        raise ArgumentError(f"{names[2]} needs {names[1]} as well; got None")
    batch = checks.batch_of(**{name: x.shape[:-1] for name, x in given.items()})
    old = {name: np.broadcast_to(x, (*batch, x.shape[-1])) for name, x in given.items()}
    new = [old[name].copy() if name in old else None for name in names]
    for joint in model.joints:
        if joint.nv == 1:
            continue
        if joint.kind not in ("spherical", "free"):
            raise ModelError(
                f"joint {joint.name!r} is {joint.kind}; MuJoCo has revolute, prismatic, spherical "
                "and free joints"
            )
        end, k = model.positions(joint).stop, joint.coordinate
        turn = old[names[0]][..., end - 4 : end]
        new[0][..., end - 4 : end] = turn[..., WXYZ if to else XYZW]  # type: ignore[index]
        if joint.kind == "spherical":
            continue
        R = so3.from_quaternion(turn if to else turn[..., XYZW])
        R = (R if to else R.swapaxes(-1, -2)).astype(float)
        first, last = slice(k, k + 3), slice(k + 3, k + 6)
        angular, linear = (first, last) if to else (last, first)  # in the result in exchanged order
        for name, x in zip(names[1:], new[1:], strict=True):
            if x is not None:
                x[..., linear] = old[name][..., angular]
                x[..., angular] = _turned(R, old[name][..., linear])
        if new[2] is not None:
            v, omega = old[names[1]][..., linear], old[names[1]][..., angular]
            turning = _turned(R, np.cross(omega, v)) if to else -np.cross(omega, _turned(R, v))
            new[2][..., angular] += turning
    return new


def _turned(R: FloatArray, x: FloatArray) -> FloatArray:
    return np.asarray((R @ x[..., None])[..., 0])
