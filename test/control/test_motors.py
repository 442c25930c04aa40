# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of motors, and conversions between units of drives and SI."""

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml
from urdf_reference import chain, joint, link, urdf

import mbs_dynamics as mbs
from mbs_dynamics.control.motors import Frame, MotorCommand, Motors
from mbs_dynamics.errors import MbsError
from mbs_dynamics.resources import robot_path
from simulated.bus import frames_of, mujoco_of

ARM = mbs.Model.from_urdf(robot_path("arm7"))
ARMS = Path(__file__).parents[2] / "config" / "arms"
POSTURE = (0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1)
SLIDES = '<axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="1" effort="100"/>'
RAIL = urdf(
    link("base"),
    link("car"),
    link("tip"),
    link("other", ""),
    link("hand"),
    joint("lift", "base", "car", "prismatic", SLIDES),
    joint("finger", "car", "tip", "prismatic", SLIDES),
    joint("twin", "car", "other", "prismatic", SLIDES + '<mimic joint="finger"/>'),
    joint("wrist", "car", "hand", "continuous"),
)


UNITS = ("position_per_radian", "command_per_newton_metre", "feedback_per_newton_metre")


def row(motor, /, **changes):
    found = {"motor": motor, "sign": 1, "kp": 200.0, "kd": 10.0} | dict.fromkeys(UNITS, 1.0)
    found |= changes
    return {key: value for key, value in found.items() if value is not None}


def table(rows=None, **changes):
    rows = rows or {name: row(k + 1) for k, name in enumerate(ARM.joint_names)}
    return {"when_silent": "damp", "motors": rows} | changes


def odd(seed=0):
    """Motors with random signs and units: ticks, per mille."""
    rng = np.random.default_rng(seed)

    def one(k):
        ticks, command = rng.uniform(100.0, 4000.0), rng.uniform(10.0, 300.0)
        return row(
            f"m{k}",
            sign=int(rng.choice([-1, 1])),
            zero=float(rng.uniform(-500.0, 500.0)),
            position_per_radian=float(ticks),
            velocity_per_radian=float(rng.uniform(1.0, 10.0)),
            command_per_newton_metre=float(command),
            feedback_per_newton_metre=float(rng.uniform(-300.0, -10.0)),
            kp=float(200.0 * command / ticks),
            kd=2.0,
            damping=5.0,
        )

    return Motors(table({name: one(k) for k, name in enumerate(ARM.joint_names)}), ARM)


@pytest.mark.parametrize("seed", range(5))
def test_frames_in_any_order_and_form_give_si_units(seed):
    rng, motors = np.random.default_rng(seed), odd(seed)
    q, qd, tau = (dict(zip(ARM.joint_names, rng.normal(size=7), strict=True)) for _ in range(3))
    by_motor = ([x[m.joint] for m in motors.motors] for x in (q, qd, tau))
    frames = frames_of(motors, [1.0] * 7, *by_motor)
    for picked in [range(7), range(6, -1, -1), [3], rng.permutation(7)[:4], [1, 5]]:
        for form in (lambda frame: frame, lambda frame: frame[:5], tuple):
            found = motors.measured([form(frames[k]) for k in picked])
            names = [motors.joint_names[k] for k in found.joints]
            assert list(found.joints) == sorted(picked)
            np.testing.assert_allclose(found.positions, [q[name] for name in names], atol=1e-12)
            np.testing.assert_allclose(found.velocities, [qd[name] for name in names])
            np.testing.assert_allclose(found.efforts, [tau[name] for name in names])
            assert set(found.stamps) == {1.0}
            assert set(found.errors) == {0}
            assert np.isnan(found.temperatures).all()


def test_commands_are_the_inverse_and_hold_by_shares_of_the_gains():
    motors = odd()
    q, tau = np.linspace(-1.0, 1.0, 7), np.linspace(5.0, -5.0, 7)
    for kp, kd in ((0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.25, 0.5)):
        found = motors.commands(tau.tolist(), q.tolist(), kp, kd)
        assert all(type(command) is MotorCommand for command in found)
        for m, command, position, torque in zip(motors.motors, found, q, tau, strict=True):
            assert command.motor == m.motor
            reported = m.zero + m.sign * m.position_per_radian * position
            assert math.isclose(command.position, reported)
            assert math.isclose(command.effort, m.sign * m.command_per_newton_metre * torque)
            assert (command.velocity, command.kp, command.kd) == (0.0, kp * m.kp, kd * m.kd)
    np.testing.assert_allclose(motors.stiffness, 200.0)
    assert motors.damping == (5.0,) * 7
    assert motors.can_hold
    with pytest.raises(MbsError, match="6 torques"):
        motors.commands([0.0] * 6, [0.0] * 7)


