# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The inverse of the mass matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.articulated import Articulated
from mbs_dynamics.algorithms.mass_matrix import (
    factorize,
    halfway,
    inverted,
    mass_matrix,
    solved,
    symmetric,
)
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation import moves
from mbs_dynamics.representation.tree import Tree

__all__ = ["inverse_mass_matrix"]


@algorithm(invariant=True, joint_space_only=True, generic=True)
def inverse_mass_matrix(model: Tree, q: ArrayLike, *, representation: str = "auto") -> FloatArray:
    """Return the inverse M^-1 (..., n, n) of the mass matrix, symmetric.

    By the factorization M = U D U^T: of :func:`mass_matrix`, whose zeros follow the branches of the
    tree, or for deep trees by articulated bodies, in O(n d).

    Raises SingularError, which names the joint, if M is not positive definite.
    """
    return np.asarray(factors_of(model, q, representation).inverse())


class Factors:
    """M = U D U^T as matrices."""

    def __init__(self, model: Tree, M: Array) -> None:
        self.model = model
        self.U, self.D = factorize(model, M)
        several = any(body.joint.nv > 1 for body in model.model.bodies)
        self.spread = several and len(leaves(model.model)) > 1

    def accelerations(self, tau: Array, h: Any) -> Array:
        """Return M^-1 (tau - h) by coordinate, of torques tau (n,) and those h of the bodies."""
        B = np.asarray(tau) - np.array(self.model.generalized(h))
        return solved(self.U, self.D, B[:, None])[:, 0]

    def response(self, dtau: Array) -> Array:
        """Return -M^-1 dtau (n, n), of a matrix dtau of the joints of the bodies."""
        return solved(self.U, self.D, -self.model.generalized(dtau, 2), spread=self.spread)

    def solution(self, B: Array) -> Array:
        """Return M^-1 B (n, m) of forces B by coordinate."""
        return solved(self.U, self.D, B)

    def congruence(self, J: Array) -> Array:
        """Return J M^-1 J^T (m, m), symmetric."""
        Y = halfway(self.U, J.T)
        return symmetric(Y.T @ (np.array([1.0 / d for d in self.D])[:, None] * Y))

    def inverse(self) -> Array:
        """Return M^-1 (n, n), symmetric."""
        return inverted(self.U, self.D, spread=self.spread)


def factors_of(model: Tree, q: Any, representation: str) -> Factors | Articulated:
    """Return the factors of the mass matrix in the form that takes the fewest operations."""
    if model.positions_are_coordinates and model.mean_depth() > strategy.ARTICULATED:
        return Articulated(model, moves(representation, model, q))
    return factors_as_matrices(model, q, representation)


def factors_as_matrices(
    model: Tree, q: Any, representation: str, armature: Array | None = None
) -> Factors:
    """Return the factors of M + diag(armature) as matrices, of whatever joints."""
    M: Any = mass_matrix(model, q, representation=representation)
    return Factors(model, M if armature is None else M + np.diag(armature))
