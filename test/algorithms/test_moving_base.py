# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bases that move, against the same robots on a free joint."""

from functools import lru_cache

import numpy as np
import pytest
from cases import mostly_slow
from reference import assert_close
from robots import robot
from urdf_reference import load

import mbs_dynamics as mbs
from mbs_dynamics.lie import so3

ROBOTS = ("ur5_robot.urdf", "bolt.urdf", "tiago_no_hand.urdf", "double_pendulum_continuous.urdf")
METHODS = ("articulated_body", "udut", "mass_matrix")

every_robot = pytest.mark.parametrize("name", mostly_slow(ROBOTS, ["bolt.urdf"]))
with_auto = pytest.mark.parametrize("representation", [*mbs.REPRESENTATIONS, "auto"])


@lru_cache
def flying(name):
    """A model under gravity as its base sees it, a motion, loads, and the torques of the joints.

    The base is anywhere and turned by any rotation; its twist and the rate of its components are
    body-fixed. Loads are body-fixed, too. Torques are those of the same robot on a free joint,
    which test_joints.py compares with Pinocchio.
    """
    path = robot(name)
    whole = load(path, floating_base=True)
    q, qd, qdd = whole.random_state(len(name))
    R = so3.from_quaternion(q[3:7])
    model = load(path).with_gravity(R.T @ whole.gravity)
    loads = np.random.default_rng(len(name)).uniform(-5.0, 5.0, (model.nb, 6))
    free, loaded = (
        mbs.inverse_dynamics(whole, q, qd, qdd, W)[6:] for W in (None, [np.zeros(6), *loads])
    )
    return model, (q[7:], qd[6:], qdd[6:]), qd[:6], qdd[:6], loads, free, loaded


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
