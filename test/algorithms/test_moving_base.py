# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bases that move: real robots on Pinocchio's free-flyer, and trees cut from larger trees."""

from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from mechanisms import pose
from reference import assert_close
from robots import robot
from urdf_reference import load, pin_positions

import mbs_dynamics as mbs

ROBOTS = ("ur5_robot.urdf", "bolt.urdf", "tiago_no_hand.urdf", "double_pendulum_continuous.urdf")
METHODS = ("articulated_body", "udut", "mass_matrix")

every_robot = pytest.mark.parametrize("name", mostly_slow(ROBOTS, ["bolt.urdf"]))
with_auto = pytest.mark.parametrize("representation", [*mbs.REPRESENTATIONS, "auto"])


@lru_cache
def flying(name):
    """A model under gravity as its base sees it, a motion, loads, and Pinocchio's torques.

    The base is anywhere and turned by any rotation; its twist and the rate of its components are
    body-fixed, as Pinocchio's are. Loads are body-fixed, too.
    """
    path = str(robot(name))
    theirs = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    rng = np.random.default_rng(len(name))
    base = pose(rng)
    model = load(path).with_gravity(base[:3, :3].T @ theirs.gravity.linear)
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, model.n))
    twist, rate = rng.uniform(-2.0, 2.0, (2, 6))
    loads = rng.uniform(-5.0, 5.0, (model.nb, 6))
    at = pin_positions(theirs, dict(zip(model.joint_names, q, strict=True)))
    at[:7] = pin.SE3ToXYZQUAT(pin.SE3(base))
    where = [theirs.joints[theirs.getJointId(joint)].idx_v for joint in model.joint_names]
    v, a = np.zeros((2, theirs.nv))
    v[:6], a[:6] = np.roll(twist, 3), np.roll(rate, 3)  # linear part first
    v[where], a[where] = qd, qdd
    forces = pin.StdVec_Force()
    forces.extend([pin.Force.Zero()] * len(theirs.joints))
    for body, W in zip(model.bodies, loads, strict=True):
        forces[theirs.getJointId(body.joint.name)] = pin.Force(W[3:], W[:3])
    data = theirs.createData()
    free = pin.rnea(theirs, data, at, v, a)[where]
    loaded = pin.rnea(theirs, data, at, v, a, forces)[where]
    return model, (q, qd, qdd), twist, rate, loads, free, loaded


def in_representation(model, q, loads, representation):
    """Loads in another representation, the inertial frame of which coincides with the base."""
    target = "body_fixed" if representation == "auto" else representation
    poses = mbs.forward_kinematics(model, q)
    return mbs.convert_wrench(loads, poses, source="body_fixed", target=target)


@with_auto
@every_robot
def test_inverse_dynamics_on_a_flying_base(name, representation):
    model, motion, twist, rate, loads, free, loaded = flying(name)
    same = {"representation": representation}
    assert_close(mbs.inverse_dynamics(model, *motion, None, twist, rate, **same), free)
    W = in_representation(model, motion[0], loads, representation)
    assert_close(mbs.inverse_dynamics(model, *motion, W, twist, rate, **same), loaded)


@pytest.mark.parametrize("method", METHODS)
@with_auto
@every_robot
def test_forward_dynamics_on_a_flying_base(name, representation, method):
    model, (q, qd, qdd), twist, rate, loads, free, loaded = flying(name)
    same = {"method": method, "representation": representation}
    if representation == "auto":
        found = mbs.forward_dynamics(model, q, qd, free, None, twist, rate, **same)
    else:
        W = in_representation(model, q, loads, representation)
        found = mbs.forward_dynamics(model, q, qd, loaded, W, twist, rate, **same)
    M = mbs.mass_matrix(model, q)  # of condition 5e6 for the robot with wheels: compare torques
    assert_close(M @ found, M @ qdd)


def test_an_accelerated_base_is_gravity_and_falls_weightless():
    model, (q, qd, qdd), *_ = flying("ur5_robot.urdf")
    up = np.array([1.0, 2.0, 3.0])
    push = [0.0, 0.0, 0.0, *up]
    tau = mbs.inverse_dynamics(model, q, qd, qdd, base_acceleration=push)
    heavier = model.with_gravity(model.gravity - up)
    assert_close(tau, mbs.inverse_dynamics(heavier, q, qd, qdd))
    falling = mbs.inverse_dynamics(
        model, q, 0 * q, 0 * q, base_acceleration=[0.0, 0.0, 0.0, *model.gravity]
    )
    assert_close(falling, 0 * q)
