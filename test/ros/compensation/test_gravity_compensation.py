# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation without ROS: what is commanded, and what stops it."""

import itertools
import math

import numpy as np
import pytest
from gravity_bench import ARM7, JOINTS, MODEL, PERIOD, REST, Bench, G, Q

import mbs_dynamics as mbs
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.errors import ArgumentError

OTHER = ARM7.replace('effort="180"', 'effort="170"', 1)
BEYOND = np.where(np.arange(7) == 1, 2.06, Q)
FAST = np.where(np.arange(7) == 3, 99.0, REST)
NAN = np.where(np.arange(7) == 2, np.nan, Q)


def until_stale(send):
    """Return the function that sends bad messages, and no good one, until the input is stale."""

    def again(bench):
        while bench.state != "fault" and bench.core.engaged:
            send(bench)
            bench.now += PERIOD
        if not bench.core.engaged and bench.fault is None:
            send(bench)

    return again


def race(bench):
    """Turn joint 1, whose axis is vertical, faster than its 2 rad/s."""
    for k in range(1, 7):
        bench.run(PERIOD, Q + 0.03 * k * np.eye(7)[0], REST)


STOPS = {
    "stale": lambda b: b.silence(0.25),
    "time_backwards": until_stale(lambda b: b.send(stamp=b.stamp - 10**6)),
    "duplicate_joints": until_stale(lambda b: b.send([*Q, 1.0], [*REST, 0.0], [*JOINTS, "joint2"])),
    "not_finite": until_stale(lambda b: b.send(NAN)),
    "position_length": until_stale(lambda b: b.send(Q[:6])),
    "velocity_length": until_stale(lambda b: b.send(Q, REST[:3])),
    "too_large": until_stale(lambda b: b.send(1e200 * Q)),
    "no_velocity": until_stale(lambda b: b.send(Q, ())),
    "unstamped": until_stale(lambda b: b.send(stamp=0)),
    "position_limit": lambda b: b.move(Q, BEYOND),
    "velocity_reading": lambda b: b.send(Q, FAST),
    "velocity_limit": race,
    "position_jump": until_stale(lambda b: b.send(Q + 0.3)),
    "new_description": lambda b: b.core.describe(OTHER, b.now),
    "internal_error": lambda b: b.note(b.core.arm.fail(Fault("internal_error", "what"), b.now)),
}


def test_a_wrong_velocity_is_found_below_the_limit_and_one_bad_sample_stops_nothing():
    bench = Bench(effort_check="off").enabled()
    fast = np.where(np.arange(7) == 3, 0.5 * MODEL.velocity_limits[3], 0.0)
    bench.run(PERIOD, Q, fast)
    bench.run(0.3, Q, REST)
    assert bench.state == "enabled"
    bench.run(0.05, Q, fast)
    assert bench.fault == "velocity_reading"


def test_a_joint_that_is_guided_fast_and_stopped_at_once_is_no_wrong_velocity():
    """Drivers filter velocities: they lag behind positions."""
    bench = Bench(effort_check="off").enabled()
    q, smooth = Q.copy(), 0.0
    for k in range(200):
        true = 0.8 * MODEL.velocity_limits[0] * (20 <= k < 60)
        q = q + PERIOD * true * np.eye(7)[0]
        smooth += (true - smooth) * PERIOD / (PERIOD + 0.02)
        bench.run(PERIOD, q, smooth * np.eye(7)[0])
    assert bench.state == "enabled"


@pytest.mark.parametrize("seed", [0, 1])  # each fails with the velocity at the end of a gap
def test_right_velocities_at_irregular_times_are_no_wrong_velocities(seed):
    bench, rng = Bench(effort_check="off").enabled(), np.random.default_rng(seed)
    joint, start = np.eye(7)[rng.integers(7)], bench.now
    w, fastest = rng.uniform(5.0, 15.0), 0.8 * float(joint @ MODEL.velocity_limits)
    while bench.now < start + 3.0:
        bench.now += PERIOD if rng.random() < 0.8 else rng.uniform(0.03, 0.12)
        t = bench.now - start
        grown, speed = min(1.0, t / 0.5), 2.0 * np.sin(w * t) * (t < 0.5)
        q = fastest / w * grown * np.sin(w * t)
        qd = fastest / w * (grown * w * np.cos(w * t) + speed)
        bench.send(Q + q * joint, qd * joint)
        assert bench.state == "enabled"


