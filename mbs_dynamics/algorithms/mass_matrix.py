# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mass matrix by composite inertias, its factorization and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import positive
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import InverseAdjoint
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import (
    BodyFixed,
    Identity,
    Operator,
    Representation,
    meeting,
    moves,
)
from mbs_dynamics.representation.tree import Tree

PIVOT_TOLERANCE = 1e-14
"""Pivots of the mass matrix this small, beside its diagonal at q = 0, count as rounding."""


@algorithm(invariant=True, joint_space_only=True, generic=True)
def mass_matrix(model: Tree, q: ArrayLike, *, representation: str = "auto") -> FloatArray:
    """Return the mass matrix M(q) (..., n, n) in SI units, symmetric and positive definite.

    ``q`` (..., n) in rad or m. ``representation`` is ``"body_fixed"``, ``"spatial"``, ``"hybrid"``
    or ``"mixed"``, or ``"auto"``.

    M_ij = S_i^T M^c_i S_j, with the composite inertia M^c_i of all bodies that joint i moves, in
    O(n d): the recursive evaluation of M = J^T M J, Mueller (dynamics), eq. (81).

    Raises ArgumentError for a wrong shape or type, UnknownRepresentationError.
    """
    rep = moves(representation, model, q)
    Mc, pairs, M = composite_inertias(model, rep), meeting(rep), model.per_pair()
    S = pairs.screws()
    for i, _ in model.inward():
        F_i = Mc[i] @ rep.screw(i)
        M[i, i] = rep.screw(i) @ F_i
        for j, (F_j,) in pairs.carried_inward(i, F_i):
            M[i, j] = M[j, i] = S[j] @ F_j
    matrix: FloatArray = model.generalized_matrix(M, symmetric=True)
    return matrix


def composite_inertias(model: Tree, rep: Representation) -> Any:
    """Return the total inertia beyond each joint, and that of all bodies for the ground, last."""
    Mc = model.per_body(0.0)
    for i, _ in model.outward():
        Mc[i] = rep.inertia(i)
    for i, p in model.inward():
        Mc[p] = Mc[p] + carried(rep.carry(i), Mc[i])
    return Mc


def carried(carry: Operator, M: Any) -> Any:
    """Return carry^T M carry, the inertia M of a body in the frame of its parent."""
    if isinstance(carry, Identity):
        return M
    if isinstance(carry, InverseAdjoint):
        if isinstance(M, Inertia):
            for R in reversed(carry.rotations):
                M = M.rotated(R)
            return M.shifted(carry.r)
        return carry.congruence(M)
    M = np.array(carry.T @ M @ carry)
    rows, cols = np.triu_indices(6, 1)
    M[cols, rows] = M[rows, cols]
    return M


def factorize(model: Tree, M: Array) -> tuple[Array, list[Any]]:
    """Return U, unit upper triangular, and D, a list, with M = U D U^T.

    Mohan and Saha, eq. (26), from the last joint inwards, so that no branch fills the zeros of
    another. A pivot that is not positive raises SingularError, naming its joint.
    """
    n = len(M)
    M, U = np.array(M, dtype=object), np.full((n, n), 0.0, dtype=object)
    pivot = pivots(model)
    D: list[Any] = [0.0] * n
    for k in reversed(range(n)):
        D[k] = pivot(k, M[k, k])
        U[k, k], inverse = 1.0, 1.0 / D[k]
        above = [i for i in range(k) if _is_any(M[i, k])]
        for i in above:
            U[i, k] = M[i, k] * inverse
        for at, i in enumerate(above):
            for j in above[: at + 1]:
                M[i, j] = M[j, i] = M[i, j] - U[i, k] * M[j, k]
    return U, D


def _is_any(x: Any) -> bool:
    """Whether an entry is anything but the number zero."""
    return type(x) is not float or x != 0.0


def solve(U: Array, D: list[Any], b: Array) -> Array:
    """Return x with U D U^T x = b: Mohan and Saha, steps B to D, the last with U^-T."""
    return _solve(_above(U), D, b)


def _above(U: Array) -> list[list[tuple[int, Any]]]:
    """Return what stands above the diagonal of each column but zeros, with the rows."""
    columns = enumerate(np.asarray(U).T.tolist())
    return [[(i, x) for i, x in enumerate(column[:k]) if _is_any(x)] for k, column in columns]


def _solve(above: list[list[tuple[int, Any]]], D: list[Any], b: Array) -> Array:
    x = np.asarray(b).tolist()
    for k in reversed(range(len(D))):
        if _is_any(x[k]):
            for i, u in above[k]:
                x[i] = x[i] - u * x[k]
    x = [value * (1.0 / d) if _is_any(value) else value for value, d in zip(x, D, strict=True)]
    for k, entries in enumerate(above):
        for i, u in entries:
            x[k] = x[k] - u * x[i]
    return np.array(x)


def solved(U: Array, D: list[Any], B: Array) -> Array:
    """Return X (n, n) with U D U^T X = B."""
    above = _above(U)
    return np.array([_solve(above, D, column) for column in B.T]).reshape(np.shape(B.T)).T


def inverted(U: Array, D: list[Any]) -> Array:
    """Return the inverse (n, n) of U D U^T, symmetric."""
    inverse = solved(U, D, np.eye(len(D)))
    for j in range(len(D)):  # the other half is then never computed
        inverse[j + 1 :, j] = inverse[j, j + 1 :]
    return inverse


def pivots(model: Tree) -> Callable[[int, Any], Any]:
    """Return a function of a coordinate k and its pivot that returns the pivot, guarded.

    The pivot is the inertia that the motor of the joint feels while all joints beyond give way. One
    that is rounding beside the inertia it feels while they are locked counts as none.
    """
    said, bounds = bounds_of_pivots(model)
    messages, least = model.per_coordinate(said), model.per_coordinate(bounds)

    def pivot(k: int, value: Any) -> Any:
        return positive(value, messages[k], above=least[k])

    return pivot


def bounds_of_pivots(model: Tree) -> tuple[list[str], list[float]]:
    """Return for each coordinate what to say if its pivot does not exceed a number, and this."""
    own = model.model
    locked = own.compiled.once(_locked, lambda: _locked(Tree(own.without_payloads())))
    said = [
        f"the mass matrix is singular: joint {name!r} moves no inertia"
        for name in model.joint_names
    ]
    return said, [max(PIVOT_TOLERANCE * felt, 0.0) for felt in locked]


def _locked(model: Tree) -> list[float]:
    """Return the inertia that each coordinate moves at q = 0 while all others are locked."""
    rep = BodyFixed(model, np.zeros(model.n))
    locked = [0.0] * model.n
    for i, M in enumerate(composite_inertias(model, rep)[:-1]):
        joint, S = model.bodies[i].joint, rep.screw(i)
        locked[joint.coordinate] += joint.ratio**2 * (S @ (M @ S))
    return locked
