# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of base parameters by weighted least squares, and of consistent parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.signal import correlate

from mbs_dynamics.algorithms.regressor import BaseParameters
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.consistent import ConsistentLeastSquares
from mbs_dynamics.identification.torque_model import (
    JOINT_TERMS,
    Equations,
    TorqueModel,
    joint_columns,
    stacked,
)

Rows = NDArray[np.intp]

WEIGHTS = 10.0 ** np.arange(6.0, -1.5, -1.0)
"""Weights of the distance to the description that cross-validation tries, largest first."""

BLOCKS = 6
"""Number of blocks of the training data; each is predicted from the others."""

OUTLIER = 3.0
"""Residuals beyond this number of standard deviations are down-weighted: Huber (1964)."""

LEAST_OF_MEAN, LEAST_OF_TORQUES = 0.1, 1e-3
"""Lower bounds of the residual of a joint, relative to the mean residual and to the torques."""

PRIOR_SHARE = 0.02
"""Share of the torque of a joint that each of its terms has in the prior."""

RANK = 1e-6
"""Singular values of the scaled equations below this share of the largest one count as zero."""

ROUNDING = 1e-12
"""Columns shorter than this share of the longest one are zero but for rounding."""


class BaseEstimate(NamedTuple):
    """Least-squares estimate of the parameter combinations that torques depend on."""

    names: tuple[str, ...]
    """The first parameter of each combination; ``combination`` has all of them."""
    values: FloatArray
    """(b,) in SI units."""
    deviations: FloatArray
    """(b,) standard deviations; infinite for combinations that the data do not determine."""
    combination: FloatArray
    """(b, p) with values = combination x for all parameters x of the torque model."""
    rank: int
    """Number of combinations that the data determine."""
    condition: float
    """Condition number of the equations of these, with columns of length 1."""


class Choice(NamedTuple):
    """Result of cross-validation."""

    weight: float
    error: float
    """Relative error of the predicted blocks."""


def base_estimate(
    torque_model: TorqueModel,
    equations: Sequence[Equations],
    independent: BaseParameters | None = None,
) -> BaseEstimate:
    """Return the weighted least-squares estimate of base parameters, friction included.

    Weights are the inverse variances of the residuals of the joints in a first, unweighted estimate
    (Gautier and Poignet 2001). Standard deviations account for the correlation of successive
    samples.
    """
    independent = independent or torque_model.independent()
    A, b = stacked(equations)
    X = A[..., list(independent.columns)]
    rows, right = weighted(X, b, weights_of(X, b))
    values, lengths, s, V = _least_squares(rows, right)
    shown = s > RANK * s[0]
    residual = (right - rows @ values).reshape(b.shape)
    variance = float(np.square(residual).sum() / max(residual.size - int(shown.sum()), 1))
    inverse = np.square(V[:, shown] / s[shown]).sum(axis=1)
    spread = variance * inverse * autocorrelation_time(residual, equations)
    hidden = np.square(V[:, ~shown]).sum(axis=1) > RANK
    deviations = np.where(hidden, np.inf, np.sqrt(spread) / lengths)
    names = torque_model.names
    return BaseEstimate(
        tuple(names[k] for k in independent.columns),
        values,
        deviations,
        independent.combination,
        int(shown.sum()),
        float(s[shown][0] / s[shown][-1]),
    )


def least_squares_residual(X: FloatArray, b: FloatArray) -> FloatArray:
    """Return the residuals (N, k) of plain least squares."""
    return np.asarray(b - X @ _least_squares(X.reshape(-1, X.shape[-1]), b.ravel())[0])


def _least_squares(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, ...]:
    """Return the solution (p,), the lengths (p,) of the columns, singular values and vectors.

    Singular values (p,), largest first, and right singular vectors (p, p) are those of the
    equations with columns of length 1. Directions with singular values of zero do not contribute to
    the solution.
    """
    lengths = column_lengths(rows)
    squares, V = np.linalg.eigh(rows.T @ rows / np.outer(lengths, lengths))
    s, V = np.sqrt(np.maximum(squares[::-1], 0.0)), V[:, ::-1]
    inverse = np.where(s > RANK * s[0], 1.0 / np.maximum(squares[::-1], 1e-300), 0.0)
    return V @ (inverse * (V.T @ (rows.T @ right / lengths))) / lengths, lengths, s, V


def column_lengths(A: FloatArray) -> FloatArray:
    """Return the lengths of columns, by which these are divided; infinite for columns of zeros."""
    lengths = np.linalg.norm(A, axis=0)
    return np.where(lengths > ROUNDING * lengths.max(), lengths, np.inf)


def weights_of(A: FloatArray, b: FloatArray) -> FloatArray:
    """Return the weights (N, k) of the equations, from the residuals of plain least squares.

    They are the inverse standard deviations of the joints, and less for outliers.
    """
    residual = least_squares_residual(A, b)
    deviations = 1.4826 * np.median(np.abs(residual), axis=0)
    joints = np.maximum(deviations, LEAST_OF_MEAN * np.sqrt(np.square(deviations).mean()))
    joints = np.maximum(joints, LEAST_OF_TORQUES * np.sqrt(np.square(b).mean()))
    size = np.abs(residual) / joints
    return np.asarray(np.sqrt(OUTLIER / np.maximum(size, OUTLIER)) / joints)


