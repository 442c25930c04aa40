# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Still poses whose torques cannot be those of the arm, or are not all usable."""

from dataclasses import replace

import numpy as np
import pytest
from identification_bench import JOINTS, TRUE, motion, poses_of, refused
from urdf_reference import joint, link, load, urdf

import mbs_dynamics as mbs
from mbs_dynamics.control.calibration import calibrate
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.identification import identify_payload, identify_static
from mbs_dynamics.identification.data import Data
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

LOADED = TRUE.with_payload("tool", 2.0, (0.02, 0.0, 0.05))


def still(model, count=14, seed=4, noise=0.05):
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.5, 1.5, (count, 7))
    tau = np.array([mbs.gravity_torques(model, x) for x in q])
    return q, tau + rng.normal(0.0, noise, tau.shape)


def identified(q, tau):
    return identify_static(TRUE, poses_of(q, tau))


EXCHANGED = [0, 1, 3, 2, 4, 5, 6]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tau: -tau, "opposite sign"),
        (lambda tau: tau * [1, -1, 1, -1, 1, 1, 1], "joint2, joint4 have the opposite sign"),
        (lambda tau: tau * [1, 1, 1, 0, 1, 1, 1], "no efforts of joint4"),
        (lambda tau: tau[:, EXCHANGED], "joint3, joint4 are exchanged"),
        (lambda tau: 0.0 * tau, "no efforts"),
        (lambda tau: np.where(np.arange(7) == 1, np.nan, tau), "no efforts of joint2|of joint2"),
        (lambda tau: 1e3 * tau, "mN m"),
        (lambda tau: 6.0 * tau, "masses of the description"),
    ],
)
def test_torques_that_cannot_be_those_of_the_arm_are_refused(change, said):
    q, tau = still(TRUE)
    with pytest.raises(TimeSeriesError, match=said):
        identified(q, change(tau))


def test_a_pose_with_a_missing_torque_is_left_out_and_named(tmp_path):
    q, tau = still(LOADED)
    tau[5, 2] = np.nan
    head = ",".join(f"{kind}_{name}" for kind in ("q", "tau") for name in JOINTS)
    path = tmp_path / "poses.csv"
    np.savetxt(path, np.column_stack([q, tau]), delimiter=",", header=head, comments="")
    found = identify_static(TRUE, TimeSeries.read(path, timed=False))
    assert found.poses == 13
    assert any("6 (tau_joint3)" in note for note in found.identification.notes)


def test_torques_of_noise_alone_are_not_taken_for_those_of_another_joint():
    q, tau = still(LOADED)
    tau[:, 1] = np.random.default_rng(0).normal(0.0, 0.05, len(q))
    with pytest.raises(TimeSeriesError, match="torques of joint2 are without gravity"):
        identified(q, tau)


@pytest.mark.parametrize("push", [0.0, 8.0])
def test_torques_of_joints_at_a_stop_are_left_out(push):
    q, _ = still(LOADED)
    for pose, side in {3: -1, 9: 1, 11: -1}.items():
        q[pose, 3] = TRUE.lower[3] if side < 0 else TRUE.upper[3]
    tau = np.array([mbs.gravity_torques(LOADED, x) for x in q])
    for pose, side in {3: -1, 9: 1, 11: -1}.items():
        tau[pose, 3] += side * push
    found = identified(q, tau).identification
    assert any("joint4" in note and "limit" in note for note in found.notes)
    others = np.random.default_rng(1).uniform(-1.5, 1.5, (100, 7))
    off = mbs.gravity_torques(found.model, others) - mbs.gravity_torques(LOADED, others)
    assert np.abs(off).max() < 0.3


@pytest.mark.parametrize("mass", [0.5, 0.8, 3.0])
def test_torques_of_a_load_alone_are_refused_as_without_gravity(mass):
    loaded = TRUE.with_payload("tool", mass, (0.0, 0.0, 0.05))
    q, tau = still(loaded, 10, 1)
    tau -= np.array([mbs.gravity_torques(TRUE, x) for x in q])
    with pytest.raises(TimeSeriesError, match="subtracts gravity"):
        identified(q, tau)
    with pytest.raises(ArgumentError, match="subtract gravity"):
        calibrate(TRUE, poses_of(q, tau * [1, 2, -3, 4, 5, -6, 7]))


def test_a_joint_that_is_at_a_limit_in_all_poses_leaves_the_others():
    q, _ = still(LOADED)
    q[:, 6] = TRUE.upper[6]
    tau = np.array([mbs.gravity_torques(LOADED, x) for x in q])
    assert identified(q, tau).identification.errors.identified < 0.02
    with pytest.raises(TimeSeriesError, match="opposite sign"):
        identified(q, -tau)


