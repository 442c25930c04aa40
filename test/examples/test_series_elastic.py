# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The example of a series-elastic arm: under feed-forward alone it follows the trajectory."""

import numpy as np
import pytest
from mechanisms import TREE, random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from examples import series_elastic as example
from mbs_dynamics.resources import robot_path

ARMS = {
    "arm7": lambda: mbs.Model.from_urdf(robot_path("arm7")),
    "tree": lambda: random_mechanism(61, TREE).model,  # with slides and screws, too
}


def worst_error(arm, steps, known_springs=True):
    """Simulate the elastic arm by Runge and Kutta's method; how far the links are off at worst."""
    K, B = np.linspace(300.0, 500.0, arm.n), np.linspace(0.2, 0.4, arm.n)
    start, goal = np.full(arm.n, 0.1), np.linspace(0.9, -0.6, arm.n)
    duration = 0.5
    h = duration / steps
    t = np.linspace(0.0, duration, 2 * steps + 1)  # with the middles of the steps
    motion = example.rest_to_rest(start, goal, duration, t)
    theta, thetad, tau = example.feed_forward(arm, motion, K, B)
    if not known_springs:
        tau = mbs.inverse_dynamics(arm, *motion[:3]) + B * motion[2]
    x = np.array([motion[0, 0], theta[0], motion[1, 0], thetad[0]])
    worst = 0.0
    for k in range(0, 2 * steps, 2):
        k1 = example.elastic_dynamics(arm, x, tau[k], K, B)
        k2 = example.elastic_dynamics(arm, x + 0.5 * h * k1, tau[k + 1], K, B)
        k3 = example.elastic_dynamics(arm, x + 0.5 * h * k2, tau[k + 1], K, B)
        k4 = example.elastic_dynamics(arm, x + h * k3, tau[k + 2], K, B)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        expected = motion[0, k + 2], theta[k + 2], motion[1, k + 2], thetad[k + 2]
        worst = max(worst, np.abs(x - expected)[:2].max())
    return worst


@pytest.mark.long
@pytest.mark.parametrize("name", ARMS)
def test_the_arm_follows_the_trajectory_to_the_accuracy_of_the_integrator(name):
    arm = ARMS[name]()
    coarse, fine = worst_error(arm, 500), worst_error(arm, 1000)
    assert fine < 1e-8
    assert 14.0 < coarse / fine < 18.0  # 2^4: what is left is the integrator's
    assert worst_error(arm, 500, known_springs=False) > 1e-3


def test_motion_starts_and_ends_at_rest():
    start, goal = np.array([0.1, -0.2]), np.array([1.0, 2.0])
    motion = example.rest_to_rest(start, goal, 2.0, [0.0, 0.7, 2.0])
    assert_close(motion[0, [0, 2]], [start, goal], 1e-12)
    assert_close(motion[1:, [0, 2]], np.zeros((4, 2, 2)), 1e-10)
    h = 1e-4
    near = example.rest_to_rest(start, goal, 2.0, [0.7 - h, 0.7 + h])
    assert_close((near[:4, 1] - near[:4, 0]) / (2 * h), motion[1:, 1], 1e-7)


def test_it_runs(capsys):
    example.main()
    assert "Without springs in the model: off by" in capsys.readouterr().out
