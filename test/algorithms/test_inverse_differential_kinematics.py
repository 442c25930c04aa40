# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint rates for a twist: the formula with Pinocchio's Jacobian, optimality, and bad input."""

import numpy as np
import pytest
from arms import ARMS, LOCAL, Pinocchio, every_arm, model_of
from reference import assert_close

from mbs_dynamics.algorithms.inverse_kinematics import inverse_differential_kinematics


def state(name, seed=1):
    """q, V and qd of a generic state."""
    n, rng = model_of(name).n, np.random.default_rng(seed)
    return rng.uniform(-2.0, 2.0, n), rng.uniform(-1.0, 1.0, 6), rng.uniform(-1.0, 1.0, n)


def rates(name, q, V, **options):
    """Return the rates of an arm's joints for a twist of its hand."""
    return inverse_differential_kinematics(model_of(name), q, V, ARMS[name], **options)


@pytest.mark.parametrize("representation", LOCAL)
@pytest.mark.parametrize("damping", [1e-3, 0.1, 3.0])
@every_arm
def test_it_is_damped_least_squares(name, damping, representation):
    q, V, _ = state(name)
    J = Pinocchio(name).jacobian(q, representation)
    expected = J.T @ np.linalg.solve(J @ J.T + damping**2 * np.eye(6), V)
    found = rates(name, q, V, damping=damping, representation=representation)
    assert_close(found, expected, 1e-9)


@every_arm
def test_without_damping_the_twist_is_exact_and_the_rates_are_the_least(name):
    q, V, _ = state(name)
    J = Pinocchio(name).jacobian(q)
    found = rates(name, q, V, damping=0.0)
    assert_close(J @ found, V, 1e-12)
    assert_close(found, np.linalg.lstsq(J, V, rcond=None)[0], 1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("name", ["panda", "arm7"])
def test_motion_in_the_null_space(name, damping):
    """It leaves the twist alone, and is the nearest such motion in the weighted norm."""
    q, V, qd = state(name)
    weights = np.linspace(0.5, 2.0, len(qd))
    options = {"damping": damping, "joint_weights": weights}
    plain = rates(name, q, V, **options)
    found = rates(name, q, V, null_space_velocity=qd, **options)
    J, moved = Pinocchio(name).jacobian(q), found - plain
    assert np.abs(moved).max() > 0.1
    assert_close(J @ moved, np.zeros(6), 1e-13)
    kernel = np.linalg.svd(J)[2][6:]  # rows that span the null space
    assert_close(kernel @ (weights * (moved - qd)), np.zeros(len(kernel)), 1e-13)
    still = rates(name, q, np.zeros(6), null_space_velocity=moved, **options)
    assert_close(still, moved, 1e-13)


@pytest.mark.parametrize("joint", [2, 4])
def test_singular_configurations(joint):
    """Bounded by |V| / (2 damping); undamped it leaves out the lost direction. No NaN."""
    q, V, qd = state("ur5_robot")
    q[joint] = 0.0
    J = Pinocchio("ur5_robot").jacobian(q)
    for damping in (1e-6, 1e-2, 1.0):
        found = rates("ur5_robot", q, V, damping=damping)
        assert np.linalg.norm(found) <= np.linalg.norm(V) / (2 * damping)
    found = rates("ur5_robot", q, V, damping=0.0, null_space_velocity=qd)
    U, s, Vt = np.linalg.svd(J)
    assert s[-1] < 1e-14
    assert_close(U[:, :5].T @ (J @ found - V), np.zeros(5), 1e-11)
    assert_close(Vt[5] @ (found - qd), 0.0, 1e-11)
