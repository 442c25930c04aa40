# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Positions that no robot could have come to, and what else the node is not to be enabled for."""

from __future__ import annotations

import numpy as np
import pytest
from gravity_bench import PERIOD, Bench, Q


def seconds(t):
    return round(1e9 * t)


def test_two_publishers_of_joint_states_are_a_fault_while_enabled():
    bench = Bench().enabled()
    bench.now += PERIOD
    answer = bench.send(np.zeros(7))
    assert answer.rejected.kind == "position_jump"
    assert bench.fault == "position_jump"
    for words in ("two sources", "simulation reset"):
        assert words in bench.core.policy.fault.reason
    bench.silence(1.5)
    assert bench.core.policy.at_rest


def test_two_publishers_of_joint_states_are_not_followed_during_the_stop():
    bench = Bench().enabled()
    held = bench.torques[-1]
    for k in range(50):
        bench.now += PERIOD
        bench.send((np.zeros(7), Q)[k % 2])
    left = 1.0 - (bench.now - bench.times[-50]) / 1.0
    np.testing.assert_allclose(bench.torques[-1], left * held, atol=1e-9)


def test_enabling_is_refused_while_two_publishers_report_one_robot():
    bench = Bench()
    for k in range(20):
        bench.now += PERIOD
        bench.send((np.zeros(7), Q)[k % 2])
    assert "joint1 jumped by" in bench.core.enable(bench.now)
    bench.run(0.1)  # a robot that was put elsewhere, as simulated ones are, is all right
    assert bench.core.enable(bench.now) == ""


@pytest.mark.parametrize("after", [1, 3, 4, 5])
def test_one_wrong_state_before_enabling_is_no_motion_after_it(after):
    bench = Bench()
    bench.run(0.2)
    bench.now += PERIOD
    assert bench.send(np.where(np.arange(7) == 1, 2.06, Q)).rejected.kind == "position_limit"
    bench.now += PERIOD
    assert bench.send().rejected.kind == "position_jump"
    assert "joint2 jumped by" in bench.core.enable(bench.now)
    bench.run(after * PERIOD)
    assert bench.core.enable(bench.now) == ""
    bench.run(1.5)
    assert bench.state == "enabled"


def test_a_clock_that_is_reset_stops_it_and_is_followed_after_a_pause():
    bench = Bench().enabled()
    bench.now += PERIOD
    assert bench.send(stamp=seconds(0.5)).rejected.kind == "time_backwards"
    assert bench.fault == "time_backwards"
    bench.silence(1.5)
    assert bench.core.policy.at_rest
    for k in range(3):  # the robot is elsewhere after the reset
        bench.now += PERIOD
        assert bench.send(0.5 * Q, stamp=seconds(2.0 + PERIOD * k)).rejected is None
    assert bench.state == "fault"
    assert bench.core.enable(bench.now) == ""


def test_enabling_is_refused_while_others_command():
    bench = Bench()
    bench.send()
    assert bench.core.enable(bench.now, rivals=2) == (
        "2 other publisher(s) on /forward_effort_controller/commands"
    )
    assert bench.core.enable(bench.now) == ""
    assert bench.core.enable(bench.now, rivals=1) == ""  # it is enabled already
