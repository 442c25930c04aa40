# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands for identification, as a user types them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from identification_bench import COULOMB, JOINTS, OFFSETS, TRUE, poses_of, recorded, wrong

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.errors import ArgumentError, UnknownBodyError
from mbs_dynamics.identification import (
    Box,
    MotionLimits,
    box_of,
    identify_static,
    plan_excitation,
)
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeriesError


def saved(path, recording):
    arrays = {name: getattr(recording, name) for name in ("t", "q", "tau")}
    np.savez(path, **arrays, joints=np.array(recording.joints))
    return str(path)


@pytest.fixture
def described(tmp_path):
    """Write a description with wrong masses."""
    text, model = robot_path("arm7").read_text(encoding="utf-8"), wrong()
    for true, other in zip(TRUE.bodies, model.bodies, strict=True):
        text = text.replace(
            f'<mass value="{true.inertia.mass:g}"', f'<mass value="{other.inertia.mass:g}"', 1
        )
    path = tmp_path / "arm.urdf"
    path.write_text(text, encoding="utf-8")
    assert mbs.Model.from_urdf(path).total_mass != TRUE.total_mass
    return str(path)


@pytest.mark.long
def test_identify_writes_all_that_it_is_asked_for(described, tmp_path, capsys):
    run, other = (saved(tmp_path / f"{k}.npz", recorded(k)) for k in (1, 2))
    out, page, figures = (tmp_path / name for name in ("out.urdf", "page.html", "out.json"))
    asked = ["--out", str(out), "--report", str(page), "--json", str(figures)]
    assert main(["identify", described, run, "--validate", other, *asked]) == 0
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["relative_error"]["identified"] < 0.01
    assert found["consistent"] is True
    assert mbs.Model.from_urdf(out).total_mass == pytest.approx(sum(found["masses"].values()))
    assert out.with_suffix(".yaml").exists()
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "identified" in capsys.readouterr().out


@pytest.mark.long
def test_what_is_no_better_is_not_written(described, tmp_path, capsys, monkeypatch):
    from mbs_dynamics import identification

    found = identification.identify(mbs.Model.from_urdf(described), [recorded(1, duration=10.0)])
    worse = replace(found, errors=replace(found.errors, identified=1.0))
    monkeypatch.setattr(identification, "identify", lambda *args, **named: worse)
    run, out = saved(tmp_path / "1.npz", recorded(1)), tmp_path / "out.urdf"
    assert main(["identify", described, run, "--out", str(out)]) == 1
    assert not out.exists()
    assert "no URDF is written; --force writes it" in capsys.readouterr().err
    for described_errors, identified in (((0.3, 0.6), 0.4), ((0.9, 0.8), 0.51)):
        errors = identification.Errors(*described_errors, identified)
        assert not replace(found, errors=errors).better
    assert main(["identify", described, run, "--out", str(out), "--force"]) == 0
    assert out.exists()


@pytest.mark.long
@pytest.mark.parametrize("given", [True, False], ids=["given", "fitted"])
def test_currents_with_gains(described, given, tmp_path, capsys):
    """Fitted gains are those of the description, whose masses are wrong by some per cent."""
    gains = np.linspace(9.0, 2.0, 7)
    run = recorded(1)
    path = saved(tmp_path / "1.npz", replace(run, tau=run.tau / gains))
    figures = tmp_path / "out.json"
    told = [f"{name}={gain}" for name, gain in zip(JOINTS, gains, strict=True)]
    how = ["--gains", *told] if given else ["--fit-gains"]
    assert main(["identify", described, path, *how, "--json", str(figures)]) == 0
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["relative_error"]["identified"] < (0.01 if given else 0.05)
    said = capsys.readouterr()
    assert "combinations of parameters" in said.out
    if not given:
        assert "gains by the masses of the description: joint1" in said.err
    assert main(["identify", described, path, "--gains", "elbow=2"]) == 1
    assert "no joint 'elbow'" in capsys.readouterr().err


