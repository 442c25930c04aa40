# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Forces of the floor on a robot that stands, against statics."""

import numpy as np
import pytest
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.integrate.standing import Contact, standing_forces
from mbs_dynamics.resources import robot_path


@pytest.fixture(scope="module")
def quadruped():
    model = mbs.Model.from_urdf(robot("go2.urdf"), floating_base=True)
    q = model.neutral(within_limits=True)
    poses = mbs.forward_kinematics(model, q)
    feet = [i for i, body in enumerate(model.bodies) if body.name.endswith("calf")]
    return model, q, [Contact(i, poses[i, :3, 3] + [0.0, 0.0, -0.2]) for i in feet]


@pytest.mark.parametrize("wrenches", [None, {"base": np.array([1.0, 2.0, 0.0, 3.0, -4.0, 5.0])}])
def test_forces_leave_nothing_for_the_joint_of_the_base(quadruped, wrenches):
    model, q, contacts = quadruped
    poses, rest = mbs.forward_kinematics(model, q), np.zeros(model.n)
    forces = standing_forces(model, q, contacts, wrenches)
    torques = mbs.inverse_dynamics(model, q, rest, rest, wrenches)
    for (body, point), force in forces:
        local = poses[body, :3, :3].T @ (point - poses[body, :3, 3])
        name = model.bodies[body].name
        J = mbs.frame_jacobian(model, q, local, name, representation="hybrid")
        torques = torques - J[3:].T @ force
    assert len(forces) >= 3
    np.testing.assert_allclose(torques[:6], 0.0, atol=1e-6)
    assert all(force @ model.gravity <= 1e-9 for _, force in forces)


def test_one_point_does_not_hold_a_floating_base():
    model = mbs.Model.from_urdf(robot_path("arm7"), floating_base=True)
    contact = Contact(0, np.array([5.0, 0.0, 0.0]))
    assert standing_forces(model, model.neutral(), [contact]) == []


def test_a_fixed_base_needs_no_floor():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    assert standing_forces(model, model.neutral(), [Contact(0, np.zeros(3))]) == []
