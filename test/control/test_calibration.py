# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Signs and units of motors from still poses."""

import functools

import numpy as np
import pytest
from cases import mostly_slow
from robots import all_files, robot

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.control.calibration import MotorCalibration, calibrate
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.control.poses import Poses, read_poses
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path

ARMS = ["arm7"]
if all_files():
    ARMS += ["panda_description/urdf/panda.urdf", "ur_description/urdf/ur5_robot.urdf"]


@functools.cache
def model_of(name):
    return mbs.Model.from_urdf(robot(name) if "/" in name else robot_path(name))


class Case:
    """Random poses of an arm with wrong masses and stiction, and what its odd drives report."""

    def __init__(self, name, seed, poses=12, mass_error=0.1, stiction=0.1, zero=0.0):
        self.model = model = model_of(name)
        rng = np.random.default_rng(seed)
        low, high = np.maximum(model.lower, -3.0), np.minimum(model.upper, 3.0)
        self.q = rng.uniform(low, high, (poses, model.n))
        parameters = mbs.inertial_parameters(model).reshape(-1, 10)
        parameters[:, :4] *= 1.0 + mass_error * rng.uniform(-1.0, 1.0, (len(parameters), 1))
        rest = np.zeros_like(self.q)
        Y = mbs.inverse_dynamics_regressor(model, self.q, rest, rest)
        self.tau = Y @ parameters.ravel()
        self.friction = stiction * (np.abs(self.tau).max(axis=0) + 0.5)
        self.tau += self.friction * rng.uniform(-1.0, 1.0, self.tau.shape)
        self.sign = rng.choice([-1, 1], model.n)
        self.feedback, self.command = 10.0 ** rng.uniform(-2.0, 3.0, (2, model.n))
        self.unit = 10.0 ** rng.uniform(-1.0, 3.0, model.n)
        self.zero = rng.uniform(-zero, zero, model.n)

    def by_joint(self, columns):
        return dict(zip(self.model.joint_names, np.transpose(columns), strict=True))

    @property
    def efforts(self):
        return self.by_joint(self.sign * self.feedback * self.tau)

    @property
    def raw(self):
        """Positions that drives report, in rad."""
        return self.by_joint(self.zero + self.sign * self.q)

    def table(self, **changes):
        """The true table, but for changes."""
        numbers = {"position_per_radian": self.unit, "zero": self.zero * self.unit}
        numbers |= {"command_per_newton_metre": self.command}
        numbers |= {"feedback_per_newton_metre": self.feedback}
        rows = {}
        for k, name in enumerate(self.model.joint_names):
            row = {"motor": f"m{k}", "sign": int(self.sign[k]), "limit": 50.0, "kp": 3.0, "kd": 0.5}
            rows[name] = row | {key: float(x[k]) for key, x in numbers.items()} | changes
        return Motors({"when_silent": "hold", "max_age": 0.1, "motors": rows}, self.model)

    @property
    def zero_deviations(self):
        """Standard deviations (n,) in rad of zeros that stiction alone causes in these poses."""
        rest = np.zeros_like(self.q)
        slopes = mbs.inverse_dynamics_derivatives(self.model, self.q, rest, rest)[0]
        found = np.zeros(self.model.n)
        for k in range(1, self.model.n):  # the axis of the first joint is vertical
            A = np.stack([self.tau[:, k], slopes[:, k, k]], axis=1)  # of its factor and its zero
            found[k] = self.friction[k] / np.sqrt(3.0) * np.sqrt(np.linalg.inv(A.T @ A)[1, 1])
        return found

    def check(self, found, zero=0.05, deviations=4.0):
        """Nothing found is wrong; return the number of joints that were found.

        ``zero`` in rad bounds errors of zeros, of each joint (n,) or all.
        """
        zero = np.broadcast_to(zero, self.model.n)
        for one in found.joints:
            k = self.model.joint_names.index(one.joint)
            assert one.sign == self.sign[k], one
            assert one.feedback_error < 0.21
            assert abs(one.feedback / self.feedback[k] - 1.0) < deviations * one.feedback_error, one
            if one.zero:
                assert abs(one.zero / one.position_per_radian - self.zero[k]) < zero[k], one
        joints = {one.joint for one in found.joints} | set(found.unseen)
        assert joints == set(self.model.joint_names)
        return len(found.joints)


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_slow(range(100), range(6)))
def test_no_sign_or_factor_of_random_motors_is_wrong(seed):
    for name, seen in zip(ARMS, (5, 5, 2), strict=False):
        case = Case(name, seed)
        found = calibrate(case.model, Poses(q=case.by_joint(case.q), efforts=case.efforts))
        assert case.check(found) >= seen - 1  # of those about which gravity acts
        assert case.model.joint_names[0] in found.unseen  # its axis is vertical
    heavy = Case("arm7", seed, stiction=0.6, poses=6)
    poses = Poses(q=heavy.by_joint(heavy.q), efforts=heavy.efforts)
    heavy.check(calibrate(heavy.model, poses), deviations=10.0)  # the signs are right even so