def test_validate(tmp_path, capsys):
    run, figures = saved(tmp_path / "1.npz", recorded(1)), tmp_path / "out.json"
    assert main(["validate", "arm7", run, "--json", str(figures)]) == 0
    error = json.loads(figures.read_text(encoding="utf-8"))["relative_error"]
    assert error["identified"] is None
    assert error["description_with_friction"] < 0.02
    assert main(["validate", "arm7", str(tmp_path / "absent.npz")]) == 1
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("alone", [True, False], ids=["with the arm alone", "good model"])
def test_a_payload_of_two_kilograms(described, alone, tmp_path, capsys):
    """Within 2 % at noise of 1 % of the torques; with the arm alone, the description is wrong."""
    loaded = TRUE.with_payload("tool", 2.0, (0.01, -0.02, 0.06), 0.004 * np.eye(3)).loaded()
    run = saved(tmp_path / "load.npz", recorded(2, arm=loaded))
    arguments = ["identify-payload", described if alone else "arm7", run, "--link", "tool"]
    if alone:
        arguments += ["--without", saved(tmp_path / "alone.npz", recorded(1))]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    (mass, deviation), *coms = re.findall(r"(-?[\d.e-]+) \+- ([\d.e-]+) k?[gm]$", said, re.M)
    assert float(mass) == pytest.approx(2.0, rel=0.02)
    assert abs(float(mass) - 2.0) < 5.0 * float(deviation)
    np.testing.assert_allclose([float(x) for x, _ in coms], [0.01, -0.02, 0.06], atol=0.002)
    without, with_it = map(float, re.findall(r"([\d.]+) % with", said))
    assert with_it < 0.1 * without
    assert "ros2 topic pub --once /gravity_compensation_node/payload" in said


def poses(count=12, both=True, noise=0.02):
    rng = np.random.default_rng(3)
    q = 0.8 * rng.uniform(TRUE.lower, TRUE.upper, (count, 7))
    held = mbs.gravity_torques(TRUE, q) + OFFSETS
    if not both:
        return q, held + noise * rng.normal(size=held.shape)
    tau = np.concatenate([held + COULOMB, held - COULOMB])
    return np.concatenate([q, q]), tau + noise * rng.normal(size=tau.shape)


