# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Events at a guarded arm, on drives in MuJoCo: how far the arm moves, and who holds it then."""

import csv
import math

import numpy as np
import pytest
from urdf_reference import STATED, chain

import mbs_dynamics as mbs
from mbs_dynamics.control import GuardedArm, Motors, laws, linked
from mbs_dynamics.control.faults import Doubt
from mbs_dynamics.control.guard import UNVERIFIED
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.timeseries import TimeSeries
from simulated.bus import frozen, nan, once, silent
from simulated.guarded_bench import EVENTS, MODEL, MOTOR, ODD, PERIOD, Loop, Q, happen, table


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_moves_an_arm_that_drives_can_hold_by_little(name):
    event = EVENTS[name]
    loop = happen(event)
    assert loop.bus.moved < event.most
    assert (loop.arm.fault.kind if loop.arm.fault else None) == event.kind
    assert loop.command.mode == event.mode


@pytest.mark.long
@pytest.mark.parametrize("seconds", [20.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_an_arm_that_is_guided_raises_no_false_alarm(seconds):
    loop = Loop().enabled()
    fastest = loop.guided(seconds, np.random.default_rng(0))
    assert loop.arm.state == "enabled"
    assert fastest.min() > 0.3
    assert fastest.max() < 2.0


DEVIATIONS = dict.fromkeys(("sign of a command", "sign of a feedback"), 2.0)
DEVIATIONS |= dict.fromkeys(("command fourfold", "feedback fourfold"), 3.0)
"""Multiples of its torque by which a motor deviates after these events."""

UNSEEN = 0.02
"""Share of its effort limit below which the deviation of a motor is not seen."""


@pytest.mark.long
@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_an_arm_gains_at_most_the_energy_of_the_springs_of_its_drives_after_a_fault(count):
    """In motion, without friction, at any joint. Every event that can be seen stops the arm.

    Drives store what is between trusted and true positions, and at most g^2 / 2 K by the work of
    gravity torques that are fed forward; where one only damps, these torques do what work they do.
    """
    rng = np.random.default_rng(count)
    names = [x for x, event in EVENTS.items() if event.mode == "hold" and "in motion" not in x]
    for case in range(count):
        name, motor = names[case % len(names)], int(rng.integers(7))
        event, deviations = EVENTS[name], []
        q = MODEL.lower + (0.2 + 0.6 * rng.random(7)) * (MODEL.upper - MODEL.lower)
        given = {"noise": (0.0,) * 3, "torque_step": 0.0, "friction": 0.0, "step": 0.002}
        made = table(**event.table)
        loop = Loop(q=q, limits=ODD, made=made, **given, **event.options).enabled(1.6)
        loop.bus.place(loop.bus.q, rng.uniform(-0.5, 0.5, 7) * MODEL.velocity_limits)
        loop.run(3 * PERIOD)
        event.apply(loop, 0x10 + motor)
        while loop.command.mode != "hold" and len(deviations) < 25:
            loop.run(PERIOD)
            torque = abs(loop.command.torques[motor])
            deviations.append(DEVIATIONS.get(name, math.inf) * torque)
        if loop.command.mode != "hold":  # in 20 periods it was too small at least once
            assert min(deviations[5:]) < UNSEEN * MODEL.effort_limits[motor], name
            continue
        before, start, held = loop.energy, loop.bus.q, np.array(loop.arm.state_record.held)
        g, K = mbs.gravity_torques(MODEL, held), np.array(loop.motors.stiffness)
        springs = 0.5 * K @ (held - start) ** 2 + 0.5 * (g / K) @ g
        fault = loop.arm.fault
        damped = fault.joints if fault and fault.doubt is Doubt.ENCODER else ()
        for _ in range(50):
            loop.run(PERIOD)
            work = sum(g[k] * (loop.bus.q[k] - start[k]) for k in damped)
            assert loop.energy - before < springs + max(0.0, work) + 0.01, name


@pytest.mark.parametrize("motor", [0x10, MOTOR, 0x16])
def test_a_frozen_motor_at_rest_stops_the_arm_before_a_push_moves_it(motor):
    loop = Loop().enabled()
    loop.bus.faults.append(frozen(motor))
    loop.bus.push[motor - 0x10] = 0.7 + 4.0 * loop.inertias[motor - 0x10]
    loop.run(0.5)
    assert loop.arm.fault.kind == "frozen"
    assert loop.bus.moved < 0.15


@pytest.mark.long
@pytest.mark.parametrize("step", [0.0, 1e-3])
def test_motors_without_noise_are_not_frozen_when_they_come_to_rest(step):
    def rounded(frame):
        if not step:
            return frame
        values = {key: step * round(getattr(frame, key) / step) for key in frame._fields[2:5]}
        return frame._replace(**values)

    loop = Loop(noise=(0.0,) * 3)
    loop.bus.faults.append(rounded)
    loop.enabled().run(1.0)
    loop.bus.push[0] = 3.0
    loop.run(0.5)
    loop.bus.push[0] = 0.0
    loop.run(4.0)
    assert loop.arm.fault is None


def test_efforts_that_end_are_an_event_that_names_the_checks_they_end():
    loop = Loop().enabled()
    loop.bus.faults.append(nan(MOTOR, fields=("effort",)))
    loop.run(1.0)
    assert loop.arm.state == "enabled"
    said = [event for event in loop.events if "tracking_tolerance" in event]
    assert len(said) == 1
    assert "joint2" in said[0]


def test_a_law_of_the_user_replaces_gravity_compensation():
    """A spring to a posture, as an example: the arm goes there."""
    goal = Q + np.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0])

    def spring(model, state, reference):
        return mbs.gravity_torques(model, state.q) + 60.0 * (goal - state.q) - 12.0 * state.qd

    loop = Loop(spring).enabled().run(2.0)
    np.testing.assert_allclose(loop.bus.q, goal, atol=0.01)
    loop.arm.disable(loop.now)
    loop.run(0.1)
    assert loop.command.mode == "hold"