@pytest.mark.parametrize("seed", mostly_slow(range(20), range(2)))
def test_zeros_are_found_where_the_signs_of_positions_are_known(seed):
    case = Case("arm7", seed, zero=0.4, poses=20)
    poses = Poses(positions=case.raw, efforts=case.efforts)
    found = calibrate(case.model, poses, signs=case.by_joint(case.sign))
    bounds = np.minimum(5.0 * case.zero_deviations, np.abs(case.zero))  # and better than before
    assert case.check(found, zero=bounds) >= 4
    assert sum(one.zero != 0.0 for one in found.joints) >= 2


def test_positions_of_joints_and_drives_together_give_units_zeros_and_signs():
    case = Case("arm7", 1, zero=0.5)
    raw = {name: case.unit[k] * x for k, (name, x) in enumerate(case.raw.items())}
    reversed_efforts = {name: -x for name, x in case.efforts.items()}
    poses = Poses(q=case.by_joint(case.q), positions=raw, efforts=reversed_efforts)
    found = calibrate(case.model, poses)
    for one in found.joints:
        k = case.model.joint_names.index(one.joint)
        assert one.sign == case.sign[k]
        np.testing.assert_allclose(one.position_per_radian, case.unit[k], rtol=1e-5)
        np.testing.assert_allclose(one.zero / case.unit[k], case.zero[k], rtol=1e-5)
        assert one.feedback < 0.0  # counted against positions
    assert len(found.joints) >= 4
    assert any("against its positions" in note for note in found.notes)
    wrong = Poses(q=case.by_joint(case.q), positions=dict(reversed(raw.items())))
    wrong.efforts, wrong.positions["joint2"] = case.efforts, raw["joint3"]
    with pytest.raises(MbsError, match="position_joint2"):
        calibrate(case.model, wrong)


