# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Least squares of gravity torques with uncertain masses: factors of efforts, and zeros of joints.

An arm at rest reports e_j = a_j g_j(q - d). The errors of masses and centres of mass are unknown as
well; priors of usual sizes bound them, so that the standard errors of a and d contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.model import Model

MASS_ERROR, COM_ERROR, ZERO_ERROR = 0.1, 0.01, 0.2
"""Usual errors: of masses as a share, of centres of mass in m, of zeros in rad or m."""

NOISE, ASSUMED = 0.3, 1.0
"""Initial estimate of the noise of efforts, as a share of their root mean square, and its weight as
a number of measurements."""

LOAD_ROUNDS = 100
"""Rounds in which factors and the centre of mass of a load are fitted in turn."""

OFF_AXES = 0.05
"""Distance in m, along each axis, of a second first estimate of a centre of mass from the link's
frame, which may be on the axes of joints."""

ROUNDS, STEPS = 4, 3
"""Number of estimates of the noise, and of Gauss-Newton steps before each of them."""


class GravityFit(NamedTuple):
    """Result of :func:`fit_gravity` for N poses and k joints."""

    a: FloatArray
    """(k,) factors of efforts."""
    a_error: FloatArray
    """(k,) their standard errors."""
    zeros: FloatArray
    """(k,) d in rad or m."""
    zero_errors: FloatArray
    torques: FloatArray
    """(N, k) gravity torques in N m or N, with the estimated zeros and masses."""


def fit_gravity(
    model: Model,
    joints: Sequence[int],
    positions: Callable[[FloatArray], FloatArray],
    efforts: FloatArray,
) -> GravityFit:
    """Return the most probable factors, zeros, and errors of masses.

    ``joints`` are the coordinates of the k joints with ``efforts`` (N, k); ``positions`` returns
    q (N, n) for zeros d (k,).
    """
    rows, k, nb = list(joints), len(joints), model.nb
    size = np.sqrt(np.square(efforts).mean(axis=0))
    size[size == 0.0] = 1.0
    e, rest = efforts / size, np.zeros((len(efforts), model.n))
    known = mbs.inertial_parameters(model)[: 10 * nb].reshape(nb, 10)[:, :4]
    priors = np.concatenate(
        [
            np.full(k, 1e3),
            np.full(k, ZERO_ERROR),
            np.full(nb, MASS_ERROR),
            np.repeat(COM_ERROR * np.abs(known[:, 0]) + 1e-9, 3),
        ]
    )
    x, sigma = np.zeros(len(priors)), np.full(k, NOISE)
    for step in range(ROUNDS * STEPS):
        zeros, share, moment = np.split(x[k:], [k, k + nb])
        q = positions(zeros)
        Y = mbs.inverse_dynamics_regressor(model, q, rest, rest)[:, rows, : 10 * nb]
        Y = Y.reshape(len(e), k, nb, 10)[..., :4]
        parameters = known * (1.0 + share)[:, None]
        parameters[:, 1:] += moment.reshape(nb, 3)
        g = np.einsum("njip,ip->nj", Y, parameters)
        if not x.any():
            x[:k] = (e * g).sum(axis=0) / np.maximum(np.square(g).sum(axis=0), 1e-12)
        a = x[:k]
        J = np.zeros((*e.shape, len(x)))  # of a g
        J[:, range(k), range(k)] = g
        slopes = mbs.inverse_dynamics_derivatives(model, q, rest, rest)[0]
        J[..., k : 2 * k] = -a[:, None] * slopes[:, rows][..., rows]
        J[..., 2 * k : 2 * k + nb] = a[:, None] * np.einsum("njip,ip->nji", Y, known)
        J[..., 2 * k + nb :] = (a[:, None, None] * Y[..., 1:]).reshape(len(e), k, -1)
        left = e - a * g
        A = (J / sigma[:, None]).reshape(-1, len(x)) * priors
        information = A.T @ A + np.eye(len(x))
        x = x + priors * np.linalg.solve(information, A.T @ (left / sigma).ravel() - x / priors)
        if step % STEPS == STEPS - 1:
            used = (A @ np.linalg.inv(information) * A).sum(axis=1).reshape(e.shape).sum(axis=0)
            freedom = np.maximum(len(e) - used, 0.0)
            total = np.square(left).sum(axis=0) + ASSUMED * NOISE**2
            sigma = np.sqrt(total / (freedom + ASSUMED))
    errors = priors * np.sqrt(np.diag(np.linalg.inv(information)))
    return GravityFit(
        x[:k] * size,
        errors[:k] * size,
        x[k : 2 * k],
        errors[k : 2 * k],
        g,
    )


def load_misfit(
    model: Model, link: str, q: FloatArray, joints: Sequence[int], efforts: FloatArray
) -> FloatArray:
    """Return the mean squares (k,) of the part of efforts (N, k) that a load does not explain.

    In poses q (N, n) a joint reports its factor times the gravity torque of the load, whose centre
    of mass is common to all. The factors and the centre of mass are fitted in turn, from two first
    estimates; the better fit counts.
    """
    frame = model.frames[link]
    rest = np.zeros((len(q), model.n))
    columns = slice(10 * frame.body, 10 * frame.body + 4)
    Y = mbs.inverse_dynamics_regressor(model, q, rest, rest)[:, list(joints), columns]
    misfits = []
    for start in (0.0, OFF_AXES):
        com, left = frame.placement[:3, 3] + start, efforts
        for _ in range(LOAD_ROUNDS):
            g = Y[..., 0] + Y[..., 1:] @ com  # of a mass of 1 kg
            a = (efforts * g).sum(axis=0) / np.maximum(np.square(g).sum(axis=0), 1e-12)
            left = efforts - a * g
            A = (a[:, None] * Y[..., 1:]).reshape(-1, 3)
            com = np.linalg.lstsq(A, (efforts - a * Y[..., 0]).ravel(), rcond=1e-9)[0]
        misfits.append(np.asarray(np.square(left).mean(axis=0)))
    return min(misfits, key=np.sum)
