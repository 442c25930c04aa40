# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: joint limits, what is out of reach, and bad input."""

from __future__ import annotations

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
    targets = random_poses(20, 1.0, seed=1)
    q0 = np.random.default_rng(0).uniform(-10.0, 10.0, (20, model.n))
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
