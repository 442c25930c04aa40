# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The statements of derivations.md that lie between the equations that the code evaluates."""

import numpy as np
import pytest
from reference import assert_close

from mbs_dynamics.algorithms.coriolis import Gyration
from mbs_dynamics.lie.se3 import Ad, InverseAdjoint, ad, exp, inverse
from mbs_dynamics.lie.so3 import hat
from mbs_dynamics.model.inertia import Inertia

every_seed = pytest.mark.parametrize("seed", range(5))


def particles(seed):
    """Masses (8,) and places (8, 3), and the inertia of the body that they are."""
    rng = np.random.default_rng(seed)
    masses, places = rng.uniform(0.1, 1.0, 8), rng.normal(size=(8, 3))
    M = sum(
        Inertia.from_com(m, x, np.zeros((3, 3))).matrix()
        for m, x in zip(masses, places, strict=True)
    )
    return masses, places, Inertia.from_matrix(M)


def matrix(B):
    return np.column_stack([B @ unit for unit in np.eye(6)])


@every_seed
def test_the_gyration_is_the_sum_over_particles(seed):
    """(1), (2), and the two statements that follow: the velocity wrench, and the rate of M."""
    masses, places, M = particles(seed)
    V, Y, X = np.random.default_rng(seed + 10).normal(size=(3, 6))
    B, rate = np.zeros((6, 6)), np.zeros((6, 6))
    for m, x in zip(masses, places, strict=True):
        u = V[3:] + np.cross(V[:3], x)
        B[:3, :3] -= m * hat(x) @ hat(u)
        B[3:, :3] -= m * hat(u)
        turning = -(hat(u) @ hat(x) + hat(x) @ hat(u))
        rate += m * np.block([[turning, hat(u)], [-hat(u), np.zeros((3, 3))]])
    gyration = Gyration.of(M, V)
    found = matrix(gyration)
    assert_close(found, B)
    assert_close([*gyration.transposed(Y), 0.0, 0.0, 0.0], B.T @ Y)
    C = exp(X)
    carry = np.linalg.inv(Ad(C))
    moved = gyration.carried(InverseAdjoint(C[:3, :3], C[:3, 3]))
    assert_close(matrix(moved), carry.T @ B @ carry)
    assert_close(found + found.T, rate)
    assert_close(found @ V, -ad(V).T @ (M @ V))


@every_seed
def test_a_change_of_the_twist_changes_the_wrench_by_twice_the_gyration(seed):
    """B(V) Y - B(Y) V = -M ad_V Y, and (5)."""
    M = particles(seed)[2]
    V, Y, rate = np.random.default_rng(seed + 20).normal(size=(3, 6))
    of_V, of_Y = (matrix(Gyration.of(M, X)) for X in (V, Y))
    assert_close(of_V @ Y - of_Y @ V, -M.matrix() @ ad(V) @ Y)
    changed = M @ rate + of_Y @ V + of_V @ Y
    assert_close(changed, 2.0 * of_V @ Y + M @ (rate + ad(V) @ Y))


@every_seed
def test_rates_of_a_screw_that_is_fixed_to_the_parent(seed):
    """(3), (4): how twist and rate change as the joint turns, against differences."""
    V_p, Vd_p, S = np.random.default_rng(seed + 30).normal(size=(3, 6))
    qd, qdd, h = 0.7, -0.4, 1e-6

    def moving(q):
        carry = Ad(inverse(exp(S * q)))
        V = carry @ V_p + S * qd
        return V, carry @ Vd_p + S * qdd + ad(carry @ V_p) @ S * qd

    (V, _), ahead, behind = moving(0.0), moving(h), moving(-h)
    Y, change = ((a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True))
    assert_close(Y, ad(V_p) @ S, 1e-8)
    assert_close(change + ad(V) @ Y, ad(Vd_p) @ S + ad(V_p) @ ad(V_p) @ S, 1e-7)