@pytest.mark.long
@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda good: [math.nan] * 7, "nan"),
        (lambda good: good[:3], "7 finite torques"),
        (lambda good: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_law_that_fails_is_a_fault_that_names_it_and_drives_hold(returned, said):
    failing = []

    def my_law(model, state, reference):
        good = mbs.gravity_torques(model, state.q)
        return returned(good) if failing else good

    loop = Loop(my_law).enabled()
    failing.append(True)
    loop.run(1.0)
    assert loop.arm.fault.kind == "law"
    assert "my_law" in loop.arm.fault.reason
    assert said in loop.arm.fault.reason
    assert loop.command.mode == "hold"
    assert loop.bus.moved < 0.05


@pytest.mark.parametrize("event", ["disable", "NaN for good"])
def test_torques_ramp_down_where_no_drive_can_hold(event):
    loop = Loop(made=table(kp=0.0), limits={"ramp_time": 1.0}).enabled()
    before = np.array(loop.command.torques)
    EVENTS[event].apply(loop, MOTOR)
    loop.run(0.5)
    assert loop.command.mode == "torque"
    assert 0.3 < abs(loop.command.torques[1] / before[1]) < 0.7
    loop.run(1.0)
    assert loop.command.mode == "off"
    assert loop.command.motors == ()


def test_a_fault_of_one_linked_arm_stops_the_other():
    one, other = Loop().enabled(), Loop().enabled()
    linked(one.arm, other.arm)
    one.bus.faults.append(nan(MOTOR))
    for _ in range(50):
        one.run(PERIOD)
        other.run(PERIOD)
    assert other.arm.fault.kind == "linked"
    assert "stale" in other.arm.fault.reason
    assert other.command.mode == "hold"


def test_each_change_is_an_event_once():
    loop = Loop().enabled()
    loop.arm.disable(loop.now)
    loop.run(0.5)
    loop.arm.enable(loop.now)
    loop.run(0.5)
    loop.bus.faults.append(lambda frame: frame._replace(motor=0x99))
    loop.run(0.5)
    expected = ["ramping in", UNVERIFIED, "enabled", "disabled", "ramping in", "enabled"]
    assert loop.events[:6] == expected
    assert "153" in loop.events[6]
    assert loop.events[7].startswith("fault stale")
    assert len(loop.events) == 8


@pytest.mark.parametrize("shares", [[0.4] * 7, [0, 0, 0, 0, 0, 1, 0]], ids=["all", "one joint"])
def test_drives_that_carry_a_part_of_the_weight_are_found_before_the_arm_moves_far(shares):
    """Their efforts are near those of gravity, so that the motion has to tell."""
    loop = Loop()
    loop.arm.step(loop.now, loop.bus.read())
    assert loop.arm.hold(loop.now) == []
    refused = []
    for k in range(500):
        if k == 100:
            refused = loop.arm.enable(loop.now)
        loop.bus.push[:] = np.array(shares) * mbs.gravity_torques(MODEL, loop.bus.q)
        loop.run(PERIOD)
    assert refused or loop.arm.fault.kind == "support"
    assert loop.bus.moved < 0.1  # 1.3 rad under torques that such efforts verify


@pytest.mark.long
def test_a_joint_without_motor_must_be_fixed():
    rows = table()
    rows["motors"].pop("joint7")
    motors = Motors(rows, MODEL)
    with pytest.raises(ArgumentError, match="joint7"):
        GuardedArm(MODEL, laws.Gravity(), motors)
    arm = GuardedArm(MODEL, laws.Gravity(), motors, fixed={"joint7": 0.1})
    loop = Loop()
    frames = [frame for frame in loop.bus.read() if frame.motor != 0x16]
    arm.step(0.0, frames)
    assert arm.enable(0.0) == []


def test_a_table_that_was_read_for_another_model_is_refused():
    names = ["rail", *MODEL.joint_names]
    on_rail = mbs.Model.from_urdf(chain(*((name, "revolute", STATED) for name in names)))
    with pytest.raises(ArgumentError, match="another model"):
        GuardedArm(on_rail, laws.Gravity(), Motors(table(), MODEL), fixed={"rail": 0.0})


def test_the_log_is_read_by_identify_and_calibrate_motors(tmp_path):
    path = tmp_path / "floating.csv"
    with path.open("w") as log:
        loop = Loop(limits={"log": log}).enabled()
        loop.bus.faults.append(once(silent(MOTOR)))  # no row for an incomplete step
        loop.run(0.2)
        loop.bus.faults.append(once(nan(MOTOR, fields=("position",))))  # a row with empty cells
        loop.run(0.3)
    header, *rows = csv.reader(path.read_text().splitlines())
    assert {len(row) for row in rows} == {len(header)}  # every cell is in its column
    (part,) = [dict(zip(header, row, strict=True)) for row in rows if "" in row]
    kinds = ("q", "qd", "tau", "raw_position")
    assert {name for name in header if not part[name]} == {f"{x}_joint2" for x in kinds}
    recording = TimeSeries.read(path)
    assert recording.joints == MODEL.joint_names
    assert len(recording.t) > 300
    np.testing.assert_allclose(recording.q[-1], loop.bus.q, atol=1e-3)
    np.testing.assert_allclose(recording.tau[-1], loop.command.torques, atol=0.5)
    commands = recording.columns["raw_command_joint2"]
    np.testing.assert_allclose(commands[-1], loop.command.motors[1].effort)


@pytest.mark.parametrize("reports", [True, False])
def test_drives_that_come_back_do_not_throw_the_arm(reports):
    """Without power the arm falls, and is held where it is once the drives are on again."""
    loop = Loop().enabled()
    loop.arm.disable(loop.now)
    loop.run(0.2)
    loop.bus.dead = set(loop.bus.command_factor)
    loop.bus.cut = not reports
    loop.run(0.7)
    fallen = np.abs(loop.bus.q - Q).max()
    assert fallen > 1.0
    loop.bus.cut = False
    loop.run(2 * PERIOD)  # frames come before the drives are enabled
    loop.bus.place(loop.bus.q)  # on the ground
    loop.bus.dead = set()
    loop.run(1.0)
    assert loop.bus.moved < 0.5  # of 5.2 without
    if reports:
        assert any("does not hold it" in event for event in loop.events)
