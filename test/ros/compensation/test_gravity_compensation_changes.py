# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation without ROS: what changes while it runs, and what refuses to start."""

import numpy as np
import pytest
from cases import mostly_slow
from gravity_bench import ARM7, COM, MODEL, PERIOD, Bench, G, Q, load, settings
from test_gravity_compensation import BEYOND, OTHER, STOPS

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkGravity
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.ros.compensation import gravity_compensator
from mbs_dynamics.ros.compensation.impedance import ImpedanceControlSettings
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings

TILTED = (0.0, 6.0, -7.76)


# -- gravity, payload, gains: along a ramp, and before torques -------------------------------------


def set_parameter(bench, **values):
    changed = bench.core.settings.changed(values or {"gravity": TILTED})
    bench.core.check(changed, bench.now)
    bench.core.change(changed, bench.now)


LOADED = mbs.gravity_torques(MODEL.with_payload("tool", 2.0, COM), Q)
TURNED = mbs.gravity_torques(MODEL.with_gravity(TILTED), Q)
CHANGES = {
    "payload": (lambda bench: bench.core.set_load(load(2.0)), LOADED),
    "gravity": (lambda bench: bench.core.set_gravity(LinkGravity("", TILTED)), TURNED),
    "parameter": (set_parameter, TURNED),
    "scale": (lambda bench: set_parameter(bench, gravity_scale=(0.5,) * 7), 0.5 * G),
}
"""Functions that change a bench, and the torques that are needed then."""


@pytest.mark.parametrize("what", CHANGES)
def test_changes_are_ramped(what):
    bench = Bench().enabled()
    count = len(bench.commands)
    change, goal = CHANGES[what]
    change(bench)
    bench.run(0.25)
    share = 0.25 / (1.0 + PERIOD)  # it begins a period before
    np.testing.assert_allclose(bench.torques[-1], G + share * (goal - G), atol=1e-9)
    bench.run(1.0)
    np.testing.assert_allclose(bench.torques[-1], goal, atol=1e-9)
    steps = np.diff(bench.torques[count - 1 :], axis=0)
    assert np.abs(steps).max() <= 1.01 * PERIOD * np.abs(goal - G).max()


@pytest.mark.long
@pytest.mark.parametrize("kind", [GravityCompensationSettings, ImpedanceControlSettings])
@pytest.mark.parametrize("when", ["before states", "before enabling"])
@pytest.mark.parametrize("what", ["payload", "gravity", "parameter"])
def test_what_is_set_before_enabling_acts_afterwards(kind, when, what):
    soft = {"stiffness": (0.1,) * 7} if kind is ImpedanceControlSettings else {}
    bench = Bench(kind=kind, **soft)
    change, wanted = CHANGES[what]
    if when == "before states":
        change(bench)
    bench.run(0.2)
    if when == "before enabling":
        change(bench)
        bench.run(0.2)
    assert bench.core.enable(bench.now) == ""
    bench.run(1.5)
    assert bench.state == "enabled"
    assert np.abs(wanted - G).max() > 5.0
    np.testing.assert_allclose(bench.torques[-1], wanted, atol=0.05 * np.abs(wanted).max())


@pytest.mark.long
def test_a_tool_that_is_always_there_is_part_of_the_arm_and_payloads_come_on_top():
    bench = Bench(loads=(("tool", (1.0, *COM)),))
    core, tool = bench.core, MODEL.with_payload("tool", 1.0, COM).loaded()
    bench.send()
    np.testing.assert_allclose(core.arm.state_record.g, mbs.gravity_torques(tool, Q), atol=1e-12)
    core.set_load(load(2.0))
    bench.silence(PERIOD)
    loaded = tool.with_payload("tool", 2.0, COM)
    np.testing.assert_allclose(core.arm.state_record.g, mbs.gravity_torques(loaded, Q), atol=1e-12)
    assert not core.describe(ARM7 + "<!-- the same -->", 0.0)  # it is the same robot with the tool
    with pytest.raises(ArgumentError, match=r"loads\.tool"):
        settings(loads=(("tool", (1.0, 0.0, 0.0)),))


@pytest.mark.long
@pytest.mark.parametrize(
    "algorithm", mostly_slow(["body_fixed", "spatial", "hybrid", "mixed"], ["spatial"])
)
def test_the_algorithm_changes_at_rest_and_the_torques_do_not(algorithm):
    """Under another gravity and a load, which it keeps; not while torques are commanded."""
    bench = Bench()
    bench.core.set_gravity(LinkGravity("", (0.0, 6.0, -7.0)))
    bench.core.set_load(load(2.0))
    bench.send()
    other = bench.core.settings.changed({"algorithm": algorithm})
    bench.core.check(other)
    bench.core.change(other, bench.now)
    bench.enabled()
    carrying = MODEL.with_gravity((0.0, 6.0, -7.0)).with_payload("tool", 2.0, COM)
    np.testing.assert_allclose(bench.torques[-1], mbs.gravity_torques(carrying, Q), atol=1e-9)
    with pytest.raises(ArgumentError, match="algorithm"):
        bench.core.check(other.changed({"algorithm": "auto"}))


