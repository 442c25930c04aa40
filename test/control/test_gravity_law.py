# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The law of torques by itself: springs at limits, damping and friction, from their definitions."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.laws.gravity import GravityLaw, Slew
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.errors import BackendError

ZONE, FREQUENCY, SPEED = 0.1, 10.0, 0.2


def robot(mass):
    """Return an arm of two joints with limits of 1 rad, the second of which moves this mass."""
    text = '<link name="base"/>'
    for k, (name, m) in enumerate((("upper", 2.0), ("lower", mass))):
        inertial = f"""<inertial><origin xyz="0.3 0 0"/><mass value="{m}"/>
            <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>"""
        text += f"""
            <link name="{name}">{inertial if m else ""}</link>
            <joint name="j{k}" type="revolute"><axis xyz="0 1 0"/><origin xyz="{0.5 * k} 0 0"/>
              <parent link="{"upper" if k else "base"}"/><child link="{name}"/>
              <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""
    return mbs.Model.from_urdf(f'<robot name="two">{text}</robot>')


def law_of(model, damping=(0.0, 0.0), friction=(0.0, 0.0)):
    terms = {"damping": damping, "friction": friction, "friction_scale": 1.0}
    springs = {"limit_zone": ZONE, "limit_frequency": FREQUENCY}
    settings = ArmSettings.of(("j0", "j1"), friction_speed=SPEED, **terms, **springs)
    return GravityLaw(model, [0, 1], settings)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_spring_has_the_frequency_and_critical_damping_at_its_full_depth(side):
    """-Lambda (w^2 x + 2 w v x / zone), with Lambda of the joint while the other one is free."""
    model = robot(1.5)
    law, q, rates = law_of(model), [0.2, side * 0.95], [0.4, -0.3]
    found = law.torques(np.array(q), q, rates, 0.0)
    inertia = 1.0 / np.linalg.inv(mbs.mass_matrix(model, q))[1, 1]
    depth = side * 0.05
    expected = -inertia * (FREQUENCY**2 * depth + 2.0 * FREQUENCY * -0.3 * 0.05 / ZONE)
    np.testing.assert_allclose(found.assist, [0.0, expected], atol=1e-12)
    np.testing.assert_allclose(found.gravity, mbs.gravity_torques(model, q), atol=1e-12)
    assert found.damping == []


@pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
def test_joint_that_moves_no_mass_has_no_spring():
    model = robot(0.0)
    q = [0.95, 0.95]
    found = law_of(model).torques(np.array(q), q, [0.0, 0.0], 0.0)
    inertia = mbs.mass_matrix(model, q)[0, 0]
    np.testing.assert_allclose(found.assist, [-inertia * FREQUENCY**2 * 0.05, 0.0], atol=1e-12)


def test_nothing_assists_or_damps_without_gains():
    model = robot(1.5)
    found = law_of(model).torques(np.zeros(2), [0.0, 0.0], [0.4, -0.3], 0.0)
    assert (found.damping, found.assist) == ([], [])
    found = law_of(model, (2.0, 0.0), (0.0, 3.0)).torques(np.zeros(2), [0.0] * 2, [0.4, -0.3], 0.0)
    np.testing.assert_allclose(found.damping, [-0.8, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.assist, [0.0, -2.7 * np.tanh(1.5)], atol=1e-12)


@pytest.mark.parametrize("duration", [0.25, 1.0, 4.0])
def test_slew_is_a_straight_line_that_takes_its_duration(duration):
    slew = Slew(np.array([1.0, -2.0]))
    np.testing.assert_array_equal(slew.at(7.0), [1.0, -2.0])
    slew.aim(np.array([3.0, 2.0]), 7.0, duration)
    for share in (-0.5, 0.0, 0.25, 0.75, 1.0, 1.5):
        within = min(max(share, 0.0), 1.0)
        expected = [1.0 + 2.0 * within, -2.0 + 4.0 * within]
        np.testing.assert_allclose(slew.at(7.0 + share * duration), expected, atol=1e-14)
    slew.aim(np.zeros(2), 20.0, 0.0)
    np.testing.assert_array_equal(slew.at(20.0), np.zeros(2))


def test_code_that_differs_from_the_equations_moves_no_arm(monkeypatch):
    model, compiled = robot(1.5), mbs.compile
    law_of(model)
    monkeypatch.setattr(mbs, "compile", lambda f, _, **named: compiled(f, robot(1.6), **named))
    with pytest.raises(BackendError, match="gravity_torques"):
        law_of(model)


def test_a_representation_whose_code_differs_changes_nothing(monkeypatch):
    model, compiled, q = robot(1.5), mbs.compile, [0.2, 0.4]
    law = law_of(model)
    before = law.goal_torques(np.array(q))
    monkeypatch.setattr(mbs, "compile", lambda f, _, **named: compiled(f, robot(1.6), **named))
    with pytest.raises(BackendError):
        law.compute_by("spatial")
    assert law.algorithm == "auto"
    assert law.goal_torques(np.array(q)) == before
    np.testing.assert_allclose(before, mbs.gravity_torques(model, q), atol=1e-12)
