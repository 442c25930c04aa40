# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The algebra of impedance laws: springs with dampers by ratio, for any error of a posture.

With the error x = sqrt(K) e of stiffness one, its Jacobian J with xdot = -J qd, and the inertia M
of the joints, the torques are

    tau = J^T (x + D xdot),    D = 2 zeta W^(-1/2),    W = J M^-1 J^T.

The eigenvalues of W are the squared natural frequencies of the arm on its springs, and D damps
each of these modes with the ratio zeta: Albu-Schaeffer et al., Cartesian impedance control of
redundant robots (2003), double diagonalisation. At singularities, eigenvalues go to zero, and with
them all torques of such modes. A mode that is faster than the period of the loop bears is made as
slow as that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.model.model import Model

RATIOS = 0.1, 2.0
"""Valid damping ratios."""

GAIN_MARGIN = 2.0
"""Factor of stiffness and damping with which a sampled loop must be stable still."""

RELEASED = 0.8, 0.4
"""Speeds in rad/s and m/s that springs may give to what comes free at the lead of a reference."""

LEADS, LEAST_LEADS = (0.2, 0.1), (0.05, 0.02)
"""Largest leads of a reference in rad and m, and the least: friction takes some of light joints."""

SLOWEST = 1e-9
"""Eigenvalues of W below this share of the largest are zero."""


def checked_ratio(value: Any) -> float:
    """Return a damping ratio, or raise ArgumentError."""
    ratio, (low, high) = checks.number("damping_ratio", value), RATIOS
    if not low <= ratio <= high:
        raise ArgumentError(f"damping_ratio is {ratio:g}; valid is {low:g} to {high:g}")
    return ratio


def by_joint(values: Any, names: Sequence[str], name: str) -> FloatArray:
    """Return (m,) of one value for all joints, one for each, or those of some joints, else 0."""
    if isinstance(values, Mapping):
        UnknownJointError.check(values, names)
        values = [values.get(joint, 0.0) for joint in names]
    array = checks.not_negative(name, values)
    if array.shape not in ((), (len(names),)):
        raise ArgumentError(f"{name} has shape {array.shape}; valid is one, or ({len(names)},)")
    return np.broadcast_to(array, (len(names),))


@lru_cache
def fastest_mode(ratio: float) -> float:
    """Return the largest natural frequency times period that a loop bears at a damping ratio.

    The loop holds each torque for one period, and has a delay of one; it must be stable still with
    GAIN_MARGIN times the stiffness and damping. Eigenvalues of the sampled mode, by bisection.
    """

    def stable(w: float) -> bool:
        k, d = GAIN_MARGIN * w * w, GAIN_MARGIN * 2.0 * ratio * w
        sampled = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [-k, -d, 0.0]])
        return float(abs(np.linalg.eigvals(sampled)).max()) < 1.0

    low, high = 1e-4, 2.0
    while high - low > 1e-4 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def leads(w2: FloatArray, ratio: float, period: float, linear: ArrayLike) -> FloatArray:
    """Return how far a reference may lead each of k errors, (k,) in rad or m.

    ``w2`` (k,) are squared frequencies, of the stiffness and the inertia along an error, and
    ``linear`` (k,) tells which errors are lengths; modes are softened to what the ``period`` bears
    at a damping ``ratio``. A mass that a critically damped spring of the frequency w draws over a
    distance d reaches the speed w d / e. Where there is no stiffness, nothing is drawn: infinite.
    """
    kinds = (RELEASED, LEADS, LEAST_LEADS)
    speed, most, least = (np.where(linear, each[1], each[0]) for each in kinds)
    w = np.minimum(np.sqrt(w2), fastest_mode(ratio) / max(period, 1e-9))
    with np.errstate(divide="ignore"):
        lead = np.clip(math.e * speed / w, least, most)
    return np.asarray(np.where(w > 0.0, lead, math.inf))


class JointInertia:
    """Inertia of the commanded joints, of a law's model: kernels, compiled once."""

    def __init__(self, model: Model, joints: Sequence[int]) -> None:
        self._mass_matrix = mbs.compile(mbs.mass_matrix, model)
        self._block = None
        if list(joints) == list(range(model.n)):
            self._inverse = mbs.compile(mbs.inverse_mass_matrix, model)
        else:  # the others are held
            self._block = np.ix_(joints, joints)

    def at(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return M (n, n), and the inverse (m, m) of its block of the joints, at q (n,)."""
        M: FloatArray = self._mass_matrix(q)
        if self._block is None:
            return M, self._inverse(q)
        return M, np.asarray(np.linalg.inv(M[self._block]))


class Modes(NamedTuple):
    """The modes of an arm on its springs."""

    U: FloatArray
    """(k, k) with one mode in each column."""
    w2: FloatArray
    """(k,) squared natural frequencies in 1/s^2, ascending."""

    @classmethod
    def of(cls, J: FloatArray, inverse_inertia: FloatArray) -> Modes:
        """Return the modes of an error with Jacobian J (k, m), for M^-1 (m, m)."""
        w2, U = np.linalg.eigh(J @ inverse_inertia @ J.T)
        return cls(U, w2)

    def forces(self, x: FloatArray, xd: FloatArray, ratio: float, period: float) -> FloatArray:
        """Return x + D xd (k,), of an error x (k,) and its rate, within what the period bears."""
        w2: list[float] = self.w2.tolist()
        least, most = SLOWEST * w2[-1] + 1e-30, (fastest_mode(ratio) / max(period, 1e-9)) ** 2
        modal = []  # in lists, which for so few numbers take a third of the time of arrays
        for w, a, b in zip(w2, (x @ self.U).tolist(), (xd @ self.U).tolist(), strict=True):
            square = max(w, least)
            slowed = min(1.0, most / square)
            modal.append(slowed * a + 2.0 * ratio * math.sqrt(slowed / square) * b)
        forces: FloatArray = self.U @ modal
        return forces

    def share(self, ratio: float, period: float) -> float:
        """Return the share of the stiffness that a loop with this period in s bears."""
        if period <= 0.0 or self.w2[-1] <= 0.0:
            return 1.0
        return float((fastest_mode(ratio) / period) ** 2 / self.w2[-1])
