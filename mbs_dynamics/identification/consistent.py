# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Least squares for physically consistent links, regularized towards the description.

The pseudo-inertia of a body (Wensing, Kim and Slotine 2018), with its second moments Sigma and its
first moment h,

    P = [[Sigma, h], [h^T, m]] = integral of (x, 1) (x, 1)^T dm,

is linear in its ten inertial parameters, and positive definite if and only if some distribution of
mass has these parameters. The minimised function is

    1/2 |A x - b|^2 / s^2 + weight sum_i D(P_i, P0_i),
    D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4,

the Bregman divergence of the entropy, as in Lee, Wensing and Park (2020): it is convex, independent
of frames and units, zero for the description P0, and infinite for inconsistent parameters. Coulomb
friction, viscous friction and motor inertia, which are also positive, have the same divergence as
1 x 1 matrices. Offsets have a quadratic penalty.
"""

from __future__ import annotations

import itertools

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.inertia import Inertia

THINNEST = 0.01
"""Least spread in m of the mass of a body in the prior."""

LIGHTEST = 0.01
"""Prior mass in kg of a body without mass in the description."""

STEPS, TOLERANCE = 100, 1e-4
"""Largest number of Newton steps, and decrease of the objective, a log likelihood, that ends them.
"""

PAIRS = [(i, j) for i in range(4) for j in range(i, 4)]

UNITS = np.array(
    [[[float((i, j) in ((a, b), (b, a))) for j in range(4)] for i in range(4)] for a, b in PAIRS]
)
"""(10, 4, 4) basis of the symmetric matrices."""


def pseudo_inertia(parameters: FloatArray) -> FloatArray:
    """Return the matrix P (4, 4) of inertial parameters (10,)."""
    inertia = Inertia.from_parameters(np.asarray(parameters))
    P = np.empty((4, 4))
    P[:3, :3], P[3, 3] = inertia.second_moments, inertia.mass
    P[:3, 3] = P[3, :3] = inertia.moment
    return P


FROM_MATRIX = np.linalg.inv(
    np.array([[pseudo_inertia(unit)[a, b] for unit in np.eye(10)] for a, b in PAIRS])
)
"""(10, 10) matrix that takes the entries of P to inertial parameters."""


def is_consistent(parameters: FloatArray) -> bool:
    """Return whether a rigid body can have the inertial parameters (10,)."""
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(parameters))
    return bool(eigenvalues[0] > 0.0)


class ConsistentLeastSquares:
    """The problem in coordinates y in which the prior of each body is the identity matrix.

    The prior are the inertial parameters ``bodies`` (nb, 10), and by joint Coulomb friction,
    viscous friction, motor inertia and the size of the offset, ``joints`` (k, 4).
    """

    def __init__(self, bodies: FloatArray, joints: FloatArray) -> None:
        nb, (k, each) = len(bodies), joints.shape
        self._nb, size = nb, 10 * nb + each * k
        self.to_parameters = np.zeros((size, size))
        """x = to_parameters y."""
        for i, parameters in enumerate(bodies):
            L = np.linalg.cholesky(_prior(parameters))
            block = np.array([[(L @ unit @ L.T)[a, b] for unit in UNITS] for a, b in PAIRS])
            rows = slice(10 * i, 10 * (i + 1))
            self.to_parameters[rows, rows] = FROM_MATRIX @ block
        places = 10 * nb + np.arange(each * k).reshape(k, each)
        self.to_parameters[places, places] = joints
        self._positive, self._offsets = places[:, :3].ravel(), places[:, 3]
        self.description = np.zeros(size)
        """Coordinates y (p,) of the prior."""
        self.description[: 10 * nb] = np.tile([float(a == b) for a, b in PAIRS], nb)
        self.description[self._positive] = 1.0

    def value(self, G: FloatArray, g: FloatArray, weight: float, y: FloatArray) -> float:
        """Return 1/2 y^T G y - g^T y + weight D; infinite for inconsistent parameters."""
        positive = y[self._positive]
        eigenvalues = np.linalg.eigvalsh(self._matrices(y))
        if positive.min(initial=1.0) <= 0.0 or eigenvalues.min() <= 0.0:
            return float("inf")
        logarithms = np.log(eigenvalues).sum() + np.log(positive).sum()
        offsets = 0.5 * np.square(y[self._offsets]).sum()
        divergence = self.description @ y - logarithms + offsets  # the first term is the trace
        return float(0.5 * y @ G @ y - g @ y + weight * divergence)

    def solve(self, G: FloatArray, g: FloatArray, weight: float, y: FloatArray) -> FloatArray:
        """Return the minimum by Newton's method from y, with steps that stay feasible."""
        value, positive, offsets = self.value(G, g, weight, y), self._positive, self._offsets
        for _ in range(STEPS):
            P = self._matrices(y)
            parts = np.einsum("bij,kjl->bkil", np.linalg.inv(P), UNITS)
            gradient, hessian = G @ y - g + weight * self.description, G.copy()
            gradient[: 10 * self._nb] -= weight * np.einsum("bkii->bk", parts).ravel()
            blocks = weight * np.einsum("bkij,blji->bkl", parts, parts)
            for i, block in enumerate(blocks):
                rows = slice(10 * i, 10 * (i + 1))
                hessian[rows, rows] += block
            gradient[positive] -= weight / y[positive]
            hessian[positive, positive] += weight / y[positive] ** 2
            gradient[offsets] += weight * y[offsets]
            hessian[offsets, offsets] += weight
            step = -np.linalg.solve(hessian, gradient)
            fall = float(-gradient @ step)
            if fall < TOLERANCE:
                break
            length = self._inside(P, y, step)
            for shorter in itertools.count():
                trial = y + length * 0.5**shorter * step
                lower = self.value(G, g, weight, trial)
                if lower <= value - 1e-4 * length * 0.5**shorter * fall:
                    y, value = trial, lower
                    break
                if shorter > 40:  # rounding
                    return y
        return y

    def _matrices(self, y: FloatArray) -> FloatArray:
        return np.asarray(np.tensordot(y[: 10 * self._nb].reshape(-1, 10), UNITS, 1))

    def _inside(self, P: FloatArray, y: FloatArray, step: FloatArray) -> float:
        """Return the feasible share of a step: at most 1, and 0.95 of the way to the boundary."""
        relative = np.linalg.eigvals(np.linalg.solve(P, self._matrices(step))).real.min()
        worst = min(relative, (step[self._positive] / y[self._positive]).min(initial=np.inf))
        return min(1.0, 0.95 / -worst) if worst < 0.0 else 1.0


def _prior(parameters: FloatArray) -> FloatArray:
    """Return the pseudo-inertia of a description, made positive definite if it is not."""
    P = pseudo_inertia(parameters)
    mass = max(float(P[3, 3]), LIGHTEST)
    if P[3, 3] < LIGHTEST:
        P = np.diag([0.0, 0.0, 0.0, mass])
    centre = P[:3, 3] / mass
    eigenvalues, vectors = np.linalg.eigh(P[:3, :3] - mass * np.outer(centre, centre))
    spread = np.maximum(eigenvalues, THINNEST**2 * mass)
    P[:3, :3] = (vectors * spread) @ vectors.T + mass * np.outer(centre, centre)
    return P
