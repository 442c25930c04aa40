# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint positions for a pose: the arguments, the starts, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms.inverse_kinematics.coordinates import Coordinates
from mbs_dynamics.algorithms.inverse_kinematics.descent import SearchResult, Task, descend
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.coordinates import checked_positions, middle, velocity_names, with_singles
from mbs_dynamics.model.model import Model

CONVERGED = "converged"

AT_LIMITS = 0.3
"""Probability that a coordinate of a random start is at one of its limits."""

FARTHEST = 1e100
"""Distance in m of a target; far beyond it the squares of errors are no longer finite."""


class InverseKinematics(NamedTuple):
    """Result of :func:`inverse_kinematics`, for one target or a batch."""

    q: FloatArray
    """(..., nq) joint positions: a solution, or the nearest ones that were found."""
    success: Any
    """(...) bool: whether the errors, with ``position_first`` that of the position, are within the
    tolerances."""
    angular_error: Any
    """(...) angle to the orientation of the target in rad, about the axes that count."""
    linear_error: Any
    """(...) distance to the position of the target in m, along the axes that count."""
    iterations: Any
    """(...) int: steps from the start that led to q."""
    reason: Any
    """(...) str: ``"converged"``, with what is left of the orientation if the position comes first,
    ``"joint limits: ..."`` or ``"not converged: ..."``."""


