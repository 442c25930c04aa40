# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The inverse of the mass matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.factorization import factorize
from mbs_dynamics.algorithms.mass_matrix import mass_matrix
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.representation.tree import Tree

__all__ = ["inverse_mass_matrix"]


@algorithm(invariant=True, joint_space_only=True)
def inverse_mass_matrix(model: Tree, q: ArrayLike, *, representation: str = "auto") -> FloatArray:
    """Return the inverse M^-1 (..., n, n) of the mass matrix, symmetric.

    By the factorization M = U D U^T of :func:`mass_matrix`, whose zeros follow the branches of the
    tree.

    Raises SingularError, which names the joint, if M is not positive definite.
    """
    M = mass_matrix(model, q, representation=representation)
    return np.asarray(factorize(model, M).inverse())
