# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A load from still poses: found, with honest deviations, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from identification_bench import TRUE

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.identification import MotionLimits, plan_excitation
from mbs_dynamics.identification.still_payload import StillPoses
from mbs_dynamics.resources import robot_path

COM = (0.01, -0.02, 0.06)
LOADED = TRUE.with_payload("tool", 2.0, COM)


def taken(poses, friction=0.0, seed=0):
    rng = np.random.default_rng(seed)
    found = StillPoses(TRUE, "tool")
    for q in poses:
        tau = mbs.gravity_torques(LOADED, q)
        found.take(q, tau + friction * rng.uniform(-1.0, 1.0, 7))
    return found


def random_poses(count, seed=1):
    return 0.7 * np.random.default_rng(seed).uniform(TRUE.lower, TRUE.upper, (count, 7))


def test_three_poses_show_the_load():
    found = taken(random_poses(3)).estimate()
    assert found.mass == pytest.approx(2.0, abs=1e-9)
    np.testing.assert_allclose(found.com, COM, atol=1e-9)


def test_friction_is_within_what_is_stated():
    inside = 0
    for seed in range(20):
        found = taken(random_poses(6, seed), friction=0.3, seed=seed).estimate()
        inside += abs(found.mass - 2.0) < 3.0 * found.mass_deviation
        assert found.mass_deviation < 0.5
    assert inside >= 19


def test_what_does_not_show_a_load_is_said():
    with pytest.raises(ArgumentError, match="2"):
        taken(random_poses(2)).estimate()
    alike = np.tile(random_poses(1), (4, 1))
    with pytest.raises(ArgumentError):
        taken(alike).estimate()
    empty = StillPoses(TRUE, "tool")
    for q in random_poses(4):
        empty.take(q, mbs.gravity_torques(TRUE, q))
    with pytest.raises(ArgumentError):
        empty.estimate()
    with pytest.raises(ArgumentError, match="torque"):
        empty.take(random_poses(1)[0], np.full(7, np.nan))
    with pytest.raises(ModelError):
        StillPoses(TRUE, "base_link")


def test_joints_with_several_degrees_of_freedom_are_refused_by_name():
    model = mbs.Model.from_urdf(robot_path("arm7"), floating_base=True)
    for attempt in (
        lambda: StillPoses(model, "tool"),
        lambda: plan_excitation(model, 20.0, limits=MotionLimits()),
    ):
        with pytest.raises(ModelError, match="'floating_base'"):
            attempt()
