# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Positions on the groups of the joints: displacements, differences, and rates of coordinates.

Positions q (nq,) stand for one element g of a motion subgroup for each joint, and velocities v (n,)
for elements of its Lie algebra: g^-1 dg/dt = (S v)^. If all joints have one degree of freedom these
functions are q + v, q2 - q and v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.representation.tree import Tree

__all__ = ["difference", "displaced", "position_rates"]

FIRST_IS_POSITIONS = (Subgroup.displaced, Subgroup.difference, Subgroup.rates)
"""Methods whose first argument are positions."""


@algorithm(invariant=True)
def displaced(model: Tree, q: ArrayLike, v: ArrayLike) -> FloatArray:
    """Return the positions (..., nq) that q becomes by a displacement v: g exp(S v) of each joint.

    Quaternions of the result have unit length. Known as ``integrate`` in Pinocchio,
    ``mj_integratePos`` in MuJoCo.

    Canonical coordinates of the first kind: Mueller (kinematics), Remark 4; (dynamics), eq. (88).

    Raises SingularError, which names the joint, for a quaternion of length zero.
    """
    return of_joints(model, Subgroup.displaced, q, v)


@algorithm(invariant=True)
def difference(model: Tree, q: ArrayLike, q2: ArrayLike) -> FloatArray:
    """Return the displacement (..., n) that takes q to q2: log(g^-1 g2) of each joint.

    The inverse of :func:`displaced`. Rotations about all axes have an angle of at most pi, and
    planar motions leave out whole turns.

    Raises SingularError, which names the joint, for a quaternion of length zero.
    """
    return of_joints(model, Subgroup.difference, q, q2)


@algorithm(invariant=True)
def position_rates(model: Tree, q: ArrayLike, v: ArrayLike) -> FloatArray:
    """Return the time derivatives (..., nq) of the positions q at the velocity v.

    For integrators that treat q as a vector, which do not keep the length of quaternions.

    ``q`` (..., nq) and ``v`` (..., n) in rad or m and seconds. Errors are those of
    :func:`displaced`.
    """
    return of_joints(model, Subgroup.rates, q, v)


@algorithm(invariant=True)
def increment_rates(model: Tree, u: ArrayLike, v: ArrayLike) -> FloatArray:
    """Return the rates (..., n) of increments u with ``displaced(model, q, u)`` moving at v.

    dexp_-u^-1 v of each joint: Mueller (dynamics), eqs. (88), (89).
    """
    return of_joints(model, Subgroup.increment_rates, u, v)


@algorithm(invariant=True)
def increment_velocities(model: Tree, u: ArrayLike, v: ArrayLike) -> FloatArray:
    """Return the velocities (..., n) of ``displaced(model, q, u)`` where u has the rates v."""
    return of_joints(model, Subgroup.increment_velocities, u, v)


def of_joints(
    model: Tree, method: Callable[[Subgroup, Array, Array, str], Array], first: Any, second: Any
) -> FloatArray:
    """Return the results of a method of :class:`Subgroup` for each joint, in the order of q.

    ``first`` and ``second`` are its arguments for all joints: positions (nq,) or velocities (n,).
    """
    results = [np.zeros(0)]
    for joint in model.model.joints:
        at = model.model.positions(joint)
        x = first[at] if method in FIRST_IS_POSITIONS else first[joint.velocities]
        y = second[at] if method is Subgroup.difference else second[joint.velocities]
        results.append(method(joint.group, x, y, joint.name))
    return np.concatenate(results)
