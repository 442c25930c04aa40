# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Signs and units of motors from still poses."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from cases import mostly_slow
from robots import all_files, robot

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.control.calibration import MotorCalibration, calibrate
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries

ARMS = ["arm7"]
if all_files():
    ARMS += ["panda_description/urdf/panda.urdf", "ur_description/urdf/ur5_robot.urdf"]


@functools.cache
def model_of(name):
    return mbs.Model.from_urdf(robot(name) if "/" in name else robot_path(name))


class Case:
    """Random poses of an arm with wrong masses and stiction, and what its odd drives report."""

    def __init__(self, name, seed, poses=12, mass_error=0.1, stiction=0.1):
        self.model = model = model_of(name)
        rng = np.random.default_rng(seed)
        low, high = np.maximum(model.lower, -3.0), np.minimum(model.upper, 3.0)
        self.q = rng.uniform(low, high, (poses, model.n))
        parameters = mbs.inertial_parameters(model).reshape(-1, 10)
        parameters[:, :4] *= 1.0 + mass_error * rng.uniform(-1.0, 1.0, (len(parameters), 1))
        rest = np.zeros_like(self.q)
        Y = mbs.inverse_dynamics_regressor(model, self.q, rest, rest)
        self.tau = Y @ parameters.ravel()
        friction = stiction * (np.abs(self.tau).max(axis=0) + 0.5)
        self.tau += friction * rng.uniform(-1.0, 1.0, self.tau.shape)
        self.sign = rng.choice([-1, 1], model.n)
        self.feedback = 10.0 ** rng.uniform(-2.0, 3.0, model.n)

    def by_joint(self, columns):
        return dict(zip(self.model.joint_names, np.transpose(columns), strict=True))

    @property
    def efforts(self):
        """(N, n) in the units of the drives."""
        return self.sign * self.feedback * self.tau

    def poses(self, efforts=None):
        """Return still poses with these efforts (N, n), or those of the drives."""
        t, names = np.arange(float(len(self.q))), self.model.joint_names
        return TimeSeries(t, names, self.q, tau=self.efforts if efforts is None else efforts)

    def table(self):
        """The table of the motors, but for the factors of their feedback."""
        row = {"position_per_radian": 57.3, "command_per_newton_metre": 5.0, "limit": 50.0}
        row |= {"kp": 3.0, "kd": 0.5, "zero": 7.0, "feedback_per_newton_metre": 1.0}
        signs = zip(self.model.joint_names, self.sign.tolist(), strict=True)
        rows = {name: row | {"motor": f"m{k}", "sign": x} for k, (name, x) in enumerate(signs)}
        return {"when_silent": "hold", "max_age": 0.1, "motors": rows}

    def check(self, found, deviations=4.0):
        """Nothing found is wrong; return the number of joints that were found."""
        for one in found.joints:
            k = self.model.joint_names.index(one.joint)
            assert one.sign == self.sign[k], one
            assert one.error < 0.21
            assert abs(one.feedback / self.feedback[k] - 1.0) < deviations * one.error, one
        joints = {one.joint for one in found.joints} | set(found.unseen)
        assert joints == set(self.model.joint_names)
        return len(found.joints)


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_slow(range(100), range(6)))
def test_no_sign_or_factor_of_random_motors_is_wrong(seed):
    for name, seen in zip(ARMS, (5, 5, 2), strict=False):
        case = Case(name, seed)
        found = calibrate(case.model, case.poses())
        assert case.check(found, deviations=3.0) >= seen - 1  # of those about which gravity acts
        assert case.model.joint_names[0] in found.unseen  # its axis is vertical
    heavy = Case("arm7", seed, stiction=0.6, poses=6)
    heavy.check(calibrate(heavy.model, heavy.poses()), deviations=10.0)  # the signs are right


def test_the_table_states_which_drives_count_efforts_against_their_positions():
    case = Case("arm7", 1)
    found = calibrate(case.model, case.poses(-case.efforts), start=case.table())
    assert len(found.joints) >= 4
    for one in found.joints:
        k = case.model.joint_names.index(one.joint)
        assert one.sign == case.sign[k]
        assert one.feedback < 0.0
    assert any("against its positions" in note for note in found.notes)


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
    table = columns("q", case.by_joint(np.degrees(case.q)), " [deg]")
    table |= columns("tau", case.by_joint(case.efforts))
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
        raw = 0.0, case.sign[k] * case.q[0, k], 0.0, case.efforts[0, k]
        reading = motors.measured([(m.motor, *raw)])
        np.testing.assert_allclose(reading.positions, case.q[0, k])
        np.testing.assert_allclose(reading.efforts, case.tau[0, k], rtol=1e-5, atol=1e-5)


