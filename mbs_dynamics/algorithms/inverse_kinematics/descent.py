# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levenberg-Marquardt within joint limits, from many starts at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.inverse_kinematics.coordinates import Coordinates, reach
from mbs_dynamics.algorithms.points import frame_at
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import atan2, less, select
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation import BodyFixed, screws_at
from mbs_dynamics.representation.tree import Tree

FIRST_DAMPING, LEAST_DAMPING = 0.1, 1e-12
"""Damping relative to the mean of the diagonal of J^T J."""

LEAST_TURN = 1e-6
"""Least share of a turn about a free axis, which is zero where the axis is opposite to that of
the target."""

HOPELESS_DAMPING = 1e8
"""Damping beyond which a search ends, as no step, however short, reduces the error."""


@algorithm(invariant=True)
def pose_residual(
    model: Tree,
    q: ArrayLike,
    target: ArrayLike,
    point: ArrayLike,
    body: str,
    *,
    free: int | None = None,
) -> Any:
    """Return the error e (..., 6) along the axes of a target, and J (..., 6, n) with de = -J dq.

    e is log(R^T R_target) and the displacement to the target of a ``point`` (..., 3) in the frame
    of the body, over :func:`reach`. About a ``free`` axis, 0 to 2, the target turns to where the
    rotation that is left is the least: that component of e is zero. Swing and twist, as of a
    quaternion.

    The angular part of J is dexp_x^-1 J^b with x = log(R^T R_target): Mueller (dynamics), eq. (89),
    for an increment on the left of exp(x).
    """
    rep, frame = BodyFixed(model, q), frame_at(model, point, body)
    C_error = se3.inverse(rep.C(frame.body) @ frame.placement) @ target
    J = model.to_coordinates(screws_at(rep, frame))
    R_error, d = C_error[:3, :3], C_error[:3, 3]
    unit, R = 1.0 / reach(model.model, body), R_error.T  # of the body in the target
    linear = unit * (R @ J[3:])
    if free is not None:
        i, j = (free + 1) % 3, (free + 2) % 3
        axis = np.eye(3)[free]
        angle = atan2(R[j, i] - R[i, j], R[i, i] + R[j, j])
        R_error = R_error @ so3.exp(axis * angle)
    x = so3.log(R_error)
    angular = so3.dexp_inv(x) @ J[:3]
    if free is not None:  # the turn of the target keeps its component of x at zero
        turn = so3.dexp_inv(-x)[:, free]
        share = select(less(turn[free], LEAST_TURN), LEAST_TURN, turn[free])  # opposite axes
        angular = angular - np.multiply.outer(turn, angular[free] / share)
    return {"e": np.concatenate([x, unit * (R @ d)]), "J": np.concatenate([angular, linear])}


class Task(NamedTuple):
    """Base of all searches for poses of one body."""

    body: str
    point: FloatArray
    """(3,) the point, in the frame of the body, that is to be at the target."""
    weights: FloatArray
    """(6,) of the squares of the errors along the axes of the target."""
    coordinates: Coordinates
    tolerance: FloatArray
    """(2,) of the gap, in rad and m."""
    max_iterations: int

    def residual(self, q: FloatArray, targets: FloatArray) -> tuple[FloatArray, ...]:
        """Return e (N, m) and J (N, m, p), weighted, and the gap (N, 2) in rad and m."""
        counts = self.weights > 0.0
        off = np.flatnonzero(~counts[:3]).tolist()
        free = off[0] if len(off) == 1 else None
        model, columns = self.coordinates.model, self.coordinates.columns
        e, J = pose_residual(model, q, targets, self.point, self.body, free=free)
        parts = np.where(counts, e, 0.0).reshape(-1, 2, 3)
        gap = np.linalg.norm(parts, axis=-1) * (1.0, self.coordinates.reach)
        scale = np.sqrt(self.weights[counts])
        return scale * e[:, counts], scale[:, None] * J[:, counts][..., columns], gap


class SearchResult(NamedTuple):
    """Results of N searches."""

    q: FloatArray
    """(N, nq)"""
    converged: Array
    """(N,) bool"""
    cost: FloatArray
    """(N,) half the square of the error e."""
    gap: FloatArray
    """(N, 2)"""
    iterations: Array
    """(N,) int"""


def descend(task: Task, targets: FloatArray, starts: FloatArray) -> SearchResult:
    """Search from starts (N, nq), which lie within the limits, for targets (N, 4, 4).

    A search ends when it has converged, or when no step reduces the error. The damping follows the
    ratio of the actual to the predicted decrease of the cost: Nielsen, Damping parameter in
    Marquardt's method (1999).
    """
    N = len(starts)
    q = starts.copy()
    result = SearchResult(q, np.zeros(N, bool), np.empty(N), np.empty((N, 2)), np.zeros(N, int))
    e, J, gap = task.residual(q, targets)
    cost = _half_square(e)
    damping, growth = np.full(N, FIRST_DAMPING), np.full(N, 2.0)
    at = np.arange(N)  # the searches that continue; the arrays above have one entry for each
    for iteration in range(task.max_iterations + 1):
        converged = (gap <= task.tolerance).all(-1)
        result.converged[at], result.cost[at], result.gap[at] = converged, cost, gap
        result.iterations[at] = iteration
        going = ~(converged | (damping > HOPELESS_DAMPING))
        if iteration == task.max_iterations or not going.any():
            break
        state: tuple[Array, ...] = (at, e, J, gap, cost, damping, growth)
        at, e, J, gap, cost, damping, growth = (x[going] for x in state)
        x, predicted = _step(task.coordinates, task.coordinates.values(q[at]), e, J, damping)
        ahead = task.coordinates.with_values(q[at], x)
        e_ahead, J_ahead, gap_ahead = task.residual(ahead, targets[at])
        cost_ahead = _half_square(e_ahead)
        better = cost_ahead < cost
        predicted = np.maximum(predicted, 1e-300)
        ratio = np.clip(cost - cost_ahead, 0.0, predicted) / predicted
        easing = np.maximum(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3)
        damping = np.maximum(damping * np.where(better, easing, growth), LEAST_DAMPING)
        growth = np.where(better, 2.0, 2.0 * growth)
        q[at[better]] = ahead[better]
        for now, then in ((e, e_ahead), (J, J_ahead), (gap, gap_ahead), (cost, cost_ahead)):
            now[better] = then[better]
    return result


def _step(
    within: Coordinates, x: FloatArray, e: FloatArray, J: FloatArray, damping: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the end of a damped step from x (N, p), and the predicted decrease of the cost.

    A coordinate at a limit that the descent pushes outwards is held, and no other one passes its
    limit: Bertsekas, Projected Newton methods (1982).
    """
    JT, lower, upper, metric = J.swapaxes(-1, -2), within.lower, within.upper, within.metric
    A, descent = JT @ J, (JT @ e[..., None])[..., 0]
    blocked = ((x <= lower) & (descent < 0.0)) | ((x >= upper) & (descent > 0.0))
    free = ~blocked
    size = np.einsum("ikk,k->i", A, 1.0 / metric) / len(metric)
    added = np.maximum(damping * size, 1e-200)[:, None] * metric
    H = A * (free[:, :, None] & free[:, None, :])
    H += np.where(blocked, metric, added)[:, :, None] * np.eye(len(metric))
    step = np.linalg.solve(H, np.where(blocked, 0.0, descent)[..., None])[..., 0]
    ahead = np.clip(x + step, lower, upper)
    step = ahead - x
    predicted = (step * descent).sum(-1) - _half_square((J @ step[..., None])[..., 0])
    return ahead, predicted


def _half_square(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (x * x).sum(-1))
