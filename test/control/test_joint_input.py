# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which joint_states become a state, alone or merged, and which are rejected with what reason."""

import math
from array import array
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from urdf_reference import chain, mimic

import mbs_dynamics as mbs
from mbs_dynamics.control.joint_input import (
    JointInput,
    Reading,
)
from mbs_dynamics.errors import ArgumentError, UnknownJointError

JOINTS = ("shoulder", "elbow", "wrist")
SECOND = 1_000_000_000


def read(joints, names, positions, velocities=(), efforts=(), stamp=SECOND, received=0.0):
    arrays = [array("d", values) for values in (positions, velocities, efforts)]
    return joints.read(list(names), *arrays, stamp=stamp, received=received)


def accepted(*args, **kwargs):
    reading = read(*args, **kwargs)
    assert isinstance(reading, Reading), reading
    return reading


@pytest.mark.parametrize(
    ("kind", "names", "positions", "velocities", "said"),
    [
        ("no_joints", (), (), (), "no names at all"),
        ("no_joints", ("a", "b"), (1, 2), (), "it holds a, b; the robot has shoulder, elbow"),
        ("duplicate_joints", (*JOINTS, "elbow"), (1, 2, 3, 4), (), "more than once: elbow"),
        ("position_length", JOINTS, (1, 2), (), "3 joint names but 2 position value(s)"),
        ("velocity_length", JOINTS, (1, 2, 3), (1, 2), "3 joint names but 2 velocity value(s)"),
        ("not_finite", JOINTS, (1, np.nan, 3), (), "position is not finite: elbow = nan"),
        ("not_finite", JOINTS, (1, 2, 3), (np.nan, 0, np.inf), "velocity is not finite: wrist"),
        ("too_large", JOINTS, (1, -1e9, 3), (), "position is too large to be true: elbow = -1e+09"),
        ("too_large", JOINTS, (1, 2, 3), (1e200,) * 3, "velocity is too large to be true"),
    ],
)
def test_rejects_with_kind_and_reason(kind, names, positions, velocities, said):
    joints = JointInput(JOINTS)
    for _ in range(2):  # the second time from what is known about these names
        rejection = read(joints, names, positions, velocities)
        assert rejection.kind == kind
        assert said in rejection.reason
    assert accepted(joints, JOINTS, (1, 2, 3)).q.tolist() == [1.0, 2.0, 3.0]


def test_velocities_from_positions():
    joints = JointInput(JOINTS, stale_timeout=0.5, velocity_from_position=True)

    def velocity(positions, stamp, velocities=()):
        received = 1e-9 * stamp
        return accepted(joints, JOINTS, positions, velocities, stamp=stamp, received=received)[1:3]

    unknown = "no velocities of shoulder, elbow, wrist are reported"
    start = 1_700_000_000 * SECOND
    step = SECOND // 100
    assert velocity((0, 0, 0), start) == (None, unknown)
    qd, _ = velocity((0.01, -0.02, 0.0), start + step)
    np.testing.assert_allclose(qd, [1.0, -2.0, 0.0], rtol=1e-12)
    qd, _ = velocity((0.02, -0.04, 0.0), start + step)  # the same measurement, the same velocity
    np.testing.assert_allclose(qd, [1.0, -2.0, 0.0], rtol=1e-12)
    qd, _ = velocity((0.03, -0.06, 0.01), start + 3 * step)
    np.testing.assert_allclose(qd, [1.0, -2.0, 0.5], rtol=1e-12)
    measured, _ = velocity((0, 0, 0), start + 4 * step, (7, 8, 9))
    assert measured.tolist() == [7.0, 8.0, 9.0]
    qd, _ = velocity((0.01, 0, 0), start + 5 * step, (np.nan,) * 3)
    np.testing.assert_allclose(qd, [1.0, 0.0, 0.0], rtol=1e-12)
    assert velocity((0, 0, 0), start + 4 * SECOND) == (None, unknown)


def test_joints_that_mimic_others_are_ignored():
    text = chain(("drive", "continuous", ""), ("follow", "continuous", mimic("drive", -1)))
    model = mbs.Model.from_urdf(text)
    joints = JointInput.of_model(model, stale_timeout=0.5, velocity_from_position=False)
    assert accepted(joints, ("follow", "drive"), (np.nan, 2.0)).q.tolist() == [2.0]


@pytest.mark.parametrize(
    ("efforts", "said", "known"),
    [
        ([], "no efforts of a, b are reported", 0),
        ([1.0], "no efforts of a, b are reported", 0),
        ([1.0, np.inf], "no efforts of b are reported", 1),
        ([-1e10, 0.0], "no efforts of a are reported", 1),
        ([np.nan, 0.0], "no efforts of a are reported", 1),
    ],
)
def test_efforts_that_are_not_there_are_said(efforts, said, known):
    joints = JointInput(("a", "b"))
    for before in ((), (3.0, 4.0)):
        accepted(joints, ["a", "b"], [0.0] * 2, (), before)
        found = accepted(joints, ["a", "b"], [0.0] * 2, (), efforts)
        assert found.why_no_effort == said
        assert np.isfinite(found.tau).sum() == known


ARM, HAND = ("joint1", "joint2"), ("finger",)
ROBOT = (*ARM, *HAND)


