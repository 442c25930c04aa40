# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The regressor of the torques, and how many combinations of parameters they depend on.

The counts are those of Mayeda, Yoshida and Osuka, Base parameters of manipulator dynamic models
(1990): for n revolute joints whose neighbouring axes are parallel or perpendicular, 7 n - 4 b, and
2 less if the first axis is parallel to gravity, where b is how many links from the base outwards
turn about axes parallel to the first.
"""

from dataclasses import replace

import numpy as np
import pytest
from mechanisms import MECHANISMS, every_mechanism
from reference import assert_close
from robots import robot
from urdf_reference import load

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.regressor import base_parameters, inertial_parameters
from mbs_dynamics.model import Inertia


def motion(n, seed=0):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (3, n))


def with_parameters(model, parameters):
    """The model with other inertial parameters (10 nb,)."""
    bodies = [
        replace(body, inertia=Inertia.from_parameters(ten))
        for body, ten in zip(model.bodies, parameters.reshape(-1, 10), strict=True)
    ]
    return mbs.Model(model.name, tuple(bodies), model.gravity)


@pytest.mark.parametrize(
    ("name", "gravity", "count"),
    [
        ("ur5_robot.urdf", (0.0, 0.0, -9.81), 7 * 6 - 4 - 2),
        ("ur5_robot.urdf", (5.0, 0.0, -8.0), 7 * 6 - 4),
        ("ur10_robot.urdf", (0.0, 0.0, -9.81), 7 * 6 - 4 - 2),
        ("panda_without_hand", (0.0, 0.0, -9.81), 7 * 7 - 4 - 2),
    ],
)
def test_arms(name, gravity, count):
    if name == "panda_without_hand":
        model = load(robot("panda.urdf"), tip="panda_link7", gravity=gravity)
    else:
        model = load(robot(name), gravity=gravity)
    base = base_parameters(model)
    assert len(base.columns) == count
    np.testing.assert_array_equal(base.combination[:, base.columns], np.eye(count))
    q, qd, qdd = motion(model.n, seed=7)
    Y = mbs.inverse_dynamics_regressor(model, q, qd, qdd)
    beta = base.combination @ inertial_parameters(model)
    assert_close(Y[:, base.columns] @ beta, mbs.inverse_dynamics(model, q, qd, qdd), 1e-9)


@pytest.mark.long
@every_mechanism
def test_base_parameters_determine_the_torques_and_are_determined_by_them(name):
    mechanism = MECHANISMS[name]
    model = mechanism.model
    base = base_parameters(model)
    K, pi = base.combination, inertial_parameters(model)
    q, qd, qdd = np.random.default_rng(8).uniform(-2.0, 2.0, (3, 60 * mechanism.nb, mechanism.n))
    Y = mbs.inverse_dynamics_regressor(model, q, qd, qdd).reshape(-1, 10 * mechanism.nb)
    assert_close(Y[:, base.columns] @ K, Y, 1e-8)
    singular_values = np.linalg.svd(Y, compute_uv=False)
    rank = int(np.sum(singular_values > 1e-9 * singular_values[0]))
    assert len(base.columns) == rank < 10 * mechanism.nb
    _, _, Vh = np.linalg.svd(K)
    hidden = 0.01 * np.random.default_rng(9).normal(size=10 * mechanism.nb - rank) @ Vh[rank:]
    assert np.abs(hidden).max() > 1e-3
    other = mbs.compile(mbs.inverse_dynamics, with_parameters(model, pi + hidden), backend="python")
    tau = mbs.inverse_dynamics(model, q[0], qd[0], qdd[0])
    assert_close(other(q[0], qd[0], qdd[0]), tau, 1e-8)
