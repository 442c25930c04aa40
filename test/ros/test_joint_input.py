# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Which joint_states become a state, and which are rejected with what reason."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.joint_input import (
    FIRST_POSITION,
    NAN_VELOCITIES,
    NO_VELOCITIES,
    REPEATED_STAMP,
    UNSTAMPED,
    JointInput,
    Reading,
    Rejection,
)

pytestmark = pytest.mark.backend_independent

JOINTS = ("shoulder", "elbow", "wrist")
SECOND = 1_000_000_000


def floats(values):
    return array("d", values)


def read(joints, names, positions, velocities=(), stamp=SECOND, received=0.0):
    return joints.read(
        list(names), floats(positions), floats(velocities), stamp=stamp, received=received
    )


def accepted(*args, **kwargs):
    reading = read(*args, **kwargs)
    assert isinstance(reading, Reading), reading
    return reading


def rejected(*args, **kwargs):
    rejection = read(*args, **kwargs)
    assert isinstance(rejection, Rejection), rejection
    return rejection


@given(order=st.permutations([*JOINTS, "wheel", "gripper"]))
def test_matches_by_name_in_any_order_with_joints_of_others(order):
    value = {"shoulder": 1.0, "elbow": 2.0, "wrist": 3.0, "wheel": np.nan, "gripper": 5.0}
    rate = {name: -10.0 * number for name, number in value.items()}
    reading = accepted(
        JointInput(JOINTS), order, [value[name] for name in order], [rate[name] for name in order]
    )
    assert reading.q.tolist() == [1.0, 2.0, 3.0]
    assert reading.qd is not None
    assert reading.qd.tolist() == [-10.0, -20.0, -30.0]


def test_follows_a_change_of_order_between_messages():
    joints = JointInput(JOINTS)
    for names in (JOINTS, JOINTS[::-1], ("wrist", "base", "shoulder", "elbow"), JOINTS):
        positions = [float(len(name)) for name in names]
        expected = [float(len(name)) for name in JOINTS]
        assert accepted(joints, names, positions).q.tolist() == expected


def test_takes_lists_as_well():
    reading = JointInput(JOINTS).read(list(JOINTS), [1, 2, 3], [4, 5, 6], stamp=1, received=0.0)
    assert isinstance(reading, Reading)
    assert reading.q.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("kind", "names", "positions", "velocities", "said"),
    [
        ("no_joints", (), (), (), "no names at all"),
        (
            "no_joints",
            ("a", "b"),
            (1, 2),
            (),
            "it holds a, b; the robot has shoulder, elbow, wrist",
        ),
        ("missing_joints", ("wrist", "a"), (1, 2), (), "missing from the message: shoulder, elbow"),
        ("duplicate_joints", (*JOINTS, "elbow"), (1, 2, 3, 4), (), "more than once: elbow"),
        ("position_length", JOINTS, (1, 2), (), "3 joint names but 2 position value(s)"),
        ("position_length", JOINTS, (), (1, 2, 3), "3 joint names but 0 position value(s)"),
        ("position_length", JOINTS, (1, 2, 3, 4), (), "3 joint names but 4 position value(s)"),
        ("velocity_length", JOINTS, (1, 2, 3), (1, 2), "3 joint names but 2 velocity value(s)"),
        ("not_finite", JOINTS, (1, np.nan, 3), (), "position is not finite: elbow = nan"),
        ("not_finite", JOINTS, (np.inf, 2, -np.inf), (), "shoulder = inf, wrist = -inf"),
        ("not_finite", JOINTS, (1, 2, 3), (0, 0, np.nan), "velocity is not finite: wrist = nan"),
        ("not_finite", JOINTS, (1, 2, 3), (np.inf,) * 3, "velocity is not finite: shoulder = inf"),
        ("too_large", JOINTS, (1, -1e9, 3), (), "position is too large to be true: elbow = -1e+09"),
        ("too_large", JOINTS, (1, 2, 3), (1e200,) * 3, "velocity is too large to be true"),
    ],
)
def test_rejects_with_kind_and_reason(kind, names, positions, velocities, said):
    joints = JointInput(JOINTS)
    for _ in range(2):  # the second time from what is known about these names
        rejection = rejected(joints, names, positions, velocities)
        assert rejection.kind == kind
        assert said in rejection.reason
    assert accepted(joints, JOINTS, (1, 2, 3)).q.tolist() == [1.0, 2.0, 3.0]


def test_joints_of_others_may_be_named_twice():
    reading = accepted(JointInput(JOINTS), (*JOINTS, "wheel", "wheel"), (1, 2, 3, 4, 5))
    assert reading.q.tolist() == [1.0, 2.0, 3.0]


@given(
    where=st.integers(0, 2),
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
    others=st.lists(st.floats(-5e8, 5e8), min_size=3, max_size=3),
)
def test_no_bad_number_passes(where, bad, others):
    joints = JointInput(JOINTS)
    assert accepted(joints, JOINTS, others, others).q.tolist() == others
    spoilt = list(others)
    spoilt[where] = bad
    assert rejected(joints, JOINTS, spoilt, others).kind == "not_finite"
    assert rejected(joints, JOINTS, others, spoilt).kind == "not_finite"


