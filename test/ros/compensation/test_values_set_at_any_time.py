# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity, payload and settings act whenever they are set, in both nodes."""

import numpy as np
import pytest
from gravity_bench import ARM7, MODEL, Bench, G, Q, settings
from impedance_settings import impedance_settings

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator

TILTED = (0.0, 6.0, -7.76)
COM = (0.0, 0.02, 0.05)


def set_payload(bench):
    bench.core.set_load(LinkLoad("tool", 2.0, COM, ((0.0,) * 3,) * 3), bench.now)


def set_gravity(bench):
    bench.core.set_gravity(LinkGravity("", TILTED), bench.now)


def set_parameter(bench):
    changed = bench.core.settings.changed({"gravity": TILTED})
    bench.core.check(changed, bench.now)
    bench.core.change(changed, bench.now)


CHANGES = {
    "payload": (set_payload, MODEL.with_payload("tool", 2.0, COM)),
    "gravity": (set_gravity, MODEL.with_gravity(TILTED)),
    "parameter": (set_parameter, MODEL.with_gravity(TILTED)),
}


def bench_of(node):
    bench = Bench(describe="")
    if node == "impedance":
        bench.core = GravityCompensator(impedance_settings())
    bench.core.describe(ARM7, bench.now)
    bench.adopt()
    return bench


@pytest.mark.long
@pytest.mark.parametrize("node", ["gravity", "impedance"])
@pytest.mark.parametrize("when", ["before states", "before enabling"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_is_set_before_enabling_acts_afterwards(node, when, what):
    bench = bench_of(node)
    change, changed = CHANGES[what]
    if when == "before states":
        change(bench)
    bench.run(0.2)
    if when == "before enabling":
        change(bench)
        bench.run(0.2)
    assert bench.core.enable(bench.now) == ""
    bench.run(1.5)
    assert bench.state == "enabled"
    wanted = mbs.gravity_torques(changed, Q)
    assert np.abs(wanted - G).max() > 5.0
    np.testing.assert_allclose(bench.torques[-1], wanted, atol=0.05 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "changed",
    [
        {"damping": (0.3,) * 7},
        {"limit_zone": 0.2},
        {"limit_zone": 0.0},
        {"position_margin": 0.06},
    ],
)
def test_a_setting_changed_while_enabled_kicks_no_joint_at_a_limit(changed):
    at_limit = np.where(np.arange(7) == 1, MODEL.joints[1].limits.upper - 0.02, Q)
    bench = Bench().enabled(q=at_limit)
    before = bench.torques[-1]
    bench.core.change(bench.core.settings.changed(changed), bench.now)
    bench.run(2.0, at_limit)
    steps = np.abs(np.diff(bench.torques, axis=0))[-200:]
    assert steps.max() < 0.2
    if changed.get("limit_zone") != 0.2:
        np.testing.assert_allclose(bench.torques[-1], before, atol=1e-9)


def test_springs_hold_a_joint_back_again_once_it_has_left_the_limit():
    upper = MODEL.joints[1].limits.upper
    at_limit = np.where(np.arange(7) == 1, upper - 0.02, Q)
    bench = Bench().enabled(q=at_limit)
    bench.move(at_limit, Q)
    bench.move(Q, at_limit)
    bench.run(0.1, at_limit)
    pushed = bench.torques[-1] - mbs.gravity_torques(MODEL, at_limit)
    assert pushed[1] < -1.0
    assert settings().limit_zone == 0.1