def test_two_motors_share_the_torque_of_a_joint():
    pair = [row("a", kp=100.0, limit=20.0), row("b", sign=-1, zero=2.0, limit=15.0)]
    rows = {"joint2": pair, "joint1": row("c")}
    motors = Motors(table(rows), ARM)
    assert motors.joint_names == ("joint1", "joint2")
    assert motors.limits == (180.0, 30.0)
    assert motors.stiffness == (200.0, 300.0)
    commands = {one.motor: one for one in motors.commands([1.0, 8.0], [0.0, 0.5])}
    assert [commands[name].effort for name in "abc"] == [4.0, -4.0, 1.0]
    assert [commands[name].position for name in "ab"] == [0.5, 1.5]

    first = motors.measured([Frame("a", 1.0, 0.5, 1.0, 4.0, temperature=40.0)])
    assert list(first.joints) == []  # b has not reported yet
    found = motors.measured([Frame("b", 1.1, 1.4, -1.0, -3.0, error=7), Frame("c", 1.2, 0, 0, 0)])
    assert list(found.joints) == [0, 1]
    np.testing.assert_allclose(found.positions, [0.0, 0.55])
    np.testing.assert_allclose(found.velocities, [0.0, 1.0])
    np.testing.assert_allclose(found.efforts, [0.0, 7.0])
    np.testing.assert_allclose(found.apart, [0.0, 0.1])
    assert tuple(found.stamps) == (1.2, 1.0)
    assert tuple(found.errors) == (0, 7)
    assert found.temperatures[1] == 40.0


def test_odd_frames_are_reported_and_never_raise():
    motors = Motors(table(), ARM)
    assert list(motors.measured([]).joints) == []
    found = motors.measured([(9, 0.0, 1, 2, 3), (1, 0.5, None, "x", 2.0), ([2], 0.5, 0, 0, 0)])
    assert list(found.joints) == [0]
    assert list(found.unknown) == [9, "[2]"]
    assert np.isnan([found.positions[0], found.velocities[0]]).all()
    assert list(found.efforts) == [2.0]
    twice = motors.measured([Frame(1, 0.1, 1.0, 0, 0), Frame(1, 0.2, 2.0, 0, 0)])
    assert (list(twice.positions), list(twice.stamps)) == ([2.0], [0.2])
    for broken in ((1, 2.0), 3.0, None):
        with pytest.raises(MbsError, match="frames"):
            motors.measured([broken])


@pytest.mark.parametrize("absurd", [1e308, -1e300, 10**400])
def test_numbers_that_overflow_are_none_and_never_raise(absurd):
    motors = Motors(table({"joint1": row(1, position_per_radian=1e-9)}), ARM)
    with np.errstate(all="raise"):
        found = motors.measured([Frame(1, 0.0, absurd, 0.0, 2.0)])
    assert np.isnan(found.positions[0])
    assert list(found.efforts) == [2.0]


def test_prismatic_joints_limits_and_remarks():
    model = mbs.Model.from_urdf(RAIL)
    rows = {
        "finger": row(3, position_per_radian=1e3, command_per_newton_metre=0.5, limit=120.0),
        "lift": row("z", sign=-1.0, zero=50.0, position_per_radian=2e3, kp=0, kd=0),
    }
    motors = Motors(table(rows, when_silent="last", max_age=1), model)
    assert motors.coordinates == (0, 1)
    assert motors.limits == (100.0, 120.0)
    assert (motors.max_age, motors.can_hold) == (1.0, False)
    assert motors.commands([-30.0, 0.0], [0.25, 0.0])[0][:2] == ("z", -450.0)
    text = "\n".join(motors.remarks)
    assert all(word in text for word in ("last", "lift", "120", "100"))
    assert Motors(table(), ARM).remarks == ()


