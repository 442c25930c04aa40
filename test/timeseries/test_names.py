# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Names of joints in a file and in a model: whole words, or a question."""

import numpy as np
import pytest
from urdf_reference import STATED, chain

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError
from mbs_dynamics.timeseries.joints import matched

UR = [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2")]
ARM = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = ARM.joint_names
PANDA = [f"panda_joint{k}" for k in range(1, 8)]


@pytest.mark.parametrize(
    ("names", "known"),
    [
        ([f"left_{name}" for name in UR], UR),
        ([*(f"/arm/{name}" for name in UR), "/arm/gripper"], UR),
        ([f"{name}_left" for name in JOINTS], JOINTS),
        ([f"fer_joint{k}" for k in range(1, 8)], [*PANDA, "panda_finger_joint1"]),
        (["fer_joint1", "fer_joint2"], PANDA[:2]),
        (["1", "2", "3", "4", "5"], UR),
        (["0", "1", "2", "3", "4", "cmd_0"], UR),
        ([f"{name}.pos" for name in UR], UR),
    ],
)
def test_names_match_without_whole_words(names, known):
    pairs = matched("run", names, known)
    assert list(pairs) == list(known)[: len(pairs)]
    assert list(pairs.values()) == names[: len(pairs)]


def test_whole_names_come_first():
    names = ["joint3", "joint1", "left_joint2"]
    assert matched("run", names, JOINTS) == {"joint1": "joint1", "joint3": "joint3"}


@pytest.mark.parametrize(
    ("names", "known", "said"),
    [
        (UR, ["wrist", "arm"], "no joint .* q_shoulder_pan_joint=q_wrist"),
        (["elbow"], ["wrist"], "it has elbow, and the model wrist"),
        (["1", "2"], JOINTS, "numbered 1, 2; the model has 7 joints"),
        ([f"{n}_deg" for n in JOINTS], JOINTS, r"q_joint1_deg=q_joint1\[deg\]"),
        (["2", "4", "3"], JOINTS[:3], "numbered 2, 3, 4"),
        (["A", "B", "joint3"], JOINTS[:3], "few joints .* q_A=q_joint1"),
    ],
)
def test_rejects_other_names(names, known, said):
    with pytest.raises(TimeSeriesError, match=said):
        matched("run", names, known)


@pytest.mark.parametrize("form", ["left_{0} right_{0}", "{0}_a {0}_b", "/l/{0} /r/{0}"])
@pytest.mark.parametrize("count", [7, 5])
def test_two_arms_in_one_file_are_asked_about(form, count):
    names = [form.split()[k].format(name) for k in (0, 1) for name in JOINTS[: (7, count)[k]]]
    said = "several sets of joints match those of the model"
    with pytest.raises(TimeSeriesError, match=said) as error:
        matched("run", names, JOINTS)
    assert names[0] in str(error.value)
    assert names[7] in str(error.value)


def test_questions_about_names_state_columns_of_the_file(tmp_path):
    head = ["t", *(f"{side} {name}" for side in ("left", "right") for name in JOINTS)]
    path = tmp_path / "run.csv"
    rows = np.arange(30.0).reshape(2, 15)
    np.savetxt(path, rows, delimiter=",", header=",".join(head), comments="")
    declared = {name: f"q_{name.replace(' ', '_')}" for name in head[1:]}
    series = TimeSeries.read(path, columns=declared)
    with pytest.raises(TimeSeriesError, match="--columns left joint1=q_joint1"):
        series.of(ARM)


def test_joints_are_brought_into_the_order_of_the_model():
    t = 0.01 * np.arange(300)
    q = np.column_stack([0.1 * k + 0.1 * np.sin(t) for k in range(8)])
    names = ("gripper", *reversed(JOINTS))
    own = TimeSeries(t, names, q, tau=q).of(ARM)
    assert own.joints == own.positions == JOINTS
    np.testing.assert_array_equal(own.tau, q[:, :0:-1])


def test_joints_that_slide_have_no_angles(tmp_path):
    path, t = tmp_path / "run.csv", 0.01 * np.arange(300)
    TimeSeries(t, ("arm", "lift"), np.column_stack([10.0 * np.sin(t), 0.1 * np.cos(t)])).write(path)
    model = mbs.Model.from_urdf(chain(("arm", "revolute", STATED), ("lift", "prismatic", STATED)))
    columns = {"q": "[deg]"}
    with pytest.raises(TimeSeriesError, match=r"slides, but .*angle.*\[m\]"):
        TimeSeries.read(path, columns=columns).of(model)
    found = TimeSeries.read(path, columns=columns | {"q_lift": "q_lift[m]"}).of(model)
    np.testing.assert_allclose(found.q[:, 1], 0.1 * np.cos(t))
