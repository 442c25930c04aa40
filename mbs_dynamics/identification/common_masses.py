# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How well one set of masses explains the torques of several joints.

Each body acts on several joints. Scaled or exchanged torques of joints can therefore be detected
without knowing the masses. Hypotheses are compared by residual variances, corrected for the degrees
of freedom, and by F tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray

ROUNDING, ROUNDED = 1e-3, 1e-12
"""Residuals below this share of the torques, and eigenvalues of scaled normal equations below this
share of the largest one, count as zero."""

CHANCE = 1e-4
"""Probability below which a difference is not explained by noise."""

PRIOR = 3.0
"""Degrees of freedom of the prior of variances, the mean of all joints, and of logarithms of
shares, zero: Smyth (2004)."""

FACTORS, WORTH = (-1.0, 0.125, 0.25, 0.5, 2.0, 4.0, 8.0), 0.3
"""Factors of the torques of a joint that are tried in turn, and the least decrease of the misfit
for which one is accepted."""


class Explained(NamedTuple):
    """Fit of common masses to the torques of k joints."""

    shares: FloatArray
    """(k,) residual variances over variances of the torques, at most 1."""
    freedoms: FloatArray
    """(k,) degrees of freedom of the residual variances."""
    squares: FloatArray
    """(k,) sums of squared residuals, in (N m)^2 or N^2."""
    variances: FloatArray
    """(k,) residual variances with separate parameters for each joint."""

    @property
    def misfit(self) -> float:
        """Sum of the logarithms of the shares; joints with few degrees of freedom count less."""
        return float(self.freedoms / (self.freedoms + PRIOR) @ np.log(self.shares))

    @property
    def variance(self) -> float:
        """The mean residual variance, relative to that with separate parameters for each joint."""
        return float((self.squares / self.variances).sum() / max(self.freedoms.sum(), 1e-300))

    def of(self, some: NDArray[np.bool_]) -> Explained:
        """Return the fit of the joints of a mask (k,)."""
        return Explained(*(x[some] for x in self))

    def decisive(self, other: Explained, least: float, changed: int = 1) -> bool:
        """Return whether this fit, with changes of ``changed`` joints, is far better than another.

        The misfits must differ by more than ``least``, and the squared residuals by more than noise
        explains.
        """
        if not other.misfit - self.misfit > least:
            return False
        gained = float(((other.squares - self.squares) / self.variances).sum())
        ratio = gained / (changed * max(self.variance, 1e-300))
        return bool(by_chance(ratio, changed, float(self.freedoms.sum())) < CHANCE)


