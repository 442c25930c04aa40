# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mass matrix by composite inertias."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.arrays import symmetric
from mbs_dynamics.lie.se3 import InverseAdjoint
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation import Identity, Operator, Representation, operators, to_ancestors
from mbs_dynamics.representation.tree import Tree

__all__ = ["mass_matrix"]


@algorithm(invariant=True, joint_space_only=True)
def mass_matrix(model: Tree, q: ArrayLike, *, representation: str = "auto") -> FloatArray:
    """Return the mass matrix M(q) (..., n, n) in SI units, symmetric and positive definite.

    M_ij = S_i^T M^c_i S_j, blocks (k_i, k_j), with the composite inertia M^c_i of all bodies that
    joint i moves, in O(n d): the recursive evaluation of M = J^T M J, Mueller (dynamics), eq. (81).
    The armature of the model is added to the diagonal.
    """
    rep = operators(representation, model, q)
    Mc, M = composite_inertias(model, rep), model.per_pair()
    for i, _ in model.inward():
        F_i = Mc[i] @ rep.screw(i)
        M[i, i] = rep.screw(i).T @ F_i + model.rotor(i)
        for j, (F_j,) in to_ancestors(rep, i, F_i):
            M[j, i] = rep.screw(j).T @ F_j
            M[i, j] = M[j, i].T
    return model.to_coordinates(M, 2, symmetric=True)


def composite_inertias(model: Tree, rep: Representation) -> Any:
    """Return the total inertia beyond each joint, and that of all bodies for the ground, last."""
    Mc = [rep.inertia(i) for i in range(model.nb)] + [rep.no_inertia]
    for i, p in model.inward():
        Mc[p] = Mc[p] + carried(rep.transform(i), Mc[i])
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
    return symmetric(carry.T @ M @ carry)