def weighted(A: FloatArray, b: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rows (N k, p) and right sides (N k,), scaled to residuals of variance 1."""
    return (A * weights[..., None]).reshape(-1, A.shape[-1]), (b * weights).ravel()


def autocorrelation_time(residual: FloatArray, equations: Sequence[Equations]) -> float:
    """Return the largest integrated autocorrelation time of residuals (N, k), in samples.

    This many successive samples have the information of one independent sample.
    """
    times, begin = [], 0
    for one in equations:
        part = residual[begin : begin + len(one.b)]
        begin += len(part)
        lags = min(len(part) // 4, int(4.0 * one.rate))
        for x in (part - part.mean(axis=0)).T:
            power = max(float(x @ x), 1e-300)
            correlations = correlate(x, x)[len(x) : len(x) - 1 + lags] / power  # from lag 1 on
            first = np.flatnonzero(correlations <= 0.0)
            times.append(1.0 + 2.0 * float(correlations[: first[0] if len(first) else None].sum()))
    return max(times)


def consistent_estimate(
    bodies: FloatArray,
    equations: Sequence[Equations],
    weights: FloatArray = WEIGHTS,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[FloatArray, Choice]:
    """Return the physically consistent parameters (p,) that best fit the equations.

    ``bodies`` (nb, 10) are the inertial parameters of the prior. The equations are in the
    parameters of these bodies and of the joints. Of ``weights`` of the distance to the prior, the
    largest first, cross-validation chooses the largest one whose error in the prediction of
    held-out blocks is within a standard error of the smallest one (Breiman, Friedman, Olshen and
    Stone 1984), since another motion differs more than the blocks of one motion. ``progress`` is
    called with the share of the completed work.
    """
    problem = ConsistentLeastSquares(bodies, joint_priors(equations))
    A, b = stacked(equations)
    A = A @ problem.to_parameters
    of_rows = weights_of(A, b)

    def gram(rows: Rows | slice) -> tuple[FloatArray, FloatArray]:
        X, right = weighted(A[rows], b[rows], of_rows[rows])
        return X.T @ X, X.T @ right

    G, g = gram(slice(None))
    solutions = [problem.description]
    for weight in weights:
        solutions.append(problem.solve(G, g, weight, solutions[-1]))
    solutions = solutions[1:]
    ends = np.cumsum([len(one.b) for one in equations])
    each = max(1, -(-BLOCKS // len(equations)))
    stretches = np.split(np.arange(ends[-1]), ends[:-1])
    blocks = [rows for one in stretches for rows in np.array_split(one, each) if len(rows)]
    squares = np.zeros((len(blocks), len(weights)))
    for k, rows in enumerate(blocks):
        G_left, g_left = gram(rows)
        for i, (weight, start) in enumerate(zip(weights, solutions, strict=True)):
            y = problem.solve(G - G_left, g - g_left, weight, start)
            squares[k, i] = np.square(A[rows] @ y - b[rows]).sum()
        progress((k + 1) / len(blocks))
    total = squares.sum(axis=0)
    best = int(np.argmin(total))
    spread = squares[:, best].std() * np.sqrt(len(blocks))
    chosen = int(np.flatnonzero(total <= total[best] + spread)[0])
    error = float(np.sqrt(total[chosen] / np.square(b).sum()))
    x = np.asarray(problem.to_parameters @ solutions[chosen])
    return x, Choice(float(weights[chosen]), error)


def joint_priors(equations: Sequence[Equations]) -> FloatArray:
    """Return prior values (k, 4) of the joint terms, in the order of JOINT_TERMS.

    Each term contributes the same small share of the torque of its joint.
    """
    _, b = stacked(equations)
    rates = np.concatenate([one.qd for one in equations])
    accelerations = np.concatenate([one.qdd for one in equations])
    torques = _rms(b)
    typical = PRIOR_SHARE * np.maximum(torques, PRIOR_SHARE * torques.max())
    speed, acceleration = np.maximum(_rms(rates), 1e-3), np.maximum(_rms(accelerations), 1e-2)
    return np.stack([typical, typical / speed, typical / acceleration, typical], axis=1)


def friction_estimate(torque_model: TorqueModel, equations: Sequence[Equations]) -> FloatArray:
    """Return the parameters (p,) of the description with fitted, nonnegative friction."""
    A, b = stacked(equations)
    x, each = torque_model.described(), len(JOINT_TERMS)
    rest = b - A @ x
    for j, terms in enumerate(np.moveaxis(joint_columns(A), 1, 0)):
        place = torque_model.rigid + each * j
        offset = JOINT_TERMS.index("offset")
        x[place : place + each] += nonnegative(terms, rest[:, j], but=offset)
    return x


def nonnegative(A: FloatArray, b: FloatArray, *, but: int) -> FloatArray:
    """Return the least-squares solution x (p,) of A x = b with x >= 0, ``but`` for one element."""
    lengths = column_lengths(A)
    low = np.zeros(A.shape[1])
    low[but] = -np.inf
    return np.asarray(lsq_linear(A / lengths, b, (low, np.inf), method="bvls").x / lengths)


def _rms(x: FloatArray) -> FloatArray:
    """Return the root mean square of each column (N, k)."""
    return np.asarray(np.sqrt(np.square(x).mean(axis=0)))
