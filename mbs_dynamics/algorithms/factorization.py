# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Factorization of the mass matrix and other symmetric matrices, M = U D U^T, and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.mass_matrix import mass_matrix
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import positive
from mbs_dynamics.lie.arrays import Array, symmetric
from mbs_dynamics.model.model import Model, without_payloads
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation.tree import Tree

__all__ = ["inverse_mass_matrix"]

PIVOT_TOLERANCE = 1e-14
"""Pivots of the mass matrix below this share of its diagonal at q = 0 count as rounding."""


@algorithm(invariant=True, joint_space_only=True)
def inverse_mass_matrix(model: Tree, q: ArrayLike, *, representation: str = "auto") -> FloatArray:
    """Return the inverse M^-1 (..., n, n) of the mass matrix, symmetric.

    By the factorization M = U D U^T of :func:`mass_matrix`, whose zeros follow the branches of the
    tree.

    Raises SingularError, which names the joint, if M is not positive definite.
    """
    M = mass_matrix(model, q, representation=representation)
    return np.asarray(factorize(model, M).inverse())


class Factors:
    """A symmetric matrix A (n, n) as U D U^T, with U unit upper triangular and D diagonal.

    By elimination without pivoting from the last row on; the pivots are ``pivot(k, value)``.

    Set ``spread`` if a few columns, those of a free base, couple all branches. A^-1 B is then the
    product of U^-T D^-1 and U^-1 B if B is square: each branch of U^-1 has entries only in the
    columns before it, so that this takes fewer operations than to solve with U^T.
    """

    def __init__(self, A: Array, pivot: Callable[[int, Any], Any], spread: bool = False) -> None:
        n = len(A)
        A = np.array(A, dtype=object)
        self.D: list[Any] = [0.0] * n
        self.spread = spread
        self.above: list[list[tuple[int, Any]]] = [[] for _ in range(n)]
        """The nonzero entries above the diagonal of each column of U, with their rows."""
        for k in reversed(range(n)):
            self.D[k] = pivot(k, A[k, k])
            inverse = 1.0 / self.D[k]
            self.above[k] = [(i, A[i, k] * inverse) for i in range(k) if _is_any(A[i, k])]
            for i, u in self.above[k]:
                for j, _ in self.above[k]:
                    if j <= i:
                        A[i, j] = A[j, i] = A[i, j] - u * A[k, j]

    def solution(self, B: Array) -> Array:
        """Return A^-1 B of a vector (n,) or matrix (n, m): Mohan and Saha, steps B to D."""
        B, n = np.asarray(B), len(self.D)
        if self.spread and B.shape == (n, n):
            scaled = self._inverse_pivots() * self.halfway(B)
            return np.asarray(self.halfway(np.eye(n)).T @ scaled)
        columns = [self._solved(column) for column in (B if B.ndim == 2 else B[:, None]).T.tolist()]
        return np.array(columns).T.reshape(B.shape)

    def halfway(self, B: Array) -> Array:
        """Return U^-1 B (n, m)."""
        return np.array([self._before(column) for column in B.T.tolist()]).T

    def congruence(self, J: Array) -> Array:
        """Return J A^-1 J^T (m, m), symmetric."""
        Y = self.halfway(J.T)
        return symmetric(Y.T @ (self._inverse_pivots() * Y))

    def inverse(self) -> Array:
        """Return A^-1 (n, n), symmetric."""
        return symmetric(self.solution(np.eye(len(self.D))))

    def _inverse_pivots(self) -> Array:
        return np.array([1.0 / d for d in self.D])[:, None]

    def _solved(self, x: list[Any]) -> list[Any]:
        """Return A^-1 x, in place of x; the last step is U^-T, as corrected."""
        scaled = zip(self._before(x), self.D, strict=True)
        x = [value * (1.0 / d) if _is_any(value) else value for value, d in scaled]
        for k, entries in enumerate(self.above):
            for i, u in entries:
                x[k] = x[k] - u * x[i]
        return x

    def _before(self, x: list[Any]) -> list[Any]:
        """Return U^-1 x, in place of x."""
        for k in reversed(range(len(x))):
            if _is_any(x[k]):
                for i, u in self.above[k]:
                    x[i] = x[i] - u * x[k]
        return x


def factorize(model: Tree, M: Array) -> Factors:
    """Return the factors of a mass matrix: Mohan and Saha, eq. (26).

    From the last joint inwards, so that no branch fills the zeros of another. A pivot that is not
    positive raises SingularError, naming its joint.
    """
    several = any(body.joint.nv > 1 for body in model.model.bodies)
    return Factors(M, pivots(model), spread=several and len(leaves(model.model)) > 1)


def _is_any(x: Any) -> bool:
    """Return whether an entry is anything but the number zero."""
    return type(x) is not float or x != 0.0


def pivots(model: Tree) -> Callable[[int, Any], Any]:
    """Return a function of a coordinate k and its pivot that returns the pivot, guarded.

    The pivot is the articulated-body inertia about the joint: the joints beyond it are free. It
    counts as zero if it is rounding compared with the inertia for locked joints.
    """
    plain = model.model
    locked = locked_inertias(plain).tolist()
    without = (b for b in plain.bodies if b.inertia.mass == 0.0 and not np.any(b.inertia.tensor))
    bare = {k for body in without for k in body.joint.velocities}
    here = " here: the joints beyond it leave it none, as in gimbal lock"
    messages = [
        f"the mass matrix is singular: joint {joint.name!r} moves no inertia"
        + (here if k in bare and locked[k] > 0.0 else "")
        for joint in plain.joints
        for k in joint.velocities
    ]
    bounds = [max(PIVOT_TOLERANCE * inertia, 0.0) for inertia in locked]

    def pivot(k: int, value: Any) -> Any:
        return positive(value, messages[k], above=bounds[k])

    return pivot


def locked_inertias(model: Model) -> FloatArray:
    """Return the inertia (n,) that each coordinate moves at q = 0 while all others are locked.

    Without payloads and armature.
    """

    def diagonal() -> FloatArray:
        bare = Tree(without_payloads(model), armature=())
        M = mass_matrix(bare, model.neutral(), representation="body_fixed")
        return np.diag(M).astype(float)

    locked: FloatArray = model.compiled.get_or_create(locked_inertias, diagonal)
    return locked
