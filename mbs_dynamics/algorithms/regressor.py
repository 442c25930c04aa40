# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inertial parameters, in which torques are linear, and their identifiable combinations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.newton_euler import recursion
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.se3 import ad
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import BodyFixed, to_ancestors
from mbs_dynamics.representation.tree import Tree, rotors

__all__ = ["base_parameters", "inertial_parameters", "inverse_dynamics_regressor"]

PARAMETERS = 10
"""Number of inertial parameters of a body."""


@algorithm(invariant=True)
def inverse_dynamics_regressor(
    model: Tree, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike
) -> FloatArray:
    """Return the regressor Y (..., n, 10 nb) with tau = Y pi for :func:`inertial_parameters` pi.

    The ten parameters of a body are m, m d (3) and xx, xy, xz, yy, yz, zz of the tensor about the
    body's origin. Y does not depend on them and shows which of them a motion excites. If the model
    has armature, n columns follow, those of its coordinates: Y is (..., n, 10 nb + n).
    """
    rep = BodyFixed(model, q)
    V, Vd, _ = recursion(model, rep, qd, qdd)
    Y = model.rows_per_pair(PARAMETERS)
    for i, _ in model.outward():
        units = [Inertia.from_parameters(unit) for unit in np.eye(PARAMETERS)]
        W = np.array([M @ Vd[i] - ad(V[i]).T @ (M @ V[i]) for M in units]).T  # D (41)
        Y[i, i] = rep.screw(i).T @ W
        for j, (W_j,) in to_ancestors(rep, i, W):
            Y[j, i] = rep.screw(j).T @ W_j
    rows = model.to_coordinates(Y.matrix.T).T
    return np.hstack([rows, np.diag(qdd)]) if model.has_armature else rows


def inertial_parameters(model: Model) -> FloatArray:
    """Return the inertial parameters pi (10 nb,) of a model in SI units, loads included.

    If it has armature, that of the n coordinates follows.
    """
    parameters = [body.inertia.parameters for body in model.loaded().bodies]
    return np.concatenate([np.array(parameters, dtype=np.float64).reshape(-1), rotors(model)])


class BaseParameters(NamedTuple):
    """Combinations of inertial parameters that torques depend on: tau = Y[:, columns] beta."""

    columns: tuple[int, ...]
    """Indices into pi of a largest set of independent columns of the regressor."""
    combination: FloatArray
    """(b, p) matrix K with beta = K pi, p = len(pi); its columns ``columns`` are the identity."""


def base_parameters(model: Model) -> BaseParameters:
    """Return the combinations of inertial parameters that can be identified from torques.

    The null space of the regressor is computed from its values at random states, the same ones each
    time, with at least three times as many equations as parameters.
    """
    rng, count = np.random.default_rng(0), 30 * model.nb // max(model.n, 1) + 10
    q = rng.uniform(-np.pi, np.pi, (count, model.nq))  # quaternions of any length
    qd, qdd = rng.uniform(-3.0, 3.0, (2, count, model.n))
    Y = inverse_dynamics_regressor(model, q, qd, qdd)
    return independent_columns(Y.reshape(count * model.n, Y.shape[-1]))


def independent_columns(Y: FloatArray) -> BaseParameters:
    """Return a maximal set of independent columns of Y (..., p), and all columns in terms of it.

    Y pi = Y[:, columns] K pi for all pi (p,).
    """
    _, R = np.linalg.qr(Y)
    columns: list[int] = []
    basis = np.zeros((len(R), 0))
    scale = float(np.abs(R).max(initial=0.0))
    for k in range(R.shape[1]):  # keep a column if it leaves the span of those kept before
        rest = R[:, k] - basis @ (basis.T @ R[:, k])
        rest -= basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > 1e-9 * scale:
            columns.append(k)
            basis = np.column_stack([basis, rest / length])
    K = np.linalg.lstsq(R[:, columns], R, rcond=None)[0]
    K[np.abs(K) < 1e-9] = 0.0
    K[:, columns] = np.eye(len(columns))
    return BaseParameters(tuple(columns), K)
