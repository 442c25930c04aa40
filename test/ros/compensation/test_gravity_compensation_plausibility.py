# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loads, gravities, efforts, speeds and ages that gravity compensation refuses, without ROS.

And what it commands where states end, come in several messages, or lie near the limits.
"""

import re

import numpy as np
import pytest
from gravity_bench import ARM7, COM, JOINTS, MODEL, PERIOD, REST, Bench, G, Q, load

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkGravity
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.errors import ArgumentError, ModelError

ONE = np.eye(7)

# -- loads and gravities ---------------------------------------------------------------------------


def test_a_payload_in_grams_is_refused():
    bench = Bench().enabled()
    moving = sum(body.inertia.mass for body in MODEL.bodies)
    with pytest.raises(ModelError, match=f"500 kg.*{moving:.4g}, the mass of the moving links"):
        bench.core.set_load(load(500.0))
    bench.run(3.0)
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-12)


@pytest.mark.long
def test_a_description_without_masses_is_one_remark_and_cannot_be_enabled():
    bench = Bench(describe=re.sub("<inertial>.*?</inertial>", "", ARM7, flags=re.DOTALL))
    (remark,) = bench.core.remarks
    assert "'arm7' has mass or inertia" in remark
    bench.send()
    assert "states no mass" in bench.core.enable(bench.now)
    assert bench.state == "disabled"


def test_max_payload_bounds_the_sum_of_loads_on_all_links_and_they_can_be_removed():
    bench = Bench(max_payload=3.0)
    bench.core.set_load(load(2.0, "tool"))
    with pytest.raises(ModelError, match=r"'tool'.*'link7'.*3\.5 kg"):
        bench.core.set_load(load(1.5, "link7"))
    assert [one.link for one in bench.core.environment.loads] == ["tool"]
    bench.core.set_load(load(1.0, "link7"))
    bench.core.change(bench.core.settings.changed({"max_payload": 0.5}), bench.now)
    with pytest.raises(ModelError, match="max_payload"):
        bench.core.set_load(load(2.1, "tool"))
    bench.core.set_load(load(0.0, "tool"))
    bench.core.set_load(load(0.8, "link7"))  # less than before, though still too much
    with pytest.raises(ModelError, match="max_payload"):
        bench.core.set_load(load(1.0, "link7"))
    bench.core.set_load(load(0.0, "link7"))
    assert not any(one.mass for one in bench.core.environment.loads)
    bench.core.set_load(load(0.5, "tool"))


def test_a_payload_that_the_arm_cannot_hold_is_refused():
    bench = Bench(effort_limits=(0.0, 40.0, *(0.0,) * 5)).enabled()
    needed = mbs.gravity_torques(MODEL.with_payload("tool", 2.0, COM), Q)[1]
    said = f"joint2 needs {needed:.4g} against gravity, and its effort limit is 40"
    with pytest.raises(ModelError, match=said):
        bench.core.set_load(load(2.0))
    bench.core.set_load(load(0.1))
    bench.core.set_load(load(0.0))
    assert bench.state == "enabled"


@pytest.mark.parametrize("length", [7.7, 11.9])
def test_a_gravity_of_another_length_is_refused(length):
    bench = Bench().enabled()
    with pytest.raises(ArgumentError, match=r"7\.848.*11\.77"):
        bench.core.set_gravity(LinkGravity("", (0.0, 0.0, -length)))


def test_gravity_with_the_sign_of_an_imu_is_refused_while_enabled():
    bench = Bench().enabled()
    with pytest.raises(ArgumentError, match="180"):
        bench.core.set_gravity(LinkGravity("", (0.0, 0.0, 9.81)))
    with pytest.raises(ArgumentError, match="180"):
        bench.core.check(bench.core.settings.changed({"gravity": (0.0, 0.0, 9.81)}))
    bench.run(3.0)
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-12)
    disabled = Bench()
    disabled.core.set_gravity(LinkGravity("", (0.0, 0.0, 9.81)))  # from the ceiling


# -- measured efforts ------------------------------------------------------------------------------


def asked(efforts, **values):
    """Return the answer to ``enable`` after states with these efforts."""
    bench = Bench(**values)
    for _ in range(3):
        bench.now += PERIOD
        bench.send(efforts=tuple(efforts))
    return bench.core.enable(bench.now), bench


SIDEWAYS = mbs.gravity_torques(MODEL.with_gravity((0.0, 9.81, 0.0)), Q)


@pytest.mark.parametrize(
    ("efforts", "values", "said"),
    [
        (G, {}, ""),
        (G + 0.01 * MODEL.effort_limits, {}, ""),
        (SIDEWAYS, {}, "do not agree with gravity"),
        (-G, {}, "do not agree with gravity: joint2 measures 34.11, and -34.11 would hold it"),
        (3.0 * G, {}, "is a mass wrong?"),
        (3.0 * G, {"effort_check": "off"}, ""),
        (0.0 * G, {}, ""),  # nothing is known to hold the arm: brakes may
        (0.0 * G, {"effort_check": "always"}, "compensate gravity itself"),
        (0.0 * G, {"position_controller": "arm"}, "compensate gravity itself"),
        (0.0 * G, {"start_from": "effort"}, "compensate gravity itself"),
        ((), {}, ""),
        ((), {"effort_check": "always"}, "there are no efforts of joint1"),
        ((), {"start_from": "effort"}, "there are no efforts of joint1"),
    ],
)
def test_measured_efforts_are_compared_with_gravity_before_enabling(efforts, values, said):
    answer, bench = asked(efforts, **values)
    assert said in answer
    assert (answer == "") == (said == "")
    assert bench.state == ("ramping in" if said == "" else "disabled")


def test_torques_begin_at_the_measured_efforts():
    measured = 1.2 * G
    answer, bench = asked(measured, start_from="effort", ramp_in_time=0.5)
    assert answer == ""
    bench.run(PERIOD)
    expected = measured + PERIOD / 0.5 * (G - measured)
    np.testing.assert_allclose(bench.torques[0], expected, atol=1e-9)
    bench.run(0.6)
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-9)


# -- damping ---------------------------------------------------------------------------------------


def test_a_speed_that_no_joint_can_have_is_damped_as_the_limit():
    bench = Bench(damping=(1.0,) * 7).enabled()
    bench.run(PERIOD, Q, -1.4 * MODEL.velocity_limits * ONE[6])
    np.testing.assert_allclose(bench.torques[-1], G + MODEL.velocity_limits * ONE[6], atol=1e-9)


def test_the_velocity_filter_smooths_what_damping_takes():
    bench = Bench(damping=(2.0,) * 7, velocity_filter=0.05).enabled()
    qd = 0.5 * ONE[3]
    for k in range(1, 6):
        bench.run(PERIOD, Q, qd)
        share = 1.0 - (1.0 - PERIOD / (0.05 + PERIOD)) ** k
        np.testing.assert_allclose(bench.torques[-1], G - 2.0 * share * qd, atol=1e-9)


def test_settling_damps_the_momentum_and_fades_out():
    bench = Bench(ramp_in_time=0.0)
    bench.run(0.1)
    bench.send(efforts=G.tolist())  # which show that the torques are right
    assert bench.core.enable(bench.now) == ""
    begin = bench.now
    qd = 0.02 * np.arange(1.0, 8.0)
    M = mbs.mass_matrix(MODEL, Q)
    for seconds in (PERIOD, 0.5, 0.3):
        bench.run(seconds, Q, qd)
        gain = max(0.0, 1.0 - (bench.now - begin)) / 0.1
        np.testing.assert_allclose(bench.torques[-1], G - gain * M @ qd, atol=1e-9)
    bench.run(0.3, Q, qd)
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-9)


def test_a_release_with_states_keeps_the_damping_and_ends_the_friction():
    bench = Bench(damping=(3.0,) * 7, friction=(1.0,) * 7, friction_scale=1.0).enabled()
    qd = np.full(7, 0.2)
    bench.run(0.5, Q, qd)
    bench.core.disable(bench.now)
    for k in range(1, 99):
        bench.run(PERIOD, Q, qd)
        np.testing.assert_allclose(bench.torques[-1], (1.0 - k * PERIOD) * G - 3.0 * qd, atol=1e-9)
    bench.run(0.1, Q, qd)
    assert bench.state == "disabled"
    assert not bench.torques[-1].any()


def test_damping_and_friction_end_within_two_periods_without_states():
    bench = Bench(damping=(3.0,) * 7, friction=(1.0,) * 7, friction_scale=1.0).enabled()
    bench.run(0.5, Q, np.full(7, 0.2))
    last = bench.now
    bench.silence(0.15)
    assert bench.state == "enabled"
    assert bench.times[-1] <= last + 3.0 * PERIOD + 1e-6  # two, and one of the timer
    np.testing.assert_allclose(bench.torques[-1], G, atol=1e-9)


def test_a_fault_is_followed_with_the_states_that_are_valid():
    bench = Bench(damping=(3.0,) * 7).enabled()
    bench.now += PERIOD
    bench.core.arm.fail(Fault("internal_error", "what"), bench.now)
    begin = bench.now
    there = Q + 0.05
    bench.move(Q, there)
    bench.run(PERIOD, there + PERIOD, np.ones(7))
    left = 1.0 - (bench.now - begin)
    expected = left * mbs.gravity_torques(MODEL, there + PERIOD) - 3.0
    np.testing.assert_allclose(bench.torques[-1], expected, atol=1e-9)


# -- states that are old, or come in several messages ----------------------------------------------


def states_of_age(bench, age, seconds=0.3):
    for _ in range(round(seconds / PERIOD)):
        bench.now += PERIOD
        bench.stamp = int(1e9 * (bench.now - age))
        times = {"stamp": bench.stamp, "now": bench.now, "clock": bench.nanoseconds}
        bench.core.arm.receive(list(JOINTS), Q.tolist(), REST.tolist(), **times)


@pytest.mark.parametrize(("age", "word"), [(5.0, "older"), (-5.0, "newer")])
def test_states_that_are_steadily_old_are_refused(age, word):
    bench = Bench(max_age=1.0)
    states_of_age(bench, age)
    said = f"the stamp is 5.000 s {word} than the clock; must be at most 1"
    assert said in bench.core.enable(bench.now)
    bench = Bench(max_age=0.0)
    states_of_age(bench, age)
    assert bench.core.enable(bench.now) == ""


def test_states_that_grow_old_are_a_fault():
    bench = Bench(max_age=1.0, stale_timeout=2.0)
    states_of_age(bench, 0.5)
    assert bench.core.enable(bench.now) == ""
    for age in (0.9, 1.3):
        bench.now += 0.45
        states_of_age(bench, age, PERIOD)
    assert bench.fault is None  # it counts as missing
    states_of_age(bench, 1.3, 2.0)
    assert bench.fault == "age"


TWO = ARM7.replace(
    "</robot>",
    """<link name="finger"><inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"
    ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="gripper" type="prismatic"><parent
    link="tool"/><child link="finger"/><axis xyz="1 0 0"/><limit lower="0" upper="0.1" effort="10"
    velocity="1"/></joint></robot>""",
)
GRIPPER = [0.02], [0.0], ["gripper"]


@pytest.mark.long
def test_an_arm_and_its_gripper_report_in_messages_of_their_own():
    bench = Bench(TWO, other_joints_timeout=0.5)
    bench.send()
    assert "no valid state so far of gripper" in bench.core.enable(bench.now)
    bench.send(*GRIPPER)
    bench.run(PERIOD)
    assert bench.core.enable(bench.now) == ""
    for _ in range(4):
        bench.run(0.3)
        bench.send(*GRIPPER)
    g = mbs.gravity_torques(mbs.Model.from_urdf(TWO), [*Q, 0.02])
    bench.run(0.45)
    assert bench.state == "enabled"
    np.testing.assert_allclose(bench.torques[-1], g[:7], atol=1e-9)
    count = len(bench.commands)
    assert bench.send(*GRIPPER).command is None  # the arm's states are answered, not the gripper's
    assert len(bench.commands) == count
    bench.run(0.6)
    assert bench.fault == "stale"
    assert bench.core.fault.reason.startswith("no valid state of gripper for 0.50")
