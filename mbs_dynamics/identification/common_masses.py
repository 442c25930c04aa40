# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How well one set of masses explains the torques of several joints.

Each body acts on several joints. Scaled, reversed or exchanged torques of joints can therefore be
detected without knowing the masses: with other torques, common masses fit far better. The residual
variances are corrected for the degrees of freedom, and compared by F tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import fdtrc

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

EXPLAINED = 0.25
"""Largest share of the variance that masses may leave of torques that they explain."""


class Fit(NamedTuple):
    """Fit of common masses to torques of k joints, or to several sets of such torques."""

    shares: FloatArray
    """(..., k) residual variances over variances of the torques, at most 1."""
    freedoms: FloatArray
    """(..., k) degrees of freedom of the residual variances."""
    squares: FloatArray
    """(..., k) sums of squared residuals over variances of the torques."""
    variances: FloatArray
    """(..., k) residual variances with separate masses of each joint, over the same."""
    separate: FloatArray
    """(k,) degrees of freedom of these variances."""

    @property
    def ratios(self) -> FloatArray:
        """(..., k) residual variances over those with separate masses."""
        return np.asarray(self.squares / self.variances / np.maximum(self.freedoms, 1e-300))

    @property
    def misfit(self) -> FloatArray:
        """(...) sum of the logarithms of the shares; few degrees of freedom count less."""
        weights = self.freedoms / (self.freedoms + PRIOR)
        return np.asarray((weights * np.log(self.shares)).sum(axis=-1))

    @property
    def refuted(self) -> NDArray[np.bool_]:
        """(..., k) whether noise does not explain these ratios."""
        return np.asarray(
            fdtrc(np.maximum(self.freedoms, 1e-3), self.separate, self.ratios) < CHANCE
        )

    def decisive(self, other: Fit, least: float, changed: int = 1) -> bool:
        """Return whether this fit, with changes of ``changed`` joints, is far better than another.

        The misfits must differ by more than ``least``, and the squared residuals by more than noise
        explains.
        """
        if not other.misfit - self.misfit > least:
            return False
        freedom = max(float(self.freedoms.sum()), 1e-3)
        left = float((self.squares / self.variances).sum()) / freedom
        gained = float(((other.squares - self.squares) / self.variances).sum()) / changed
        return bool(fdtrc(changed, freedom, max(gained, 0.0) / max(left, 1e-300)) < CHANCE)


