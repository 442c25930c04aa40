# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Zeros of a six-joint arm from touches, measured poses, and two arms that hold one another."""

import re
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

import numpy as np
import pytest
from urdf_reference import joint, link, load, urdf

import mbs_dynamics as mbs
from mbs_dynamics.calibration import calibrate_hold, calibrate_poses, calibrate_touches
from mbs_dynamics.calibration.kinematic import MEASURED
from mbs_dynamics.cli import main
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

NOISE = 0.0005
ORIGINS = {
    "pan": ("0 0 0.1", "0 0 1"), "lift": ("0 0.05 0.1", "0 1 0"), "elbow": ("0 0 0.35", "0 1 0"),
    "pitch": ("0 0 0.3", "0 1 0"), "yaw": ("0 0.05 0.08", "0 0 1"), "roll": ("0 0 0.08", "0 1 0"),
}  # fmt: skip
JOINTS = tuple(ORIGINS)
ZEROS = np.array([0.02, -0.03, 0.04, 0.015, -0.05, 0.03])
TRUE = MappingProxyType(dict(zip(JOINTS, ZEROS, strict=True)))
TIP = se3.pose(np.eye(3), [0.06, 0.0, 0.12])
IDENTITY = np.eye(4)
POINT = np.array([0.35, 0.15, 0.25])


def description(sides=("",)):
    """Return the URDF of one arm, or of several beside each other."""
    limit = '<limit lower="-2.8" upper="2.8" effort="9" velocity="3"/>'
    parts = [link("base", "")]
    for k, side in enumerate(sides):
        parent = "base"
        for name, (xyz, axis) in ORIGINS.items():
            x, y, z = map(float, xyz.split())
            place = f"{x} {y + 0.4 * k if parent == 'base' else y} {z}"
            more = f'<origin xyz="{place}"/><axis xyz="{axis}"/>{limit}'
            child = f"{side}{name}_link"
            parts += [joint(f"{side}{name}", parent, child, more=more), link(child)]
            parent = child
    return urdf(*parts)


@lru_cache
def described(sides=("",)):
    model = load(description(sides))
    for side in sides:
        model = model.with_frame(f"{side}tip", f"{side}roll_link", TIP)
    return model


def real(model, zeros):
    """Return the arm as it is: its joints are at their readings plus the zeros."""
    pairs = zip(model.bodies, zeros, strict=True)
    return model.with_placements(
        {b.name: b.home_rel @ se3.exp_screw(b.joint.screw, z) for b, z in pairs}
    )


def touching(arm, q):
    """Return positions near q in which the tip touches the point; None if Newton finds none."""
    for _ in range(20):
        J = mbs.jacobian(arm, q, "tip", representation="hybrid")[3:]
        off = mbs.forward_kinematics(arm, q, bodies=["tip"])[0, :3, 3] - POINT
        q = q - np.linalg.pinv(J) @ off
    reached = np.abs(off).max() < 1e-9 and (arm.lower < q).all() and (q < arm.upper).all()
    return q if reached else None


@lru_cache
def touches(count):
    """Return positions in which the real tip touches a point, up to the noise."""
    rng, arm = np.random.default_rng(0), real(described(), ZEROS)
    starts = (rng.uniform(-2.2, 2.2, 6) for _ in range(40 * count))
    found = (x for q0 in starts if (x := touching(arm, q0)) is not None)
    q = np.array(list(islice(found, count)))
    J = mbs.jacobian(arm, q, "tip", representation="hybrid")[:, 3:]
    return q + np.einsum("ijk,ik->ij", np.linalg.pinv(J), rng.normal(0.0, NOISE, (count, 3)))


def series(q, joints=JOINTS, **columns):
    return TimeSeries(np.arange(len(q)) * 1.0, joints, q, columns=columns, name="postures.csv")


def measured(q, A=IDENTITY, B=IDENTITY, seed=1):
    """Return the columns of poses A C B of the real tip, with noise."""
    rng, arm = np.random.default_rng(seed), real(described(), ZEROS)
    rows = []
    for C in mbs.forward_kinematics(arm, q, bodies=["tip"])[:, 0]:
        M = A @ C @ B @ se3.exp(rng.normal(0.0, NOISE, 6) * ([5.0] * 3 + [1.0] * 3))
        rows.append([*M[:3, 3], *so3.to_quaternion(M[:3, :3])])
    return dict(zip(MEASURED, np.array(rows).T, strict=True))


def check(result, zeros=TRUE, most=0.001):
    """Check zeros against the true ones: by their standard errors, which are small."""
    for name, true in zeros.items():
        if name not in result.unobservable:
            assert abs(result.zeros[name] - true) < 4.0 * result.deviations[name]
            assert result.deviations[name] < most


@pytest.mark.long
def test_zeros_follow_from_touches_of_a_point_whose_place_is_not_known():
    result = calibrate_touches(described(), series(touches(30)), "tip")
    assert result.unobservable == ("pan",)  # it turns the point as well
    check(result)
    assert result.before > 10.0 * result.after


