# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How well one set of masses explains the torques of several joints, multiplied by factors.

Each body acts on several joints. Factors of joints with which common masses explain the torques
therefore do not depend on the masses of a description.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray

ROUNDING, ROUNDED = 1e-3, 1e-12
"""Residual, as a share of the torques, that counts as none, and share of the largest eigenvalue of
scaled normal equations that counts as zero."""


class CommonMasses(NamedTuple):
    """Normal equations of the torques of k joints in p parameters that all of them share.

    Each joint has the weight of the residual that its torques have by parameters of its own.
    """

    A: FloatArray
    """(k, p, p) normal matrices."""
    c: FloatArray
    """(k, p) right sides."""
    d: FloatArray
    """(k,) squares of the torques."""
    left: FloatArray
    """(k,) squares that parameters of the joint alone leave unexplained."""

    @classmethod
    def of(cls, masses: FloatArray, tau: FloatArray) -> CommonMasses:
        """Return the equations of columns (N, k, p) and torques (N, k), without those of joints."""
        A = np.einsum("njp,njq->jpq", masses, masses)
        c, d = np.einsum("njp,nj->jp", masses, tau), np.square(tau).sum(axis=0)
        return cls(A, c, d, d).weighed()

    def weighed(self) -> CommonMasses:
        """Return the equations with the residuals by parameters of the joints alone."""
        own = [y @ _solved(B, y[:, None])[:, 0] for B, y in zip(self.A, self.c, strict=True)]
        least = max(ROUNDING**2 * float(self.d.mean()), 1e-300)
        return self._replace(left=np.maximum(self.d - np.array(own), least))

    def exchanged(self, i: int, j: int, masses: FloatArray, tau: FloatArray) -> CommonMasses:
        """Return the equations with the torques of two joints exchanged.

        ``masses`` (N, k, p), ``tau`` (N, k, k): those of joint l without what the own columns of
        joint m explain in [:, m, l].
        """
        c, d = self.c.copy(), self.d.copy()
        for one, other in ((i, j), (j, i)):
            c[one] = masses[:, one].T @ tau[:, one, other]
            d[one] = tau[:, one, other] @ tau[:, one, other]
        return self._replace(c=c, d=d).weighed()

    @property
    def own(self) -> FloatArray:
        """Shares of variance (k,) that parameters of each joint alone leave unexplained."""
        return np.asarray(self.left / np.maximum(self.d, self.left))

    def unexplained(self) -> FloatArray:
        """Return G (k, k): torques with factors g of joints leave g' G g unexplained."""
        right = (self.c / self.left[:, None]).T
        explained = right.T @ _solved(np.tensordot(1.0 / self.left, self.A, 1), right)
        return np.asarray(np.diag(self.d / self.left) - explained)

    def factors(self) -> FloatArray:
        """Return the factors (k,) of torques with which common masses explain most of them.

        Zero for joints that no masses explain.
        """
        scale = np.sqrt(np.maximum(self.d / self.left, 1e-300))
        g = np.linalg.eigh(self.unexplained() / np.outer(scale, scale))[1][:, 0] / scale
        return np.where(np.abs(g) > 1e-3 * np.abs(g).max(), g, 0.0)

    def shares(self, g: FloatArray) -> FloatArray:
        """Return the unexplained shares of variance of the joints (k,), at most 1."""
        squares = np.maximum(np.square(g), 1e-12)
        weights = 1.0 / (squares * self.left)
        x = _solved(np.tensordot(weights, self.A, 1), ((weights * g) @ self.c)[:, None])[:, 0]
        rest = g**2 * self.d - 2.0 * g * (self.c @ x) + np.einsum("p,jpq,q->j", x, self.A, x)
        rest = np.maximum(rest / squares, self.left)
        return np.asarray(np.minimum(rest / np.maximum(self.d, self.left), 1.0))

    def misfit(self, g: FloatArray) -> float:
        """Return the sum of the logarithms of the unexplained shares of the joints.

        It does not depend on the sizes of the torques of joints.
        """
        return float(np.log(self.shares(g)).sum())

    def without(self, some: NDArray[np.bool_]) -> CommonMasses:
        """Return the equations without those of joints of a mask (k,)."""
        return CommonMasses(*(x[~some] for x in self))


def _solved(A: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution (p, m) of normal equations, without what they do not determine."""
    lengths = np.sqrt(np.maximum(np.diag(A), 1e-300))[:, None]
    inverse = np.linalg.pinv(A / (lengths * lengths.T), rcond=ROUNDED, hermitian=True)
    return np.asarray(inverse @ (right / lengths) / lengths)
