# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of the simulation: explicit Runge-Kutta schemes and dense output."""

import numpy as np
from reference import assert_close
from twins import mixed

import mbs_dynamics as mbs
from mbs_dynamics.integrate import runge_kutta
from mbs_dynamics.integrate.events import between
from mbs_dynamics.integrate.runge_kutta import DormandPrince


def rate(t, y):
    return np.array([y[1] * np.cos(t), -y[0] * y[0]])


def test_dense_output_and_tolerance():
    pair = DormandPrince(
        lambda t, y: np.array([y[1], -y[0]]), 0.0, np.array([0.0, 1.0]), rtol=1e-9, atol=1e-9
    )
    times = np.linspace(0.0, 20.0, 401)
    found = np.array([pair.at(t) for t in times])
    assert np.abs(found - np.stack([np.sin(times), np.cos(times)], axis=1)).max() < 1e-7
    assert pair.steps < 400


def test_steps_that_miss_the_tolerance_are_taken_again():
    pair = DormandPrince(
        lambda t, y: np.array([1e3 if t > 1.0 else 1.0]), 0.0, np.zeros(1), rtol=1e-9, atol=1e-9
    )
    assert_close(pair.at(2.0), [1001.0], 1e-6)


def test_positions_between_two_states_move_with_their_rates():
    model, h = mixed(0).model, 0.05
    (q0, v0, _), v1 = model.random_state(1), model.random_state(2).qd
    q1 = mbs.displaced(model, q0, h * model.random_state(3).qd)
    at = between(model)((q0, v0), (q1, v1), h)
    for s, q, v in ((0.0, q0, v0), (1.0, q1, v1)):
        np.testing.assert_allclose(mbs.difference(model, at(s)[0], q), 0.0, atol=1e-13)
        np.testing.assert_allclose(at(s)[1], v, atol=1e-12)
    for s in (0.2, 0.7):
        moved = mbs.difference(model, at(s - 1e-5)[0], at(s + 1e-5)[0])
        np.testing.assert_allclose(at(s)[1], moved / (2e-5 * h), atol=1e-6)


def test_coefficients_of_dormand_and_prince_satisfy_the_conditions_of_their_order():
    """Quadrature conditions of order 5, of order 4 for the error, and of the dense output."""
    A = np.array([[*row, *[0.0] * (7 - len(row))] for row in runge_kutta._PAIR.A])
    b, c = np.array(runge_kutta._PAIR.b), np.array(runge_kutta._PAIR.c)
    np.testing.assert_allclose(A.sum(axis=1), c, atol=1e-14)
    np.testing.assert_array_equal(A[-1], b)  # the last stage is the first of the next step
    for k in range(5):
        np.testing.assert_allclose(b @ c**k, 1.0 / (k + 1), atol=1e-15)
    np.testing.assert_allclose(b @ A @ c, 1.0 / 6.0, atol=1e-15)
    for k in range(4):
        np.testing.assert_allclose(runge_kutta._ERROR @ c**k, 0.0, atol=1e-15)
    assert abs(runge_kutta._ERROR @ c**4) > 1e-4
    dense = runge_kutta._DENSE
    np.testing.assert_allclose(dense.sum(axis=1), b, atol=1e-12)
    for k in range(4):  # the integral of t^k from 0 to s
        power = np.eye(4)[k] / (k + 1)
        np.testing.assert_allclose(c**k @ dense, power, atol=1e-12)