def test_still_poses(described, tmp_path, capsys):
    q, tau = poses()
    path, out = tmp_path / "poses.csv", tmp_path / "out.urdf"
    poses_of(q, tau).write(path)
    assert main(["identify-static", described, str(path), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "12 poses, 12 of them from several sides" in said
    assert "the most informative next pose" in said
    model = mbs.Model.from_urdf(out)
    rng = np.random.default_rng(4)
    others = rng.uniform(TRUE.lower, TRUE.upper, (50, 7))
    true = mbs.gravity_torques(TRUE, others)
    before = mbs.gravity_torques(mbs.Model.from_urdf(described), others)
    after = mbs.gravity_torques(model, others)
    assert np.linalg.norm(after - true) < 0.1 * np.linalg.norm(before - true)
    assert [j.friction for j in model.joints] == [j.friction for j in TRUE.joints]


def test_the_next_pose_tells_more_than_others():
    q, tau = poses(4, both=False)
    found = identify_static(wrong(), poses_of(q, tau))
    assert any("from both sides" in note for note in found.identification.notes)
    pose = np.array([list(found.next_pose.values())])
    assert (pose >= TRUE.lower).all()
    assert (pose <= TRUE.upper).all()

    def shown(extra):
        model = found.identification.torque_model
        rest = np.zeros((5, 7))
        columns = [model.names.index(name) for name in found.identification.base.names]
        A = model.regressor(np.concatenate([q, extra]), rest, rest)[..., columns]
        G = A.reshape(-1, len(columns)).T @ A.reshape(-1, len(columns))
        return np.linalg.slogdet(G + 1e-6 * np.trace(G) * np.eye(len(G)))[1]

    rng = np.random.default_rng(5)
    others = [shown(0.8 * rng.uniform(TRUE.lower, TRUE.upper, (1, 7))) for _ in range(50)]
    assert shown(pose) > np.quantile(others, 0.9)
    with pytest.raises(TimeSeriesError, match=r"\b2\b.*3"):
        identify_static(TRUE, poses_of(q[:2], tau[:2]))


@pytest.mark.long
@pytest.mark.parametrize("rate", [200.0, 10.0])
def test_a_motion_is_not_taken_for_poses(rate, tmp_path, capsys):
    run = recorded(1, duration=2000.0 / rate if rate > 50.0 else 30.0, rate=rate)
    with pytest.raises(TimeSeriesError, match=f"its {len(run.t)} samples are those of a motion"):
        identify_static(TRUE, run)
    q, tau = poses()
    dwelt = [np.repeat(x, 40, axis=0) for x in (q, tau)]
    noise = 1e-4 * np.random.default_rng(1).normal(size=dwelt[0].shape)
    many = replace(run, t=np.arange(len(noise)), q=dwelt[0] + noise, tau=dwelt[1], qd=None)
    assert identify_static(TRUE, many).poses == 12
    with pytest.raises(TimeSeriesError, match="mN m"):
        identify_static(TRUE, replace(many, tau=1e3 * many.tau))


@pytest.fixture(scope="module")
def excited():
    return plan_excitation(TRUE, 12.0)


@pytest.mark.long
def test_an_excitation_is_within_its_limits_and_at_rest_at_both_ends(excited):
    e, limits = excited.motion, MotionLimits()
    half = 0.5 * (TRUE.upper - TRUE.lower)
    assert (np.abs(e.q - 0.5 * (TRUE.upper + TRUE.lower)).max(axis=0) <= 0.9 * half).all()
    assert (np.abs(e.qd).max(axis=0) <= limits.velocity * TRUE.velocity_limits).all()
    assert np.abs(e.qdd).max() <= limits.acceleration
    tau = mbs.inverse_dynamics(TRUE, e.q, e.qd, e.qdd)
    assert (np.abs(tau).max(axis=0) <= limits.torque * TRUE.effort_limits).all()
    for x in (e.qd, e.qdd):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(e.q[0], e.q[-1], atol=1e-9)
    np.testing.assert_allclose(np.gradient(e.q, e.t, axis=0)[5:-5], e.qd[5:-5], atol=0.01)


@pytest.mark.long
def test_an_excitation_is_within_its_limits_between_the_instants_at_which_they_are_checked():
    model = mbs.Model.from_urdf(robot_path("arm7")).locked(but=["joint1", "joint2"])
    limits = MotionLimits(velocity=0.5)
    for seed in range(6):
        e = plan_excitation(model, 8.0, limits=limits, rate=2000.0, seed=seed).motion
        assert (np.abs(e.qd).max(axis=0) <= limits.velocity * model.velocity_limits).all()
        assert np.abs(e.qdd).max() <= limits.acceleration


@pytest.mark.long
def test_an_excitation_shows_more_than_a_random_motion(excited, monkeypatch):
    from mbs_dynamics.identification import excitation as room
    from mbs_dynamics.identification.torque_model import TorqueModel

    model = TorqueModel(TRUE, JOINTS, 0.05)
    columns = list(model.independent().columns)

    def rows(e):
        step = slice(None, None, 10)
        e = e.motion
        A = model.regressor(e.q[step], e.qd[step], e.qdd[step])[..., columns]
        return A.reshape(-1, len(columns))

    def information(e):
        return np.linalg.slogdet(rows(e).T @ rows(e))[1]

    A = rows(excited)
    condition = np.linalg.cond(A / np.linalg.norm(A, axis=0))
    assert condition == pytest.approx(excited.condition, rel=0.2)
    monkeypatch.setattr(room, "STARTS", 1)
    monkeypatch.setattr(room, "STEPS", 0)
    others = [information(plan_excitation(TRUE, 12.0, seed=seed)) for seed in range(5)]
    assert information(excited) > max(others) + 10.0


@pytest.mark.long
def test_frames_stay_in_their_boxes():
    box = Box("tool", (-1.0, -1.0, 0.3), (1.0, 1.0, 2.0))
    e = plan_excitation(TRUE, 10.0, limits=MotionLimits(boxes=(box,))).motion
    at = mbs.forward_kinematics(TRUE, e.q, bodies=["tool"])[:, 0, :3, 3]
    assert (at >= np.array(box.low) - 0.02).all()
    assert (at <= np.array(box.high) + 0.02).all()
    nowhere = Box("tool", (5.0, 5.0, 5.0), (6.0, 6.0, 6.0))
    with pytest.raises(ArgumentError):
        plan_excitation(TRUE, 10.0, limits=MotionLimits(boxes=(nowhere,)))
    with pytest.raises(ArgumentError, match=r"duration.*1 s"):
        plan_excitation(TRUE, 1.0)


def test_boxes_in_words():
    assert box_of("tool:-1,1,-2,2,0,3", TRUE.frames) == Box("tool", (-1, -2, 0), (1, 2, 3))
    for text in ("tool", "tool:1,2", "tool:1,0,0,1,0,1"):
        with pytest.raises(ArgumentError):
            box_of(text, TRUE.frames)
    with pytest.raises(UnknownBodyError, match=r"'toool'.*'tool'"):
        box_of("toool:-1,1,-2,2,0,3", TRUE.frames)


@pytest.mark.long
def test_excite_writes_a_table_and_a_trajectory(tmp_path, capsys):
    yaml = pytest.importorskip("yaml")
    table, trajectory = tmp_path / "e.csv", tmp_path / "e.yaml"
    arguments = ["excite", "arm7", "--duration", "8", "--rate", "20", "--out", str(table)]
    assert main([*arguments, "--trajectory", str(trajectory)]) == 0
    assert "collisions are not checked" in capsys.readouterr().err
    rows = np.genfromtxt(table, delimiter=",", names=True)
    assert rows.dtype.names[:2] == ("t", "q_joint1")
    given = yaml.safe_load(trajectory.read_text(encoding="utf-8"))
    assert given["joint_names"] == list(JOINTS)
    assert (len(given["points"]), len(rows)) == (81, 161)  # ten a second, between them splines
    approach = given["points"][0]["time_from_start"]["sec"]  # by twice the mean speed at most
    q = [given["points"][0]["positions"][k] for k in range(7)]
    way = np.maximum(TRUE.upper - q, q - TRUE.lower)
    assert (2.0 * way / approach <= MotionLimits().velocity * TRUE.velocity_limits).all()
    assert all(type(x) is float for x in given["points"][0]["velocities"])  # as ROS demands
    point = given["points"][20]
    assert point["time_from_start"] == {"sec": approach + 2, "nanosec": 0}
    assert point["positions"][0] == pytest.approx(rows["q_joint1"][40], abs=1e-7)
    assert len(trajectory.read_bytes()) < 0.4 * 2**17  # of 8 s; a shell passes 128 kB


@pytest.mark.long
def test_excite_takes_gravity(tmp_path):
    sideways = tmp_path / "sideways.csv"
    plan = ["excite", "arm7", "--duration", "8", "--torque", "0.2", "--out", str(sideways)]
    assert main([*plan, "--gravity", "0", "9.81", "0"]) == 0
    limits = 0.2 * TRUE.effort_limits
    q, qd, qdd = np.split(np.loadtxt(sideways, delimiter=",", skiprows=1)[:, 1:], 3, axis=1)
    tau = mbs.inverse_dynamics(TRUE.with_gravity((0.0, 9.81, 0.0)), q, qd, qdd)
    assert (np.abs(tau) <= 1.02 * limits).all()