def test_joints_that_nobody_reports_are_fixed():
    joints = JointInput(ROBOT, fixed={"finger": 0.02})
    assert joints.stale(100.0) == ["joint1 not reported yet", "joint2 not reported yet"]
    reading = accepted(joints, ARM, (1, 2), (3, 4), (5, 6))
    assert reading.q.tolist() == [1.0, 2.0, 0.02]
    assert reading.qd.tolist() == [3.0, 4.0, 0.0]
    assert reading.why_no_effort == "no efforts of finger are reported"
    assert joints.stale(0.4) == []
    reading = accepted(joints, ROBOT, (1, 2, 3), (4, 5, 6), stamp=SECOND + 1)
    assert reading.q.tolist() == [1.0, 2.0, 0.02]  # what messages say of it is ignored
    assert reading.qd.tolist() == [4.0, 5.0, 0.0]
    assert read(joints, HAND, (np.nan,)).kind == "partial"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"fixed": {"thumb": 0.0}}, UnknownJointError, "no joint 'thumb'; the joints are"),
        ({"fixed": {"finger": math.nan}}, ArgumentError, "joint 'finger' is nan; must be"),
        ({"fixed": {"finger": 1e9}}, ArgumentError, "'finger' is 1e+09; must be less than 1e+09"),
    ],
)
def test_refuses_joints_that_cannot_be(options, error, said):
    with pytest.raises(error) as caught:
        JointInput(ROBOT, **options)
    assert said in str(caught.value)


@dataclass
class Latest:
    """The latest values of one joint."""

    q: float = 0.0
    qd: float | None = None
    effort: float = math.nan
    stamp: int = 0
    heard: float = -math.inf


@dataclass
class Oracle:
    """The latest values by joint, and what must become of a message."""

    timeout: float
    known: dict[str, Latest] = field(default_factory=dict)

    def stale(self, now):
        return [name for name in self.known if now - self.known[name].heard >= self.timeout]

    def take(self, values, stamp, now):
        """Take position, velocity and effort by joint; return the kind of rejection, or None."""
        mine = {name: value for name, value in values.items() if name in self.known}
        if not mine:
            return "no_joints"
        if not all(math.isfinite(q) for q, _, _ in mine.values()):
            return "not_finite"
        for name in mine:
            joint = self.known[name]
            if stamp and stamp < joint.stamp and now - joint.heard < self.timeout:
                return "time_backwards"
        for name, (q, qd, effort) in mine.items():
            joint = self.known[name]
            joint.q, joint.qd = q, None if qd is None or math.isnan(qd) else qd
            joint.effort = math.nan if effort is None else effort
            if stamp != joint.stamp or not stamp:
                joint.heard = now
            joint.stamp = stamp or joint.stamp
        return "incomplete_joints" if self.stale(now) else None


NUMBERS = st.floats(-100.0, 100.0)


@st.composite
def histories(draw):
    """Return messages of any split of the joints, in any order, good and bad ones."""
    names = ["a", "b", "c", "d"]
    messages, now = [], 0.0
    for _ in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.6]))
        held = draw(st.lists(st.sampled_from([*names, "x"]), min_size=1, unique=True))
        stamp = draw(st.sampled_from([0, round(1e9 * now) + 1, draw(st.integers(1, 3 * 10**9))]))
        has_rates, has_efforts = draw(st.booleans()), draw(st.booleans())
        bad = draw(st.integers(0, 9)) == 0
        values = {
            name: (
                math.nan if bad else draw(NUMBERS),
                draw(st.one_of(st.just(math.nan), NUMBERS)) if has_rates else None,
                draw(st.one_of(st.just(math.nan), NUMBERS)) if has_efforts else None,
            )
            for name in held
        }
        messages.append((values, stamp, now))
    return messages


@pytest.mark.long
@given(history=histories())
def test_any_split_of_messages_gives_the_latest_values_by_joint(history):
    names = ("a", "b", "c", "d")
    joints = JointInput(names, stale_timeout=0.5)
    oracle = Oracle(0.5, {name: Latest() for name in names})
    for values, stamp, now in history:
        before = {name: joint.stamp for name, joint in oracle.known.items()}
        kind = oracle.take(values, stamp, now)
        columns = list(zip(*values.values(), strict=True))
        q, qd, effort = [() if column[0] is None else column for column in columns]
        found = read(joints, values, q, qd, effort, stamp=stamp, received=now)
        known = list(oracle.known.values())
        assert joints.stamps == [joint.stamp for joint in known]
        assert [said.split()[0] for said in joints.stale(now)] == oracle.stale(now)
        if kind is not None:
            assert found.kind == kind
            continue
        assert found.q.tolist() == [joint.q for joint in known]
        np.testing.assert_array_equal(found.tau, [joint.effort for joint in known])
        assert (not found.why_no_effort) == bool(np.isfinite(found.tau).all())
        assert found.stamp == (max(one.stamp for one in known) if stamp else 0)
        same = all(before[name] == stamp for name in values if name in before)
        assert found.repeated == (stamp > 0 and same)
        if any(joint.qd is None for joint in known):
            assert found.qd is None
            assert found.why_no_velocity
        else:
            assert found.qd.tolist() == [joint.qd for joint in known]
            assert found.why_no_velocity == ""
