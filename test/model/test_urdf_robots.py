# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robots of example-robot-data, against Pinocchio."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from cases import mostly_slow
from robots import MOTIONLESS, robot, robot_files
from urdf_reference import assert_same_poses, load, pin_inertia, pin_model, pin_positions

import mbs_dynamics as mbs
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.joint import Limits
from mbs_dynamics.representation.tree import Tree

ROBOTS = robot_files()
QUICK = (
    "allegro_left_hand.urdf", "baxter.urdf", "anymal-kinova.urdf", "icub.urdf", "kinova.urdf",
    "panda.urdf", "pr2.urdf", "so101.urdf", "solo12.urdf", "talos_full_v2.urdf",
    "tiago_pro.urdf", "ur5_robot.urdf",
)  # fmt: skip
"""Arms, hands, legged and wheeled robots; the others of their makers run with the slow tests."""


def assert_joints_and_bodies_are_pinocchios(name, model, reference):
    mimics = {
        joint.get("name")
        for joint in ElementTree.parse(ROBOTS[name]).getroot().iterfind("joint")
        if joint.find("mimic") is not None and joint.get("type") != "fixed"
    }
    by_joint = {body.joint.name: body for body in model.bodies}
    assert by_joint.keys() == set(reference.names[1:])
    assert set(model.joint_names) == set(reference.names[1:]) - mimics
    assert {j for j, body in by_joint.items() if body.joint.mimics is not None} == mimics
    for i, body in enumerate(model.bodies):
        above = reference.parents[reference.getJointId(body.joint.name)]
        parent = model.bodies[body.parent].joint.name if body.parent != GROUND else "universe"
        assert reference.names[above] == parent
        assert body.parent < i


def assert_merged_inertias_are_pinocchios(name, model, reference):
    for body in model.bodies:
        expected = pin_inertia(reference.inertias[reference.getJointId(body.joint.name)])
        found = (body.inertia.mass, body.inertia.moment, body.inertia.tensor)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=body.name)


def assert_all_links_are_where_pinocchio_has_them(name, model, reference):
    for seed in range(3):
        q = np.random.default_rng(seed).uniform(-2.0, 2.0, model.n)
        positions = {
            body.joint.name: position[0]
            for body, position in zip(model.bodies, Tree(model).joint_positions(q), strict=True)
        }
        assert_same_poses(model, reference, q, pin_positions(reference, positions))


def assert_limits_and_friction_are_pinocchios(name, model, reference):
    for body in model.bodies:
        joint = body.joint
        theirs = reference.joints[reference.getJointId(joint.name)]
        assert joint.damping == reference.damping[theirs.idx_v]
        assert joint.friction == reference.friction[theirs.idx_v]
        if joint.limits != Limits():  # Pinocchio has its own numbers where nothing is stated
            assert joint.limits.velocity == reference.velocityLimit[theirs.idx_v]
            assert joint.limits.effort == reference.effortLimit[theirs.idx_v]
        if joint.limits.lower is not None:
            assert joint.limits.lower == reference.lowerPositionLimit[theirs.idx_q]
            assert joint.limits.upper == reference.upperPositionLimit[theirs.idx_q]


def assert_all_mass_is_accounted_for(name, model, reference):
    stated = {}
    for link in ElementTree.parse(ROBOTS[name]).getroot().iterfind("link"):
        mass = link.find("inertial/mass")
        stated[link.get("name")] = 0.0 if mass is None else float(mass.get("value"))
    moving = sum(body.inertia.mass for body in model.bodies)
    grounded = sum(m for name, m in stated.items() if model.frames[name].body == GROUND)
    assert moving + grounded == pytest.approx(sum(stated.values()), rel=1e-12)


@pytest.mark.parametrize("name", mostly_slow(ROBOTS, [x for x in ROBOTS if x.endswith(QUICK)]))
def test_a_real_robot_is_that_of_pinocchio(name, capfd):
    model = load(ROBOTS[name])
    assert capfd.readouterr() == ("", "")
    reference = pin_model(ROBOTS[name])
    assert_joints_and_bodies_are_pinocchios(name, model, reference)
    assert_merged_inertias_are_pinocchios(name, model, reference)
    assert_all_links_are_where_pinocchio_has_them(name, model, reference)
    assert_limits_and_friction_are_pinocchios(name, model, reference)
    assert_all_mass_is_accounted_for(name, model, reference)


@pytest.mark.parametrize("name", MOTIONLESS)
def test_a_robot_without_joints_loads_and_says_so(name):
    with pytest.warns(mbs.ModelWarning):
        model = mbs.Model.from_urdf(robot(name))
    assert (model.n, model.nb) == (0, 0)
    base = next(iter(model.frames))
    assert np.array_equal(mbs.forward_kinematics(model, [], bodies=[base])[0], np.eye(4))
    assert mbs.gravity_torques(model, []).shape == (0,)
    assert mbs.jacobian(model, [], base).shape == (6, 0)
