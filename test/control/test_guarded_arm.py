# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Events at a guarded arm, on drives in MuJoCo: how far the arm moves, and who holds it then."""

import math

import numpy as np
import pytest
from bus import frozen, nan, once, reports, shifted, silent
from guarded_bench import JOINTS, MODEL, PERIOD, Loop, Q, table

import mbs_dynamics as mbs
from mbs_dynamics.control import GuardedArm, Motors, laws, linked
from mbs_dynamics.control.poses import read_poses
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.identification.readers import read_recording

MOTOR = 0x11
"""That of joint2, which carries most."""


def fault(*faults):
    return lambda loop: loop.bus.faults.extend(faults)


def drive(name, value, motor=MOTOR):
    def apply(loop):
        found = getattr(loop.bus, name)
        if isinstance(found, dict):
            found[motor] = value
        else:
            found.add(motor)

    return apply


EVENTS = {
    "one NaN": (fault(once(nan(MOTOR))), None, 0.05),
    "NaN for good": (fault(nan(MOTOR)), "stale", 0.05),
    "silence of one motor": (fault(silent(MOTOR)), "stale", 0.05),
    "silence of the bus": (fault(silent()), "stale", 0.05),
    "pause of 80 ms": (lambda loop: loop.bus.advance(0.08), "pause", 0.05),
    "one jump": (fault(once(shifted(MOTOR, position=60.0))), None, 0.05),
    "jumping encoder": (drive("encoder_jump", 1.0), "encoder_jump", 0.05),
    "jump of the reports": (fault(shifted(MOTOR, position=60.0)), "encoder_jump", 0.05),
    "backward stamps": (fault(shifted(stamp=-1.0)), "stale", 0.05),
    "sign of a command": (drive("command_factor", -1.0), "tracking", 0.25),
    "command fourfold": (drive("command_factor", 4.0), "tracking", 0.25),
    "sign of a feedback": (drive("feedback_factor", -1.0), "tracking", 0.05),
    "feedback fourfold": (drive("feedback_factor", 4.0), "tracking", 0.05),
    "drive error": (fault(reports(MOTOR, error=3)), "drive_error", 0.05),
    "over-temperature": (fault(reports(MOTOR, temperature=95.0)), "temperature", 0.05),
    "disable": (lambda loop: loop.arm.disable(loop.now), None, 0.05),
    "enabled twice": (lambda loop: loop.arm.enable(loop.now), None, 0.05),
}


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_moves_an_arm_that_drives_can_hold_by_little(event):
    apply, kind, most = EVENTS[event]
    loop = Loop(limits={"max_temperature": 80.0}).enabled()
    apply(loop)
    loop.run(2.0)
    assert loop.bus.moved < most
    assert (loop.arm.fault.kind if loop.arm.fault else None) == kind
    expected = "torque" if kind is None and event != "disable" else "hold"
    assert loop.command.mode == expected


@pytest.mark.parametrize(("silent_drives", "most"), [("hold", 0.2), ("damp", 0.3)])
def test_an_arm_whose_loop_dies_is_taken_up_again(silent_drives, most):
    """Until then the drives do what they do without commands."""
    loop = Loop(made=table(when_silent=silent_drives)).enabled()
    loop.bus.advance(0.2)
    loop.run(2.0)
    assert loop.bus.moved < most
    assert (loop.arm.fault.kind, loop.command.mode) == ("pause", "hold")


def test_a_frozen_motor_of_a_moving_arm_stops_it():
    loop = Loop().enabled()
    loop.bus.push[1] = 3.0
    loop.run(0.3)
    assert abs(loop.bus.qd[1]) > 0.15
    loop.bus.mark()
    loop.bus.faults.append(frozen(MOTOR))
    loop.run(0.5)
    loop.bus.push[1] = 0.0
    loop.run(1.0)
    assert loop.arm.fault.kind == "frozen"
    assert loop.bus.moved < 0.15


def test_a_load_that_is_announced_as_it_is_taken_up_moves_the_arm_little():
    loop = Loop().enabled()
    link = MODEL.body_names[-1]
    loop.bus.load(link, 2.0)
    loop.arm.load(link, 2.0, time=0.05)
    loop.run(2.0)
    assert loop.arm.state == "enabled"
    assert loop.bus.moved < 0.1
    np.testing.assert_allclose(loop.command.torques, loop.bus.torques, atol=0.3)


