# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates: weighted least squares for base parameters, and physically consistent parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
"""Weights of the distance to the description that cross-validation chooses from, largest first."""

BLOCKS = 6
"""Stretches of the training data, each of which is predicted from the others."""

OUTLIER = 3.0
"""Residuals beyond this number of standard deviations are down-weighted: Huber (1964)."""

QUIETEST = 0.1
"""Least residual of a joint as a share of the mean one."""

FINEST = 1e-3
"""Least residual as a share of the torques."""

SMALL = 0.02
"""Share of the torques of a joint that each of its terms has in the prior."""

SEEN = 1e-6
"""Share of the largest singular value of the scaled equations that counts as zero."""


class BaseEstimate(NamedTuple):
    """Least-squares estimate of the parameter combinations that torques depend on."""

    names: tuple[str, ...]
    """Each by its first parameter; ``combination`` lists the others."""
    values: FloatArray
    """(b,) in SI units."""
    deviations: FloatArray
    """(b,) standard deviations; infinite for combinations that the data do not show."""
    combination: FloatArray
    """(b, p) values = combination x, for all parameters x of the torque model."""
    rank: int
    """Number of combinations that the data show."""
    condition: float
    """Condition number of their equations, with columns of length 1."""


class Weighing(NamedTuple):
    """Weights of the equations."""

    joints: FloatArray
    """(k,) standard deviation of the residual of each joint, in N m or N."""
    rows: FloatArray
    """(N, k) weights, at most 1: less for outliers."""

    def applied(self, A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the equations as rows (N k, p) and right sides whose residuals have variance 1."""
        scale = np.sqrt(self.rows) / self.joints
        return (A * scale[..., None]).reshape(-1, A.shape[-1]), (b * scale).ravel()


class Choice(NamedTuple):
    """Result of cross-validation."""

    weight: float
    errors: tuple[float, ...]
    """Relative error of predicted blocks, for each of WEIGHTS."""

    @property
    def best(self) -> float:
        """The error of the weight that was chosen."""
        return self.errors[int(np.argmin(np.abs(WEIGHTS - self.weight)))]


def base_estimate(
    torque_model: TorqueModel,
    equations: Sequence[Equations],
    independent: BaseParameters | None = None,
) -> BaseEstimate:
    """Return the weighted least-squares estimate of base parameters, friction included.

    Weights are the inverse variances of the residuals of the joints, from a first round (Gautier
    and Poignet 2001). The standard deviations account for the correlation of neighbouring samples.
    """
    base = torque_model.independent() if independent is None else independent
    A, b = stacked(equations)
    X = A[..., list(base.columns)]
    weighing = weighed(X, b)
    rows, right = weighing.applied(X, b)
    values, lengths, s, V = _least_squares(rows, right)
    shown = s > SEEN * s[0]
    residual = (right - rows @ values).reshape(b.shape)
    variance = float(np.square(residual).sum() / max(residual.size - int(shown.sum()), 1))
    inverse = np.square(V[:, shown] / s[shown]).sum(axis=1)
    spread = variance * inverse * correlated(residual, equations)
    hidden = np.square(V[:, ~shown]).sum(axis=1) > SEEN
    deviations = np.where(hidden, np.inf, np.sqrt(spread) / lengths)
    names = torque_model.names
    return BaseEstimate(
        tuple(names[k] for k in base.columns),
        values,
        deviations,
        base.combination,
        int(shown.sum()),
        float(s[shown][0] / s[shown][-1]),
    )


def least_squares_residual(X: FloatArray, b: FloatArray) -> FloatArray:
    """Return the residuals (N, k) of plain least squares."""
    return np.asarray(b - X @ _least_squares(X.reshape(-1, X.shape[-1]), b.ravel())[0])


def _least_squares(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, ...]:
    """Return the solution (p,), the lengths of columns, and singular values and vectors.

    The latter (p,) and (p, p) are those of columns of length 1, the largest first. What they do not
    show is zero in the solution.
    """
    lengths = np.linalg.norm(rows, axis=0)
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    squares, V = np.linalg.eigh(rows.T @ rows / np.outer(lengths, lengths))
    s, V = np.sqrt(np.maximum(squares[::-1], 0.0)), V[:, ::-1]
    inverse = np.where(s > SEEN * s[0], 1.0 / np.maximum(squares[::-1], 1e-300), 0.0)
    return V @ (inverse * (V.T @ (rows.T @ right / lengths))) / lengths, lengths, s, V


def weighed(A: FloatArray, b: FloatArray) -> Weighing:
    """Return the weights of the equations, from the residuals of plain least squares."""
    residual = least_squares_residual(A, b)
    deviations = 1.4826 * np.median(np.abs(residual), axis=0)
    joints = np.maximum(deviations, QUIETEST * np.sqrt(np.square(deviations).mean()))
    joints = np.maximum(joints, FINEST * np.sqrt(np.square(b).mean()))
    size = np.abs(residual) / joints
    return Weighing(joints, np.where(size <= OUTLIER, 1.0, OUTLIER / np.maximum(size, OUTLIER)))


def correlated(residual: FloatArray, equations: Sequence[Equations]) -> float:
    """Return the number of samples that are equivalent to one independent sample."""
    counts, begin = [], 0
    for one in equations:
        part = residual[begin : begin + len(one.b)]
        begin += len(one.b)
        centred = part - part.mean(axis=0)
        power = np.square(centred).sum(axis=0)
        lags = range(1, min(len(part) // 4, int(4.0 * one.rate)))
        sums = np.zeros(part.shape[1])
        going = power > 0.0
        for lag in lags:  # until the correlation is gone
            correlation = (centred[lag:] * centred[:-lag]).sum(axis=0) / np.maximum(power, 1e-300)
            going &= correlation > 0.0
            if not going.any():
                break
            sums += np.where(going, correlation, 0.0)
        counts.append(float((1.0 + 2.0 * sums).max()))
    return max(counts)


class ConsistentEstimate:
    """The estimate of physically consistent bodies, for one set of training data.

    ``bodies`` (nb, 10) are the inertial parameters that bodies are drawn to. Equations are in the
    parameters of these bodies and of the joints.
    """

    def __init__(self, bodies: FloatArray, equations: Sequence[Equations]) -> None:
        self.problem = ConsistentLeastSquares(bodies, joint_priors(equations))
        self._equations = equations
        A, self._b = stacked(equations)
        self._A = A @ self.problem.to_parameters
        self._weighing = weighed(self._A, self._b)

    def cross_validated(self, progress: Callable[[float], None] = lambda share: None) -> Choice:
        """Return the weight whose estimates best predict held-out blocks.

        ``progress`` is called with the share of the completed work.
        Of those within a standard error of the best one the largest is chosen (Breiman, Friedman,
        Olshen and Stone 1984), as other motions differ more than the blocks of one do.
        """
        each = max(1, -(-BLOCKS // len(self._equations)))  # consecutive stretches of the recordings
        ends = np.cumsum([len(one.b) for one in self._equations])
        stretches = np.split(np.arange(ends[-1]), ends[:-1])
        split = (part for rows in stretches for part in np.array_split(rows, each))
        blocks = [part for part in split if len(part)]
        grams = [self._gram(block) for block in blocks]
        total = [sum(part) for part in zip(*grams, strict=True)]
        squares = np.zeros((len(blocks), len(WEIGHTS)))
        for count, (block, gram) in enumerate(zip(blocks, grams, strict=True)):
            G, g = (whole - part for whole, part in zip(total, gram, strict=True))
            for i, weight in enumerate(WEIGHTS):
                y = self.problem.solve(G, g, weight, self._solutions[i])
                squares[count, i] = np.square(self._A[block] @ y - self._b[block]).sum()
            progress((count + 1) / len(blocks))
        total_error = squares.sum(axis=0)
        best = int(np.argmin(total_error))
        spread = squares[:, best].std() * np.sqrt(len(blocks))
        near = np.flatnonzero(total_error <= total_error[best] + spread)
        errors = np.sqrt(total_error / np.square(self._b).sum())
        return Choice(float(WEIGHTS[near[0]]), tuple(errors.tolist()))

    def estimate(self, weight: float) -> FloatArray:
        """Return the parameters (p,) for a weight of the distance to the description."""
        y = self._solutions[int(np.argmin(np.abs(WEIGHTS - weight)))]
        return np.asarray(self.problem.to_parameters @ y)

    @cached_property
    def _solutions(self) -> list[FloatArray]:
        """Solutions for all data, for each of WEIGHTS."""
        G, g = self._gram(np.arange(len(self._b)))
        solutions = [self.problem.description]
        for weight in WEIGHTS:
            solutions.append(self.problem.solve(G, g, weight, solutions[-1]))
        return solutions[1:]

    def _gram(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        weighing = self._weighing._replace(rows=self._weighing.rows[rows])
        X, right = weighing.applied(self._A[rows], self._b[rows])
        return X.T @ X, X.T @ right


def joint_priors(equations: Sequence[Equations]) -> FloatArray:
    """Return (k, 4) prior values of friction, motor inertia and offset of joints.

    Each makes the same small share of the torques of its joint.
    """
    _, b = stacked(equations)
    rates = np.concatenate([one.qd for one in equations])
    accelerations = np.concatenate([one.qdd for one in equations])
    torques = _size(b)
    typical = SMALL * np.maximum(torques, SMALL * torques.max())
    slow, lazy = np.maximum(_size(rates), 1e-3), np.maximum(_size(accelerations), 1e-2)
    return np.stack([typical, typical / slow, typical / lazy, typical], axis=1)


def friction_estimate(torque_model: TorqueModel, equations: Sequence[Equations]) -> FloatArray:
    """Return the description's parameters (p,) with the best nonnegative friction."""
    A, b = stacked(equations)
    x, each = torque_model.described(), len(JOINT_TERMS)
    rest = b - A @ x
    for j, terms in enumerate(np.moveaxis(joint_columns(A), 1, 0)):
        lengths = np.linalg.norm(terms, axis=0)
        lengths = np.maximum(lengths, 1e-3 * lengths[0] + 1e-12)
        G = terms.T @ terms / np.outer(lengths, lengths) + 1e-6 * np.eye(each)
        place = torque_model.rigid + each * j
        x[place : place + each] += _nonnegative(G, terms.T @ rest[:, j] / lengths) / lengths
    return x


def _nonnegative(G: FloatArray, g: FloatArray) -> FloatArray:
    """Return the minimum of 1/2 y' G y - g' y (p,) with y >= 0, but for the last of y.

    For four numbers this takes less time than the import of a solver of SciPy.
    """
    best = np.zeros(len(g))
    for free in itertools.product((False, True), repeat=len(g) - 1):
        y, some = np.zeros(len(g)), np.array([*free, True])
        y[some] = np.linalg.solve(G[np.ix_(some, some)], g[some])
        if (y[:-1] >= 0.0).all() and g @ y > g @ best:  # -2 of the value of each such point
            best = y
    return best


def _size(x: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.square(x).mean(axis=0)))
