# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Positions that no robot could have come to, and what else the node is not to be enabled for."""

from __future__ import annotations

import numpy as np
import pytest
from gravity_bench import JOINTS, MODEL, PERIOD, Bench, Q

import mbs_dynamics as mbs
from mbs_dynamics.control.input_checks import SLACK, Continuity, JointStates

FASTEST = np.array([joint.limits.velocity for joint in MODEL.joints])
WHEEL = """<robot name="wheel"><link name="base"/><link name="rim"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="axle" type="continuous"><parent link="base"/><child link="rim"/>
  <axis xyz="0 0 1"/><limit effort="10" {limit}/></joint></robot>"""


def states(q, stamps):
    """Return states that were measured at these stamps."""
    return JointStates(q, (), 0, stamps)


def seconds(t):
    return round(1e9 * t)


def stamps(t):
    """Return the stamps of the joints, all measured at the same time."""
    return [seconds(t)] * MODEL.n


def wheel(limit='velocity="2"'):
    return Continuity(mbs.Model.from_urdf(WHEEL.format(limit=limit)))


def test_what_the_speed_limits_allow_is_no_jump():
    continuity = Continuity(MODEL)
    assert continuity.check(states(Q, stamps(1.0))) is None
    q = Q + FASTEST * 0.01
    assert continuity.check(states(q, stamps(1.01))) is None
    # messages may get lost on the way
    assert continuity.check(states(q + FASTEST * 0.2, stamps(1.21))) is None


@pytest.mark.parametrize("k", range(7))
def test_what_they_do_not_allow_is_a_jump_of_that_joint(k):
    continuity = Continuity(MODEL)
    continuity.check(states(Q, stamps(1.0)))
    least = SLACK + 2.0 * FASTEST[k] * 0.01
    assert continuity.check(states(Q + 0.999 * least * np.eye(7)[k], stamps(1.01))) is None
    continuity.check(states(Q, stamps(2.0)))
    fault = continuity.check(states(Q - 1.001 * least * np.eye(7)[k], stamps(2.01)))
    assert fault.kind == "position_jump"
    assert fault.reason.startswith(f"{JOINTS[k]} jumped by -")


def test_a_joint_without_limits_may_turn_over():
    continuity = wheel()
    continuity.check(states(np.array([3.14]), stamps(1.0)))
    assert continuity.check(states(np.array([-3.14]), stamps(1.01))) is None
    assert continuity.check(states(np.array([0.0]), stamps(1.02))).kind == "position_jump"


def test_a_joint_without_velocity_limit_is_not_watched():
    continuity = wheel("")
    continuity.check(states(np.array([0.0]), stamps(1.0)))
    assert continuity.check(states(np.array([1.5]), stamps(1.01))) is None


def test_after_time_went_back_it_begins_anew():
    continuity = wheel()
    continuity.check(states(np.array([0.0]), stamps(5.0)))
    assert continuity.check(states(np.array([1.0]), stamps(1.0))) is None
    assert continuity.check(states(np.array([2.0]), stamps(1.01))).kind == "position_jump"


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
