# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Factorization of the mass matrix and of other symmetric matrices, M = U D U^T."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.mass_matrix import composite_inertias
from mbs_dynamics.compiler import positive
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.compiled import compiled
from mbs_dynamics.model.model import without_payloads
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation import BodyFixed
from mbs_dynamics.representation.tree import Tree

PIVOT_TOLERANCE = 1e-14
"""Pivots of the mass matrix below this share of its diagonal at q = 0 count as rounding."""


class Factors:
    """M = U D U^T as matrices."""

    def __init__(self, model: Tree, M: Array) -> None:
        self.model = model
        self.U, self.D = factorize(model, M)
        several = any(body.joint.nv > 1 for body in model.model.bodies)
        self.spread = several and len(leaves(model.model)) > 1

    def accelerations(self, tau: Array, h: Any) -> Array:
        """Return M^-1 (tau - h) by coordinate, of torques tau (n,) and those h of the bodies."""
        B = np.asarray(tau) - np.array(self.model.to_coordinates(h))
        return solved(self.U, self.D, B[:, None])[:, 0]

    def response(self, dtau: Array) -> Array:
        """Return -M^-1 dtau (n, n), of a matrix dtau of the joints of the bodies."""
        return solved(self.U, self.D, -self.model.to_coordinates(dtau, 2), spread=self.spread)

    def solution(self, B: Array) -> Array:
        """Return M^-1 B (n, m) of forces B by coordinate."""
        return solved(self.U, self.D, B)

    def congruence(self, J: Array) -> Array:
        """Return J M^-1 J^T (m, m), symmetric."""
        Y = halfway(self.U, J.T)
        return symmetric(Y.T @ (_inverses(self.D)[:, None] * Y))

    def inverse(self) -> Array:
        """Return M^-1 (n, n), symmetric."""
        return inverted(self.U, self.D, spread=self.spread)


def factorize(model: Tree, M: Array) -> tuple[Array, list[Any]]:
    """Return U, unit upper triangular, and D, a list, with M = U D U^T.

    Mohan and Saha, eq. (26), from the last joint inwards, so that no branch fills the zeros of
    another. A pivot that is not positive raises SingularError, naming its joint.
    """
    return eliminated(M, pivots(model))


def eliminated(A: Array, pivot: Callable[[int, Any], Any]) -> tuple[Array, list[Any]]:
    """Return U, unit upper triangular, and D, a list, with A = U D U^T, for a symmetric A (n, n).

    By elimination without pivoting from the last row on; the pivots are ``pivot(k, value)``.
    """
    n = len(A)
    A, U = np.array(A, dtype=object), np.full((n, n), 0.0, dtype=object)
    D: list[Any] = [0.0] * n
    for k in reversed(range(n)):
        D[k] = pivot(k, A[k, k])
        U[k, k] = 1.0
        inverse = 1.0 / D[k]
        above = [i for i in range(k) if _is_any(A[i, k])]
        for i in above:
            U[i, k] = A[i, k] * inverse
        for i in above:
            for j in above:
                if j <= i:
                    A[i, j] = A[j, i] = A[i, j] - U[i, k] * A[k, j]
    return U, D


def _is_any(x: Any) -> bool:
    """Return whether an entry is anything but the number zero."""
    return type(x) is not float or x != 0.0


def solve(U: Array, D: list[Any], b: Array) -> Array:
    """Return x with U D U^T x = b: Mohan and Saha, steps B to D, as corrected."""
    return _solve(_nonzero(U), D, b)


def _nonzero(U: Array) -> list[list[tuple[int, Any]]]:
    """Return the nonzero entries above the diagonal of each column, with their rows."""
    columns = enumerate(np.asarray(U.T).tolist())
    return [[(i, x) for i, x in enumerate(column[:k]) if _is_any(x)] for k, column in columns]


def _solve(above: list[list[tuple[int, Any]]], D: list[Any], b: Array) -> Array:
    x = _before(above, np.asarray(b).tolist())
    x = [value * (1.0 / d) if _is_any(value) else value for value, d in zip(x, D, strict=True)]
    for k, entries in enumerate(above):
        for i, u in entries:
            x[k] = x[k] - u * x[i]
    return np.array(x)


def _before(above: list[list[tuple[int, Any]]], x: list[Any]) -> list[Any]:
    """Return U^-1 x, in place of x."""
    for k in reversed(range(len(x))):
        if _is_any(x[k]):
            for i, u in above[k]:
                x[i] = x[i] - u * x[k]
    return x


def solved(U: Array, D: list[Any], B: Array, *, spread: bool = False) -> Array:
    """Return X (n, n) with U D U^T X = B.

    If a few columns ``spread`` what happens in one branch to all others, U^-1 is formed: there a
    branch has entries with the columns before it alone, and the product with its transpose takes
    fewer operations than to solve with U^T.
    """
    if spread:
        W = halfway(U, np.eye(len(D)))
        return np.asarray(W.T @ (_inverses(D)[:, None] * halfway(U, B)))
    above = _nonzero(U)
    return np.array([_solve(above, D, column) for column in B.T]).reshape(np.shape(B.T)).T


def _inverses(D: list[Any]) -> Array:
    return np.array([1.0 / d for d in D])


def halfway(U: Array, B: Array) -> Array:
    """Return U^-1 B (n, m)."""
    above = _nonzero(U)
    return np.array([_before(above, column) for column in B.T.tolist()]).T


def inverted(U: Array, D: list[Any], *, spread: bool = False) -> Array:
    """Return the inverse (n, n) of U D U^T, symmetric; ``spread`` is that of :func:`solved`."""
    if not spread:
        return symmetric(solved(U, D, np.eye(len(D))))
    W = halfway(U, np.eye(len(D)))
    return symmetric(np.asarray(W.T @ (_inverses(D)[:, None] * W)))


def symmetric(A: Array) -> Array:
    """Return A (m, m), known to be symmetric, with one half in place of the other.

    The other half is then never computed.
    """
    for j in range(len(A)):
        A[j + 1 :, j] = A[j, j + 1 :]
    return A


def pivots(model: Tree) -> Callable[[int, Any], Any]:
    """Return a function of a coordinate k and its pivot that returns the pivot, guarded.

    The pivot is the articulated-body inertia about the joint: the joints beyond it are free. It
    counts as zero if it is rounding compared with the inertia for locked joints.
    """
    own = model.model
    locked = compiled(own).get_or_create(_locked, lambda: _locked(Tree(without_payloads(own))))
    without = (b for b in own.bodies if b.inertia.mass == 0.0 and not np.any(b.inertia.tensor))
    bare = {k for body in without for k in body.joint.velocities}
    here = " here: the joints beyond it leave it none, as in gimbal lock"
    messages = [
        f"the mass matrix is singular: joint {joint.name!r} moves no inertia"
        + (here if k in bare and locked[k] > 0.0 else "")
        for joint in own.joints
        for k in joint.velocities
    ]
    bounds = [max(PIVOT_TOLERANCE * inertia, 0.0) for inertia in locked]

    def pivot(k: int, value: Any) -> Any:
        return positive(value, messages[k], above=bounds[k])

    return pivot


def _locked(model: Tree) -> list[float]:
    """Return the inertia that each coordinate moves at q = 0 while all others are locked."""
    rep = BodyFixed(model, model.model.neutral())
    locked = [0.0] * model.n
    for i, M in enumerate(composite_inertias(model, rep)[:-1]):
        joint, S = model.bodies[i].joint, rep.screw(i)
        for k, S_k in zip(joint.velocities, S.T, strict=True):
            locked[k] += joint.ratio**2 * (S_k @ (M @ S_k))
    return locked
