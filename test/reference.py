# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reference values computed from the definitions alone, on a mechanism's numbers.

Nothing of the package is used, no recursion of velocities, no adjoint matrix and no screw algebra.
Exponentials are power series of (4, 4) matrices. Poses are differentiated with respect to the
positions by the product rule, the derivative of exp(X q) being X exp(X q). Twists are read off the
derivative of a pose, wrenches are dual to them, and torques are Lagrange's equations.
"""

from functools import cached_property
from typing import Any

import numpy as np
from mechanisms import GROUND, Mechanism


def assert_close(found: Any, expected: Any, tolerance: float = 1e-11, what: object = "") -> None:
    """Compare arrays: the largest absolute difference over one plus the largest absolute value."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise AssertionError(f"{what} has the shape {found.shape}; expected {expected.shape}")
    if expected.size:
        error = np.abs(found - expected).max() / (1.0 + np.abs(expected).max())
        if not error <= tolerance:  # a NaN is an error, too
            raise AssertionError(f"{what} is off by {error:.2g}:\n{found}\nexpected:\n{expected}")


def upper_factor(factors: Any) -> Any:
    """Return U (n, n) of a mass matrix U D U^T, from its nonzero entries above the diagonal."""
    U = np.eye(len(factors.D))
    for k, entries in enumerate(factors.above):
        for i, value in entries:
            U[i, k] = value
    return U


def hat(X: Any) -> Any:
    """Return the (4, 4) matrix of a screw (e, m)."""
    (a, b, c), m = X[:3], X[3:]
    return np.array([[0, -c, b, m[0]], [c, 0, -a, m[1]], [-b, a, 0, m[2]], [0, 0, 0, 0.0]])


def exponential(A: Any) -> Any:
    """Return exp(A) as a power series, after halving A until the series is short."""
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(A).max(), 1e-300)))) + 4)
    small = A / 2.0**halvings
    total, term = np.eye(len(A)), np.eye(len(A))
    for k in range(1, 16):
        term = term @ small / k
        total = total + term
    return np.linalg.matrix_power(total, 2**halvings)


def axial(A: Any) -> Any:
    """Return the vector of a skew matrix."""
    return np.array([A[2, 1], A[0, 2], A[1, 0]])


def twist(C: Any, Cd: Any, representation: str) -> Any:
    """Return the twist (6,) of the pose C with the rate Cd, as the representation defines it."""
    R, r, Rd, rd = C[:3, :3], C[:3, 3], Cd[:3, :3], Cd[:3, 3]
    in_body, in_space = axial(R.T @ Rd), axial(Rd @ R.T)
    if representation == "body_fixed":
        return np.concatenate([in_body, R.T @ rd])
    if representation == "spatial":  # the velocity of the point that is at the inertial origin
        return np.concatenate([in_space, rd - Rd @ R.T @ r])
    return np.concatenate([{"hybrid": in_space, "mixed": in_body}[representation], rd])


class Reference:
    """A mechanism at the positions q: poses and all their first and second derivatives."""

    def __init__(self, mechanism: Mechanism, q: Any) -> None:
        self.mechanism = mechanism
        n, nb = mechanism.n, mechanism.nb
        q = np.asarray(q, dtype=float)
        self.C = np.zeros((nb + 1, 4, 4))  # the last one is the ground
        self.dC = np.zeros((nb + 1, n, 4, 4))
        self.ddC = np.zeros((nb + 1, n, n, 4, 4))
        self.C[GROUND] = np.eye(4)
        for i, p in enumerate(mechanism.parents):
            k, ratio = mechanism.coordinate[i], mechanism.ratio[i]
            X = hat(mechanism.screws[i])
            E = mechanism.homes[i] @ exponential(X * (ratio * q[k] + mechanism.offset[i]))
            dE, ddE = ratio * E @ X, ratio**2 * E @ X @ X
            self.C[i] = self.C[p] @ E
            self.dC[i] = self.dC[p] @ E
            self.dC[i, k] += self.C[p] @ dE
            self.ddC[i] = self.ddC[p] @ E
            self.ddC[i, k] += self.dC[p] @ dE
            self.ddC[i, :, k] += self.dC[p] @ dE
            self.ddC[i, k, k] += self.C[p] @ ddE

    def pose(self, i: int, placement: Any = None) -> Any:
        """Return the pose of body i, or of a frame with this placement on it."""
        return self.C[i] if placement is None else self.C[i] @ placement

    def jacobian(self, i: int, representation: str, placement: Any = None) -> Any:
        """Return J (6, n) of body i, or of a frame on it; column k is the twist at qd = e_k."""
        at = np.eye(4) if placement is None else placement
        C = self.C[i] @ at
        return np.stack([twist(C, dC @ at, representation) for dC in self.dC[i]], axis=1)

    def mass_matrix(self) -> Any:
        """Return M (n, n), the sum of J^T M_i J."""
        return self._mass_matrix[0]

    def mass_matrix_derivative(self) -> Any:
        """Return dM/dq (n, n, n), its first index that of the position."""
        return self._mass_matrix[1]

    @cached_property
    def _mass_matrix(self) -> tuple[Any, Any]:
        mechanism = self.mechanism
        n = mechanism.n
        M, dM = np.zeros((n, n)), np.zeros((n, n, n))
        for i, M_i in enumerate(mechanism.inertias):
            inverse = np.linalg.inv(self.C[i])
            J, dJ = np.zeros((6, n)), np.zeros((n, 6, n))
            for k in range(n):
                A = inverse @ self.dC[i, k]  # the matrix of column k: C^-1 dC/dq_k
                J[:, k] = [*axial(A), *A[:3, 3]]
                for m in range(n):
                    B = inverse @ (self.ddC[i, m, k] - self.dC[i, m] @ A)
                    dJ[m, :, k] = [*axial(B), *B[:3, 3]]
            M += J.T @ M_i @ J
            half = dJ.transpose(0, 2, 1) @ M_i @ J
            dM += half + half.transpose(0, 2, 1)
        return M, dM

    def gravity_torques(self) -> Any:
        """Return dU/dq (n,) of U = -sum m g . c."""
        mechanism = self.mechanism
        tau = np.zeros(mechanism.n)
        for i, (m, com) in enumerate(zip(mechanism.masses, mechanism.coms, strict=True)):
            moved = self.dC[i] @ np.array([*com, 1.0])  # (n, 4)
            tau -= m * moved[:, :3] @ mechanism.gravity
        return tau

    def inverse_dynamics(
        self, qd: Any, qdd: Any, wrenches: Any = None, representation: str = "body_fixed"
    ) -> Any:
        """Return tau (n,) = d/dt dL/dqd - dL/dq - sum J^T W."""
        qd, qdd = np.asarray(qd, dtype=float), np.asarray(qdd, dtype=float)
        M, dM = self._mass_matrix
        momentum_rate = M @ qdd + np.einsum("lij,l,j->i", dM, qd, qd)
        tau = momentum_rate - 0.5 * np.einsum("lij,i,j->l", dM, qd, qd) + self.gravity_torques()
        for i in range(self.mechanism.nb if wrenches is not None else 0):
            tau = tau - self.jacobian(i, representation).T @ wrenches[i]
        return tau