def test_absent_velocities_are_absent_and_not_zero():
    joints = JointInput(JOINTS)
    assert accepted(joints, JOINTS, (1, 2, 3))[1:] == (None, NO_VELOCITIES)
    assert accepted(joints, JOINTS, (1, 2, 3), (np.nan,) * 3)[1:] == (None, NAN_VELOCITIES)


def test_time_must_not_go_backwards():
    joints = JointInput(JOINTS, stale_timeout=0.5)
    accepted(joints, JOINTS, (1, 2, 3), stamp=10 * SECOND, received=0.0)
    accepted(joints, JOINTS, (1, 2, 3), stamp=10 * SECOND, received=0.1)
    for stamp in (9 * SECOND, 10 * SECOND - 1):
        rejection = rejected(joints, JOINTS, (1, 2, 3), stamp=stamp, received=0.2)
        assert rejection.kind == "time_backwards"
    assert (
        "the stamp 9.000000 s is 1.000000 s before"
        in rejected(joints, JOINTS, (1, 2, 3), stamp=9 * SECOND, received=0.3).reason
    )
    accepted(joints, JOINTS, (1, 2, 3), stamp=10 * SECOND + 1, received=0.4)


def test_time_starts_anew_after_a_pause():
    joints = JointInput(JOINTS, stale_timeout=0.5, velocity_from_position=True)
    accepted(joints, JOINTS, (0, 0, 0), stamp=10 * SECOND, received=0.0)
    assert rejected(joints, JOINTS, (1, 1, 1), stamp=SECOND, received=0.4).kind == "time_backwards"
    reading = accepted(joints, JOINTS, (2, 2, 2), stamp=2 * SECOND, received=0.6)
    assert reading[1:] == (None, FIRST_POSITION)
    reading = accepted(joints, JOINTS, (3, 3, 3), stamp=2 * SECOND + SECOND // 10, received=0.7)
    np.testing.assert_allclose(reading.qd, 10.0, rtol=1e-12)


def test_unstamped_messages_are_not_compared_in_time():
    joints = JointInput(JOINTS, velocity_from_position=True)
    accepted(joints, JOINTS, (1, 2, 3), stamp=10 * SECOND, received=0.0)
    reading = accepted(joints, JOINTS, (1, 2, 3), stamp=0, received=0.1)
    assert reading[1:] == (None, UNSTAMPED)
    assert rejected(joints, JOINTS, (1, 2, 3), stamp=SECOND, received=0.2).kind == "time_backwards"


def test_velocities_from_positions():
    joints = JointInput(JOINTS, stale_timeout=0.5, velocity_from_position=True)

    def velocity(positions, stamp, velocities=()):
        return accepted(joints, JOINTS, positions, velocities, stamp=stamp, received=1e-9 * stamp)[
            1:
        ]

    start = 1_700_000_000 * SECOND
    step = SECOND // 100
    assert velocity((0, 0, 0), start) == (None, FIRST_POSITION)
    qd, _ = velocity((0.01, -0.02, 0.0), start + step)
    np.testing.assert_allclose(qd, [1.0, -2.0, 0.0], rtol=1e-12)
    assert velocity((0.02, -0.04, 0.0), start + step) == (None, REPEATED_STAMP)
    qd, _ = velocity((0.03, -0.06, 0.01), start + 3 * step)
    np.testing.assert_allclose(qd, [1.0, -2.0, 0.5], rtol=1e-12)
    measured, _ = velocity((0, 0, 0), start + 4 * step, (7, 8, 9))
    assert measured.tolist() == [7.0, 8.0, 9.0]
    qd, _ = velocity((0.01, 0, 0), start + 5 * step, (np.nan,) * 3)
    np.testing.assert_allclose(qd, [1.0, 0.0, 0.0], rtol=1e-12)
    assert velocity((0, 0, 0), start + 4 * SECOND) == (None, FIRST_POSITION)


def test_angles_without_limits_turn_the_short_way():
    joints = JointInput(
        ("limited", "endless"), wraps=(False, True), velocity_from_position=True, stale_timeout=2.0
    )
    read(joints, ("limited", "endless"), (3.1, 3.1), stamp=SECOND)
    reading = accepted(joints, ("limited", "endless"), (-3.1, -3.1), stamp=2 * SECOND)
    np.testing.assert_allclose(reading.qd, [-6.2, 2.0 * np.pi - 6.2], rtol=1e-12)


def test_input_of_a_model():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    joints = JointInput.of_model(model, stale_timeout=0.25, velocity_from_position=True)
    assert joints.joint_names == model.joint_names
    assert (joints.stale_timeout, joints.velocity_from_position) == (0.25, True)


def test_joints_that_mimic_others_are_ignored():
    text = """<robot name="r">
      <link name="base"/>
      <link name="left"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="right"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="drive" type="continuous">
        <parent link="base"/><child link="left"/><axis xyz="1 0 0"/></joint>
      <joint name="follow" type="continuous">
        <parent link="base"/><child link="right"/><axis xyz="1 0 0"/>
        <mimic joint="drive" multiplier="-1"/></joint></robot>"""
    model = mbs.Model.from_urdf(text)
    joints = JointInput.of_model(model, stale_timeout=0.5, velocity_from_position=False)
    assert accepted(joints, ("follow", "drive"), (np.nan, 2.0)).q.tolist() == [2.0]
