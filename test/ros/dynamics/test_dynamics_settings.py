# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of dynamics_node: what contradicts each other, and what follows from them."""

from __future__ import annotations

import pytest

from mbs_dynamics.ros.dynamics.interface import DynamicsSettings

pytestmark = pytest.mark.backend_independent


def test_mixed_is_for_jacobians_only_and_auto_publishes_body_fixed():
    assert DynamicsSettings().body_representation == "hybrid"
    mixed = DynamicsSettings(representation="mixed", publish=("jacobians",))
    assert mixed.body_representation == "mixed"
    assert DynamicsSettings(representation="auto").body_representation == "body_fixed"


def test_results_that_need_velocities_and_efforts():
    plain = DynamicsSettings()
    assert plain.needing_velocity == ("bias torques", "twists")
    assert plain.changed({"publish": ("twists",)}).needing_velocity == ("twists",)
    assert (plain.needs_effort, plain.observed) == (False, ())
    assert plain.changed({"publish": ("energy",)}).needs_effort
    assert plain.changed({"publish": ("tool_wrench",)}).observed
    assert not plain.changed({"joint_wrenches": ("a",)}).needs_effort


def test_fixed_joints_have_their_positions():
    fixed = DynamicsSettings(fixed_positions=(("b", 1.0), ("a", 2.0))).fixed
    assert fixed == {"b": 1.0, "a": 2.0}
