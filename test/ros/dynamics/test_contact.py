# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External torques and tool wrench over changes of loads, settings and efforts."""

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot

ARM = mbs.Model.from_urdf(robot_path("arm7"))
HEAVY = ARM.with_payload("tool", 2.0, (0.0, 0.0, 0.05))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
REST = np.zeros(7)
EXTERNAL = np.linspace(-2.0, 3.0, 7)
SETTINGS = DynamicsSettings(publish=("external_torques", "tool_wrench"), observer_gain=50.0)


def received(contact, robot, tau, messages, start, why_not="", q=Q, qd=REST):
    """Process messages at 100 Hz; return the results after the latest."""
    found = {}
    for k in range(messages):
        reading = Reading(q, qd, "", tau, why_not, start + 10_000_000 * k, False)
        found = contact.update(robot, reading, robot.evaluate(q, qd))
    return found


def held(model, external=EXTERNAL):
    return mbs.gravity_torques(model, Q) - external


def torques(found):
    return found["external_torques"][1]


def test_an_announced_load_is_no_contact_and_restarts_nothing():
    light, heavy = Robot(ARM, SETTINGS), Robot(HEAVY, SETTINGS)
    contact = Contact(light)
    found = received(contact, light, held(ARM), 100, 10**9)
    np.testing.assert_allclose(torques(found), EXTERNAL, atol=1e-6)
    assert contact.joints == found["external_torques"][0] == ARM.joint_names
    found = received(contact, heavy, held(HEAVY), 2, 2 * 10**9)
    np.testing.assert_allclose(torques(found), EXTERNAL, atol=1e-3)
    found = received(contact, heavy, held(HEAVY), 100, 3 * 10**9)
    np.testing.assert_allclose(torques(found), EXTERNAL, atol=1e-6)


def test_a_gain_takes_effect_while_the_observer_runs():
    robot = Robot(ARM, SETTINGS)
    contact = Contact(robot)
    before = torques(received(contact, robot, held(ARM), 2, 10**9)).copy()
    slow = Robot(ARM, SETTINGS.changed({"observer_gain": 0.1}))
    after = torques(received(contact, slow, held(ARM), 2, 10**9 + 20_000_000))
    assert np.abs(after - before).max() < 0.01
    assert np.abs(after - EXTERNAL).max() > 1.0


def test_nothing_is_known_without_efforts_and_after_the_start():
    robot = Robot(ARM, SETTINGS.changed({"publish": ("external_torques",)}))
    contact = Contact(robot)
    assert received(contact, robot, held(ARM), 1, 10**9) == {}
    assert contact.missing == ""
    assert received(contact, robot, held(ARM), 3, 11 * 10**8).keys() == {"external_torques"}
    nothing, why_not = np.full(7, np.nan), "the message holds no efforts"
    assert received(contact, robot, nothing, 1, 15 * 10**8, why_not) == {}
    assert contact.missing == f"~/external_torques missing or partial: {why_not}"


# -- efforts without gravity -----------------------------------------------------------------------

POSES = np.random.default_rng(2).uniform(-1.2, 1.2, (4, 7))


def said(efforts, qd=REST):
    """Return whether each pose, with the efforts ``efforts(q, g)``, is said to show no gravity."""
    robot = Robot(ARM, SETTINGS)
    contact, lines = Contact(robot), []
    for k, q in enumerate(POSES):
        tau = efforts(q, mbs.gravity_torques(ARM, q))
        received(contact, robot, tau, 2, 10**9 * (k + 1), q=q, qd=qd)
        lines.append("efforts hold no gravity" in contact.partial)
    return lines


def test_efforts_that_hold_no_gravity_at_rest_are_named():
    rng = np.random.default_rng(1)
    for efforts in (
        lambda q, g: 0.0 * g,
        lambda q, g: 0.03 * np.abs(g).max() * rng.uniform(-1.0, 1.0, 7),
        lambda q, g: np.where(np.arange(7) < 4, 0.0, np.nan),
    ):
        assert all(said(efforts))


def test_efforts_that_hold_gravity_are_accepted_with_friction_and_contacts_and_in_motion():
    rng = np.random.default_rng(1)
    assert not any(said(lambda q, g: g + rng.uniform(-1.0, 1.0, 7)))
    assert not any(said(lambda q, g: 1.1 * g))
    assert not any(said(lambda q, g: 0.0 * g, qd=np.full(7, 0.1)))
    assert not any(said(lambda q, g: np.full(7, np.nan)))

    def contact(q, g):
        J = mbs.jacobian(ARM, q, "tool", representation="spatial")
        return g - J.T @ rng.normal(0.0, 20.0, 6)

    assert not any(said(contact))