def test_a_malformed_payload_or_gravity_is_refused_and_changes_nothing():
    bench = Bench().enabled()
    with pytest.raises(MbsError):
        bench.core.set_load(load(np.nan))
    with pytest.raises(MbsError):
        bench.core.set_gravity(LinkGravity("tool", (0.0, 0.0, -9.81)))
    bench.run(1.2)
    assert (bench.state, bench.core.environment.loads) == ("enabled", ())
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-12)


# -- a base that is tilted or moves ----------------------------------------------------------------


def test_the_imu_gives_gravity_and_the_acceleration_of_the_base():
    bench = Bench(use_imu=True, stale_timeout=0.5)
    bench.send()
    assert "no valid imu so far" in bench.core.enable(bench.now)
    felt = (1.0, -2.0, 9.0)
    bench.core.arm.accelerate("base_link", felt, bench.now, stamp=bench.nanoseconds)
    assert bench.core.enable(bench.now) == ""
    for _ in range(300):
        bench.core.arm.accelerate("base_link", felt, bench.now, stamp=bench.nanoseconds)
        bench.run(PERIOD)
    expected = mbs.gravity_torques(MODEL.with_gravity(-np.array(felt)), Q)
    np.testing.assert_allclose(bench.torques[-1], expected, atol=1e-9)
    bench.core.arm.accelerate("base_link", (0.0, 0.0, 9.81), bench.now, stamp=bench.nanoseconds)
    bench.run(PERIOD)
    share = 1.0 - np.exp(-PERIOD / 0.1)
    np.testing.assert_allclose(bench.torques[-1], expected + share * (G - expected), atol=1e-9)
    with pytest.raises(ArgumentError, match="imu"):
        bench.core.set_gravity(LinkGravity("", (0.0, 0.0, -9.81)))
    settings = bench.core.settings
    with pytest.raises(ArgumentError, match="imu"):
        bench.core.check(settings.changed({"gravity": (0.0, 1.0, -9.7)}))
    bench.core.check(settings.changed({"velocity_filter": 0.1}))  # no other one is refused


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"acceleration": (np.nan, 0.0, 9.81)}, "finite"),
        ({"acceleration": (0.0, 0.0, 981.0)}, "length of 981"),
        ({"link": "link3"}, "moves"),
        ({"link": "imu_link"}, "no body 'imu_link'"),
        ({"stamp": 5}, "before that of the message"),
        ({"stamp": 0}, "it has no time stamp"),
        ({"clock": 200 * 10**9}, "older"),
    ],
)
def test_a_bad_message_of_an_imu_stops_it(wrong, said):
    bench = Bench(use_imu=True, max_age=1.0)
    bench.send()
    given = {"link": "base_link", "acceleration": (0.0, 0.0, 9.81)}
    bench.core.arm.accelerate(**given, now=bench.now, stamp=bench.nanoseconds)
    assert bench.core.enable(bench.now) == ""
    bench.now += PERIOD
    given |= {"stamp": bench.nanoseconds, "clock": bench.nanoseconds} | wrong
    with pytest.raises(MbsError, match=said):
        bench.core.arm.accelerate(**given, now=bench.now)
    assert bench.fault == "imu"
    assert "imu" in bench.core.fault.reason


def test_an_imu_that_repeats_its_stamp_is_silent_and_stops_it():
    bench = Bench(use_imu=True)
    for _ in range(30):
        bench.core.arm.accelerate("base_link", (0.0, 0.0, 9.81), bench.now, stamp=1)
        bench.run(PERIOD)
        if bench.state == "disabled":
            assert bench.core.enable(bench.now) == ""
    assert bench.fault == "stale"
    assert "no valid imu for" in bench.core.fault.reason


# -- what refuses to start, or waits for rest ------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"compensates_itself": None}, "compensates_itself is not set"),
        ({"compensates_itself": True}, "compensates_itself is true"),
        ({"joints": ()}, "the parameter joints is empty"),
        ({"joints": ("joint1", "elbow")}, "no joint 'elbow'"),
        ({"describe": None}, "there is no robot_description yet"),
        ({"describe": "no XML"}, "robot_description was refused: a robot description is XML"),
        ({"describe": ARM7.replace('effort="180"', "", 1)}, "joint1 has no effort limit"),
        ({"describe": ARM7.replace('effort="180"', 'effort="0"')}, "joint1 has no effort limit"),
    ],
)
def test_enabling_is_refused_with_the_reason(values, said):
    describe = values.pop("describe", ARM7)
    bench = Bench(describe=None, **values)
    if describe:
        bench.core.describe(describe, bench.now)
        try:
            bench.adopt()
        except MbsError:
            assert "refused" in said or "elbow" in said
    bench.send()
    assert said in bench.core.enable(bench.now)
    bench.run(0.5)
    assert bench.state == "disabled"
    assert bench.commands == []