def written(case, path, columns):
    """Write a table of poses."""
    names, values = list(columns), np.column_stack(list(columns.values()))
    lines = [",".join(names), *(",".join(f"{x:.9g}" for x in row) for row in values)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def columns(prefix, by_joint, suffix=""):
    return {f"{prefix}_{name}{suffix}": x for name, x in by_joint.items()}


def test_the_command_writes_a_table_with_which_gravity_is_measured(tmp_path, capsys):
    case = Case("arm7", 3, mass_error=0.0, stiction=0.0)
    commands = case.by_joint(case.sign * case.command * case.tau)
    table = columns("q", case.by_joint(np.degrees(case.q)), " [deg]")
    table |= columns("tau", case.efforts, " [mA]") | columns("command", commands)
    own = {f"c{k}": name for k, name in enumerate(table)}
    file = written(case, tmp_path / "poses.csv", {k: table[name] for k, name in own.items()})
    out = tmp_path / "motors.yaml"
    words = ["calibrate-motors", "arm7", file, "--out", str(out), "--columns"]
    assert main([*words, "elbow=q_joint1"]) == 1
    assert "no column 'elbow'" in capsys.readouterr().err
    assert main([*words, *(f"{k}={name}" for k, name in own.items())]) == 0
    said = capsys.readouterr().out
    assert "joint1: not seen" in said
    motors = Motors.read(out, case.model)
    assert "joint1" not in motors.joint_names
    assert len(motors.joint_names) >= 4
    assert motors.when_silent == "last"
    for m in motors.motors:
        k = case.model.joint_names.index(m.joint)
        raw = 0.0, case.sign[k] * case.q[0, k], 0.0, case.efforts[m.joint][0]
        reading = motors.measured([(m.motor, *raw)])
        np.testing.assert_allclose(reading.positions, case.q[0, k])
        np.testing.assert_allclose(reading.efforts, case.tau[0, k], rtol=0.2, atol=0.2)
        command = m.sign * m.command_per_newton_metre
        np.testing.assert_allclose(command, case.sign[k] * case.command[k], rtol=0.2)


def test_a_table_to_start_from_keeps_what_poses_do_not_show(tmp_path):
    case = Case("arm7", 5, zero=0.2)
    start = tmp_path / "start.yaml"
    truth = case.table(feedback_per_newton_metre=1.0)
    unseen = dict.fromkeys(truth.joint_names, "not seen")
    start.write_text(MotorCalibration((), unseen, (), 0).yaml(truth))
    assert Motors.read(start, case.model).motors == truth.motors
    names = dict(zip(case.model.joint_names, [m.motor for m in truth.motors], strict=True))
    raw = {names[name]: x * case.unit[k] for k, (name, x) in enumerate(case.raw.items())}
    efforts = {names[name]: x for name, x in case.efforts.items()}
    si = columns("q", case.by_joint(9.0 * case.q)) | columns("tau", case.by_joint(case.tau))
    table = columns("raw_position", raw) | columns("raw_effort", efforts)
    file = written(case, tmp_path / "poses.csv", table)
    out = tmp_path / "motors.yaml"
    assert main(["calibrate-motors", "arm7", file, "--motors", str(start), "--out", str(out)]) == 0
    made = Motors.read(out, case.model)
    assert (made.when_silent, made.max_age, len(made.motors)) == ("hold", 0.1, 7)
    seen = 0
    for k, (m, t) in enumerate(zip(made.motors, truth.motors, strict=True)):
        assert (m.motor, m.sign, m.limit, m.kp, m.kd) == (t.motor, t.sign, 50.0, 3.0, 0.5)
        assert m.command_per_newton_metre == t.command_per_newton_metre
        if m.feedback_per_newton_metre != 1.0:
            seen += 1
            assert abs(m.feedback_per_newton_metre / case.feedback[k] - 1.0) < 0.6
    assert seen >= 4
    file = written(case, tmp_path / "both.csv", si | columns("raw_effort", efforts))
    both = read_poses(file, case.model, truth)
    np.testing.assert_allclose(both.efforts["joint2"], case.efforts["joint2"])


NONSENSE = {
    "no efforts": (lambda c: {k: c[k] for k in c if k[0] == "q"}, "efforts.*effort_<joint>"),
    "no positions": (lambda c: {k: c[k] for k in c if k[0] == "e"}, "positions.*q_<joint>"),
    "other joints": (lambda c: {k.replace("joint", "axis"): x for k, x in c.items()}, "joint7"),
    "degrees": (lambda c: {k: 57.3 * x for k, x in c.items()}, "q_joint.*rad"),
    "too few": (lambda c: {k: x[:3] for k, x in c.items()}, "different poses.*at least 4"),
    "missing": (lambda c: {k: x * np.nan for k, x in c.items()}, "0 different poses"),
    "twice": (lambda c: c | {"tau_joint3": c["effort_joint3"]}, "effort_joint3.*tau_joint3"),
    "different joints": (
        lambda c: {k: x for k, x in c.items() if k in ("q_joint1", "effort_joint2")},
        "joint2.*joint1",
    ),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_refused(kind, tmp_path, capsys):
    (change, said), case = NONSENSE[kind], Case("arm7", 0)
    table = columns("q", case.by_joint(case.q)) | columns("effort", case.efforts)
    file = written(case, tmp_path / "poses.csv", change(table))
    with pytest.raises(MbsError, match=said):
        calibrate(case.model, read_poses(file, case.model))
    out = tmp_path / "motors.yaml"
    assert main(["calibrate-motors", "arm7", file, "--out", str(out)]) == 1
    assert not out.exists()


@pytest.mark.parametrize("seed", mostly_slow(range(10), range(2)))
def test_efforts_that_do_not_follow_gravity_show_no_joint(seed):
    case = Case("arm7", seed)
    rng = np.random.default_rng(seed)
    for efforts in (rng.normal(size=case.q.shape), 0.0 * case.q, np.ones_like(case.q)):
        poses = Poses(q=case.by_joint(case.q), efforts=case.by_joint(efforts))
        assert calibrate(case.model, poses).joints == ()


@pytest.mark.parametrize("mass", [0.1, 0.2, 2.0])
@pytest.mark.parametrize("name", ARMS)
def test_efforts_of_a_load_alone_show_no_factors(name, mass):
    """A light load, too, of whose weight noise hides a part; then this may be noted instead."""
    for seed in range(8):
        case = Case(name, seed, poses=8)
        tool = tools(case.model)[0]
        loaded = case.model.with_payload(tool, mass=mass, com=(0.0, 0.0, 0.05))
        weight = mbs.gravity_torques(loaded, case.q) - mbs.gravity_torques(case.model, case.q)
        efforts = weight + np.random.default_rng(seed).normal(0.0, 0.05, weight.shape)
        poses = Poses(q=case.by_joint(case.q), efforts=case.by_joint(efforts))
        try:
            said = str(calibrate(case.model, poses).notes)
        except ArgumentError as error:
            said = str(error)
        assert f"a load on {tool!r} alone" in said
        assert mass == 0.1 or "show no factors" in said


def test_bad_arguments_are_refused(tmp_path):
    case = Case("arm7", 0)
    poses = Poses(q=case.by_joint(case.q), efforts=case.efforts)
    for signs, said in (({"joint9": 1}, "joint9"), ({"joint1": 2}, "2")):
        with pytest.raises(MbsError, match=said):
            calibrate(case.model, poses, signs=signs)
    with pytest.raises(MbsError, match=r"position_joint1 has an unknown direction.*--signs"):
        calibrate(case.model, Poses(positions=case.raw, efforts=case.efforts))
    numbers = ("position_per_radian", "command_per_newton_metre", "feedback_per_newton_metre")
    row = {"sign": 1} | dict.fromkeys(numbers, 1.0)
    pair = {"joint1": [{"motor": 1, **row}, {"motor": 2, **row}]}
    start = Motors({"when_silent": "hold", "motors": pair}, case.model)
    with pytest.raises(MbsError, match="two motors"):
        calibrate(case.model, poses, start=start)
    with pytest.raises(SystemExit):
        main(["calibrate-motors", "arm7", "x.csv", "--out", "y.yaml", "--signs", "joint1=0"])
