# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Limits, armature, damping and friction of joints in terms of the coordinates that drive them.

A joint is at ``ratio * q + offset`` and moves at ``ratio * qd``. The limits of a mimic joint
therefore bound the coordinate that drives it, and its rotor and friction act on that coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.values import frozen

AT_LIMIT, NEAR = 0.02, 0.01
"""Distance in rad or m, and share of the range, within which a joint is at a limit."""

QUATERNION_TOLERANCE = 1e-3
"""Largest difference of the length of a quaternion from one."""


def properties_of(joints: Sequence[Joint], n: int) -> dict[str, FloatArray]:
    """Return limits, armature, damping and friction (n,) of coordinates, as fields of ``Model``.

    They are those of all joints that a coordinate drives; infinite limits mean none. A velocity or
    effort of zero or less counts as not stated, as exporters write it for unknown values;
    diagnostics name such joints. ``lower`` is above ``upper`` if the joints of a coordinate have no
    common position. Mimic joints have no motor, and thus no effort limit.

    At the rate v = ratio qd the rotor of a joint has the energy 1/2 a v^2, and the joint dissipates
    the power d v^2 + F |v|.
    """
    lower, upper, velocity, effort = (np.full(n, sign * math.inf) for sign in (-1, 1, 1, 1))
    armature, damping, friction = np.zeros(n), np.zeros(n), np.zeros(n)
    for joint in joints:
        armature[joint.velocities] += joint.ratio**2 * joint.armature
        damping[joint.velocities] += joint.ratio**2 * joint.damping
        friction[joint.velocities] += abs(joint.ratio) * joint.friction
        k, stated = joint.coordinate, joint.limits
        if joint.nv != 1:
            continue
        if joint.mimics is None and stated.effort is not None and stated.effort > 0.0:
            effort[k] = stated.effort
        if joint.ratio == 0.0:  # it does not move
            continue
        ends = [(end - joint.offset) / joint.ratio for end in stated.range]
        if joint.ratio < 0.0:
            ends.reverse()
        lower[k], upper[k] = max(lower[k], ends[0]), min(upper[k], ends[1])
        if stated.velocity is not None and stated.velocity > 0.0:
            velocity[k] = min(velocity[k], stated.velocity / abs(joint.ratio))
    properties: dict[str, FloatArray] = {
        "lower": lower,
        "upper": upper,
        "velocity_limits": velocity,
        "effort_limits": effort,
        "armature": armature,
        "damping": damping,
        "friction": friction,
    }
    frozen(properties)
    return properties


def bounded(lower: FloatArray, upper: FloatArray) -> Array:
    """Return (n,) bool: whether a coordinate has two finite limits with room between them."""
    return np.isfinite(lower) & np.isfinite(upper) & (lower < upper)


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return positions (n,) in the middle of two finite limits, else as near zero as allowed."""
    q = np.clip(np.zeros(len(lower)), lower, upper)
    both = np.isfinite(lower) & np.isfinite(upper)
    q[both] = 0.5 * (lower[both] + upper[both])
    return q


def at_limits(q: FloatArray, lower: FloatArray, upper: FloatArray) -> Array:
    """Return which joints (..., k) are at a position limit, where a stop may carry a load."""
    margin = np.minimum(AT_LIMIT, NEAR * (upper - lower))
    return np.asarray((np.abs(q - lower) <= margin) | (np.abs(q - upper) <= margin))


def contradictions(lower: FloatArray, upper: FloatArray) -> dict[int, str]:
    """Return a message for each coordinate whose limits exclude every position, by its index."""
    return {
        int(k): "limits, with those of joints that mimic it, leave it no position: at least "
        f"{lower[k]:g} and at most {upper[k]:g}"
        for k in np.flatnonzero(lower > upper)
    }


def is_continuous(joints: Sequence[Joint], lower: FloatArray, upper: FloatArray) -> list[bool]:
    """Return whether each joint has an unlimited angle, which a sensor may wrap to one turn."""
    free = ~(np.isfinite(lower) | np.isfinite(upper))
    return [joint.is_periodic and bool(free[joint.coordinate]) for joint in joints]


def velocity_names(joints: Sequence[Joint]) -> tuple[str, ...]:
    """Return the names of n velocities: those of joints, with an index for several of a joint."""
    return _names((joint.name, joint.nv) for joint in joints)


def position_names(joints: Sequence[Joint]) -> tuple[str, ...]:
    """Return the names of nq positions: those of joints, with an index for several of a joint."""
    return _names((joint.name, joint.nq) for joint in joints)


def _names(sizes: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(x if n == 1 else f"{x}[{k}]" for x, n in sizes for k in range(n))


def position_slices(joints: Sequence[Joint]) -> list[tuple[Joint, slice]]:
    """Return each joint with its slice of q (nq,)."""
    ends = np.cumsum([joint.nq for joint in joints], dtype=int).tolist()
    return [(joint, slice(end - joint.nq, end)) for joint, end in zip(joints, ends, strict=True)]


def single_coordinates(joints: Sequence[Joint]) -> FloatArray:
    """Return (m, 2) int: indices of position and velocity of joints with one degree of freedom."""
    rows = [(at.start, x.coordinate) for x, at in position_slices(joints) if x.nv == 1]
    return np.array(rows, dtype=int).reshape(-1, 2)


def with_singles(joints: Sequence[Joint], q: FloatArray, values: FloatArray) -> FloatArray:
    """Write values (n,) of joints with one degree of freedom to q (nq,), and return q."""
    at, k = single_coordinates(joints).T
    q[at] = values[k]
    return q


def check_single(joints: Sequence[Joint], what: str, *others: str, instead: str = "") -> None:
    """Raise ModelError, naming the joint, if one has several degrees of freedom.

    ``what`` begins the message, and ``instead`` names an alternative for such models. Joints called
    ``others`` may have several.
    """
    for joint in joints:
        if joint.nv > 1 and joint.name not in others:
            raise ModelError(
                f"{what}: joint {joint.name!r} is {joint.kind} and has {joint.nv} degrees of "
                "freedom; every joint must have one" + (f": use {instead}" if instead else "")
            )


def check_arm(joints: Sequence[Joint], what: str) -> None:
    """Raise ModelError unless there is a joint, and each has one degree of freedom.

    ``what`` begins the message.
    """
    if not joints:
        raise ModelError(f"{what}: the robot has no joint that moves")
    check_single(joints, what, instead="a model with a fixed base")


def checked_positions(joints: Sequence[Joint], name: str, q: ArrayLike) -> FloatArray:
    """Return positions (..., nq) as finite floats, with quaternions of unit length.

    Raises ArgumentError for a wrong shape or type, and for a quaternion whose length differs from
    one by more than 1e-3.
    """
    positions = checks.numbers(name, q, (sum(joint.nq for joint in joints),), batch=True)
    for joint, at in position_slices(joints):
        if joint.group.has_quaternion:
            end = at.stop
            turn = positions[..., end - 4 : end]
            length = np.linalg.norm(turn, axis=-1, keepdims=True)
            wrong = np.abs(length - 1.0) > QUATERNION_TOLERANCE
            if wrong.any():
                given = turn[wrong[..., 0]][0].tolist()
                raise ArgumentError(
                    f"{name}: entries {end - 4} to {end - 1} must be the unit quaternion x, y, "
                    f"z, w of joint {joint.name!r}; got {given}"
                )
            turn /= length
    return positions