def test_a_table_to_start_from_keeps_what_poses_do_not_show(tmp_path):
    case = Case("arm7", 5)
    start = tmp_path / "start.yaml"
    start.write_text(MotorCalibration((), {}, (), 0).yaml(case.table()))
    truth = Motors(case.table(), case.model)
    assert Motors.read(start, case.model).motors == truth.motors
    table = columns("q", case.by_joint(case.q)) | columns("tau", case.by_joint(case.tau))
    table |= columns("raw_effort", case.by_joint(case.efforts))
    file = written(case, tmp_path / "poses.csv", table)
    out = tmp_path / "motors.yaml"
    assert main(["calibrate-motors", "arm7", file, "--motors", str(start), "--out", str(out)]) == 0
    made = Motors.read(out, case.model)
    assert (made.when_silent, made.max_age, len(made.motors)) == ("hold", 0.1, 7)
    seen = 0
    for k, (m, t) in enumerate(zip(made.motors, truth.motors, strict=True)):
        assert m._replace(feedback_per_newton_metre=1.0) == t
        if m.feedback_per_newton_metre != 1.0:
            seen += 1
            assert abs(m.feedback_per_newton_metre / case.feedback[k] - 1.0) < 0.6
    assert seen >= 4


def test_rows_in_motion_are_left_out():
    case = Case("arm7", 5)
    moving, efforts = np.zeros_like(case.q), case.efforts
    moving[[1, 4, 7], 2], efforts[[1, 4, 7]] = 0.1, 1e6
    found = calibrate(case.model, replace(case.poses(efforts), qd=moving))
    still = calibrate(case.model, case.poses().rows(~moving.any(axis=1)))
    assert (found.joints, found.poses) == (still.joints, still.poses)


NONSENSE = {
    "no efforts": (lambda c: {k: c[k] for k in c if k[0] == "q"}, "efforts.*effort_<joint>"),
    "no positions": (lambda c: {k: c[k] for k in c if k[0] == "e"}, "positions.*q_<joint>"),
    "other joints": (lambda c: {k.replace("joint", "axis"): x for k, x in c.items()}, "joint7"),
    "degrees": (lambda c: {k: 57.3 * x for k, x in c.items()}, "q_joint.*deg"),
    "too few": (lambda c: {k: x[:3] for k, x in c.items()}, "different poses.*at least 4"),
    "missing": (lambda c: {k: x * np.nan for k, x in c.items()}, "no positions"),
    "twice": (lambda c: c | {"tau_joint3": c["effort_joint3"]}, "effort_joint3.*tau_joint3"),
    "different joints": (
        lambda c: {k: x for k, x in c.items() if k in ("q_joint1", "effort_joint2")},
        "joint2.*joint1",
    ),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_refused(kind, tmp_path, capsys):
    (change, said), case = NONSENSE[kind], Case("arm7", 0)
    table = columns("q", case.by_joint(case.q)) | columns("effort", case.by_joint(case.efforts))
    file = written(case, tmp_path / "poses.csv", change(table))
    with pytest.raises(MbsError, match=said):
        calibrate(case.model, TimeSeries.read(file, timed=False))
    out = tmp_path / "motors.yaml"
    assert main(["calibrate-motors", "arm7", file, "--out", str(out)]) == 1
    assert not out.exists()


@pytest.mark.parametrize("seed", mostly_slow(range(10), range(2)))
def test_efforts_that_do_not_follow_gravity_show_no_joint(seed):
    case = Case("arm7", seed)
    rng = np.random.default_rng(seed)
    for efforts in (rng.normal(size=case.q.shape), 0.0 * case.q, np.ones_like(case.q)):
        assert calibrate(case.model, case.poses(efforts)).joints == ()


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
        try:
            said = str(calibrate(case.model, case.poses(efforts)).notes)
        except ArgumentError as error:
            said = str(error)
        assert f"a load on {tool!r} alone" in said
        assert mass == 0.1 or "show no factors" in said


def test_two_motors_on_one_joint_are_refused():
    case = Case("arm7", 0)
    start = case.table()
    start["motors"]["joint1"] = [start["motors"]["joint1"]] * 2
    with pytest.raises(MbsError, match="two motors on 'joint1'"):
        calibrate(case.model, case.poses(), start=start)