def gantry(wrist="0 1 0"):
    """Return an arm of three rails and a joint with two bodies behind it."""
    limit = '<limit effort="500" velocity="1" lower="-1" upper="1"/>'
    parts, parent = [link("base", "")], "base"
    for name, axis in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1")):
        more = f'<axis xyz="{axis}"/>{limit}'
        parts += [link(name), joint(f"rail_{name}", parent, name, "prismatic", more)]
        parent = name
    for name, axis in (("w", wrist), ("tool", "0 0 1")):
        more = f'<axis xyz="{axis}"/>'
        parts += [link(name), joint(f"turn_{name}", parent, name, "continuous", more)]
        parent = name
    return load(urdf(*parts))


@pytest.mark.parametrize("count", [6, 16])
@pytest.mark.parametrize("mass", [0.3, 2.0])
def test_the_constant_weight_on_a_vertical_rail_tells_an_arm_from_a_load(mass, count):
    arm, rng = gantry(), np.random.default_rng(count)
    q = rng.uniform(-1.0, 1.0, (count, arm.n))
    noise = rng.normal(size=q.shape) * [0.5, 0.5, 0.5, 0.02, 0.02]
    g = mbs.gravity_torques(arm, q)
    with_load = mbs.gravity_torques(arm.with_payload("tool", mass, (0.05, 0.0, -0.1)), q)
    right, wrong = (poses_of(q, x + noise, arm.joint_names) for x in (with_load, with_load - g))
    assert not refused(identify_static, arm, right)
    assert "subtracts gravity" in refused(identify_static, arm, wrong)


def test_poses_with_the_same_gravity_torques_show_no_masses():
    arm, q = gantry(wrist="0 0 1"), np.random.default_rng(0).uniform(-1.0, 1.0, (8, 5))
    tau = mbs.gravity_torques(arm, q) + 0.01 * q
    with pytest.raises(TimeSeriesError, match="same in all poses"):
        identify_static(arm, poses_of(q, tau, arm.joint_names))


def in_motion(arm, change=lambda tau: tau):
    """Return what is said of torques of an arm that moves, with friction and motor inertia."""
    t = np.arange(0.0, 20.0, 0.02)
    q, qd, qdd = motion(t, 3, model=arm, reach=0.6)
    tau = mbs.inverse_dynamics(arm, q, qd, qdd) + 0.1 * np.tanh(qd / 0.05) + 0.02 * qdd
    tau = tau * (1.0 + 0.02 * np.random.default_rng(0).normal(size=tau.shape))
    series = TimeSeries(t, arm.joint_names, q, qd, tau=change(tau))
    return refused(Data.read, arm, [series])


def test_torques_of_joints_without_gravity_are_judged_by_inertia():
    rails, scara = gantry(), gantry(wrist="0 0 1")
    for arm in (rails, scara):
        assert not in_motion(arm)
        for k in range(3):
            signs = np.where(np.arange(arm.n) == k, -1.0, 1.0)
            said = in_motion(arm, lambda tau, signs=signs: signs * tau)
            assert f"{arm.joint_names[k]} have the opposite sign" in said
        assert "all joints" in in_motion(arm, lambda tau: -tau)
        assert "mN m" in in_motion(arm, lambda tau: 1e3 * tau)


def test_a_load_that_torques_do_not_show_is_not_estimated():
    """A load far from a planar arm would explain reversed torques of it."""
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="{x} 0 0.02"/><mass value="{mass}"/><inertia '
        'ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, x, mass in (("a", 0.0, 3), ("b", 0.2, 2), ("c", 0.1, 1))
    )
    joints = "".join(
        f'<joint name="to_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="{axis}"/><limit effort="200" velocity="3" lower="-1" '
        'upper="1"/></joint>'
        for parent, child, kind, x, axis in (
            ("base", "a", "prismatic", 0.0, "0 0 1"),
            ("a", "b", "continuous", 0.1, "0 1 0"),
            ("b", "c", "continuous", 0.4, "0 1 0"),
        )
    )
    arm = mbs.Model.from_urdf(f'<robot name="p"><link name="base"/>{links}{joints}</robot>')
    t = np.arange(0.0, 20.0, 0.02)
    q, qd, qdd = motion(t, 2, model=arm, reach=1.0)
    tau = mbs.inverse_dynamics(arm.with_payload("c", 1.0, (0.03, 0.0, 0.05)), q, qd, qdd)
    tau = tau + [0.15, 0.15, 0.02] * np.tanh(qd / 0.05)
    tau += [0.01, 0.01, 0.002] * np.random.default_rng(1).normal(size=tau.shape)
    series = TimeSeries(t, arm.joint_names, q, qd, tau=tau)
    assert abs(identify_payload(arm, series, "c").inertia.mass - 1.0) < 0.05
    with pytest.raises(TimeSeriesError, match="do not show the load"):
        identify_payload(arm, replace(series, tau=-tau), "c")
