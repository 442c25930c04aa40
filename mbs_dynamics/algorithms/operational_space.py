# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Dynamics of a body in task space: Khatib's operational-space formulation.

With V = J qd the rows of the twist of a body that make the task, and wrenches F that act on it,

    F = Lambda Vdot + bias,    tau = J^T F + N^T tau_0,    Lambda = (J M^-1 J^T + damping^2 I)^-1.

``rows`` selects the task: ``"all"`` six rows of the Jacobian in the representation, the
``"angular"`` or the ``"linear"`` three, or a sequence of indices.

At a singular posture, and for an arm with fewer joints than rows, Lambda exists with damping alone.
A direction that moves one kg by 1 / m then has the inertia m / (1 + m damping^2); ``damping`` (...)
is in kg^-1/2, and in kg^-1/2 m^-1 for angular rows.

O. Khatib, A unified approach for motion and force control of robot manipulators: the operational
space formulation (1987); the damping is that of Nakamura and Hanafusa (1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.factorization import Factors, factorize
from mbs_dynamics.algorithms.forward_dynamics import forward_dynamics
from mbs_dynamics.algorithms.kinematics import jacobian
from mbs_dynamics.algorithms.manipulability import moving_coordinates, task_rows
from mbs_dynamics.algorithms.mass_matrix import mass_matrix
from mbs_dynamics.algorithms.rates import accelerations
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import positive
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation.tree import Tree

__all__ = [
    "dynamically_consistent_inverse",
    "null_space_projector",
    "operational_space_bias",
    "operational_space_inertia",
]

SINGULAR = 1e-12
"""Pivot of the inverse inertia, relative to its diagonal entry, that counts as zero."""


@algorithm(invariant=False, joint_space_only=True)
def operational_space_inertia(
    model: Tree,
    q: ArrayLike,
    body: str,
    *,
    damping: ArrayLike | None = None,
    rows: str | Sequence[int] = "all",
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the inertia Lambda = (J M^-1 J^T + damping^2 I)^-1 (..., m, m) of a body or link.

    It is the apparent inertia of the body with all joints free: its inverse maps a wrench to the
    change of Vdot. Symmetric and positive definite.

    Khatib (1987), eq. (18), with J M^-1 J^T = Y^T D^-1 Y and Y = U^-1 J^T from M = U D U^T.

    Raises SingularError at a singular posture without damping, and if fewer joints move the body
    than there are rows; ArgumentError for negative damping, invalid rows or a body that no joint
    moves.
    """
    return np.asarray(Task(model, q, body, damping, rows, representation).inertia())


@algorithm(invariant=False, joint_space_only=True)
def dynamically_consistent_inverse(
    model: Tree,
    q: ArrayLike,
    body: str,
    *,
    damping: ArrayLike | None = None,
    rows: str | Sequence[int] = "all",
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the inverse Jbar = M^-1 J^T Lambda (..., n, m) of the Jacobian of a body or link.

    J Jbar = I without damping, and Jbar V has the least kinetic energy of all qd with J qd = V. Its
    transpose takes torques to wrenches. Errors are those of :func:`operational_space_inertia`.

    Khatib (1987), eq. (38).
    """
    return np.asarray(Task(model, q, body, damping, rows, representation).inverse())


@algorithm(invariant=False, joint_space_only=True)
def null_space_projector(
    model: Tree,
    q: ArrayLike,
    body: str,
    *,
    damping: ArrayLike | None = None,
    rows: str | Sequence[int] = "all",
    representation: str = "body_fixed",
) -> FloatArray:
    """Return N = I - Jbar J (..., n, n): N qd leaves the twist of a body or link as it is.

    Torques N^T tau_0 do not accelerate the body, J M^-1 N^T = 0. With damping that holds up to the
    directions that are damped. Errors are those of :func:`operational_space_inertia`.

    Khatib (1987), eq. (41), for torques.
    """
    task = Task(model, q, body, damping, rows, representation)
    return np.asarray(np.eye(model.n) - task.inverse() @ task.J)


@algorithm(invariant=False)
def operational_space_bias(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    body: str,
    *,
    damping: ArrayLike | None = None,
    rows: str | Sequence[int] = "all",
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the wrench Jbar^T h - Lambda Jdot qd (..., m) of Coriolis, centrifugal and gravity.

    With tau = J^T F the body accelerates by Lambda Vdot = F - bias. Errors are those of
    :func:`operational_space_inertia`. Gravity is left out for ``model.with_gravity((0, 0, 0))``.

    Khatib (1987), eqs. (19), (20): -Lambda times the acceleration without torques.
    """
    task = Task(model, q, body, damping, rows, representation)
    rest: Any = np.zeros(model.n)
    falling = forward_dynamics(model, q, qd, rest, representation="body_fixed")
    Vd = accelerations(model, q, qd, falling, bodies=[body], representation=task.representation)
    return np.asarray(-(task.inertia() @ Vd[0][task.rows]))


class Task:
    """The rows of the Jacobian of a body that make a task, and the factors of the mass matrix."""

    def __init__(
        self,
        model: Tree,
        q: Any,
        body: str,
        damping: Any,
        rows: str | Sequence[int],
        representation: str,
    ) -> None:
        self.damping, self.rows = damping, task_rows(rows)
        self.representation = representation
        J: Any = jacobian(model, q, body, representation=representation)
        self.J: Array = J[self.rows]
        p, m = len(moving_coordinates(model.model, body)), len(self.rows)
        few = f", whose {m} rows {p} coordinates move: choose fewer rows=, or" if p < m else ":"
        self.singular = (
            f"the operational-space inertia of {body!r} is singular at this posture{few} "
            "damping=, such as 0.1, keeps it finite"
        )
        self.factors = factorize(model, mass_matrix(model, q, representation="body_fixed"))

    def inertia(self) -> Array:
        """Return Lambda (m, m)."""
        m, A = len(self.rows), self.factors.congruence(self.J)
        if self.damping is not None:
            A = A + self.damping * self.damping * np.eye(m)
        least = SINGULAR * np.diag(A)

        def pivot(k: int, value: Any) -> Any:
            return positive(value, self.singular, above=least[k])

        return Factors(A, pivot).inverse()

    def inverse(self) -> Array:
        """Return Jbar (n, m)."""
        return self.factors.solution(self.J.T) @ self.inertia()