@pytest.mark.long
def test_postures_that_contradict_the_others_are_left_out_and_named():
    q = touches(30).copy()
    q[[3, 11], 1] += 0.05  # the tip slipped
    result = calibrate_touches(described(), series(q), "tip")
    assert result.outliers == (3, 11)
    check(result)


@pytest.mark.long
def test_zeros_follow_from_measured_poses():
    q = np.random.default_rng(2).uniform(-1.5, 1.5, (20, 6))
    result = calibrate_poses(described(), series(q, **measured(q)), "tip")
    assert result.unobservable == ()
    check(result)


@pytest.mark.long
def test_zeros_follow_from_a_marker_seen_by_a_camera_somewhere():
    q = np.random.default_rng(2).uniform(-1.5, 1.5, (40, 6))
    A, B = (
        se3.exp(np.array([2.0, 0.5, -1.0, 0.3, 1.5, 0.9])),
        se3.exp(np.array([0.3, 2.0, 1.0, 0.1, 0.0, 0.05])),
    )
    result = calibrate_poses(described(), series(q, **measured(q, A, B)), "tip", camera=True)
    assert {"pan", "roll"} >= set(result.unobservable)  # which the unknown poses turn as well
    check(result)


@pytest.mark.long
def test_zeros_follow_from_two_arms_that_hold_one_another():
    sides = ("left_", "right_")
    model = described(sides)
    zeros = np.concatenate([ZEROS, -0.6 * ZEROS[::-1]])
    arm, rng = real(model, zeros), np.random.default_rng(3)
    held = se3.pose(so3.exp(np.array([3.0, 0.4, 0.0])), [0.0, 0.02, 0.1])
    frames = [f"{side}tip" for side in sides]
    q = rng.uniform(-1.5, 1.5, (200, 12))
    places = mbs.forward_kinematics(arm, q, bodies=frames[:1])[:, 0] @ held
    found = mbs.inverse_kinematics(arm, places, frames[1], q0=q)
    q = found.q[found.success][:30]  # a quarter of the places are in reach
    result = calibrate_hold(model, series(q, model.joint_names), *frames)
    assert len(result.unobservable) <= 2
    check(result, dict(zip(model.joint_names, zeros, strict=True)))


@pytest.mark.long
def test_placements_are_found_as_well():
    rng, model = np.random.default_rng(4), described()
    twists = rng.normal(0.0, 1.0, (6, 6)) * ([0.005] * 3 + [0.001] * 3)
    pairs = zip(model.bodies, twists, strict=True)
    arm = model.with_placements({b.name: b.home_rel @ se3.exp(xi) for b, xi in pairs})
    q = rng.uniform(-1.5, 1.5, (40, 6))
    C = mbs.forward_kinematics(arm, q, bodies=["tip"])[:, 0]
    rows = np.array([[*M[:3, 3], *so3.to_quaternion(M[:3, :3])] for M in C]).T
    postures = series(q, **dict(zip(MEASURED, rows, strict=True)))
    result = calibrate_poses(model, postures, "tip", placements=True)
    new = rng.uniform(-1.5, 1.5, (100, 6))
    places = [mbs.forward_kinematics(m, new, bodies=["tip"])[:, 0, :3, 3]
              for m in (arm, model, result.model)]  # fmt: skip
    before, after = (np.linalg.norm(x - places[0], axis=1).max() for x in places[1:])
    assert after < 0.1 * before, (after, before)


@pytest.mark.long
@pytest.mark.parametrize(
    ("postures", "said"),
    [
        (lambda q: q[:3], "3 postures are too few"),
        (lambda q: np.vstack([q[:8], q[8:16] + 0.1]), "one point touched in all"),
        (lambda q: q[0] + 1e-3 * np.random.default_rng(0).normal(size=(12, 6)), "hardly determine"),
    ],
)
def test_bad_postures_are_rejected_with_advice(postures, said):
    with pytest.raises(TimeSeriesError, match=said):
        calibrate_touches(described(), series(postures(touches(30))), "tip")


@pytest.mark.long
def test_the_command_writes_a_description_whose_tip_is_where_it_touched(tmp_path, capsys):
    (tmp_path / "arm.urdf").write_text(description())
    series(touches(30)).write(tmp_path / "touches.csv")
    out = tmp_path / "calibrated.urdf"
    offset = map(str, TIP[:3, 3])
    files = [str(tmp_path / "arm.urdf"), str(tmp_path / "touches.csv")]
    tip = ["--tip", "roll_link", "--offset", *offset]
    assert main(["calibrate", *files, *tip, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"pan +not observable", printed)
    model = load(out).with_frame("tip", "roll_link", TIP)
    at = mbs.forward_kinematics(model, touches(30), bodies=["tip"])[:, 0, :3, 3]
    assert np.linalg.norm(at - at.mean(axis=0), axis=1).max() < 6.0 * NOISE
    zeros = {name: float(zero) for name, zero in re.findall(r"^(\w+) +(-?0\.\d+) ", printed, re.M)}
    assert set(zeros) == {*JOINTS} - {"pan"}
    shifted = [2.8 - zeros.get(name, 0.0) for name in JOINTS]
    np.testing.assert_allclose(model.upper, shifted, atol=1e-5)
