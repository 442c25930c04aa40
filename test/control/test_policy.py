# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Computed torques that are not finite, which no valid message causes."""

from __future__ import annotations

import math

import pytest

from mbs_dynamics.control.policy import CommandLimits, CommandPolicy, GuardState, Torques

LIMITS = CommandLimits(effort=(10.0, 10.0), rate=(1e3, 1e3), ramp_time=0.1)
GRAVITY = [4.0, -2.0]


def enabled(on_fault="ramp_down"):
    """Return a policy that commands GRAVITY at 1 s."""
    policy = CommandPolicy(on_fault)
    policy.enable(0.0, LIMITS)
    assert policy.command(1.0, Torques(GRAVITY, [], [])) == GRAVITY
    assert policy.state is GuardState.ENABLED
    return policy


@pytest.mark.parametrize("on_fault", ["ramp_down", "hold", "zero"])
@pytest.mark.parametrize("part", ["gravity", "damping", "assist"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_torque_that_is_not_finite_stops_and_is_not_commanded(value, part, on_fault):
    policy = enabled(on_fault)
    torques = Torques(GRAVITY, [], [])._replace(**{part: [1.0, value]})
    later = [policy.command(1.0 + 0.01 * k, torques if k == 1 else None) for k in range(1, 20)]
    assert policy.state is GuardState.FAULT
    assert policy.fault.kind == "torque_not_finite"
    assert policy.fault.reason.endswith(f"{value} at joint 1")
    for command in filter(None, later):  # between the torques before and zero
        assert all(abs(x) <= abs(g) and x * g >= 0.0 for x, g in zip(command, GRAVITY, strict=True))
    assert policy.latest == (tuple(GRAVITY) if on_fault == "hold" else (0.0, 0.0))


def test_torques_whose_sum_overflows_are_clipped_like_others():
    policy = enabled()
    assert policy.command(2.0, Torques([1.5e308, 1.5e308], [], [])) == [10.0, 10.0]
    assert policy.state is GuardState.ENABLED


def test_torques_that_are_not_finite_after_a_stop_change_nothing():
    policy = enabled()
    policy.disable(1.0)
    policy.command(1.02, Torques([math.nan, 0.0], [], []))
    assert policy.state is GuardState.RAMPING_OUT
    assert policy.command(1.2) == [0.0, 0.0]
    assert policy.state is GuardState.DISABLED
