# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: round trips through Pinocchio, the error, starts, batches and limits."""

import numpy as np
import pytest
from arms import (
    ARMS,
    Pinocchio,
    assert_reached,
    assert_within,
    every_arm,
    model_of,
    planar,
    random_poses,
    reachable,
    tip_of,
    with_limits,
)
from mechanisms import MECHANISMS
from reference import assert_close, exponential, hat

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.inverse_kinematics import inverse_kinematics
from mbs_dynamics.algorithms.inverse_kinematics.coordinates import reach
from mbs_dynamics.algorithms.inverse_kinematics.descent import pose_residual
from mbs_dynamics.model.joint import Limits

TOLERANCE = 1e-8


@pytest.mark.long
@every_arm
def test_a_thousand_reachable_poses(name):
    """All 3000 are found here, and 29996 of 30000 others; rounding may decide on some."""
    model, reference = model_of(name), Pinocchio(name)
    targets = reference.poses(reachable(model, 1000, seed=2026))
    found = inverse_kinematics(model, targets, ARMS[name])
    assert found.success.sum() >= 998
    assert_within(model, found.q)
    solved = found.success
    assert_reached(reference.poses(found.q[solved]), targets[solved], TOLERANCE)
    assert (found.angular_error[solved] <= TOLERANCE).all()
    assert (found.linear_error[solved] <= TOLERANCE).all()
    assert (found.reason[solved] == "converged").all()
    assert not (found.reason[~solved] == "converged").any()
    assert found.iterations.max() <= 100


def test_a_point_of_a_body_reaches_a_position():
    model = model_of("panda")
    point = np.array([0.05, -0.02, 0.15])
    q = reachable(model, 20, seed=5)
    frames = mbs.forward_kinematics(model, q, bodies=["panda_hand"])[:, 0]
    targets = frames[:, :3, :3] @ point + frames[:, :3, 3]
    found = inverse_kinematics(model, targets, "panda_hand", point=point)
    assert found.success.all()
    reached = mbs.forward_kinematics(model, found.q, bodies=["panda_hand"])[:, 0]
    error = reached[:, :3, :3] @ point + reached[:, :3, 3] - targets
    assert np.linalg.norm(error, axis=-1).max() <= TOLERANCE + 1e-12
    kernels = len(model.compiled.kernels)
    inverse_kinematics(model, targets[0], "panda_hand", point=2.0 * point)
    assert len(model.compiled.kernels) == kernels
    with pytest.raises(mbs.ArgumentError, match="point"):
        inverse_kinematics(model, frames[0], "panda_hand", point=point)


def half_turn(axis, angle):
    A = np.zeros((4, 4))
    A[:3, :3] = hat([*axis, 0.0, 0.0, 0.0])[:3, :3]
    return exponential(angle * A)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, np.pi - 1e-7, np.pi - 1e-12, np.pi])
def test_the_error_is_the_logarithm(angle):
    model, rng = model_of("panda"), np.random.default_rng(4)
    q = reachable(model, 1, seed=3)[0]
    C = mbs.forward_kinematics(model, q, bodies=["panda_hand"])[0]
    axis = rng.normal(size=3)
    D = half_turn(axis / np.linalg.norm(axis), angle)
    D[:3, 3] = rng.uniform(-1.0, 1.0, 3)
    e, _ = pose_residual(model, q, C @ D, np.zeros(3), "panda_hand")
    assert_close(exponential(hat([*e[:3], 0.0, 0.0, 0.0]))[:3, :3], D[:3, :3], 1e-14)
    assert np.linalg.norm(e[:3]) == pytest.approx(angle, abs=1e-14)
    assert_close(reach(model, "panda_hand") * e[3:], D[:3, :3].T @ D[:3, 3], 1e-12)


@pytest.mark.parametrize("axes", [None, 0, 1, 2])
@pytest.mark.parametrize("name", ["tree", "mimics", "screw chain"])
def test_the_derivative_of_the_error(name, axes):
    """Along the axes of the target, of which one may be free."""
    model = MECHANISMS[name].model
    body = model.body_names[4]
    h, point = 1e-6, np.array([0.1, -0.2, 0.3])

    def residual(q, target):
        return pose_residual(model, q, target, point, body, free=axes)

    for seed in range(5):
        q = np.random.default_rng(seed).uniform(-2.0, 2.0, model.n)
        target = random_poses(1, 1.0, seed)[0]
        e, J = residual(q, target)
        assert axes is None or abs(e[axes]) < 1e-14
        steps = h * np.eye(model.n)
        ahead, behind = (residual(p, target)[0] for p in (q + steps, q - steps))
        slopes = (behind - ahead).T / (2 * h)
        assert_close(J, slopes, 1e-8)


@pytest.mark.parametrize("joint", [0, 6])
def test_a_half_turn_away_from_the_start(joint):
    """The error starts at the angle pi, where the logarithm has two values."""
    model = model_of("arm7")
    q0 = np.array([0.3, 0.5, -0.2, -1.0, 0.4, 0.8, 0.3])
    q0[joint] = -0.5 * np.pi
    q = q0.copy()
    q[joint] += np.pi
    target = mbs.forward_kinematics(model, q)[-1]
    e, _ = pose_residual(model, q0, target, np.zeros(3), "link7")
    assert np.linalg.norm(e[:3]) == pytest.approx(np.pi, abs=1e-14)
    found = inverse_kinematics(model, target, "link7", q0=q0)
    assert found.success
    assert_reached(mbs.forward_kinematics(model, found.q)[-1], target, TOLERANCE)


def test_coordinates_that_do_not_move_the_body_stay():
    """The fingers of the Panda, even where they are beyond their limits."""
    model = model_of("panda")
    target = mbs.forward_kinematics(model, reachable(model, 1, 5)[0], bodies=["panda_hand"])[0]
    fingers = list(model.joint_names).index("panda_finger_joint1")
    for opened in (0.0, 0.013, 0.04, 0.3):
        q0 = np.zeros(model.n)
        q0[fingers] = opened
        assert inverse_kinematics(model, target, "panda_hand", q0=q0).q[fingers] == opened


def test_whole_turns_are_taken_back_towards_the_start():
    """The joints of the UR5 may turn twice: the solution is within half a turn of q0 or nearly."""
    model = model_of("ur5_robot")
    lower, upper = model.lower, model.upper
    q = reachable(model, 100, seed=3)
    targets = mbs.forward_kinematics(model, q, bodies=["tool0"])[:, 0]
    for q0 in (np.zeros(6), np.full(6, 3.0), np.array([6.0, -6.0, 1.0, -6.2, 6.2, 0.0])):
        found = inverse_kinematics(model, targets, "tool0", q0=q0)
        away = found.q - np.clip(q0, lower, upper)
        shorter = found.q - 2.0 * np.pi * np.sign(away)
        allowed = (shorter >= lower) & (shorter <= upper)
        assert (np.abs(away) <= np.pi + 1e-12)[allowed].all()
        assert_within(model, found.q)


@pytest.mark.long
@every_arm
def test_limits_are_respected_whatever_is_asked_for(name):
    model = model_of(name)
    middle, half = 0.5 * (model.lower + model.upper), 0.5 * (model.upper - model.lower)
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
    assert "joint limits" in found.reason
    assert inverse_kinematics(free, target, tip_of(free)).success
    assert_within(model, found.q)