def inverse_kinematics(
    model: Model,
    target: ArrayLike,
    body: str,
    *,
    point: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    position_first: bool = False,
    q0: ArrayLike | None = None,
    held: Sequence[str] = (),
    starts: int = 20,
    seed: int = 0,
    max_iterations: int = 100,
    angular_tolerance: float = 1e-8,
    linear_tolerance: float = 1e-8,
) -> InverseKinematics:
    """Return joint positions within the limits that place a body or link at a target.

    An unreachable target is not an error: ``success`` is then False, ``q`` the nearest solution
    that was found, and ``reason`` states whether limits are the cause.

    ``target`` is a pose (..., 4, 4), whose rotation is replaced by the nearest orthogonal one
    within 1e-6, or a position (..., 3) in m for a point of the body in any orientation: ``point``
    (3,) in m in the frame of the body, by default its origin. ``body`` is the name of a body or
    link.

    ``weights`` (6,) >= 0 weigh the squares of the errors along the axes of the target, those of the
    rotation first, and 0 leaves an axis free: (1, 1, 0, 1, 1, 1) lets a tool turn about its z axis.
    Errors of the result, and their tolerances, are those along the other axes. With
    ``position_first`` the position is reached, and the orientation is as near to that of the target
    as it can then be: arms with fewer than six joints reach few poses. ``success`` and ``reason``
    then refer to the position, and ``angular_error`` is what is left.

    ``q0`` (..., nq), clipped to the limits, is the first start, by default in the middle of them.
    ``held`` names joints that keep their positions in q0: ``("floating_base",)`` holds a base; or
    single velocities of them, by the names of ``velocity_names``.
    The other ``starts`` are random, with many coordinates at limits, and equal for equal ``seed``
    and for all targets. They are tried until the errors are within ``angular_tolerance`` in rad and
    ``linear_tolerance`` in m, each for at most ``max_iterations`` steps. Coordinates that do not
    move the body remain at q0. Revolute joints end as few turns from q0 as the limits allow.

    Minimises the weighted squares of the rotation vector and of the displacement, with lengths
    divided by that of the arm, by Levenberg-Marquardt steps within the limits, for all targets at
    once. ``position_first`` gives the orientation the weights 1e-4 and then 1e-12.

    Raises ArgumentError for a wrong shape or type, non-finite numbers, negative weights or zeros
    alone, a target that is not a pose, a point together with a target pose, weights of rotations or
    ``position_first`` without one, or a body that no joint moves; ModelError if limits leave a
    joint no position; UnknownBodyError, UnknownJointError.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
    coordinates = Coordinates.of(model, body, held)
    poses, position_only = _pose_or_position(target)
    if position_first and position_only:
        raise ArgumentError("position_first is for targets (..., 4, 4), which have an orientation")
    if point is not None and not position_only:
        raise ArgumentError("a point is for targets (..., 3) that are positions of it")
    tolerances = {"angular_tolerance": angular_tolerance, "linear_tolerance": linear_tolerance}
    task = Task(
        body=body,
        point=np.zeros(3) if point is None else checks.numbers("point", point, (3,)),
        weights=_weights(weights, position_only),
        coordinates=coordinates,
        tolerance=np.array([checks.positive(name, x) for name, x in tolerances.items()]),
        max_iterations=checks.count("max_iterations", max_iterations),
    )
    if q0 is None:
        inside = middle(model.lower, model.upper)
        first = with_singles(model.joints, model.neutral(), inside)
    else:
        first = checked_positions(model.joints, "q0", q0)
    low, high = coordinates.ranges()
    rng = np.random.default_rng(checks.count("seed", seed, least=0))
    random = rng.random((checks.count("starts", starts) - 1, len(low)))
    random = (random - 0.5) / (1.0 - AT_LIMITS) + 0.5
    random = np.clip(low + random * (high - low), coordinates.lower, coordinates.upper)
    batch = checks.batch_of(target=poses.shape[:-2], q0=first.shape[:-1])
    poses = np.broadcast_to(poses, (*batch, 4, 4)).reshape(-1, 4, 4)
    first = np.array(np.broadcast_to(first, (*batch, model.nq))).reshape(-1, model.nq)
    first = coordinates.clipped(first)

    if position_first:
        result, beyond = _search(_less(task, 1e-4), poses, first, random)
        last = _less(task, 1e-12)
        result = _at_position(task, descend(last, poses, result.q))
        missed = np.flatnonzero(~result.converged)  # where another orientation is too attractive
        if missed.size:
            again, beyond[missed] = _search(last, poses[missed], first[missed], random)
            _keep_better(result, _at_position(task, again), missed)
    else:
        result, beyond = _search(task, poses, first, random)
    q = coordinates.near(result.q, first)
    reasons = np.full(len(q), CONVERGED, dtype=object)
    for k in np.flatnonzero(result.converged & (result.gap[:, 0] > task.tolerance[0])):
        reasons[k] = (
            f"{CONVERGED} to the position; the orientation is off by {result.gap[k, 0]:.3g} rad"
        )
    for k in np.flatnonzero(~result.converged):
        reasons[k] = _reason(coordinates, result.gap[k], beyond[k])
    rest = (result.converged, result.gap[:, 0], result.gap[:, 1], result.iterations, reasons)
    shaped = (x.reshape(batch) if batch else x.item() for x in rest)
    return InverseKinematics(q.reshape(*batch, model.nq), *shaped)


def _pose_or_position(value: ArrayLike) -> tuple[FloatArray, bool]:
    """Return a target as poses (..., 4, 4), and whether it is a position alone.

    The rotations are replaced by the nearest ones, so that an error that is within the tolerance
    for rotations does not keep a search from converging.
    """
    array = checks.real("target", value)
    position_only = array.shape[-2:] != (4, 4)
    if position_only and array.shape[-1:] != (3,):
        raise ArgumentError(
            f"target has shape {array.shape}; must be (..., 4, 4) for poses and (..., 3) for "
            "positions"
        )
    C = checks.numbers("target", array, (3,) if position_only else (4, 4), batch=True)
    if (np.abs(C) > FARTHEST).any():
        raise ArgumentError(f"target must be within {FARTHEST:g} m; got {checks.shown(C)}")
    if position_only:
        return se3.pose(np.eye(3), C), True
    checks.check_poses("target", C)
    U, _, Vt = np.linalg.svd(C[..., :3, :3])
    return se3.pose(U @ Vt, C[..., :3, 3]), False


def _weights(weights: ArrayLike | None, position_only: bool) -> FloatArray:
    """Return the weights (6,) of the errors along the axes of targets."""
    if weights is None:
        return np.repeat([float(not position_only), 1.0], 3)
    given = checks.numbers("weights", weights, (6,))
    if (given < 0.0).any() or not given.any():
        raise ArgumentError(f"weights must not be negative, nor all zero; got {given.tolist()}")
    if position_only and given[:3].any():
        raise ArgumentError(
            "weights of rotations are for targets (..., 4, 4), which have an orientation; got "
            f"{given.tolist()}"
        )
    return given


def _at_position(task: Task, result: SearchResult) -> SearchResult:
    """Return results that count as converged where the position is reached."""
    return result._replace(converged=result.gap[:, 1] <= task.tolerance[1])


def _less(task: Task, share: float) -> Task:
    """Return a task in which the orientation counts for less."""
    return task._replace(weights=task.weights * np.repeat([share, 1.0], 3))


def _search(
    task: Task, targets: FloatArray, first: FloatArray, random: FloatArray
) -> tuple[SearchResult, FloatArray]:
    """Return the result for each target, and solutions beyond the limits (T, nq), else NaN.

    The starts, first (T, nq) and then random (s, p), are tried in blocks of 1, 1, 2, 4, ... that
    step together, because most targets need few. Each block is tried within the limits and then
    without them, because a solution beyond limits may be within them after whole turns.
    """
    T, starts, coordinates = len(targets), 1 + len(random), task.coordinates
    result = SearchResult(
        q=first.copy(),
        converged=np.zeros(T, bool),
        cost=np.full(T, np.inf),
        gap=np.zeros((T, 2)),
        iterations=np.zeros(T, int),
    )
    beyond = np.full(first.shape, np.nan)
    endless = task._replace(coordinates=coordinates.endless())
    begin, end = 0, 1
    while begin < starts:
        for each in (task, endless):
            missed = np.flatnonzero(~result.converged)
            if not missed.size:
                return result, beyond
            tries = np.repeat(first[missed][:, None], end - begin, axis=1)
            if begin > 0:
                some = np.broadcast_to(
                    random[begin - 1 : end - 1], (len(missed), end - begin, random.shape[-1])
                )
                tries = coordinates.with_values(tries, some)
            owners = np.repeat(missed, end - begin)
            ended = descend(each, targets[owners], tries.reshape(-1, tries.shape[-1]))
            if each is endless:
                q = coordinates.near(ended.q, first[owners])
                outside = coordinates.outside(q).any(-1)
                solved = np.flatnonzero(ended.converged & outside)
                beyond[owners[solved]] = q[solved]
                if solved.size:  # a solution at limits is found on either side of them
                    inside = descend(task, targets[owners[solved]], coordinates.clipped(q[solved]))
                    for mine, theirs in zip(ended._replace(q=q), inside, strict=True):
                        mine[solved] = theirs
                    outside[solved] = False
                cost = np.where(outside, np.inf, ended.cost)
                ended = ended._replace(q=q, converged=ended.converged & ~outside, cost=cost)
            _keep_better(result, ended, missed)
        begin, end = end, min(2 * end, starts)
    return result, beyond


def _keep_better(result: SearchResult, ended: SearchResult, at: Array) -> None:
    """Replace results of the targets ``at`` by the best of several descents if it is better."""
    cost = np.where(ended.converged, -1.0, ended.cost).reshape(len(at), -1)
    best = np.arange(len(at)) * cost.shape[1] + np.argmin(cost, axis=1)
    better = cost.min(axis=1) < result.cost[at]
    for mine, theirs in zip(result, ended, strict=True):
        mine[at[better]] = theirs[best[better]]


def _reason(coordinates: Coordinates, gap: FloatArray, beyond: FloatArray) -> str:
    """Return why a search with this gap failed, given a solution beyond the limits, or NaN."""
    if np.isnan(beyond).any():
        angle, distance = gap
        return (
            f"not converged: the nearest pose found is off by {angle:.3g} rad and {distance:.3g} m"
        )
    names, x = velocity_names(coordinates.model.joints), coordinates.values(beyond)
    named = [
        f"{names[coordinates.columns[k]]} at {x[k]:.4g}, outside {coordinates.lower[k]:.4g} to "
        f"{coordinates.upper[k]:.4g}"
        for k in np.flatnonzero(coordinates.outside(beyond))
    ]
    return f"joint limits: found only with {'; '.join(named)}"
