# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External torques and tool wrench over changes of loads, settings and efforts."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.gravity_share import GravityShare
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot

ARM = mbs.Model.from_urdf(robot_path("arm7"))
HEAVY = ARM.with_payload("tool", 2.0, (0.0, 0.0, 0.05))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
EXTERNAL = np.linspace(-2.0, 3.0, 7)
SETTINGS = DynamicsSettings(publish=("external_torques", "tool_wrench"), observer_gain=50.0)


def heard(contact, robot, tau, messages, start, why_not=""):
    for k in range(messages):
        at_rest = Reading(Q, np.zeros(7), "", tau, why_not, start + 10_000_000 * k, False)
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


def test_nothing_is_known_without_efforts_and_after_a_restart():
    contact, robot = Contact(), Robot(ARM, SETTINGS.changed({"publish": ("external_torques",)}))
    heard(contact, robot, held(ARM), 3, 10**9)
    assert contact.torques is not None
    assert contact.wrench is None
    nothing, why_not = np.full(7, np.nan), "the message holds no efforts"
    heard(contact, robot, nothing, 1, 15 * 10**8, why_not)
    assert contact.torques is None
    assert contact.why_not == why_not
    heard(contact, robot, held(ARM), 3, 16 * 10**8)
    contact.restart()
    heard(contact, robot, held(ARM), 1, 2 * 10**9)
    assert contact.torques is None
    assert contact.why_not == ""


# -- efforts without gravity -----------------------------------------------------------------------

POSES = np.random.default_rng(2).uniform(-1.2, 1.2, (4, 7))


def problems(efforts, poses=POSES):
    """Return what is said after each pose, in which ``efforts(q, g)`` are measured."""
    share, said, now = GravityShare(), [], 0.0
    for q in poses:
        tau = efforts(q, mbs.gravity_torques(ARM, q))
        share.store(now, q, np.full(7, 0.5), tau)  # on the way
        for _ in range(10):
            now += 0.1
            share.store(now, q, np.zeros(7), tau)
        said.append(share.problem(ARM))
    return said


@pytest.mark.parametrize(
    ("share", "cause"),
    [(-1.0, "against the axes"), (0.0, "subtract"), (0.6, "subtract"), (1.6, "N m"), (2.0, "N m")],
)
def test_efforts_that_hold_another_share_of_gravity_are_named(share, cause):
    said = problems(lambda q, g: share * g)
    assert bool(said[0]) == (share == 0.0)  # idle efforts show in a single pose
    assert f"hold {100 * share:.0f} % of gravity in 4 pose(s)" in said[-1]
    assert cause in said[-1].split("contact")[1]


def test_efforts_that_hold_gravity_are_accepted_with_friction_and_contacts_and_noise_is_not():
    rng = np.random.default_rng(1)
    said = problems(lambda q, g: 0.03 * np.abs(g).max() * rng.uniform(-1.0, 1.0, 7))
    assert "hold" in said[-1]
    assert not any(problems(lambda q, g: g + rng.uniform(-1.0, 1.0, 7)))
    assert not any(problems(lambda q, g: 1.1 * g))

    def contact(q, g):
        J = mbs.jacobian(ARM, q, "tool", representation="spatial")
        return g - J.T @ rng.normal(0.0, 20.0, 6)

    assert not any(problems(contact))


def test_motion_and_unknown_efforts_tell_nothing():
    share = GravityShare()
    for k in range(20):
        share.store(0.1 * k, POSES[0], np.full(7, 0.1), np.zeros(7))
    assert share.problem(ARM) == ""
    assert not any(problems(lambda q, g: np.full(7, np.nan)))
    partly = problems(lambda q, g: np.where(np.arange(7) < 4, 0.0, np.nan))
    assert "hold 0 % of gravity" in partly[-1]