@pytest.mark.parametrize(
    ("kind", "on_fault"),
    [
        *((kind, "ramp_down") for kind in STOPS),
        *itertools.product(("stale", "not_finite", "new_description"), ("hold", "zero")),
    ],
)
def test_stops_on(kind, on_fault):
    bench = Bench(on_fault=on_fault, effort_check="off").enabled()
    if kind == "position_limit":
        STOPS[kind](bench)
        assert (bench.state, bench.fault) == ("fault", kind)
        return
    before, count = bench.core.arm.latest, len(bench.commands)
    begin = bench.now
    bench.now += PERIOD
    STOPS[kind](bench)
    assert bench.state == "fault"
    assert bench.fault == kind
    stopped = bench.now
    begin = max(begin, stopped - 0.2)
    bench.silence(1.5)
    bench.run(0.5)  # the robot is well again, but the fault is latched
    assert bench.state == "fault"
    after, times = bench.torques[count:], bench.times[count:]
    if on_fault == "hold":
        assert not (times > stopped).any()
        np.testing.assert_allclose(bench.torques[-1], G, atol=1e-12)
        assert not bench.core.at_rest
    else:
        # only ever less, down to zero, and then silence
        assert (np.diff(np.abs(np.vstack([before, after])), axis=0) <= 1e-12).all()
        assert not after[-1].any()
        assert len(after) == 1 or after[-2].any()
        last = 0.05 if on_fault == "zero" else 1.0
        assert times[-1] - begin <= last + 0.2 + 3 * PERIOD
        assert bench.core.at_rest
    if kind == "new_description" and on_fault == "hold":
        assert "disable first" in bench.core.enable(bench.now)
        return
    bench.adopt()
    bench.send()
    assert f"a fault is latched: {kind}" in bench.core.enable(bench.now)
    bench.core.clear(bench.now)
    assert bench.core.enable(bench.now) == ""
    bench.run(1.5)
    assert bench.state == "enabled"
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-12)


def test_a_fault_is_cleared_once_its_stop_is_over():
    bench = Bench()
    with pytest.raises(ArgumentError, match="no fault"):
        bench.core.clear(bench.now)
    bench.enabled().silence(0.3)
    with pytest.raises(ArgumentError, match="not over"):
        bench.core.clear(bench.now)
    bench.silence(1.5)
    assert "stale" in bench.core.clear(bench.now)
    assert bench.state == "disabled"


@pytest.mark.parametrize(("how", "left"), [("clear", "disabled"), ("disable", "fault")])
def test_torques_that_a_fault_has_left_ramp_out_when_it_is_cleared_or_the_arm_disabled(how, left):
    bench = Bench(on_fault="hold").enabled()
    bench.silence(0.5)
    assert not bench.core.at_rest
    getattr(bench.core, how)(bench.now)
    if how == "disable":
        assert "the stop after a fault is not over" in bench.core.enable(bench.now)
    bench.run(0.5)
    np.testing.assert_allclose(bench.torques[-1], 0.5 * G, atol=0.02 * np.abs(G).max())
    bench.silence(0.6)
    assert bench.state == left
    assert bench.core.at_rest
    assert not bench.torques[-1].any()


NEITHER = {
    "no_joints": lambda b: b.send([1.0], [0.0], ["wheel"]),
    "repeated_stamp": lambda b: b.send(stamp=b.stamp),
    "too_many_names": lambda b: b.send(Q, REST, [f"wheel{k}" for k in range(20_000)]),
}


@pytest.mark.parametrize("kind", NEITHER)
def test_what_is_not_about_this_robot_or_not_new_neither_stops_nor_feeds(kind):
    bench = Bench().enabled()
    begin = bench.now
    while bench.state == "enabled":
        bench.now += PERIOD
        rejected = NEITHER[kind](bench).rejected
        assert rejected.kind == kind or bench.fault == "stale"
    assert bench.fault == "stale"
    assert 0.2 - 1e-9 <= bench.now - begin <= 0.2 + 2 * PERIOD


def test_ramps_in_follows_and_ramps_out():
    bench = Bench()
    bench.send()
    assert bench.core.enable(bench.now) == ""
    assert bench.core.enable(bench.now) == ""  # the second time nothing changes
    bench.run(0.5)
    assert bench.state == "ramping in"
    np.testing.assert_allclose(bench.torques[-1], 0.5 * G, atol=1e-9)
    bench.run(0.6)
    assert bench.state == "enabled"
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-12)
    bench.core.disable(bench.now)
    bench.run(0.5)
    assert bench.state == "ramping out"
    np.testing.assert_allclose(bench.torques[-1], 0.5 * G, atol=1e-9)
    count = len(bench.commands)
    assert bench.core.enable(bench.now) == ""  # it goes on from there
    bench.run(1.5)
    assert bench.state == "enabled"
    assert np.abs(bench.torques[count:]).min(axis=0)[1] > 0.4 * abs(G[1])
    bench.core.disable(bench.now)
    bench.run(0.5)
    bench.core.disable(bench.now)  # nor does it change anything
    bench.run(0.6)
    assert bench.state == "disabled"
    assert not bench.torques[-1].any()
    count = len(bench.commands)
    bench.run(1.0)
    assert len(bench.commands) == count


