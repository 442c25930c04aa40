# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Partial derivatives of Jacobians with respect to joint coordinates, by nested Lie brackets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation import Representation, operators, screws_at
from mbs_dynamics.representation.tree import Tree

__all__ = ["jacobian_derivative", "kinematic_hessian"]

Column = tuple[Any, int]
"""A column of a Jacobian: a body, and which of the screws of its joint."""


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

    ``joints`` are names of joints or indices of velocities, as many as the order of the derivative,
    in any order and with repetitions: ``(2, 4)`` is the second derivative by q[2] and q[4].
    Derivatives by a column of a joint with several are along g exp(S d). Two along columns of one
    joint do not commute: that which is listed first is taken first.

    Nested brackets of the columns: Mueller (dynamics), eqs. (5), (12), (14) body-fixed and (15),
    (20), (23) spatial; nested cross products for the linear part of hybrid and mixed columns, (24),
    (25). Corrected: in the last two a column also rotates with the joints before it, k < j.

    Raises ArgumentError for an index out of range.
    """
    directions = coordinates(model, joints)
    of = JacobianColumns(model, q, body, representation)
    J: list[Array] = [np.zeros(6) for _ in range(model.n)]
    columns = [
        ((i, c), k)
        for i in model.path(of.frame.body)
        for c, k in enumerate(model.bodies[i].joint.velocities)
    ]
    movers = [[column for column, k in columns if k == wanted] for wanted in directions]
    for along in itertools.product(*movers):
        for j, k in columns:
            J[k] = J[k] + of.by(j, along)
    return np.asarray(np.array(J).reshape(-1, 6).T)


@algorithm(invariant=False)
def kinematic_hessian(
    model: Tree, q: ArrayLike, body: str, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the derivatives H (..., 6, n, n) of the Jacobian, H[:, j, k] = dJ_j / dq_k.

    Vdot = J qdd + sum_jk H[:, j, k] qd_j qd_k.

    The first order of :func:`jacobian_derivative` for all pairs of joints.
    """
    of = JacobianColumns(model, q, body, representation)
    H = model.per_pair(6)
    for k, _ in model.outward_to(of.frame.body):
        H[k, k] = of.by_itself(k)
        for j, _ in model.supporting(k):
            H[j, k], H[k, j] = of.changes(of.columns(j), of.columns(k))
    return model.to_coordinates(H, 2, weighted=False)


def coordinates(model: Tree, joints: Sequence[int | str]) -> tuple[int, ...]:
    """Return the indices of coordinates, given as indices or by the names of their joints."""
    if isinstance(joints, (str, int)):
        raise ArgumentError(f"joints must be a sequence of indices or names; got {joints!r}")
    indices = []
    for joint in joints:
        if isinstance(joint, str):
            if joint not in model.joint_names:
                raise UnknownJointError(joint, model.joint_names)
            if model.model.joint(joint).nv > 1:
                raise ArgumentError(
                    f"joints: {joint!r} has several velocities, of which one is named by its index"
                )
            indices.append(model.model.joint(joint).coordinate)
        elif isinstance(joint, (int, np.integer)) and 0 <= joint < model.n:
            indices.append(int(joint))
        else:
            raise ArgumentError(
                f"joint index {joint!r} is out of range; valid is 0 to {model.n - 1}"
            )
    return tuple(indices)


