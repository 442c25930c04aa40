# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the input of guarded arms, from definitions: times, limits, speeds."""

import math

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.input_checks import (
    Continuity,
    Envelope,
    Freshness,
    JointStates,
    Periods,
    Speeds,
    Tracking,
)

pytestmark = pytest.mark.backend_independent

MILLISECOND = 10**6


def states(positions, rates=(0.0, 0.0), stamp=0, stamps=(0, 0)):
    """Return states of the joints of the robot."""
    return JointStates(positions, rates, stamp, stamps)


def robot(kind="revolute", lower=-1.0, upper=2.0, velocity=2.0):
    """Return a robot of two joints, of which the second one has these limits."""
    text = '<link name="base"/>'
    for k, (form, low, high, speed) in enumerate(
        [("revolute", -9.0, 9.0, 5.0), (kind, lower, upper, velocity)]
    ):
        bounds = "" if form == "continuous" else f'lower="{low}" upper="{high}"'
        text += f"""
            <link name="l{k}"/><joint name="j{k}" type="{form}"><axis xyz="0 0 1"/>
              <parent link="{"base" if k == 0 else "l0"}"/><child link="l{k}"/>
              <limit {bounds} effort="1" velocity="{speed}"/></joint>"""
    with pytest.warns(mbs.ModelWarning):
        return mbs.Model.from_urdf(f'<robot name="two">{text}</robot>')


def test_input_is_stale_before_the_first_message_and_from_the_timeout_on():
    fresh = Freshness("imu")
    assert "no valid imu so far" in fresh.stale(10.0, 0.25).reason
    assert fresh.fresh_for(10.0, 0.25) == 0.0
    fresh.feed(10.0)
    assert fresh.stale(10.125, 0.25) is None
    assert fresh.fresh_for(10.125, 0.25) == 0.125
    assert "no valid imu for 0.250 s" in fresh.stale(10.25, 0.25).reason
    assert fresh.fresh_for(10.5, 0.25) == 0.0
    fresh.feed(11.0)
    fresh.refuse(Fault("bad", "no number"))
    assert fresh.trouble.kind == "bad"
    fresh.feed(11.0)
    assert fresh.trouble is None


def test_motion_is_known_for_two_periods_after_the_latest_state():
    together, apart = Periods(2), Periods(2)
    assert together.note([1.0, 1.0], 0.5) == [1.0, 1.0]
    assert together.longest == 0.0
    np.testing.assert_allclose(together.note([1.01, 1.01], 0.5), [1.03, 1.03])
    np.testing.assert_allclose(together.note([1.02, 1.02], 0.5), [1.04, 1.04])
    apart.note([1.0, 1.0], 0.5)
    np.testing.assert_allclose(apart.note([1.01, 1.02], 0.5), [1.03, 1.06])
    np.testing.assert_allclose(apart.longest, 0.02)
    np.testing.assert_allclose(apart.note([1.02, 1.02], 0.5), [1.04, 1.06])


def test_period_follows_slowly_and_a_pause_counts_for_little():
    periods = Periods(1)
    for at in (1.0, 1.01):
        periods.note([at], 0.5)
    np.testing.assert_allclose(periods.note([1.03], 0.5), [1.03 + 2 * 0.011])
    np.testing.assert_allclose(periods.note([1.43], 0.5), [1.43 + 2 * 1.2 * 0.011])
    np.testing.assert_allclose(periods.note([2.0], 0.5), [2.0 + 2 * 1.2 * 0.011])  # no period
    np.testing.assert_allclose(periods.longest, 1.2 * 0.011)


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_envelope_reaches_from_limit_to_limit_with_the_margin(margin):
    envelope = Envelope(robot(), [1], margin)
    for at, beyond in ((-1.0 - margin, -1e-9), (2.0 + margin, 1e-9)):
        assert envelope.check(states([0.0, at])) is None
        fault = envelope.check(states([0.0, at + beyond]))
        assert fault.kind == "position_limit"
        assert "j1" in fault.reason
    assert Envelope(robot(), [0], margin).check(states([0.0, 77.0])) is None


