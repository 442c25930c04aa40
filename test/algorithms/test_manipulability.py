# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Manipulability and singular values, against Pinocchio, by hand and by finite differences."""

import numpy as np
import pytest
from arms import ARMS, Pinocchio, every_arm, model_of, planar, tip_of
from mechanisms import MECHANISMS, every_mechanism
from reference import assert_close

from mbs_dynamics.algorithms.manipulability import manipulability, manipulability_gradient

ROWS = {"all": range(6), "angular": range(3), "linear": range(3, 6), (1, 3, 5): (1, 3, 5)}

every_selection = pytest.mark.parametrize("rows", ROWS, ids=str)


def random_q(model, count=None, seed=1):
    shape = (model.n,) if count is None else (count, model.n)
    return np.random.default_rng(seed).uniform(-2.5, 2.5, shape)


def pin_jacobian(name, q):
    """Pinocchio's hybrid Jacobian of the hand, without joints that do not move it."""
    J = Pinocchio(name).jacobian(q, "hybrid")
    return J[:, np.any(J != 0.0, axis=0)]


@every_selection
@every_arm
def test_manipulability_is_yoshikawas(name, rows):
    model = model_of(name)
    for q in random_q(model, 5):
        J = pin_jacobian(name, q)[list(ROWS[rows])]
        expected = np.sqrt(np.linalg.det(J @ J.T))
        assert manipulability(model, q, ARMS[name], rows=rows) == pytest.approx(expected, 1e-9)


def test_a_planar_arm_by_hand():
    """Yoshikawa's example: w = l1 l2 |sin q2|."""
    model = planar(0.5, 0.3)
    q, tip = random_q(model, 20), tip_of(model)
    w = manipulability(model, q, tip, rows=(3, 4))
    assert_close(w, 0.15 * np.abs(np.sin(q[:, 1])), 1e-14)
    gradient = manipulability_gradient(model, q, tip, rows=(3, 4))
    slope = 0.15 * np.cos(q[:, 1]) * np.sign(np.sin(q[:, 1]))
    assert_close(gradient, np.stack([0.0 * slope, slope], axis=-1), 1e-14)


@every_mechanism
def test_gradient_of_mechanisms(name):
    model, h = MECHANISMS[name].model, 1e-5
    q, steps = random_q(model), h * np.eye(model.n)
    for body in {model.body_names[0], model.body_names[-1]}:
        for rows in ("all", "linear"):
            ahead, behind = manipulability(model, [q + steps, q - steps], body, rows=rows)
            found = manipulability_gradient(model, q, body, rows=rows)
            assert_close(found, (ahead - behind) / (2 * h), 1e-7)


@pytest.mark.parametrize("joint", [2, 4])
def test_singular_ur5(joint):
    """The elbow stretched, or the wrist aligned: w and its gradient are zero, and no NaN."""
    model = model_of("ur5_robot")
    q = random_q(model)
    q[joint] = 0.0
    assert manipulability(model, q, "tool0") == 0.0
    assert np.array_equal(manipulability_gradient(model, q, "tool0"), np.zeros(6))
