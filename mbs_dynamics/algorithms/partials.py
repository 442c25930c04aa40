# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of Jacobians with respect to joint coordinates, by nested Lie brackets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import velocity_names
from mbs_dynamics.representation import operators, screws_at
from mbs_dynamics.representation.tree import Tree

__all__ = ["jacobian_derivative", "kinematic_hessian"]


@algorithm(invariant=False)
def jacobian_derivative(
    model: Tree,
    q: ArrayLike,
    body: str,
    joints: Sequence[int | str],
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return a partial derivative (..., 6, n) of the Jacobian of a body by joint coordinates.

    ``joints`` are names or indices of velocities, as many as the order of the derivative, in any
    order and with repetitions: ``(2, 4)`` is the second derivative by q[2] and q[4]. A velocity has
    the name of its joint, with an index if the joint has several, such as ``"base[0]"``.
    Derivatives by one of several velocities of a joint are along g exp(S d). Two of one joint do
    not commute: the one that is listed first is taken first.

    Nested brackets of the columns: Mueller (dynamics), eqs. (5), (12), (14) body-fixed and (15),
    (20), (23) spatial; nested cross products for the linear part of hybrid and mixed columns, (24),
    (25). Corrected: in the last two a column also rotates with the joints before it, k < j.

    Raises ArgumentError for an index out of range.
    """
    directions = coordinates(model, joints)
    of = JacobianColumns(model, q, body, representation)
    dJ: Array = np.full((6, model.n), 0.0, dtype=object)
    movers = [[column for column, k in of.columns if k == wanted] for wanted in directions]
    for along in itertools.product(*movers):
        for column, k in of.columns:
            dJ[:, k] = dJ[:, k] + of.derivative(column, along)
    return np.asarray(dJ)


@algorithm(invariant=False)
def kinematic_hessian(
    model: Tree, q: ArrayLike, body: str, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the derivatives H (..., 6, n, n) of the Jacobian, H[:, j, k] = dJ_j / dq_k.

    Vdot = J qdd + sum_jk H[:, j, k] qd_j qd_k.

    The first order of :func:`jacobian_derivative` for all pairs of joints.
    """
    of = JacobianColumns(model, q, body, representation)
    H: Array = np.full((6, model.n, model.n), 0.0, dtype=object)
    for column, j in of.columns:
        for along, k in of.columns:
            H[:, j, k] = H[:, j, k] + of.derivative(column, (along,))
    return np.asarray(H)


def coordinates(model: Tree, joints: Sequence[int | str]) -> tuple[int, ...]:
    """Return the indices of coordinates, given as indices or as names of ``velocity_names``."""
    if isinstance(joints, (str, int)):
        raise ArgumentError(f"joints must be a sequence of indices or names; got {joints!r}")
    indices = []
    names = velocity_names(model.model.joints)
    for joint in joints:
        if isinstance(joint, str):
            UnknownJointError.check([joint], names)
            indices.append(names.index(joint))
        elif isinstance(joint, (int, np.integer)) and 0 <= joint < model.n:
            indices.append(int(joint))
        else:
            raise ArgumentError(
                f"joint index {joint!r} is out of range; must be 0 to {model.n - 1}"
            )
    return tuple(indices)


class Column(NamedTuple):
    """The screw of one degree of freedom, measured at a frame: a column of the Jacobian.

    It is per unit of the coordinate: that of a mimic joint includes its ratio.
    """

    place: float
    """Index of the body that it moves; half less for a geometric parameter before its joint."""
    S: Array
    """(6,) in the representation of the Jacobian; hybrid for the mixed one."""
    turning: Array
    """(6,) the screw whose brackets are the derivatives of the angular part."""


class JacobianColumns:
    """The columns of the Jacobian of a body at q, and their derivatives of any order."""

    def __init__(self, model: Tree, q: Array, body: str, representation: str) -> None:
        self.frame, of = model.frames[body], operators(representation, model, q)
        self.in_body, self.of_origin = of.in_body, of.of_origin
        self.rep = operators("hybrid", model, q) if of.of_origin else of
        self.turning = operators("body_fixed", model, q) if of.in_body else self.rep
        """The representation of the screws of the angular part."""
        S, turning = screws_at(self.rep, self.frame), screws_at(self.turning, self.frame)
        joints = [(i, model.bodies[i].joint) for i in model.path(self.frame.body)]
        self.columns = [
            (Column(i, joint.ratio * S[i][:, c], joint.ratio * turning[i][:, c]), k)
            for i, joint in joints
            for c, k in enumerate(joint.velocities)
        ]
        """The columns of the joints that move the body, each with its coordinate."""

    def derivative(self, column: Column, along: Sequence[Column]) -> Array:
        """Return the derivative (6,) of a column along others, in this order."""
        outwards = _outwards(along)
        S = self._body_fixed(column, outwards) if self.in_body else self._spatial(column, outwards)
        if not self.of_origin:
            return S
        return np.concatenate([S[:3], _velocity(_outwards([column, *along]))])

    def _body_fixed(self, column: Column, along: Sequence[Column]) -> Array:
        """[[J_j, J_a], J_b] ... for j < a <= b ..., else zero: D (5), (12), (14)."""
        if any(a.place <= column.place for a in along):
            return np.zeros(6)
        S = column.turning
        for a in along:
            S = se3.ad(S) @ a.turning
        return S

    def _spatial(self, column: Column, along: Sequence[Column]) -> Array:
        """[J_a, [J_b, ... J_j]] for a <= b ... <= j, else zero: D (15), (20), (23)."""
        if any(a.place > column.place for a in along) or (along and along[-1] is column):
            return np.zeros(6)  # [J_j, J_j] = 0
        S = column.S
        for a in reversed(along):
            S = se3.ad(a.S) @ S
        return S


def _velocity(columns: Sequence[Column]) -> Array:
    """Return w_a x (w_b x ... v_z) for a <= b ... <= z, of columns in outward order.

    This is the derivative of the velocity of the origin along all of them, in the inertial frame:
    (24) and (25) of Mueller (dynamics), as corrected, to any order; derivations.md, (15).
    """
    *inner, last = columns
    v = last.S[3:]
    for a in reversed(inner):
        v = so3.hat(a.S[:3]) @ v
    return v


def _outwards(columns: Sequence[Column]) -> list[Column]:
    """Return columns sorted by place. Of columns of one joint, the one listed last comes first."""
    return sorted(reversed(columns), key=lambda column: column.place)