def test_envelope_leaves_joints_without_a_range_alone():
    assert Envelope(robot(lower=0.5, upper=0.5), [1], 0.0).check(states([0.0, 77.0])) is None
    assert Envelope(robot("continuous"), [1], 0.0).check(states([0.0, 77.0])) is None


def after(speeds, reported, moving, times=8, model=None):
    """Return the faults after each of some messages, 10 ms apart."""
    found = []
    for k in range(times):
        at = [0.0, 0.01 * k * moving]
        found.append(speeds.check(states(at, [0.0, reported], (1000 + 10 * k) * MILLISECOND)))
    return found


def test_speeds_unlimited_joints_are_named():
    assert Speeds(robot(velocity=0.0), [0, 1]).unlimited == ["j1"]
    assert Speeds(robot(velocity=0.0), [0]).unlimited == []
    assert after(Speeds(robot(velocity=0.0), [1]), 1e3, 1e3) == [None] * 8


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("share", "kind"), [(0.45, "velocity_reading"), (0.55, "velocity_limit")])
def test_reported_speed_is_believed_if_the_joint_moved_half_as_far(sign, share, kind):
    faults = after(Speeds(robot(), [0, 1]), sign * 3.0, sign * share * 3.0)
    assert {fault.kind for fault in faults[1:]} == {kind}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("speed", "fast"), [(1.98, False), (2.02, True)])
def test_displacement_over_the_window_may_not_exceed_the_limit(sign, speed, fast):
    faults = after(Speeds(robot(), [1]), 0.0, sign * speed)
    assert faults[:5] == [None] * 5  # the window of 50 ms is not full yet
    assert [fault is not None for fault in faults[5:]] == [fast] * 3


def test_speeds_are_judged_over_the_window_alone():
    """Motion before the last 50 ms does not count, nor motion before time went back."""
    speeds = Speeds(robot(), [1])
    after(speeds, 0.0, 1.9, times=30)
    faults = [
        speeds.check(
            states([0.0, 0.29 * 1.9 + 0.01 * k * 2.2], [0.0, 0.0], (1290 + 10 * k) * MILLISECOND)
        )
        for k in range(1, 7)
    ]
    assert faults[0] is None  # 40 ms at 1.9 and 10 ms at 2.2 are below 2 on average
    assert faults[5] is not None
    jumped = Speeds(robot(), [1])
    after(jumped, 0.0, 0.0)
    assert jumped.check(states([0.0, 0.0], [0.0, 3.0], 900 * MILLISECOND)).kind == "velocity_limit"
    back = Speeds(robot(), [1])
    assert back.check(states([0.0, 0.0], [0.0, 0.0], 1000 * MILLISECOND)) is None
    assert back.check(states([0.0, 1.0], [0.0, 0.0], 900 * MILLISECOND)) is None
    assert back.check(states([0.0, 1.0], [0.0, 0.0], 1060 * MILLISECOND)) is None


def test_joint_that_was_too_fast_is_no_fault_once_it_is_slow_again():
    speeds = Speeds(robot(), [0, 1])
    found = [
        speeds.check(states([0.04 * k, 0.0], [4.0, rate], (1000 + 10 * k) * MILLISECOND))
        for k, rate in enumerate((3.0, 3.0, 3.0, 1.0))  # 2 rad/s are allowed, the other joint 5
    ]
    assert [fault is None for fault in found] == [False, False, False, True]