class CommonMasses(NamedTuple):
    """Normal equations of the torques of k joints in p parameters that all joints share.

    The weight of a joint is the inverse of its residual variance with separate parameters. With few
    degrees of freedom this variance is drawn to the geometric mean of all joints.
    """

    A: FloatArray
    """(k, p, p) normal matrices."""
    c: FloatArray
    """(k, p) right sides."""
    d: FloatArray
    """(k,) sums of squares of the torques."""
    counts: FloatArray
    """(k,) numbers of equations, minus the numbers of friction and offset terms."""
    variances: FloatArray
    """(k,) residual variances with separate parameters for each joint."""
    freedoms: FloatArray
    """(k,) degrees of freedom of these variances."""
    inverses: FloatArray
    """(k, p, p) pseudoinverses of A."""

    @classmethod
    def of(cls, masses: FloatArray, tau: FloatArray, joint_terms: int) -> CommonMasses:
        """Return the equations of columns (N, k, p) and torques (N, k).

        ``joint_terms`` is the number of friction and offset terms of a joint that were projected
        out.
        """
        A = np.einsum("njp,njq->jpq", masses, masses)
        c, d = np.einsum("njp,nj->jp", masses, tau), np.square(tau).sum(axis=0)
        inverses = np.array([_inverse(B) for B in A])
        return cls(
            A, c, d, np.full(len(d), float(len(tau) - joint_terms)), d, d, inverses
        ).weighed()

    def weighed(self) -> CommonMasses:
        """Return the equations with the residual variances of separate parameters by joint."""
        used = (self.A * self.inverses).sum(axis=(1, 2))
        left = self.d - np.einsum("jp,jpq,jq->j", self.c, self.inverses, self.c)
        left = np.maximum(left, max(ROUNDING**2 * float(self.d.mean()), 1e-300))
        free = np.maximum(np.round(self.counts - used), 0.0)
        logs, every = np.log(left / np.maximum(free, 1.0)), float(free.sum())
        mean = float(free @ logs) / max(every, 1.0)
        variances = np.exp((free * logs + PRIOR * mean) / (free + PRIOR))
        return self._replace(variances=variances, freedoms=free + min(PRIOR, every))

    def exchanged(self, i: int, j: int, masses: FloatArray, tau: FloatArray) -> CommonMasses:
        """Return the equations with the torques of joints i and j exchanged.

        ``masses`` (N, k, p) are the columns; ``tau[:, m, l]`` is the torque of joint l without the
        friction and offset terms of joint m.
        """
        c, d = self.c.copy(), self.d.copy()
        for one, other in ((i, j), (j, i)):
            c[one] = masses[:, one].T @ tau[:, one, other]
            d[one] = tau[:, one, other] @ tau[:, one, other]
        return self._replace(c=c, d=d).weighed()

    def without(self, some: NDArray[np.bool_]) -> CommonMasses:
        """Return the equations without the joints of a mask (k,)."""
        return CommonMasses(*(x[~some] for x in self))

    def factors(self) -> FloatArray:
        """Return the factors (k,) of torques with which common masses fit best.

        A factor is zero if no masses explain the torques of the joint.
        """
        right = (self.c / self.variances[:, None]).T
        H = np.tensordot(1.0 / self.variances, self.A, 1)
        left = np.diag(self.d / self.variances) - right.T @ _inverse(H) @ right
        scale = np.sqrt(np.maximum(self.d / self.variances, 1e-300))
        g = np.linalg.eigh(left / np.outer(scale, scale))[1][:, 0] / scale
        return np.where(np.abs(g) > 1e-3 * np.abs(g).max(), g, 0.0)

    def factors_joint_by_joint(self, joints: Sequence[int]) -> FloatArray:
        """Return the factors (k,) of torques that a greedy search finds.

        In each step the torques of one of ``joints`` are multiplied by one of FACTORS.
        """
        g, misfit = np.ones(len(self.d)), self.explained().misfit
        changes = [np.where(np.arange(len(g)) == j, x, 1.0) for j in joints for x in FACTORS]
        for _ in range(2 * len(joints)):
            misfits = [self.explained(g * change).misfit for change in changes]
            best = int(np.argmin(misfits))
            if misfits[best] > misfit - WORTH:
                break
            g, misfit = g * changes[best], misfits[best]
        return g

    def explained(self, g: FloatArray | float = 1.0) -> Explained:
        """Return the fit of common masses to the torques multiplied by factors g (k,)."""
        g = np.broadcast_to(g, self.d.shape)
        squares = np.maximum(np.square(g), 1e-12)
        weights = 1.0 / (squares * self.variances)
        inverse = _inverse(np.tensordot(weights, self.A, 1))
        x = inverse @ ((weights * g) @ self.c)
        rest = g**2 * self.d - 2.0 * g * (self.c @ x) + np.einsum("p,jpq,q->j", x, self.A, x)
        rest = np.maximum(rest / squares, ROUNDING**2 * float(self.d.mean()) + 1e-300)
        free = np.maximum(self.counts - weights * np.einsum("jpq,qp->j", self.A, inverse), 0.0)
        ratios = rest * self.counts / np.maximum(free * self.d, 1e-300)
        shares = np.where(free < 0.5, 1.0, np.minimum(ratios, 1.0))
        return Explained(shares, free, rest, self.variances)


def by_chance(
    ratio: FloatArray | float, above: FloatArray | float, below: FloatArray | float = 1e9
) -> FloatArray:
    """Return the probability that the ratio of two variances of equal noise is at least so large.

    ``above`` and ``below`` are the degrees of freedom of the numerator and the denominator.
    """
    from scipy.special import fdtrc

    return np.asarray(fdtrc(np.maximum(above, 1e-3), np.maximum(below, 1e-3), ratio))


def _inverse(A: FloatArray) -> FloatArray:
    """Return the pseudoinverse of a normal matrix (p, p), scaled to a diagonal of ones."""
    squares = np.diag(A)
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    lengths = np.outer(lengths, lengths)
    return np.asarray(np.linalg.pinv(A / lengths, rcond=ROUNDED, hermitian=True) / lengths)