CASES = [
    ({"motors": {"joint9": row(1)}}, ("joint9", "joint7")),
    ({"motors": {"joint1": row(1), "joint2": row("1")}}, ("motor 1 ", "joint1, joint2")),
    ({"motors": {}}, ("motors", "{}")),
    ({"motors": {"joint1": [row(1)]}}, ("joint1", "1 motors")),
    ({"motors": {"joint1": [row(1), row(1)]}}, ("motor 1", "joint1")),
    ({"when_silent": "coast"}, ("when_silent", "coast", "damp")),
    ({"max_age": 0.0}, ("max_age", "0")),
    ({"max_age": "0.02"}, ("max_age", "str|U4")),
    ({"rate": 5}, ("rate", "max_age")),
    *[
        ({"motors": {"joint1": row(1, **{key: value})}}, ("joint1", key, shown))
        for key, value, shown in [
            ("motor", 1.5, "1.5"),
            ("sign", 0, "0"),
            ("zero", math.inf, "inf"),
            ("command_per_newton_metre", 0.0, "0"),
            ("command_per_newton_metre", None, "lacks"),
            ("feedback_per_newton_metre", "1e-3", "1.0e-3"),
            ("limit", 0, "0"),
            ("kp", -1.0, "-1"),
            ("kd", None, "kp"),
            ("signs", 1, "did you mean 'sign'"),
        ]
    ],
    ({"motors": {"joint1": row(1, kp=0, stiffness=3.0)}}, ("joint1", "stiffness")),
]


@pytest.mark.parametrize(("changes", "said"), CASES)
def test_bad_tables_are_refused(changes, said):
    with pytest.raises(MbsError) as error:
        Motors(table(**changes), ARM)
    for word in said:
        assert any(each in str(error.value) for each in word.split("|"))


def test_joints_without_a_motor_of_their_own_or_a_limit_are_refused():
    model = mbs.Model.from_urdf(RAIL)
    with pytest.raises(MbsError, match=r"twin.*finger.*lift, finger, wrist"):
        Motors(table({"twin": row(1)}), model)
    with pytest.raises(MbsError, match=r"wrist.*limit"):
        Motors(table({"wrist": row(1)}), model)
    floating = mbs.Model.from_urdf(robot_path("arm7"), floating_base=True)
    assert Motors(table(), floating).coordinates == tuple(range(6, 13))
    with pytest.raises(MbsError, match=r"6 degrees"):
        Motors(table({floating.joints[0].name: row(1)}), floating)


@pytest.mark.long
def test_files_are_read_strictly(tmp_path):
    file = tmp_path / "motors.yaml"
    file.write_text(yaml.safe_dump(table()))
    assert Motors.read(file, ARM).limits == Motors(table(), ARM).limits
    for text, said in [
        ("a: &x [*x]", "alias"),
        ("{", "not YAML"),
        ("3", "3"),
        (yaml.safe_dump(table()) + "when_silent: hold\n", "when_silent.*twice"),
        ("#" * 2**19, "characters"),
    ]:
        file.write_text(text)
        with pytest.raises(MbsError, match=f"{file.name}.*{said}"):
            Motors.read(file, ARM)
    with pytest.raises(MbsError, match=r"absent\.yaml"):
        Motors.read(tmp_path / "absent.yaml", ARM)


@pytest.mark.parametrize("file", sorted(ARMS.glob("*.yaml")), ids=lambda file: file.stem)
def test_tables_of_arms_are_read_and_convert_both_ways(file):
    names = list(yaml.safe_load(file.read_text())["motors"])
    n = len(names)
    model = mbs.Model.from_urdf(chain(*((name, "continuous", "") for name in names)))
    motors = Motors.read(file, model)
    assert motors.joint_names == tuple(names)
    q, tau = np.linspace(-1.0, 1.0, n), 0.5 * np.array(motors.limits)
    raw = motors.commands(tau.tolist(), q.tolist())
    share = [m.feedback_per_newton_metre / m.command_per_newton_metre for m in motors.motors]
    pairs = zip(raw, share, strict=True)
    found = motors.measured([(m.motor, 0.0, m.position, 0.0, x * m.effort) for m, x in pairs])
    np.testing.assert_allclose(found.positions, q)
    np.testing.assert_allclose(found.efforts, tau)
    assert file.name in (ARMS.parents[1] / "docs/how_to/motor_bus_arms.md").read_text()


def test_the_simulated_arm_has_the_dynamics_of_the_model():
    theirs = mujoco_of(ARM, ARM.joint_names, {})
    data = mujoco.MjData(theirs)
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.qpos[:], data.qvel[:] = rng.normal(size=(2, 7))
        mujoco.mj_forward(theirs, data)
        expected = mbs.forward_dynamics(ARM, data.qpos, data.qvel, np.zeros(7))
        np.testing.assert_allclose(data.qacc, expected, rtol=1e-6)