def test_window_of_states_that_are_rare_is_one_period():
    """States 60 ms apart: the standstill before the last period does not count."""
    speeds = Speeds(robot(), [1])
    for at, stamp in ((0.0, 1000), (0.0, 1060)):
        assert speeds.check(states([0.0, at], [0.0, 0.0], stamp * MILLISECOND)) is None
    fault = speeds.check(states([0.0, 0.06 * 3.0], [0.0, 0.0], 1120 * MILLISECOND))
    assert fault.kind == "velocity_limit"  # 3 rad/s; 2 are allowed


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_jump_is_what_twice_the_velocity_limit_and_the_slack_do_not_explain(sign):
    for moved, jumped in ((0.089, False), (0.091, True)):  # 0.05 + 2 * 2 rad/s * 10 ms
        continuity = Continuity(robot())
        stamps = [1000 * MILLISECOND, 1000 * MILLISECOND]
        assert continuity.check(states([0.3, 0.2], stamps=stamps)) is None
        stamps = [1005 * MILLISECOND, 1010 * MILLISECOND]
        fault = continuity.check(states([0.3, 0.2 + sign * moved], stamps=stamps))
        assert (fault is not None) == jumped
        assert fault is None or fault.kind == "position_jump"


@pytest.mark.parametrize(
    ("kind", "velocity", "jumped"),
    [
        ("revolute", 2.0, True),
        ("prismatic", 2.0, True),
        ("prismatic", 0.0, False),
    ],
)
def test_joints_without_a_velocity_limit_do_not_jump(kind, velocity, jumped):
    continuity = Continuity(robot(kind, -99.0, 99.0, velocity))
    continuity.check(states([0.0, 0.1], stamps=[1000 * MILLISECOND] * 2))
    fault = continuity.check(states([0.0, 0.1 + math.tau], stamps=[1010 * MILLISECOND] * 2))
    assert (fault is not None) == jumped


def test_after_time_went_back_positions_begin_anew():
    continuity = Continuity(robot())
    for at, stamp, jumped in ((0.0, 5000, False), (0.9, 1000, False), (1.8, 1010, True)):
        fault = continuity.check(states([0.0, at], stamps=[stamp * MILLISECOND] * 2))
        assert (fault is not None) == jumped


def test_a_joint_whose_state_is_the_same_one_does_not_jump():
    continuity = Continuity(robot())
    continuity.check(states([0.0, 0.1], stamps=[1000 * MILLISECOND] * 2))
    assert (
        continuity.check(states([0.0, 0.9], stamps=[1010 * MILLISECOND, 1000 * MILLISECOND]))
        is None
    )


# -- commanded and measured efforts ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "measured", "states"),
    [
        (10.0, 13.1, 5),  # beyond the tolerance
        (10.0, 12.9, None),
        (-2.0, -0.9, None),  # beyond 0.4 of it, not half of the command
        (1.0, -0.3, 15),
        (1.0, 4.0, 15),
        (0.0, 1.3, 15),
        (0.0, 1.1, None),
        (70.0, 60.0, None),  # the drive clips
        (10.0, math.nan, None),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_motor_is_doubted_after_few_large_or_some_small_deviations(asked, measured, states, sign):
    tracking = Tracking(["other", "joint"], [60.0, 60.0], 0.05)
    found = []
    for _ in range(30):
        tracking.commanded([5.0, sign * asked])
        found.append(tracking.check([5.0, sign * measured]))
    faults = [k for k, fault in enumerate(found) if fault]
    assert faults[:1] == ([] if states is None else [3 + states - 1])
    assert all(found[k].joints == (1,) and "joint" in found[k].reason for k in faults)


def test_an_effort_may_be_that_of_the_four_latest_commands_and_one_that_agrees_starts_anew():
    tracking = Tracking(["joint"], [60.0], 0.05)
    for k in range(60):
        tracking.commanded([10.0 * math.sin(0.4 * k)])
        assert tracking.check([10.0 * math.sin(0.4 * (k - 3))]) is None
    for k in range(60):
        tracking.commanded([10.0])
        assert tracking.check([10.0 if k % 5 == 0 else 20.0]) is None
