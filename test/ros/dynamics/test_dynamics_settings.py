# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set on the node, and what is refused with what reason."""

from __future__ import annotations

import numpy as np
import pytest

from mbs_dynamics.control.environment import check_gravity
from mbs_dynamics.errors import ArgumentError, UnknownRepresentationError
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings

pytestmark = pytest.mark.backend_independent


def test_the_defaults_are_valid():
    settings = DynamicsSettings()
    assert settings.representation == settings.body_representation == "hybrid"
    assert settings.needing_velocity == ("bias torques", "twists")


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"representation": "hybird"}, UnknownRepresentationError, "did you mean 'hybrid'"),
        ({"representation": "mixed"}, ArgumentError, "publish_twists false"),
        ({"bodies": ("a", "b", "a")}, ArgumentError, "got twice: a"),
        ({"gravity": (0.0, 0.0)}, ArgumentError, "gravity has shape (2,); valid is (3,)"),
        ({"gravity": (0.0, 0.0, np.nan)}, ArgumentError, "gravity must be finite"),
        ({"gravity": (0.0, 0.0, -981.0)}, ArgumentError, "length of 981 m/s^2; valid is at most"),
        ({"joint_wrenches": ("a", "a")}, ArgumentError, "each joint once; got twice: a"),
        ({"desired_joints": ("b", "b")}, ArgumentError, "each joint once; got twice: b"),
        (
            {"fixed_joints": ("a", "a"), "fixed_positions": (0.0, 1.0)},
            ArgumentError,
            "fixed_joints must name each joint once; got twice: a",
        ),
        (
            {"fixed_joints": ("a", "b"), "fixed_positions": (0.0,)},
            ArgumentError,
            "fixed_joints has 2 name(s) but fixed_positions has 1 number(s)",
        ),
        (
            {"fixed_positions": (0.0,)},
            ArgumentError,
            "fixed_joints has 0 name(s) but fixed_positions has 1 number(s)",
        ),
        (
            {"fixed_joints": ("a",), "fixed_positions": (np.nan,)},
            ArgumentError,
            "fixed_positions must be finite",
        ),
        ({"joint_wrench_acceleration": "measured"}, ArgumentError, "valid is one of zero, effort"),
        ({"observer_gain": 0.0}, ArgumentError, "observer_gain is 0; valid is 0.1 to 1000"),
        (
            {"robot_description": "<robot/>", "robot_description_file": "a.urdf"},
            ArgumentError,
            "both given",
        ),
        ({"max_rate": -1.0}, ArgumentError, "max_rate is -1; valid is 0 to 10000"),
        ({"stale_timeout": 0.0}, ArgumentError, "stale_timeout is 0; valid is 0.001 to 3600"),
    ],
)
def test_refuses_with_a_reason(changes, error, said):
    with pytest.raises(error) as caught:
        DynamicsSettings().changed(changes)
    assert said in str(caught.value)


def test_mixed_is_for_jacobians_only():
    settings = DynamicsSettings(representation="mixed", publish_twists=False)
    assert settings.body_representation == "mixed"
    with pytest.raises(ArgumentError):
        settings.changed({"publish_twists": True})


def test_auto_publishes_body_fixed():
    assert DynamicsSettings(representation="auto").body_representation == "body_fixed"


def test_velocities_are_needed_for_bias_torques_and_twists():
    assert not DynamicsSettings(publish_bias_torques=False, publish_twists=False).needing_velocity
    assert DynamicsSettings(publish_bias_torques=False).needing_velocity
    assert DynamicsSettings(publish_twists=False).needing_velocity


def test_what_needs_velocities_and_efforts():
    plain = DynamicsSettings()
    assert not plain.needs_effort
    assert not plain.observes
    assert plain.changed({"publish_energy": True}).needs_effort
    assert plain.changed({"publish_tool_wrench": True}).observes
    by_effort = {"joint_wrenches": ("a",), "joint_wrench_acceleration": "effort"}
    assert plain.changed(by_effort).needs_effort
    assert plain.changed(by_effort).needing_velocity[-1] == "joint wrenches"
    assert not plain.changed({"joint_wrenches": ("a",)}).needs_effort


def test_fixed_joints_have_their_positions():
    assert DynamicsSettings().fixed == {}
    assert DynamicsSettings(fixed_joints=("b", "a"), fixed_positions=(1.0, 2.0)).fixed == {
        "b": 1.0,
        "a": 2.0,
    }


def test_gravity_may_be_nothing():
    assert check_gravity("gravity", (0, 0, 0)).tolist() == [0.0, 0.0, 0.0]