class CommonMasses:
    """Normal equations of the torques of k joints in p parameters that all joints share."""

    def __init__(self, masses: FloatArray, joint_terms: FloatArray) -> None:
        """Take the columns of masses (N, k, p), and those of friction and offsets (N, k, m).

        Rows of zeros in all columns do not count.
        """
        U, s, _ = np.linalg.svd(scaled(joint_terms).swapaxes(0, 1), full_matrices=False)
        self._terms = U * (s > 1e-9)[:, None, :]
        self._counts = joint_terms.any(axis=-1).sum(axis=0) - (s > 1e-9).sum(axis=-1)
        self.columns = self.without_terms(np.moveaxis(masses, -1, 0))
        """(p, N, k) columns of the masses without those of the joints."""
        self._A = np.einsum("pnj,qnj->jpq", self.columns, self.columns)
        self._inverses = _inverse(self._A)

    def without_terms(self, x: FloatArray) -> FloatArray:
        """Return columns x (..., N, k) with friction and offsets projected out."""
        parts = np.einsum("jnm,...nj->...jm", self._terms, x)
        return np.asarray(x - np.einsum("jnm,...jm->...nj", self._terms, parts))

    def fit(self, tau: FloatArray) -> Fit:
        """Return the fit to torques (..., N, k).

        The weight of a joint is the inverse of its residual variance with separate masses. With few
        degrees of freedom this variance is drawn to the geometric mean of all joints.
        """
        y = self.without_terms(tau)
        d, A = np.square(y).sum(axis=-2), self._A
        c = np.einsum("pnj,...nj->...jp", self.columns, y)
        least = ROUNDING**2 * d.mean(axis=-1, keepdims=True) + 1e-300
        left = np.maximum(d - np.einsum("...jp,jpq,...jq->...j", c, self._inverses, c), least)
        free = np.maximum(np.round(self._counts - (A * self._inverses).sum(axis=(1, 2))), 0.0)
        logs = np.log(left / np.maximum(free, 1.0))
        mean = (free * logs).sum(axis=-1, keepdims=True) / max(float(free.sum()), 1.0)
        variances = np.exp((free * logs + PRIOR * mean) / (free + PRIOR))
        separate = np.maximum(free + min(PRIOR, float(free.sum())), 1e-3)
        inverse = _inverse(np.einsum("...j,jpq->...pq", 1.0 / variances, A))
        x = np.einsum("...pq,...jq,...j->...p", inverse, c, 1.0 / variances)
        rest = d - 2.0 * (c @ x[..., None])[..., 0] + np.einsum("...p,jpq,...q->...j", x, A, x)
        rest = np.maximum(rest, least)
        used = np.einsum("jpq,...qp->...j", A, inverse) / variances
        free = np.maximum(self._counts - used, 0.0)
        unit = np.maximum(d, 1e-300) / np.maximum(self._counts, 1)
        shares = np.where(free < 0.5, 1.0, np.minimum(rest / np.maximum(free, 0.5) / unit, 1.0))
        return Fit(shares, free, rest / unit, variances / unit, separate)

    def exchanged(self, tau: FloatArray, others: Sequence[Fit], margin: float) -> NDArray[np.bool_]:
        """Return a mask (k,) of two joints, or of none, whose torques (N, k) are exchanged.

        If they are exchanged again, common masses explain them far better than in ``others``.
        """
        k, least = tau.shape[1], np.inf
        found = np.zeros(k, dtype=bool)
        for pair in itertools.combinations(range(k), 2):
            order = np.arange(k)
            order[list(pair)] = pair[::-1]
            fit, both = self.fit(tau[:, order]), order != np.arange(k)
            better = fit.misfit < least and (fit.shares[both] < EXPLAINED).any()
            if better and all(fit.decisive(one, margin, 2) for one in others):
                found, least = both, float(fit.misfit)
        return found

    def factors(
        self, tau: FloatArray, ratios: FloatArray, joints: NDArray[np.bool_], margin: float
    ) -> FloatArray:
        """Return factors (k,) of torques (N, k) with which common masses fit far better.

        They are 1 where none is decisive. A greedy search tries factors of ``joints``, a mask (k,).
        Only ratios of factors matter: those are 1 with which the torques agree with the
        description, by ``ratios`` (k,) of torques to it, NaN where unknown.
        """
        k, start = tau.shape[1], self.fit(tau)
        g, misfit = np.ones(k), float(start.misfit)
        changes = [(j, x) for j in np.flatnonzero(joints) for x in FACTORS]
        steps = np.array([np.where(np.arange(k) == j, x, 1.0) for j, x in changes])
        for _ in range(2 * k):
            misfits = self.fit(tau * (g * steps)[:, None, :]).misfit
            best = int(np.argmin(misfits))
            if misfits[best] > misfit - WORTH:
                break
            g, misfit = g * steps[best], float(misfits[best])
        if (g == 1.0).all():
            return g

        def disagreement(reference: float) -> float:
            scale = (g * ratios / reference)[np.isfinite(ratios)]
            return float((np.abs(np.log(np.abs(scale) + 1e-9)) + 9.0 * (scale < 0.0)).sum())

        often = sorted(g.tolist(), key=g.tolist().count, reverse=True)
        g = g / min(often, key=disagreement)
        for j in np.flatnonzero((g != 1.0) & (g > 0.0)):
            one = np.arange(k) == j

            def misfit_at(x: float, one: Any = one, g: FloatArray = g) -> float:
                return float(self.fit(tau * np.where(one, x, g)).misfit)

            limits = 0.5 * g[j], 2.0 * g[j]
            g = np.where(one, minimize_scalar(misfit_at, bounds=limits, method="bounded").x, g)
        found = self.fit(tau * g)
        for j in np.flatnonzero(g != 1.0):  # only the necessary ones
            other = np.where(np.arange(k) == j, 1.0, g)
            if not found.decisive(without := self.fit(tau * other), margin):
                g, found = other, without
        changed = g != 1.0
        shown = changed & (found.freedoms >= 0.5)  # the other joints show the rest
        explained = bool((found.shares[shown] < EXPLAINED).all())
        if explained and changed.any() and found.decisive(start, margin, int(changed.sum())):
            return g
        return np.ones(k)


def scaled(columns: FloatArray) -> FloatArray:
    """Return columns (N, ..., m) scaled to length 1; columns of zeros are unchanged."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))


def _inverse(A: FloatArray) -> FloatArray:
    """Return pseudoinverses of normal matrices (..., p, p), scaled to diagonals of ones."""
    squares = np.diagonal(A, axis1=-2, axis2=-1)
    lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    lengths = lengths[..., :, None] * lengths[..., None, :]
    return np.asarray(np.linalg.pinv(A / lengths, rcond=ROUNDED, hermitian=True) / lengths)
