# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: joint limits, what is out of reach, and bad input."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from arms import (
    ARMS,
    assert_within,
    every_arm,
    limits_of,
    model_of,
    planar,
    random_poses,
    tip_of,
    with_limits,
)
from cases import mostly_slow
from mechanisms import MECHANISMS
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.inverse_kinematics import inverse_kinematics
from mbs_dynamics.model.joint import Limits


@pytest.mark.long
@every_arm
def test_limits_are_respected_whatever_is_asked_for(name):
    model = model_of(name)
    lower, upper = limits_of(model)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    narrow = {
        joint.name: Limits(m - 0.2 * h, m + 0.1 * h)
        for joint, m, h in zip(model.joints, middle, half, strict=True)
    }
    targets = random_poses(60, 1.0, seed=1)
    q0 = np.random.default_rng(0).uniform(-10.0, 10.0, (60, model.n))
    if name == "panda":
        q0[:, list(model.joint_names).index("panda_finger_joint1")] = 0.02
    for limited in (model, with_limits(model, narrow)):
        for goals in (targets, targets[:, :3, 3]):
            found = inverse_kinematics(limited, goals, ARMS[name], q0=q0, starts=6)
            assert_within(limited, found.q)
            assert not found.success.all()
            for errors in (found.angular_error, found.linear_error):
                assert np.isfinite(errors).all()
            C = mbs.forward_kinematics(limited, found.q, bodies=[ARMS[name]])[:, 0]
            distance = np.linalg.norm(C[:, :3, 3] - targets[:, :3, 3], axis=-1)
            assert_close(found.linear_error, distance, 1e-12)


def test_the_nearest_pose_within_limits():
    """One joint, limited to +-0.5: the target at 2 rad is nearest from 0.5."""
    model = planar(0.7, lower="-0.5", upper="0.5")
    target = 0.7 * np.array([np.cos(2.0), np.sin(2.0), 0.0])
    found = inverse_kinematics(model, target, tip_of(model))
    assert not found.success
    assert found.q[0] == 0.5
    assert found.linear_error == pytest.approx(1.4 * np.sin(0.75), abs=1e-12)
    assert found.reason == "joint limits: found only with j0 at 2, outside -0.5 to 0.5"


def test_limits_are_named_as_the_reason():
    model = planar(0.5, 0.4, 0.2, lower="-1", upper="1")
    free = planar(0.5, 0.4, 0.2)
    q = [0.3, 1.8, -0.2]
    target = mbs.forward_kinematics(free, q, bodies=[tip_of(free)])[0]
    found = inverse_kinematics(model, target, tip_of(model))
    assert not found.success
    assert found.reason.startswith("joint limits: found only with j")
    assert "outside -1 to 1" in found.reason
    assert inverse_kinematics(free, target, tip_of(free)).success
    assert_within(model, found.q)


def test_limits_of_mimic_joints_are_respected():
    """Joint 5 is at 0.5 q[1] and joint 4 at 0.3 - 2 q[1]: joint 4 is the one that limits q[1]."""
    model = MECHANISMS["mimics"].model
    limits = {"joint1": Limits(-1.5, 1.5), "joint4": Limits(-0.7, 0.9), "joint5": Limits(-1.0, 1.0)}
    limited = with_limits(model, limits)
    q = np.random.default_rng(3).uniform(-2.0, 2.0, (100, model.n))
    q[50:, 1] = np.random.default_rng(4).uniform(-0.3, 0.5, 50)
    targets = mbs.forward_kinematics(model, q, bodies=["body5"])[:, 0]
    found = inverse_kinematics(limited, targets, "body5")
    assert found.success[50:].all()
    assert not found.success.all()
    assert ((found.q[:, 1] >= -0.3 - 1e-15) & (found.q[:, 1] <= 0.5 + 1e-15)).all()
    contradiction = with_limits(model, {"joint4": Limits(-0.7, 0.9), "joint1": Limits(1.0, 1.5)})
    with pytest.raises(mbs.ModelError, match="'joint1'"):
        inverse_kinematics(contradiction, targets, "body5")


@pytest.mark.parametrize("limit", mostly_slow([1.0, 1.5, 2.0, 2.6], [1.0, 2.6]))
def test_targets_at_the_corners_of_the_limits_are_found(limit):
    """Poses that all joints reach at limits alone, to rounding."""
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]])
    arm = six_axes(axes, limit)
    corners = np.array(list(itertools.product((-limit, limit), repeat=6)))
    targets = mbs.forward_kinematics(arm, corners, bodies=["l6"])[:, 0]
    found = mbs.inverse_kinematics(arm, targets, "l6")
    assert found.success.all()
    assert (np.abs(found.q) <= limit).all()
    reached = mbs.forward_kinematics(arm, found.q, bodies=["l6"])[:, 0]
    assert_close(reached, targets, 1e-7)


def six_axes(axes, limit):
    text = '<robot name="r"><link name="l0"/>'
    for k, (x, y, z) in enumerate(axes, 1):
        text += (
            f'<link name="l{k}"/><joint name="j{k}" type="revolute"><parent link="l{k - 1}"/>'
            f'<child link="l{k}"/><origin xyz="{0.3 * (k > 1)} 0 0"/><axis xyz="{x} {y} {z}"/>'
            f'<limit lower="{-limit}" upper="{limit}" effort="1" velocity="1"/></joint>'
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mbs.Model.from_urdf(text + "</robot>")
