# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Ellipsoids of inertias and rotations to axes, by what defines them."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view.shapes import ellipsoid_of_inertia, turn_to

ARM = mbs.Model.from_urdf(robot_path("arm7"))


@pytest.mark.parametrize("body", ARM.bodies, ids=lambda body: body.name)
def test_the_ellipsoid_has_the_inertia_of_the_body(body):
    found = ellipsoid_of_inertia(body.inertia)
    m, (a, b, c) = body.inertia.mass, found.semi_axes
    tensor = m / 5.0 * np.diag([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    R = found.axes
    np.testing.assert_allclose(R @ tensor @ R.T, body.inertia.tensor_at_com, atol=1e-12)
    np.testing.assert_allclose(found.centre, body.inertia.com)
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_no_mass_is_no_ellipsoid():
    assert not ellipsoid_of_inertia(Inertia.zero()).semi_axes.any()


def test_a_rotation_turns_z_to_a_direction():
    for direction in np.random.default_rng(3).normal(size=(10, 3)):
        R = turn_to(direction)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(R[:, 2], direction / np.linalg.norm(direction))
        assert np.linalg.det(R) == pytest.approx(1.0)
