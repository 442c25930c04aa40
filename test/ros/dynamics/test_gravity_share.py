# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Efforts without gravity are told from contacts of a robot at rest."""

from __future__ import annotations

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.gravity_share import GravityShare

ARM = mbs.Model.from_urdf(robot_path("arm7"))
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


@pytest.mark.parametrize("share", [-1.0, 0.0, 0.3, 0.6, 1.6])
def test_efforts_that_hold_another_share_of_gravity_are_named(share):
    said = problems(lambda q, g: share * g)
    assert bool(said[0]) == (share == 0.0)  # idle efforts show in a single pose
    assert f"hold {100 * share:.0f} % of gravity in 4 pose(s)" in said[-1]


def test_idle_efforts_with_noise_or_friction_are_named():
    rng = np.random.default_rng(1)
    said = problems(lambda q, g: 0.03 * np.abs(g).max() * rng.uniform(-1.0, 1.0, 7))
    assert "hold" in said[-1]


def test_efforts_that_hold_gravity_are_accepted_with_friction_and_contacts():
    rng = np.random.default_rng(1)
    assert not any(problems(lambda q, g: g + rng.uniform(-1.0, 1.0, 7)))
    assert not any(problems(lambda q, g: 1.1 * g))
    pushed = [rng.normal(0.0, 20.0, 6) for _ in POSES]
    wrenches = iter(pushed)

    def contact(q, g):
        J = mbs.jacobian(ARM, q, "tool", representation="spatial")
        return g - J.T @ next(wrenches)

    assert not any(problems(contact))


def test_motion_and_unknown_efforts_tell_nothing():
    share = GravityShare()
    for k in range(20):
        share.store(0.1 * k, POSES[0], np.full(7, 0.1), np.zeros(7))
    assert share.problem(ARM) == ""
    assert not any(problems(lambda q, g: np.full(7, np.nan)))
    partly = problems(lambda q, g: np.where(np.arange(7) < 4, 0.0, np.nan))
    assert "hold 0 % of gravity" in partly[-1]
