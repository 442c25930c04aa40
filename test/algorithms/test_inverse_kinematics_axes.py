# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics along some axes, and with the position first, as short arms need it."""

import numpy as np
import pytest
from arms import angle_of, model_of
from reference import assert_close
from robots import all_files, robot
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import inverse_kinematics

pytestmark = pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
TARGETS = 40


@pytest.fixture(scope="module")
def so101():
    """Five joints and a gripper."""
    if not all_files():
        pytest.skip("example-robot-data is not installed")
    return mbs.Model.from_urdf(robot("so101.urdf"))


def reachable_poses(model, body):
    rng = np.random.default_rng(0)
    return mbs.pose(model, rng.uniform(model.lower, model.upper, (TARGETS, model.n)), body)


@pytest.mark.long
@pytest.mark.parametrize("axis", range(3))
def test_a_tool_turns_about_a_free_axis(so101, axis):
    """Targets are turned about an axis of the tool by up to half a turn."""
    model, body = so101.with_frame("tool", "gripper_link", np.eye(4)), "tool"
    if axis < 2:  # the fifth joint turns about z of the gripper: make that another axis
        turn = np.eye(4)
        turn[:3, :3] = np.eye(3)[[[2, 0, 1], [1, 2, 0]][axis]]
        model, body = model.with_frame("turned", "tool", turn), "turned"
    angles = np.linspace(-np.pi, np.pi, TARGETS)
    targets = reachable_poses(model, body)
    targets[:, :3, :3] @= Rotation.from_rotvec(angles[:, None] * np.eye(3)[axis]).as_matrix()
    weights = np.ones(6)
    weights[axis] = 0.0
    found = inverse_kinematics(model, targets, body, weights=weights)
    assert found.success.all()
    C = mbs.pose(model, found.q, body)
    assert_close(C[:, :3, axis], targets[:, :3, axis], 1e-8)
    assert_close(C[:, :3, 3], targets[:, :3, 3], 1e-8)
    assert ((model.lower <= found.q) & (found.q <= model.upper)).all()
    assert max(found.angular_error) <= 1e-8


@pytest.mark.parametrize(
    "weights", [(0, 0, 0, 0, 0, 1), (1, 1, 1, 0, 0, 0), (0, 2, 0, 1, 0, 1), (1, 1, 1, 1, 1, 1)]
)
def test_axes_of_the_target_with_weights_are_reached(weights):
    model = model_of("arm7")
    targets = reachable_poses(model, "tool")
    found = inverse_kinematics(model, targets, "tool", weights=weights)
    assert found.success.all()
    C = np.linalg.inv(targets) @ mbs.pose(model, found.q, "tool")
    rotation = Rotation.from_matrix(C[:, :3, :3]).as_rotvec()
    errors = np.concatenate([rotation, C[:, :3, 3]], axis=1)
    counts = np.array(weights) > 0
    assert np.abs(errors[:, counts]).max() < 2e-8
    assert counts.all() or np.abs(errors[:, ~counts]).max() > 0.1


@pytest.mark.long
def test_the_position_comes_first_and_the_orientation_as_near_as_can_be(so101):
    """No minimiser with the position as a constraint finds an orientation that is nearer."""
    body, joints = "gripper_link", 5
    targets = reachable_poses(so101, body)
    targets[:, :3, :3] = Rotation.random(TARGETS, random_state=1).as_matrix()
    found = inverse_kinematics(so101, targets, body, position_first=True)
    assert found.success.all()
    C = mbs.pose(so101, found.q, body)
    assert_close(C[:, :3, 3], targets[:, :3, 3], 1e-8)
    for k, (target, q, C_k) in enumerate(zip(targets, found.q, C, strict=True)):
        angle = angle_of(C_k[:3, :3].T @ target[:3, :3])
        assert found.angular_error[k] == pytest.approx(angle, abs=1e-7)
        assert "position" in found.reason[k]
        assert f"{angle:.3g}" in found.reason[k]
        if k % 16:
            continue

        def pose(x, q=q):
            return mbs.pose(so101, [*x, *q[joints:]], body)

        def turned(x, target=target):
            return 3.0 - np.trace(pose(x)[:3, :3].T @ target[:3, :3])

        def off(x, target=target):
            return 10.0 * (pose(x)[:3, 3] - target[:3, 3])

        limits = list(zip(so101.lower, so101.upper, strict=True))[:joints]
        for start in (q[:joints], *np.random.default_rng(k).uniform(*np.array(limits).T, (3, 5))):
            other = minimize(
                turned, start, bounds=limits, constraints={"type": "eq", "fun": off}, method="SLSQP"
            )
            if np.abs(off(other.x)).max() < 1e-6:
                assert turned(q[:joints]) < other.fun + 1e-5
