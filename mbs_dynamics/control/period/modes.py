# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The modes of an arm on its springs, and the torques of springs and dampers by ratio.

With the error x = sqrt(K) e of stiffness one, its Jacobian J with xdot = -J qd, and the inertia M
of the joints, the torques are

    tau = J^T (x + D xdot),    D = 2 zeta W^(-1/2),    W = J M^-1 J^T.

The eigenvalues of W are the squared natural frequencies of the arm on its springs. D damps each of
these modes with the ratio zeta: Albu-Schaeffer et al., Cartesian impedance control of redundant
robots (2003), double diagonalisation. At singularities, eigenvalues go to zero, and with them all
torques of such modes. A mode that is too fast for the period of the loop is softened.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from mbs_dynamics.compiler import abs, less, max, min, select, sqrt
from mbs_dynamics.control.period.logic import largest
from mbs_dynamics.lie.arrays import Array

SWEEPS = 5
"""Number of Jacobi sweeps, after which torques are exact to 1e-11. Convergence is quadratic."""

SLOWEST = 1e-9
"""Eigenvalues of W below this share of the largest are zero."""

SINGULAR = 1e-3
"""Share of the largest eigenvalue of W below which the projector counts a mode as singular."""

ROUNDING = 1e-18
"""Share of the diagonal below which an entry beside it counts as zero."""

TINY = 1e-30
"""Smallest divisor. It is a normal number in single precision as well."""


def on_modes(
    W: Array, vectors: list[Any], spectral: Callable[..., list[Any]]
) -> tuple[Array, list[Any]]:
    """Return U spectral(w2, U^T x, ...) with W = U diag(w2) U^T, and the eigenvalues w2 (k,).

    ``W`` (k, k) is symmetric, ``vectors`` are x (k,) and others. ``spectral`` returns a list of k
    numbers. U is a product of Jacobi rotations, which are applied to the vectors one by one.

    Golub and Van Loan, Matrix Computations (2013), section 8.5.
    """
    k = len(W)
    A = [list(row) for row in W]
    rows = [list(x) for x in vectors]
    rotations = []
    for p, q in SWEEPS * list(combinations(range(k), 2)):
        t = _tangent(A[p][p], A[p][q], A[q][q])
        c = 1.0 / sqrt(1.0 + t * t)
        s = t * c
        change = t * A[p][q]
        A[p][p], A[q][q] = A[p][p] - change, A[q][q] + change
        A[p][q] = A[q][p] = 0.0
        for i in set(range(k)) - {p, q}:
            x, y = A[i][p], A[i][q]
            A[i][p] = A[p][i] = c * x - s * y
            A[i][q] = A[q][i] = s * x + c * y
        for row in rows:
            row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
        rotations.append((p, q, c, s))
    w2 = [A[i][i] for i in range(k)]
    result = spectral(w2, *rows)
    for p, q, c, s in reversed(rotations):
        result[p], result[q] = c * result[p] + s * result[q], c * result[q] - s * result[p]
    return np.array(result), w2


def _tangent(a: Any, b: Any, d: Any) -> Any:
    """Return the tangent of the smaller rotation that makes [[a, b], [b, d]] diagonal.

    An entry b that is rounding counts as zero: its square would be a subnormal number, with which
    processors take a hundred times as long.
    """
    b = select(less(abs(b), ROUNDING * (abs(a) + abs(d))), 0.0, b)
    apart = d - a
    root = abs(apart) + sqrt(apart * apart + 4.0 * b * b)
    return select(less(apart, 0.0), -2.0, 2.0) * b / (root + TINY)


def spring_forces(W: Array, x: Any, xd: Any, free: Any, ratio: Any, most: Any) -> tuple[Array, Any]:
    """Return the forces x + D xd - W^-1 v (k,), and the largest squared frequency of a mode.

    ``most`` is the largest squared frequency that the loop can control, and ``ratio`` the damping
    ratio. ``free`` is v = J a (k,), of accelerations a of the joints that are to leave the errors
    alone: torques M a - J^T W^-1 J a do so. W^-1 is damped at singularities.
    """

    def spectral(w2: list[Any], a: list[Any], b: list[Any], v: list[Any]) -> list[Any]:
        top = largest(w2)
        floor = SINGULAR * top * (SINGULAR * top) + TINY
        forces = []
        for w, stretch, rate, freely in zip(w2, a, b, v, strict=True):
            square = max(w, SLOWEST * top + TINY)
            soft = min(1.0, most / square)
            spring = soft * stretch + 2.0 * ratio * sqrt(soft / square) * rate
            forces.append(spring - w / (w * w + floor) * freely)
        return forces

    forces, w2 = on_modes(W, [x, xd, free], spectral)
    return forces, largest(w2)
