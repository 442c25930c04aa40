# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Symmetric systems of equations in programs with loops: one step, as a sine is one operation.

Rows make such a system together: its matrix is the sum of a matrix of rows over those that share an
unknown. It is factorized as U D U^T from the last unknown inwards: Mohan and Saha, eq. (26).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.loops import CELL, INWARD, STATE, Loop, Loops
from mbs_dynamics.compiler.frontend.program import Operations

SYSTEM = "system"
"""The sort of a step that is no loop over rows, but a task."""

VECTOR, MATRIX, UNITS = "vector", "matrix", "units"
"""What a system is solved for: sums of the values of rows, sums of a matrix of rows, the identity
matrix."""

Names = set[tuple[str, Any]]
"""Spaces and names of :class:`frontend.loops.Place`."""


@dataclass(frozen=True, eq=False)
class System:
    """The task to factorize a matrix, which has to be positive definite."""

    matrix: int
    """Number of the matrix of the rows."""
    factors: int
    """Number of the matrix that keeps U, transposed, and D on its diagonal."""
    unknowns: NDArray[np.int64]
    """The unknown of each row, in order of elimination, the last one first."""
    weights: int
    """Table of what rows are multiplied by."""
    least: int
    """Table of what the pivot of a row's unknown must exceed."""
    excess: int
    """Number of the values of the rows that say by how much it does."""
    texts: tuple[str, ...]
    """What to say of each row where it does not."""

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return int(self.unknowns.max(initial=-1)) + 1

    @property
    def reads(self) -> Names:
        """What has to be there before."""
        return {(CELL, self.matrix)}

    @property
    def writes(self) -> Names:
        """What is there afterwards."""
        return {(CELL, self.factors), (STATE, self.excess)}

    @property
    def operations(self) -> Operations:
        """How many operations of each kind it takes, zeros not left out."""
        n, sums = self.size, len(self.unknowns) ** 2
        products = n * (n - 1) * (n + 1) // 6
        scaled = n * (n - 1)
        return Operations(
            multiplications=products + scaled + sums, additions=products + sums, divisions=n
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The task to solve a system, less or as it is."""

    system: System
    sort: str
    """VECTOR, MATRIX or UNITS."""
    of: int
    """Number of the values of the rows or of the matrix of rows whose sums are the right side; sums
    of matrices are weighted as the system's is, and then negative."""
    to: int
    """Number of the values of the rows, each that of its unknown, or of the matrix of unknowns."""

    @property
    def space(self) -> str:
        """Where right sides and solutions are."""
        return STATE if self.sort == VECTOR else CELL

    @property
    def reads(self) -> Names:
        """What has to be there before."""
        right: Names = set() if self.sort == UNITS else {(self.space, self.of)}
        return {(CELL, self.system.factors)} | right

    @property
    def writes(self) -> Names:
        """What is there afterwards."""
        return {(self.space, self.to)}

    @property
    def operations(self) -> Operations:
        """How many operations of each kind it takes, zeros not left out."""
        n, rows = self.system.size, len(self.system.unknowns)
        columns = 1 if self.sort == VECTOR else n
        sums = {VECTOR: rows, MATRIX: rows**2, UNITS: 0}[self.sort]
        products = n * (n - 1) * columns
        return Operations(
            multiplications=products + n * columns + sums,
            additions=products + sums,
            divisions=n,
        )


Task = System | Solution


def system(
    loops: Loops,
    matrix: int,
    unknowns: Sequence[int],
    ratios: Sequence[float],
    least: Sequence[float],
    texts: Sequence[str],
) -> System:
    """Add the task to factorize a matrix to the loops; all but it are sequences for the rows."""
    rows = len(unknowns)
    loops.matrices.append((rows, 1, 1, rows**2))
    task = System(
        matrix,
        len(loops.matrices) - 1,
        np.array(unknowns, dtype=np.int64),
        loops.number_of_table(ratios),
        loops.number_of_table(least),
        loops.new_slots(1),
        tuple(texts),
    )
    loops.steps.append(Loop(SYSTEM, INWARD, task=task))
    return task


def solution(loops: Loops, of: System, sort: str, right: int) -> int:
    """Add the task to solve a system to the loops; return the number of what it writes."""
    rows = len(of.unknowns)
    if sort == VECTOR:
        to = loops.new_slots(1)
    else:
        loops.matrices.append((rows, 1, 1, rows**2))
        to = len(loops.matrices) - 1
    loops.steps.append(Loop(SYSTEM, INWARD, task=Solution(of, sort, right, to)))
    return to


# -- in plain Python -------------------------------------------------------------------------------


def factorized(M: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return U, transposed, and D on its diagonal, below which nothing but zeros would stand."""
    U: NDArray[np.float64] = M.copy()
    with np.errstate(all="ignore"):  # what fails is said afterwards
        for k in reversed(range(len(U))):
            row = U[k, :k] / U[k, k]
            U[:k, :k] -= np.outer(row, U[k, :k])
            U[k, :k] = row
    return U


def solved(U: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x (n,) or (n, m) with U D U^T x = right: Mohan and Saha, steps B to D."""
    x: NDArray[np.float64] = right.reshape(len(U), -1).copy()
    with np.errstate(all="ignore"):
        for k in reversed(range(len(U))):
            x[:k] -= np.outer(U[k, :k], x[k])
        x /= np.diag(U)[:, None]
        for k in range(len(U)):
            x[k] -= U[k, :k] @ x[:k]
    return x.reshape(right.shape)


def summed(at: NDArray[np.int64], *of: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of what belongs to the same unknowns: a vector, or a matrix and its weights.

    ``at`` are the unknowns of the rows.
    """
    n = int(at.max(initial=-1)) + 1
    values, *weights = (np.asarray(x, dtype=np.float64) for x in of)
    sums = np.zeros((n,) * values.ndim)
    if weights:
        values = np.multiply.outer(weights[0], weights[0]) * values
    np.add.at(sums, (at[:, None], at) if weights else (at,), values)
    return sums