# -- laws ------------------------------------------------------------------------------------------


def test_a_law_of_the_user_replaces_gravity_compensation():
    """A spring to a posture, as an example: the arm goes there."""
    goal = Q + np.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0])

    def spring(model, state):
        return mbs.gravity_torques(model, state.q) + 60.0 * (goal - state.q) - 12.0 * state.qd

    loop = Loop(spring).enabled().run(2.0)
    np.testing.assert_allclose(loop.bus.q, goal, atol=0.01)
    loop.arm.disable(loop.now)
    loop.run(0.1)
    assert loop.command.mode == "hold"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda good: [math.nan] * 7, "nan"),
        (lambda good: good[:3], "7 finite torques"),
        (lambda good: 1 / 0, "ZeroDivisionError"),
        (lambda good: "torque", "ValueError"),
    ],
)
def test_a_law_that_fails_is_a_fault_that_names_it_and_drives_hold(returned, said):
    failing = []

    def my_law(model, state):
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


# -- drives that cannot hold, and several arms -----------------------------------------------------


@pytest.mark.parametrize("event", ["disable", "NaN for good"])
def test_torques_ramp_down_where_no_drive_can_hold(event):
    loop = Loop(made=table(kp=0.0), limits={"ramp_time": 1.0}).enabled()
    before = np.array(loop.command.torques)
    EVENTS[event][0](loop)
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


# -- events and enabling ---------------------------------------------------------------------------


def test_each_change_is_an_event_once():
    loop = Loop().enabled()
    loop.arm.disable(loop.now)
    loop.run(0.5)
    loop.arm.enable(loop.now)
    loop.run(0.5)
    loop.bus.faults.append(lambda frame: frame._replace(motor=0x99))
    loop.run(0.5)
    expected = ["ramping in", "enabled", "disabled", "ramping in", "enabled"]
    assert loop.events[:5] == expected
    assert "153" in loop.events[5]
    assert loop.events[6].startswith("fault stale")
    assert len(loop.events) == 7


def test_a_fault_is_latched_until_it_is_cleared():
    loop = Loop().enabled()
    loop.bus.faults.append(nan(MOTOR))
    loop.run(0.5)
    loop.bus.faults.clear()
    loop.run(0.1)
    assert any("fault is latched" in one for one in loop.arm.enable(loop.now))
    loop.arm.clear(loop.now)
    assert loop.arm.enable(loop.now) == []
    loop.run(1.0)
    assert loop.arm.state == "enabled"


def test_an_arm_without_frames_cannot_be_enabled():
    loop = Loop()
    assert loop.arm.step(0.0, []).mode == "off"
    assert any("no valid frames so far" in one for one in loop.arm.enable(0.0))


def test_an_arm_whose_drives_hold_it_with_other_torques_cannot_be_enabled():
    """A motor of the wrong sign shows in postures in which its joint bears weight."""
    wrong = Motors(table(signs=(1, 1, 1, 1, -1, 1, 1)), MODEL)
    loop = Loop().enabled()
    loop.arm.disable(loop.now)
    loop.run(0.5)
    other = GuardedArm(MODEL, laws.Gravity(), wrong, fixed={})
    frames = loop.bus.read()
    other.step(loop.now, frames)
    assert any("joint2" in one for one in other.enable(loop.now))


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


@pytest.mark.parametrize("options", [{"no_such": 1.0}, {"damping": -1.0}, {"damping": {"j9": 1}}])
def test_options_that_are_none_are_refused(options):
    with pytest.raises(MbsError, match=next(iter(options)) if "j9" not in str(options) else "j9"):
        GuardedArm(MODEL, laws.Gravity(**options), Loop().motors)


def test_the_log_is_read_by_identify_and_calibrate_motors(tmp_path):
    path = tmp_path / "floating.csv"
    with path.open("w") as log:
        loop = Loop(limits={"log": log}).enabled()
        loop.bus.faults.append(once(silent(MOTOR)))  # no row for an incomplete step
        loop.run(0.5)
    recording = read_recording(path)
    assert recording.joints == JOINTS
    assert len(recording.t) > 300
    np.testing.assert_allclose(recording.q[-1], loop.bus.q, atol=1e-3)
    np.testing.assert_allclose(recording.tau[-1], loop.command.torques, atol=0.5)
    found = read_poses(path, MODEL)
    np.testing.assert_allclose(found.commands["joint2"][-1], loop.command.motors[1].effort)
