# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The Coriolis matrix and the Christoffel symbols, by composite body matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.mass_matrix import composite_inertias
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import InverseAdjoint, ad, ad_dual
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.tree import Model
from mbs_dynamics.representation import BodyFixed, Operator, Representation


@algorithm(invariant=True)
def coriolis_matrix(model: Model, q: ArrayLike, qd: ArrayLike) -> FloatArray:
    """Return the Coriolis matrix C(q, qd) (..., n, n) for which Mdot - 2 C is skew.

    C qd is the Coriolis and centrifugal part of :func:`bias_torques`. It is the matrix of the
    Christoffel symbols, C_ij = sum_k Gamma_ijk qd_k, in O(n d) from composite body matrices.
    Mueller (dynamics), eq. (84), gives another matrix with the same C qd, whose Mdot - 2 C is not
    skew.

    q, qd (..., n). Raises ArgumentError for a wrong shape or type.
    """
    return _coriolis(model, q, qd)


@algorithm(invariant=True)
def christoffel_symbols(model: Model, q: ArrayLike) -> FloatArray:
    """Return the Christoffel symbols of the first kind Gamma (..., n, n, n) of the mass matrix.

    h_i - g_i = sum_jk Gamma_ijk qd_j qd_k and Gamma_ijk = Gamma_ikj: Mueller (dynamics), eq. (86)
    with its indices corrected. Read off :func:`coriolis_matrix`, which is linear in qd.

    q (..., n). Raises ArgumentError for a wrong shape or type.
    """
    gamma = [_coriolis(model, q, rate) for rate in np.eye(model.n)]
    return np.moveaxis(np.array(gamma).reshape(model.n, model.n, model.n), 0, -1)


def _coriolis(model: Model, q: Array, qd: Array) -> FloatArray:
    rep = BodyFixed(model, q)
    rate = model.joint_rates(qd)
    V = twists_of(model, rep, rate)
    M, B = composite_inertias(model, rep), composite_gyrations(model, rep, V)
    C: Array = np.full((model.nb, model.nb), 0.0, dtype=object)
    Sd = [ad(V[i]) @ rep.screw(i) for i in range(model.nb)]  # the rate of a screw that moves along
    for j, p in model.inward():
        S = rep.screw(j)
        column, row, row_rate = M[j] @ Sd[j] + B[j] @ S, B[j].T @ S, M[j] @ S
        C[j, j] = S @ column
        child, i = j, p
        while i != GROUND:
            dual = rep.carry(child).T
            column, row, row_rate = dual @ column, dual @ row, dual @ row_rate
            C[i, j] = rep.screw(i) @ column
            C[j, i] = rep.screw(i) @ row + Sd[i] @ row_rate
            child, i = i, model.parents[i]
    return np.asarray(model.generalized_matrix(C))


def twists_of(model: Model, rep: Representation, rate: list[Any]) -> list[Any]:
    """Return the twists of all bodies, and of the ground at index -1."""
    V = model.per_body(np.zeros(6))
    for i, p in model.outward():
        V[i] = rep.carry(i) @ V[p] + rep.screw(i) * rate[i]
    return V


def gyration(M: Any, V: Array) -> Array:
    """Return B (6, 6) = 1/2 (-ad_V^T M - M ad_V + F), F X = -ad_X^T (M V), of one body.

    B V is the velocity wrench of Mueller (dynamics), eq. (41), and B + B^T the rate of M along V.
    """
    ad_V, matrix = ad(V), M.matrix()
    half = matrix @ ad_V
    return 0.5 * (-half.T - half + ad_dual(M @ V))


def composite_gyrations(model: Model, rep: Representation, V: list[Any]) -> list[Any]:
    """Return for each body the sum of :func:`gyration` over all that its joint moves."""
    B = [gyration(rep.inertia(i), V[i]) for i in range(model.nb)]
    for i, p in model.inward():
        if p != GROUND:
            B[p] = B[p] + _carried(rep.carry(i), B[i])
    return B


def _carried(carry: Operator, B: Array) -> Array:
    return carry.bilinear(B) if isinstance(carry, InverseAdjoint) else B