def test_enabling_after_a_fault_that_holds_begins_at_the_held_torques():
    bench = Bench(on_fault="hold").enabled()
    bench.silence(0.5)
    bench.send(0.5 * Q)
    bench.core.clear(bench.now)
    assert bench.core.enable(bench.now) == ""
    bench.run(PERIOD, 0.5 * Q)
    np.testing.assert_allclose(bench.torques[-1], G, atol=0.3)
    bench.run(1.2, 0.5 * Q)
    np.testing.assert_allclose(bench.torques[-1], mbs.gravity_torques(MODEL, 0.5 * Q), atol=1e-12)


def test_the_law():
    values = np.arange(1.0, 8.0)
    given = {"gravity_scale": tuple(0.1 * values), "damping": tuple(values), "friction_scale": 0.8}
    bench = Bench(friction=(-1.0, 0.5, *(0.0,) * 5), **given).enabled()
    qd = 0.01 * values[::-1]
    bench.run(0.1, Q, qd)
    rubbed = 0.8 * np.array([MODEL.joints[0].friction, 0.5, 0, 0, 0, 0, 0])
    expected = 0.1 * values * G - values * qd + rubbed * qd / np.sqrt(qd**2 + 0.05**2)
    np.testing.assert_allclose(bench.torques[-1], expected, atol=1e-12)


def test_effort_limits_hold_and_are_said():
    bench = Bench(effort_limits=(0.0, 200.0, *(0.0,) * 5), effort_scale=0.05).enabled(q=0.0 * Q)
    limits = np.where(np.arange(7) == 1, 10.0, 0.05 * MODEL.effort_limits)
    bench.move(0.0 * Q, Q, 1.9)
    bench.run(0.1)
    assert bench.state == "enabled"
    np.testing.assert_allclose(bench.torques[-1], np.clip(G, -limits, limits), atol=1e-12)
    assert bench.core.arm.state_record.saturated_since[1] < math.inf
    bench.run(0.6)
    assert bench.fault == "saturated"
    assert "joint4 has been at its effort limit of 5.5 for 1.0" in bench.core.fault.reason


FOREIGN = {
    "zeros": lambda b: b.send(np.zeros(7)),
    "zeros without velocities": lambda b: b.send(np.zeros(7), ()),
    "without stamp": lambda b: b.send(0.9 * Q, stamp=0),
    "old": lambda b: b.send(0.9 * Q, stamp=b.stamp - 10**9),
    "too long": lambda b: b.send([*Q, 1.0], REST),
    "one joint": lambda b: b.send([0.0], [0.0], [JOINTS[1]]),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_messages_of_another_source_leave_the_arm_where_it_is(kind):
    """As those of joint_state_publisher, which RViz's launch files start."""
    bench = Bench(damping=(3.0,) * 7).enabled()
    count = len(bench.commands)
    bench.now += 0.5 * PERIOD
    FOREIGN[kind](bench)
    bench.run(PERIOD)
    assert bench.core.arm.input_problem(bench.now) == ""  # a single one leaves no trace
    for k in range(100):
        bench.now += 0.5 * PERIOD
        if k % 2 == 0:
            assert FOREIGN[kind](bench).rejected is not None
        bench.now += 0.5 * PERIOD
        assert bench.send().rejected is None
    assert bench.state == "enabled"
    np.testing.assert_allclose(bench.torques[count:], [G] * (len(bench.commands) - count), atol=0.1)
    assert "two sources" in bench.core.arm.input_problem(bench.now)
    bench.run(1.1)
    assert bench.core.arm.input_problem(bench.now) == ""


def test_enabling_is_refused_while_two_publishers_report_one_robot():
    bench = Bench()
    for k in range(20):
        bench.now += PERIOD
        bench.send((np.zeros(7), Q)[k % 2])
    assert "joint1: it jumped by" in bench.core.enable(bench.now)
    bench.run(1.1)  # a robot that was put elsewhere, as simulated ones are, is all right
    assert bench.core.enable(bench.now) == ""


def test_a_clock_that_is_reset_stops_it_and_is_followed_after_a_pause():
    bench = Bench().enabled()
    for k in range(25):
        bench.now += PERIOD
        bench.send(stamp=5 * 10**8 + k * 10**7)
    assert bench.fault == "time_backwards"
    bench.silence(1.5)
    assert bench.core.at_rest
    for k in range(3):  # the robot is elsewhere after the reset
        bench.now += PERIOD
        assert bench.send(0.5 * Q, stamp=2 * 10**9 + k * 10**7).rejected is None
    assert bench.state == "fault"
    bench.core.clear(bench.now)
    assert bench.core.enable(bench.now) == ""