class JacobianColumns:
    """The columns of a Jacobian at q by joint, and their derivatives by joints on the path.

    They are per unit of the coordinates: those of mimic joints include the ratio.
    """

    def __init__(self, model: Tree, q: Array, body: str, representation: str) -> None:
        self.frame = model.frame(body)
        self.of = of = operators(representation, model, q)
        self.rep = operators("hybrid", model, q) if of.of_origin else of
        self.of_turning = operators("body_fixed", model, q) if of.in_body else self.rep
        """The representation of the screws of the angular part."""
        self.S = self._per_unit(self.rep)
        self.turning = self._per_unit(self.of_turning) if self.is_mixed else self.S

    @property
    def is_mixed(self) -> bool:
        """Whether the angular part has a representation of its own."""
        return self.of.in_body and self.of.of_origin

    def _per_unit(self, rep: Representation) -> Any:
        model = rep.model
        S = screws_at(rep, self.frame)
        return [body.joint.ratio * S_i for body, S_i in zip(model.bodies, S[:-1], strict=True)]

    def by(self, j: Column, along: Sequence[Column]) -> Array:
        """Return the derivative of column j by the columns ``along``, in this order."""
        return self._by(j, _outwards(along), _outwards([j, *along]))

    def _by(self, j: Column, along: Sequence[Column], ordered: Sequence[Column]) -> Array:
        """Return the same, of columns in the order of :func:`_outwards`, without and with j."""
        S = (self._body_fixed if self.of.in_body else self._spatial)(j, along)
        return np.concatenate([S[:3], self._velocity(ordered)]) if self.of.of_origin else S

    def by_itself(self, j: int) -> Array:
        """Return the derivatives (6, k, k) of the columns of joint j by joint j."""
        columns = [(j, c) for c in range(self.S[j].shape[1])]
        blocks = [[self._by(x, [y], [y, x]) for y in columns] for x in columns]
        return np.array(blocks).transpose(2, 0, 1)

    def columns(self, j: int) -> tuple[Array, Array]:
        """Return the columns (6, k) of joint j, and the screws of their angular parts."""
        return self.S[j], self.turning[j]

    def changes(
        self, first: tuple[Array, Array], second: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Return the derivatives (6, a, b) of a first joint's columns by a second one's, and back.

        Of :meth:`columns` of two joints, the first of which precedes the second one: the first
        order of :meth:`by`, for joints that need not be known by number.
        """
        (S, own), (S_k, own_k) = first, second
        pairs = [
            [self._changes((a, x), (b, y)) for b, y in zip(S_k.T, own_k.T, strict=True)]
            for a, x in zip(S.T, own.T, strict=True)
        ]
        of_first, of_second = np.array(pairs).transpose(2, 3, 0, 1)
        return of_first, of_second.swapaxes(1, 2)

    def _changes(
        self, first: tuple[Array, Array], second: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Return the same (6,) of two columns."""
        (S, own), (S_k, own_k) = first, second
        if self.of.of_origin:
            velocity = so3.hat(S[:3]) @ S_k[3:]  # by both of them in either order
            change = np.concatenate([so3.hat(own[:3]) @ own_k[:3], velocity])
            none = np.concatenate([np.zeros(3), velocity])
        else:
            change, none = se3.ad(own) @ own_k, np.zeros(6)
        return (change, none) if self.of.in_body else (none, change)

    def _body_fixed(self, j: Column, along: Sequence[Column]) -> Array:
        """[[J_j, J_a], J_b] ... for j < a <= b ..., else zero: D (5), (12), (14)."""
        if any(a[0] == j[0] or a[0] < j[0] for a in along):
            return np.zeros(6)
        S = _column(self.turning, j)
        for a in along:
            S = se3.ad(S) @ _column(self.turning, a)
        return S

    def _spatial(self, j: Column, along: Sequence[Column]) -> Array:
        """[J_a, [J_b, ... J_j]] for a <= b ... <= j, else zero: D (15), (20), (23)."""
        if any(a[0] != j[0] and a[0] > j[0] for a in along) or tuple(along[-1:]) == (j,):
            return np.zeros(6)
        S = _column(self.S, j)
        for a in reversed(along):
            S = se3.ad(_column(self.S, a)) @ S
        return S

    def _velocity(self, ordered: Sequence[Column]) -> Array:
        """w_a x (w_b x ... v_z) for a <= b ... <= z, the column and those along it in order.

        The derivative of the velocity of the origin by all of them, in the inertial frame: (24) and
        (25) of Mueller (dynamics), as corrected, to any order; derivations.md, (15).
        """
        *inner, last = ordered
        v = _column(self.S, last)[3:]
        for a in reversed(inner):
            v = so3.hat(_column(self.S, a)[:3]) @ v
        return v


def _outwards(columns: Sequence[Column]) -> list[Column]:
    """Return columns sorted by their bodies, outwards.

    Of those of one joint, which move its body one after the other, the last comes first.
    """
    return sorted(reversed(columns), key=lambda column: column[0])


def _column(S: Any, column: Column) -> Array:
    i, c = column
    return S[i][:, c]
