# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External torques and tool wrench over changes of loads, settings and efforts."""

from __future__ import annotations

import numpy as np
from readings import reading

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot

ARM = mbs.Model.from_urdf(robot_path("arm7"))
HEAVY = ARM.with_payload("tool", 2.0, (0.0, 0.0, 0.05))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
EXTERNAL = np.linspace(-2.0, 3.0, 7)
SETTINGS = DynamicsSettings(publish=("external_torques", "tool_wrench"), observer_gain=50.0)


def heard(contact, robot, tau, messages, start, why_not=""):
    for k in range(messages):
        at_rest = reading(Q, np.zeros(7), tau, start + 10_000_000 * k, why_not)
        contact.update(robot, at_rest, robot.evaluate(at_rest.q, at_rest.qd))


def held(model, external=EXTERNAL):
    return mbs.gravity_torques(model, Q) - external


def test_a_load_that_is_announced_is_no_contact_and_starts_nothing_anew():
    contact, light, heavy = Contact(), Robot(ARM, SETTINGS), Robot(HEAVY, SETTINGS)
    heard(contact, light, held(ARM), 100, 10**9)
    np.testing.assert_allclose(contact.torques, EXTERNAL, atol=1e-6)
    assert contact.joints == ARM.joint_names
    heard(contact, heavy, held(HEAVY), 2, 2 * 10**9)
    np.testing.assert_allclose(contact.torques, EXTERNAL, atol=1e-3)
    heard(contact, heavy, held(HEAVY), 100, 3 * 10**9)
    np.testing.assert_allclose(contact.torques, EXTERNAL, atol=1e-6)


def test_a_gain_takes_effect_while_it_runs():
    contact = Contact()
    heard(contact, Robot(ARM, SETTINGS), held(ARM), 2, 10**9)
    slow = Robot(ARM, SETTINGS.changed({"observer_gain": 0.1}))
    before = contact.torques.copy()
    heard(contact, slow, held(ARM), 2, 10**9 + 20_000_000)
    assert np.abs(contact.torques - before).max() < 0.01
    assert np.abs(contact.torques - EXTERNAL).max() > 1.0


def test_joints_without_effort_are_left_out():
    contact, robot = Contact(), Robot(ARM, SETTINGS)
    tau = held(ARM)
    tau[2] = np.nan
    heard(contact, robot, tau, 100, 10**9, "no effort of joint3")
    assert contact.joints == tuple(name for name in ARM.joint_names if name != "joint3")
    np.testing.assert_allclose(contact.torques, np.delete(EXTERNAL, 2), atol=1e-6)
    assert np.isfinite(contact.wrench.W).all()
    assert contact.why_not == "no effort of joint3"
    nothing = np.full(7, np.nan)
    heard(contact, robot, nothing, 2, 3 * 10**9, "the message holds no efforts")
    assert contact.torques is None
    assert contact.wrench is None


def test_the_wrench_is_computed_for_those_who_ask():
    contact = Contact()
    asked = SETTINGS.changed({"publish": ("external_torques",)})
    heard(contact, Robot(ARM, asked), held(ARM), 3, 10**9)
    assert contact.torques is not None
    assert contact.wrench is None


def test_restart_forgets():
    contact, robot = Contact(), Robot(ARM, SETTINGS)
    heard(contact, robot, held(ARM), 3, 10**9)
    contact.restart()
    assert contact.torques is None
    heard(contact, robot, held(ARM), 1, 2 * 10**9)
    assert contact.torques is None
    assert contact.why_not == ""
