# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Position servos from goals and positions of an arm that MuJoCo simulates, as SO-101 reports them:
50 times a second, with 4096 steps a turn."""

import json
from dataclasses import replace
from functools import lru_cache

import mujoco
import numpy as np
import pytest
from mujoco_reference import mujoco_model
from urdf_reference import joint, link, load, urdf

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.control import PositionArm
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.identification import identify_servos
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

LINKS = {  # placement, axis, mass, centre of mass
    "pan": ("0 0 0.06", "0 0 1", 0.1, "0 0.01 0.03"),
    "lift": ("0 0 0.05", "0 1 0", 0.15, "0.01 0 0.06"),
    "elbow": ("0 0 0.12", "0 1 0", 0.12, "0 0.005 0.07"),
    "pitch": ("0 0 0.13", "0 1 0", 0.08, "0 0 0.03"),
    "roll": ("0 0 0.06", "0 0 1", 0.06, "0.01 0 0.04"),
}
JOINTS = tuple(LINKS)
STIFFNESS = np.array([18.0, 18.0, 14.0, 10.0, 8.0])
DAMPING = np.array([0.6, 0.6, 0.5, 0.3, 0.2])
FRICTION = np.array([0.05, 0.06, 0.05, 0.03, 0.02])
ARMATURE = np.array([0.012, 0.012, 0.01, 0.008, 0.006])
DELAY, PERIOD, STEP = 0.02, 0.02, 2.0 * np.pi / 4096
LOAD, AT = 0.15, (0.02, 0.0, 0.08)


def body(name, mass, com, moments):
    """Return a link with these moments of inertia about its centre of mass."""
    tensor = 'ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"'.format(*moments)
    at, m = f'<origin xyz="{com}"/>', f'<mass value="{mass}"/>'
    return link(name, f"<inertial>{at}{m}<inertia {tensor}/></inertial>")


def description(heavier=1.0, *more):
    parts, parent = [link("base", "")], "base"
    limit = '<limit lower="-1.9" upper="1.9" effort="3" velocity="6"/>'
    for name, (xyz, axis, mass, com) in LINKS.items():
        m, child = mass * heavier, f"{name}_link"
        moves = f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{limit}'
        parts.append(body(child, m, com, (2e-3 * m, 2e-3 * m, 5e-4 * m)))
        parts.append(joint(name, parent, child, more=moves))
        parent = child
    return urdf(*parts, *more)


@lru_cache
def described(heavier=1.0):
    return load(description(heavier))


def simulated(tmp_path, carries=False):
    """Return the arm in MuJoCo, with friction, motors and perhaps a load, which has a link."""
    at = '<origin xyz="{} {} {}"/>'.format(*AT)
    grip = joint("grip", "roll_link", "load", "fixed", at)
    more = (grip, body("load", LOAD, "0 0 0", [1e-9] * 3)) if carries else ()
    path = tmp_path / "so.urdf"
    path.write_text(description(1.0, *more))
    m = mujoco_model(path)
    m.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    m.dof_damping[:], m.dof_frictionloss[:], m.dof_armature[:] = DAMPING, FRICTION, ARMATURE
    mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("so"))


@pytest.fixture(scope="module")
def with_load(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("so"), seed=1, load=True)


def recorded(folder, seed=0, load=False):
    """Return what the servos were told and reported in 30 s of motion."""
    m, rng = simulated(folder, load), np.random.default_rng(seed)
    d = mujoco.MjData(m)
    f, phase, a = rng.uniform([[[0.1]], [[0.0]], [[0.1]]], [[[0.6]], [[6.28]], [[0.5]]], (3, 4, 5))

    def goal(t):
        return (a * np.sin(2.0 * np.pi * f * t + phase)).sum(axis=0) * min(1.0, max(0.0, t) / 2.0)

    rows = []
    for k in range(30_000):
        t = 1e-3 * k
        if k % 20 == 0:
            rows.append([t, *(np.round(d.qpos / STEP) * STEP), *goal(t)])
        told = goal(PERIOD * np.floor((t - DELAY) / PERIOD + 1e-9))
        d.qfrc_applied[:] = np.clip(STIFFNESS * (told - d.qpos), -3.0, 3.0)
        mujoco.mj_step(m, d)
    rows = np.array(rows)
    return TimeSeries(rows[:, 0], JOINTS, rows[:, 1:6], goal=rows[:, 6:], name="so.csv")


@pytest.mark.long
def test_stiffness_and_friction_follow_from_goals_and_positions(recording):
    result = identify_servos(described(), [recording])
    for j, name in enumerate(JOINTS[:4]):
        servo = result.servos[name]
        assert servo.stiffness == pytest.approx(STIFFNESS[j], rel=0.03)
        assert servo.friction == pytest.approx(FRICTION[j], rel=0.2)
        # the goals are held for a period; what is left of the delay is damping over stiffness
        lag = servo.delay + servo.damping / servo.stiffness
        assert lag == pytest.approx(DELAY + PERIOD / 2 + DAMPING[j] / STIFFNESS[j], abs=0.005)
        assert servo.error < 0.03
    assert result.servos["roll"].deviation > 0.1  # little gravity acts about it
    assert any("roll" in note and "stiffness" in note for note in result.notes)
    assert result.identification is None


@pytest.mark.long
def test_a_known_load_finds_the_true_masses(recording, with_load):
    wrong = described(0.7)
    result = identify_servos(wrong, [recording], with_load, link="roll_link", mass=LOAD, com=AT)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 5))
    gravity = [mbs.gravity_torques(m, q)[:, 1:4]
               for m in (described(), wrong, result.identification.model)]  # fmt: skip
    before, after = (np.abs(g - gravity[0]).max() / np.abs(gravity[0]).max() for g in gravity[1:])
    assert before > 0.25
    assert after < 0.03
    for j, name in enumerate(JOINTS[:4]):
        assert result.servos[name].stiffness == pytest.approx(STIFFNESS[j], rel=0.04)


def sag(model, goals):
    """Return how far joints settle from where they are wanted, with the goals."""
    d = mujoco.MjData(model)
    for k in range(4000):
        d.qfrc_applied[:] = np.clip(STIFFNESS * (goals * min(1.0, k / 2000) - d.qpos), -3.0, 3.0)
        mujoco.mj_step(model, d)
    return d.qpos.copy()


@pytest.mark.long
def test_compensated_goals_end_the_sag_though_masses_are_wrong(recording, tmp_path):
    wrong = described(0.85)  # so are the stiffnesses then, and goals need their ratio alone
    arm = PositionArm(wrong, **identify_servos(wrong, [recording]).springs)
    model, q = simulated(tmp_path), np.array([0.3, 0.8, 0.5, -0.4, 0.2])
    assert np.abs(sag(model, q) - q).max() > 0.03
    assert np.abs(sag(model, arm.goals(q)) - q).max() < 0.003


def test_goals_stay_within_limits():
    arm = PositionArm(described(), dict.fromkeys(JOINTS, 0.5), most=0.2)
    q = np.tile([0.0, 1.85, 0.3, 0.0, 0.0], (3, 1))
    goals = arm.goals(q)
    assert goals.shape == (3, 5)
    assert (goals <= 1.9).all()
    assert np.abs(goals - q).max() <= 0.2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stiffness": {"pan": 1.0}}, "stiffness.*lift"),
        ({"stiffness": dict.fromkeys(JOINTS, 0.0)}, "stiffness"),
        ({"friction_share": 1.5}, "friction_share.*1.5"),
        ({"damping": {"pan": -1.0}}, "damping"),
        ({"offset": {"wrist": 0.1}}, "wrist"),
    ],
)
def test_bad_servos_are_refused(given, said):
    with pytest.raises((ArgumentError, mbs.UnknownJointError), match=said):
        PositionArm(described(), **({"stiffness": dict.fromkeys(JOINTS, 9.0)} | given))


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: replace(x, goal=x.q), "goal_pan repeats the positions of pan"),
        (lambda s: replace(s, goal=np.tile(s.goal[:1], (len(s), 1))), "goal_pan.*changes by 0 "),
        (lambda s: replace(s, goal=s.goal * 180.0 / np.pi), "goal=.deg"),
        (lambda s: replace(s, goal=100.0 * s.goal / 1.9), "goal_pan"),
        (lambda s: replace(s, goal=np.roll(s.goal, 150, axis=0)), "pan"),
        (lambda s: replace(s, goal=s.goal[:, ::-1]), "pan"),
        (lambda s: replace(s, goal=None), "goal_<joint>"),
        (lambda s: replace(s, q=0.0 * s.q, goal=0.0 * s.goal), "no joint moves"),
    ],
)
def test_goals_that_are_not_those_of_the_servo_are_rejected(recording, change, said):
    with pytest.raises(TimeSeriesError, match=said):
        identify_servos(described(), [change(recording)])


def test_servos_at_their_limits_are_rejected(recording):
    weak = mbs.Model.from_urdf(description().replace('effort="3"', 'effort="0.3"'))
    with pytest.raises(TimeSeriesError, match=r"saturated.*0\.3"):
        identify_servos(weak, [recording])


@pytest.mark.long
def test_the_command_writes_urdf_servos_and_mjcf(recording, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(description())
    recording.write("so.csv")
    files = ["--out", "new.urdf", "--mjcf", "new.xml", "--json", "figures.json"]
    assert main(["identify", "arm.urdf", "so.csv", *files]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["servos"]["lift"]["stiffness"] == pytest.approx(18.0, rel=0.03)
    arm = PositionArm.read("new.yaml", described())
    torque = mbs.gravity_torques(described(), np.full(5, 0.3))
    ahead = arm.goals(np.full(5, 0.3)) - 0.3
    np.testing.assert_allclose(ahead[1:4], (torque / STIFFNESS)[1:4], rtol=0.05, atol=1e-3)
    (tmp_path / "other.yaml").write_text("servos: [1, 2]")
    with pytest.raises(ArgumentError, match=r"other\.yaml.*servos"):
        PositionArm.read("other.yaml", described())
    m = mujoco.MjModel.from_xml_path("new.xml")
    np.testing.assert_allclose(m.actuator_gainprm[:4, 0], STIFFNESS[:4], rtol=0.03)
    np.testing.assert_allclose(m.dof_frictionloss[:4], FRICTION[:4], rtol=0.2)
    assert load("new.urdf").joint("lift").friction == pytest.approx(0.06, rel=0.2)
    assert "lift" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--fit-gains"], ["--report", "page.html"]])
def test_options_of_torques_are_refused_for_servos(
    recording, tmp_path, monkeypatch, capsys, option
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(description())
    recording.write("so.csv")
    assert main(["identify", "arm.urdf", "so.csv", *option]) == 1
    assert option[0] in capsys.readouterr().err
    torques = replace(recording, tau=recording.goal, goal=None)
    torques.write("so.csv")
    assert main(["identify", "arm.urdf", "so.csv", "--mjcf", "arm.xml"]) == 1
    assert "--mjcf" in capsys.readouterr().err
