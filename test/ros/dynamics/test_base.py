# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A robot on a floating base: its base comes from odometry or an inertial sensor."""

from __future__ import annotations

import numpy as np
import pytest
from readings import formed

import mbs_dynamics as mbs
from mbs_dynamics.errors import MbsError, ModelError
from mbs_dynamics.lie import so3
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.base import BaseInput, BaseState
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import ModelManager
from mbs_dynamics.ros.robot_description import model_of

ARM7 = robot_path("arm7").read_text(encoding="utf-8")
MODEL = model_of(ARM7, floating_base=True)
TILTED = np.array([0.1, -0.7, 0.3, 0.5]) / np.linalg.norm([0.1, -0.7, 0.3, 0.5])
BASE = np.array([1.0, -2.0, 0.5, *TILTED])
V = np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.6])
Q, QD = np.random.default_rng(5).uniform(-1.0, 1.0, (2, 7))


@pytest.mark.parametrize("algorithm", ["auto", "spatial"])
def test_torques_and_the_wrench_on_the_base_are_those_of_the_model(algorithm):
    asked = {"publish": (*DynamicsSettings().publish, "mass_matrix"), "algorithm": algorithm}
    made = ModelManager(DynamicsSettings(floating_base=True, bodies=("link4",), **asked))
    assert made.describe(ARM7)
    robot = made.robot
    assert (robot.joint_names, robot.root) == (MODEL.joint_names[1:], "odom")
    state = BaseState(BASE, V)
    found = robot.evaluate(Q, QD, state)
    q, qd = np.concatenate([BASE, Q]), np.concatenate([V, QD])
    close = {"rtol": 1e-11, "atol": 1e-11}
    h, g = mbs.bias_torques(MODEL, q, qd), mbs.gravity_torques(MODEL, q)
    np.testing.assert_allclose(formed(found, "bias_torques"), h[6:], **close)
    np.testing.assert_allclose(formed(found, "gravity_torques"), g[6:], **close)
    np.testing.assert_allclose(formed(found, "base_wrench"), h[:6], **close)
    np.testing.assert_allclose(found["mass_matrix"], mbs.mass_matrix(MODEL, q), **close)
    assert found["twists"].shape == (1, 6)
    at_rest = robot.evaluate(Q, None, state)
    np.testing.assert_allclose(formed(at_rest, "base_wrench"), g[:6], **close)
    assert formed(at_rest, "bias_torques") is None
    weight = MODEL.total_mass * 9.81
    assert np.linalg.norm(formed(at_rest, "base_wrench")[3:]) == pytest.approx(weight, rel=1e-3)


def test_what_needs_a_fixed_base_or_joints_of_one_degree_of_freedom_is_refused():
    for name in ("external_torques", "tool_wrench", "desired_torques"):
        with pytest.raises(MbsError, match=f"floating_base.*{name}"):
            DynamicsSettings(floating_base=True, publish=(name,))
    text = ARM7.replace('type="revolute"', 'type="spherical"', 1)
    with pytest.raises(ModelError, match=r"'joint1'.*spherical.*3"):
        ModelManager(DynamicsSettings()).describe(text)


def odometry(taken, frame="odom", child=MODEL.body_names[0], quaternion=TILTED, at=1.0):
    return taken.odometry(frame, child, BASE[:3], quaternion, V, at)


def test_odometry_states_the_base():
    taken = BaseInput(MODEL, "odom")
    assert taken.state(1.0, 0.5) is None
    assert odometry(taken) == ""
    for got, expected in zip(taken.state(1.2, 0.5), (BASE, V), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-15)
    assert taken.state(1.6, 0.5) is None
    assert "must be that of the root link" in odometry(taken, child="elsewhere")
    assert "'map'" in odometry(taken, frame="map")
    assert "must be a unit quaternion" in odometry(taken, quaternion=2.0 * TILTED)
    assert "not finite" in odometry(taken, quaternion=np.nan * TILTED)


def test_an_inertial_sensor_states_orientation_and_rate_until_odometry_comes():
    root = MODEL.body_names[0]
    taken = BaseInput(MODEL, "robot/odom", "robot/")
    omega = np.array([0.3, 0.2, -0.1])
    assert taken.imu(f"robot/{root}", TILTED, omega, 1.0, 0.5) == ""
    q, qd = taken.state(1.0, 0.5)
    R = so3.from_quaternion(TILTED)
    np.testing.assert_allclose(so3.from_quaternion(q[3:]), R, atol=1e-14)
    np.testing.assert_array_equal(q[:3], np.zeros(3))
    np.testing.assert_allclose(qd, [*omega, 0.0, 0.0, 0.0])
    assert "those fixed to the base" in taken.imu("robot/tool", TILTED, omega, 1.0, 0.5)
    assert "unit quaternion" in taken.imu("", np.zeros(4), omega, 1.0, 0.5)
    assert odometry(taken, "robot/odom", f"robot/{root}", at=1.1) == ""
    assert taken.imu("", TILTED, omega, 1.2, 0.5) == ""
    np.testing.assert_allclose(taken.state(1.2, 0.5).qd, V)
    assert taken.imu("", TILTED, omega, 1.7, 0.5) == ""
    np.testing.assert_array_equal(taken.state(1.7, 0.5).qd[3:], np.zeros(3))


def test_a_turned_sensor_is_turned_to_the_base():
    text = ARM7.replace(
        "</robot>",
        f"""<link name="sensor"/><joint name="mount" type="fixed"><parent
        link="{MODEL.body_names[0]}"/><child link="sensor"/><origin rpy="0.3 -0.2 1.1"/></joint>
        </robot>""",
    )
    model = model_of(text, floating_base=True)
    taken = BaseInput(model, "odom")
    mounted = model.frames["sensor"].placement[:3, :3]
    R = so3.from_quaternion(TILTED)
    omega = np.array([0.3, 0.2, -0.1])
    x = so3.to_quaternion(R @ mounted)
    assert taken.imu("sensor", x, mounted.T @ omega, 1.0, 0.5) == ""
    q, qd = taken.state(1.0, 0.5)
    np.testing.assert_allclose(so3.from_quaternion(q[3:]), R, atol=1e-14)
    np.testing.assert_allclose(qd[:3], omega, atol=1e-14)
