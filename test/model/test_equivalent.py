# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equivalent model: the same equations of motion, with other frames and inertias."""

import numpy as np
import pytest
from mechanisms import MECHANISMS, every_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.lie import se3
from mbs_dynamics.model.equivalent import equivalent
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation.tree import Tree


def torques(model, state, **loads):
    """Return the torques by the equations themselves, on floats and on this very model."""
    tau = mbs.inverse_dynamics(Tree(model), *state, **loads, representation="body_fixed")
    return tau.astype(float)


def assert_equivalent(model, other):
    for seed in range(3):
        state = model.random_state(seed)
        tau = torques(model, state)
        assert_close(torques(other, state), tau, 1e-12)
        M = mbs.mass_matrix(Tree(model), state.q, representation="body_fixed").astype(float)
        found = mbs.mass_matrix(Tree(other), state.q, representation="body_fixed").astype(float)
        assert_close(found, M, 1e-12)


@every_mechanism
def test_random_mechanisms_have_the_same_equations_of_motion(name):
    model = MECHANISMS[name].model
    assert_equivalent(model, equivalent(model))
    assert_equivalent(model, equivalent(model, keep_frames=range(0, model.nb, 2)))


@every_mechanism
def test_what_is_moved_is_not_felt_and_frames_can_be_kept(name):
    model = MECHANISMS[name].model
    other = equivalent(model, keep_frames=range(model.nb))
    np.testing.assert_array_equal(other.screws().screws, model.screws().screws)
    np.testing.assert_array_equal(other.screws().homes, model.screws().homes)
    state = model.random_state(4)
    wrenches = np.random.default_rng(5).normal(size=(model.nb, 6))
    tau = torques(model, state, wrenches=wrenches)
    assert_close(torques(other, state, wrenches=wrenches), tau, 1e-12)
    leaves = set(range(model.nb)) - set(model.parents)
    for i in leaves:  # nothing was moved here from elsewhere
        body = model.bodies[i]
        moved = body.inertia.matrix() - other.bodies[i].inertia.matrix()
        scale = np.abs(body.inertia.matrix()).max()
        np.testing.assert_allclose(moved @ body.joint.screw, 0.0, atol=1e-13 * scale)
        A = np.linalg.inv(se3.Ad(se3.exp_screw(body.joint.screw, 0.8)))
        np.testing.assert_allclose(A.T @ moved @ A, moved, atol=1e-13 * scale)


@every_mechanism
def test_axes_are_z_axes_and_base_parameters_are_left(name):
    for body in equivalent(MECHANISMS[name].model).bodies:
        M, X = body.inertia, body.joint.screw
        if body.joint.kind == "prismatic":
            np.testing.assert_array_equal(body.home_rel[:3, :3], np.eye(3))
            assert not M.tensor.any()
            continue
        np.testing.assert_array_equal(X[:5], (0.0, 0.0, 1.0, 0.0, 0.0))
        assert M.second_moments[2, 2] == pytest.approx(0.0, abs=1e-15)
        if body.joint.kind == "revolute":
            assert X[5] == 0.0
            assert M.mass == 0.0
            assert M.moment[2] == 0.0


def test_second_moments_are_the_integral_of_the_products_of_coordinates():
    points = np.random.default_rng(3).normal(size=(6, 3))
    mass = 0.7
    tensor = mass * sum(x @ x * np.eye(3) - np.outer(x, x) for x in points)
    inertia = Inertia(6 * mass, mass * points.sum(axis=0), tensor)
    expected = mass * sum(np.outer(x, x) for x in points)
    np.testing.assert_allclose(inertia.second_moments, expected, atol=1e-14)
