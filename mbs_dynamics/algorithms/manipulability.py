# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Manipulability, its gradient, and measures of the distance from singular configurations.

All are computed from the singular values of the hybrid Jacobian: linear rows are the velocity of
the body's origin, resolved in the inertial frame. Only the p columns of coordinates that move the
body are considered, so that joints elsewhere in a tree have no influence.

``rows`` selects the task: ``"all"`` six rows, the ``"angular"`` or the ``"linear"`` three, or a
sequence of indices: ``(3, 4)`` is translation in the x-y plane. With m rows there are min(m, p)
singular values, also for arms with fewer joints than rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms.kinematics import jacobian
from mbs_dynamics.algorithms.partials import kinematic_hessian
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path

__all__ = [
    "manipulability",
    "manipulability_gradient",
    "singular_values",
]

ROWS: dict[str, tuple[int, ...]] = {
    "all": (0, 1, 2, 3, 4, 5),
    "angular": (0, 1, 2),
    "linear": (3, 4, 5),
}
"""The rows of a Jacobian by name."""


def manipulability(
    model: Model, q: ArrayLike, body: str, *, rows: str | Sequence[int] = "all"
) -> FloatArray:
    """Return Yoshikawa's manipulability w (...) of a body, the product of the singular values.

    w = sqrt(det(J J^T)), or sqrt(det(J^T J)) if fewer joints move the body than there are rows. It
    is proportional to the volume of the twists under joint rates of unit length, and exactly 0 in a
    singular configuration. Its unit is the product of those of the singular values.

    ``q`` (..., n) in rad or m; ``body`` is the name of a body or link; ``rows`` as described in the
    module.

    Yoshikawa, Manipulability of robotic mechanisms (1985).

    Raises ArgumentError for a wrong shape or type, non-finite q, invalid rows or a body that no
    joint moves, UnknownBodyError.
    """
    s = np.linalg.svd(_jacobian(model, q, body, rows)[0], compute_uv=False)
    w: FloatArray = np.where(_singular(s, model.n), 0.0, np.prod(s, axis=-1))[()]
    return w


def manipulability_gradient(
    model: Model, q: ArrayLike, body: str, *, rows: str | Sequence[int] = "all"
) -> FloatArray:
    """Return the gradient dw/dq (..., n) of :func:`manipulability`.

    In a singular configuration w has its minimum, 0, and in general a kink; the gradient is defined
    as 0 there, which is a subgradient. Arguments and errors are those of :func:`manipulability`.

    dw/dq_k = w trace(J^+ dJ/dq_k), evaluated without the division in J^+.
    """
    J, chosen, moved = _jacobian(model, q, body, rows)
    H = kinematic_hessian(model, q, body, representation="hybrid")[..., chosen, :, :]
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    ds = np.einsum("...mi,...mjk,...ij->...ik", U, H[..., moved, :], Vt)  # of s_i by q_k
    others = np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(s.shape[-1])], -1)
    gradient: FloatArray = (others[..., None, :] @ ds)[..., 0, :]
    return np.where(_singular(s, model.n)[..., None], 0.0, gradient)


def singular_values(
    model: Model,
    q: ArrayLike,
    body: str,
    *,
    rows: str | Sequence[int] = "all",
    length: float = 1.0,
) -> FloatArray:
    """Return the singular values (..., min(m, p)) of the Jacobian of a body, in descending order.

    The last one is the distance to the nearest matrix of lower rank: 0 in a singular configuration,
    in which a direction of motion is lost.

    ``q`` (..., n) in rad or m; ``body`` is the name of a body or link; ``rows`` as described in the
    module. Linear rows are divided by the characteristic ``length`` in m, such as the reach of the
    arm, so that they are comparable to the angular ones.

    Raises ArgumentError for a wrong shape or type, non-finite q, invalid rows, a length that is not
    positive or a body that no joint moves, UnknownBodyError.
    """
    J, chosen, _ = _jacobian(model, q, body, rows)
    unit = checks.positive("length", length)
    scale = np.array([1.0 / unit if row in ROWS["linear"] else 1.0 for row in chosen])
    s: FloatArray = np.linalg.svd(J * scale[:, None], compute_uv=False)
    return s


def moving_coordinates(model: Model, body: str) -> list[int]:
    """Return the indices of the coordinates that move a body or link, or raise ArgumentError."""
    bodies = path(model, model.frames[body].body)
    moved = {k for i in bodies for k in model.bodies[i].joint.velocities}
    if not moved:
        raise ArgumentError(f"body {body!r} is fixed to the ground: no joint moves it")
    return sorted(moved)


def _jacobian(
    model: Model, q: ArrayLike, body: str, rows: str | Sequence[int]
) -> tuple[FloatArray, list[int], list[int]]:
    """Return the chosen rows and moving columns (..., m, p), and the indices of both."""
    J = jacobian(model, q, body, representation="hybrid")
    checks.numbers("q", q, (model.nq,), batch=True)  # singular values need finite numbers
    chosen, moved = task_rows(rows), moving_coordinates(model, body)
    return J[..., chosen, :][..., moved], chosen, moved


def task_rows(rows: str | Sequence[int]) -> list[int]:
    """Return the indices of chosen rows of a Jacobian, or raise ArgumentError."""
    chosen: Any = ROWS.get(rows, ()) if isinstance(rows, str) else rows
    chosen = tuple(chosen) if isinstance(chosen, Iterable) else ()
    valid = all(isinstance(k, (int, np.integer)) and 0 <= k < 6 for k in chosen)
    if not chosen or not valid or len(set(chosen)) < len(chosen):
        raise ArgumentError(
            f"rows must be {', '.join(map(repr, ROWS))} or different indices from 0 to 5; "
            f"got {rows!r}"
        )
    return [int(k) for k in chosen]


def _singular(s: Array, n: int) -> Array:
    """Return whether the smallest singular value is zero to rounding, as ``matrix_rank`` does."""
    largest, smallest = s[..., 0], s[..., -1]
    return smallest <= largest * max(6, n) * np.finfo(float).eps
