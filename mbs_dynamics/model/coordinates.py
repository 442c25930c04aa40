# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Limits, armature, damping and friction of joints in terms of the coordinates that drive them.

A joint is at ``ratio * q + offset`` and moves at ``ratio * qd``. The limits of a mimic joint
therefore bound the coordinate that drives it, and its rotor and friction act on that coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.joint import Joint


class CoordinateLimits(NamedTuple):
    """Limits of the n coordinates, each (n,), infinite where none is stated.

    Joints with several degrees of freedom have none.
    """

    lower: FloatArray
    """rad or m; above ``upper`` if the joints of a coordinate have no common position."""
    upper: FloatArray
    velocity: FloatArray
    """rad/s or m/s."""
    effort: FloatArray
    """N m or N, of the joints that own the coordinates: mimic joints have no motor."""


class Drivetrain(NamedTuple):
    """Armature, damping and friction of the n coordinates, each (n,)."""

    armature: FloatArray
    """Inertia of the rotors, kg m^2 or kg."""
    damping: FloatArray
    """Viscous damping, N m s/rad or N s/m."""
    friction: FloatArray
    """Coulomb friction, N m or N."""


def limits_of(joints: Sequence[Joint], n: int) -> CoordinateLimits:
    """Return the limits of n coordinates, from all joints that they drive.

    A velocity or effort of zero counts as not stated, as exporters write it for unknown values.
    """
    lower, upper, velocity, effort = (np.full(n, sign * math.inf) for sign in (-1, 1, 1, 1))
    for joint in joints:
        if joint.nv > 1:
            continue
        k, stated = joint.coordinate, joint.limits
        if joint.mimics is None and stated.effort:
            effort[k] = stated.effort
        if joint.ratio == 0.0:  # it does not move
            continue
        low = -math.inf if stated.lower is None else stated.lower
        high = math.inf if stated.upper is None else stated.upper
        ends = [(end - joint.offset) / joint.ratio for end in (low, high)]
        if joint.ratio < 0.0:
            ends.reverse()
        lower[k], upper[k] = max(lower[k], ends[0]), min(upper[k], ends[1])
        if stated.velocity:
            velocity[k] = min(velocity[k], stated.velocity / abs(joint.ratio))
    return CoordinateLimits(*map(_fixed, (lower, upper, velocity, effort)))


def bounded(lower: FloatArray, upper: FloatArray) -> Array:
    """Return (n,) bool: whether a coordinate has two finite limits with room between them."""
    return np.isfinite(lower) & np.isfinite(upper) & (lower < upper)


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
    return [joint.kind == "revolute" and bool(free[joint.coordinate]) for joint in joints]


def drivetrain_of(joints: Sequence[Joint], n: int) -> Drivetrain:
    """Return armature, damping and friction of n coordinates, from all joints that they drive.

    At the rate v = ratio qd the rotor of a joint has the energy 1/2 a v^2, and the joint dissipates
    the power d v^2 + F |v|.
    """
    armature, damping, friction = np.zeros(n), np.zeros(n), np.zeros(n)
    for joint in joints:
        armature[joint.velocities] += joint.ratio**2 * joint.armature
        damping[joint.velocities] += joint.ratio**2 * joint.damping
        friction[joint.velocities] += abs(joint.ratio) * joint.friction
    return Drivetrain(_fixed(armature), _fixed(damping), _fixed(friction))


def _fixed(values: FloatArray) -> FloatArray:
    values.flags.writeable = False
    return values
