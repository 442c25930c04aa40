# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint rates for a twist: damped least squares with weights and a motion in the null space."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms.kinematics import jacobian
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.coordinates import checked_positions
from mbs_dynamics.model.model import Model


def inverse_differential_kinematics(
    model: Model,
    q: ArrayLike,
    V: ArrayLike,
    body: str,
    *,
    damping: ArrayLike,
    representation: str = "body_fixed",
    twist_weights: ArrayLike | None = None,
    joint_weights: ArrayLike | None = None,
    null_space_velocity: ArrayLike | None = None,
) -> FloatArray:
    """Return joint rates qd (..., n) for a desired twist V (..., 6), by damped least squares.

    qd minimises |J qd - V|^2 + damping^2 |qd|^2 and is bounded everywhere. Zero damping yields the
    pseudoinverse solution, which grows without bound towards a singular configuration and omits the
    lost directions in it.

    ``q`` (..., nq); ``V`` in rad/s and m/s; ``body`` is the name of a body or link; ``damping``
    (...) >= 0. ``representation`` is ``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``.
    ``twist_weights`` (6,) >= 0 weigh the squared components of J qd - V, where 0 leaves one free,
    and ``joint_weights`` (n,) > 0 the squared rates. ``null_space_velocity`` (..., n) is projected
    onto the rates that do not change the weighted twist, and added.

    qd = J^T (J J^T + damping^2 I)^-1 V: Nakamura and Hanafusa (1986), Wampler (1986).

    Raises ArgumentError for a wrong shape or type, and for numbers that are not finite or have the
    wrong sign, UnknownBodyError, UnknownRepresentationError.
    """
    J = jacobian(model, q, body, representation=representation)
    checked_positions(model.joints, "q", q)
    n = model.n
    free = np.zeros(n) if null_space_velocity is None else null_space_velocity
    W_V = _weights("twist_weights", twist_weights, 6)
    W_q = _weights("joint_weights", joint_weights, n)
    V = checks.numbers("V", V, (6,), batch=True)
    free = checks.numbers("null_space_velocity", free, (n,), batch=True)
    damping = checks.not_negative("damping", damping)
    checks.batch_of(
        q=J.shape[:-2], V=V.shape[:-1], damping=damping.shape, null_space_velocity=free.shape[:-1]
    )
    if (W_q == 0.0).any():
        raise ArgumentError(f"joint_weights must be positive; got {W_q.tolist()}")
    # in the variables W_V^1/2 V and W_q^1/2 qd all weights are one
    to_V, to_q = np.sqrt(W_V), np.sqrt(W_q)
    U, s, Vt = np.linalg.svd(to_V[:, None] * J / to_q, full_matrices=False)
    regular = s > s[..., :1] * max(6, n) * np.finfo(float).eps
    gain = np.where(regular, s, 0.0) / np.where(regular, s * s + damping[..., None] ** 2, 1.0)
    along = gain * _times(U.swapaxes(-1, -2), to_V * V)
    taken = np.where(regular, _times(Vt, to_q * free), 0.0)
    qd: FloatArray = free + _times(Vt.swapaxes(-1, -2), along - taken) / to_q
    return qd


def _weights(name: str, value: ArrayLike | None, size: int) -> FloatArray:
    weights = np.ones(size) if value is None else checks.numbers(name, value, (size,))
    return checks.not_negative(name, weights, (size,))


def _times(A: FloatArray, x: FloatArray) -> FloatArray:
    """Return A x for stacks of matrices (..., m, k) and vectors (..., k)."""
    return np.asarray((A @ x[..., None])[..., 0])