def test_enabling_is_refused_without_fresh_and_good_input():
    bench = Bench()
    assert "no valid state so far of joint1" in bench.core.enable(bench.now)
    bench.send()
    bench.now += 0.3
    assert "no valid state of joint1 for 0.300 s" in bench.core.enable(bench.now)
    for kind, said in [
        ("not_finite", "joint3 = nan"),
        ("duplicate_joints", "named more than once: joint2"),
        ("velocity_reading", "joint4 moves at"),
        ("no_velocity", "holds no velocities"),
    ]:
        bench.run(0.5)
        bench.now += PERIOD
        STOPS[kind](bench)
        assert said in bench.core.enable(bench.now)
        assert bench.fault is None  # nothing was enabled that could be stopped
    bench.run(0.1)
    bench.move(Q, BEYOND)
    assert "joint2 is at 2.06; its limit is 2.05" in bench.core.enable(bench.now)
    bench.move(BEYOND, Q)
    bench.run(0.1)
    assert bench.core.enable(bench.now) == ""


def test_a_refused_description_forbids_enabling_until_a_good_one_comes(monkeypatch):
    bench = Bench()
    bench.send()
    monkeypatch.setattr(gravity_compensator, "MOST_JOINTS", 6)
    for text, said in (("<robot/>", "no name"), (OTHER, "7 joints; must be at most 6")):
        assert bench.core.describe(text, bench.now)
        with pytest.raises(MbsError, match=said):
            bench.adopt()
        assert "the latest robot_description was refused" in bench.core.enable(bench.now)
    monkeypatch.undo()
    assert bench.core.describe(ARM7, bench.now)
    assert bench.adopt()
    bench.enabled()


def test_a_new_description_waits_until_the_torques_are_gone():
    bench = Bench().enabled()
    assert bench.core.describe(OTHER, bench.now)
    assert not bench.adopt()
    bench.silence(1.1)
    assert bench.adopt()
    assert "no valid state so far of joint1" in bench.core.enable(bench.now)


@pytest.mark.parametrize("values", [{"compensates_itself": True}, {"effort_limits": (1.0,) * 7}])
def test_what_the_limits_stand_on_changes_only_at_rest(values):
    bench = Bench().enabled()
    changed = bench.core.settings.changed(values)
    with pytest.raises(ArgumentError, match=next(iter(values))):
        bench.core.check(changed)
    bench.core.disable(bench.now)
    bench.run(1.2)
    bench.core.check(changed)


def test_gravity_and_loads_that_fit_another_robot_act_on_it_from_the_start():
    """Torques come in for the gravity and the payload of before, without a ramp from others."""
    bench = Bench()
    bench.core.set_load(load(2.0))
    bench.core.set_gravity(LinkGravity("", (0.0, 3.0, -9.0)))
    bench.core.describe(OTHER, bench.now)
    assert bench.adopt()
    assert bench.core.remarks == []
    bench.enabled(1.02)
    model = mbs.Model.from_urdf(OTHER).with_payload("tool", 2.0, COM)
    goal = mbs.gravity_torques(model.with_gravity((0.0, 3.0, -9.0)), Q)
    assert np.abs(goal - mbs.gravity_torques(mbs.Model.from_urdf(OTHER), Q)).max() > 1.0
    np.testing.assert_allclose(bench.torques[-1], goal, atol=1e-9)
    ramp = np.linspace(0.0, 1.0, 101)[1:, None]
    np.testing.assert_allclose(bench.torques[:100], ramp * goal, atol=1e-2 * np.abs(goal).max())


# -- springs of position limits --------------------------------------------------------------------

UPPER = MODEL.joints[1].limits.upper
AT_LIMIT = np.where(np.arange(7) == 1, UPPER - 0.02, Q)


@pytest.mark.parametrize(
    "changed",
    [{"damping": (0.3,) * 7}, {"limit_zone": 0.2}, {"limit_zone": 0.0}, {"position_margin": 0.06}],
)
def test_a_setting_changed_while_enabled_kicks_no_joint_at_a_limit(changed):
    bench = Bench().enabled(q=AT_LIMIT)
    before = bench.torques[-1]
    bench.core.change(bench.core.settings.changed(changed), bench.now)
    bench.run(2.0, AT_LIMIT)
    steps = np.abs(np.diff(bench.torques, axis=0))[-200:]
    assert steps.max() < 0.2
    if changed.get("limit_zone") != 0.2:
        np.testing.assert_allclose(bench.torques[-1], before, atol=1e-9)


def test_springs_hold_back_a_joint_that_comes_to_a_limit_and_none_that_began_there():
    beyond = np.where(np.arange(7) == 1, UPPER + 0.01, Q)
    bench = Bench().enabled(q=beyond)
    np.testing.assert_allclose(bench.torques[-1], mbs.gravity_torques(MODEL, beyond), atol=1e-9)
    bench = Bench().enabled(q=AT_LIMIT)
    bench.move(AT_LIMIT, Q)
    bench.move(Q, AT_LIMIT)
    bench.run(0.1, AT_LIMIT)
    assert (bench.torques[-1] - mbs.gravity_torques(MODEL, AT_LIMIT))[1] < -1.0
