# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints without limits: drivers that count turns and drivers that wrap lead to the same motion."""

import math
import re

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control import JointTarget, PoseTarget, Trajectory, laws
from mbs_dynamics.control.force_sensor import ForceSensor
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.lie import se3
from mbs_dynamics.resources import robot_path
from simulated.guarded_bench import ARMATURE, PERIOD, Loop, Q, table

JOINT, MOTOR = 6, 0x16
ENDLESS = mbs.Model.from_urdf(
    re.sub(
        r'(<joint name="joint7" type=")revolute("(?:(?!</joint>).)*?<limit) lower="[^"]*" '
        r'upper="[^"]*"',
        r"\1continuous\2",
        robot_path("arm7").read_text(encoding="utf-8"),
        flags=re.S,
    )
)
NAMES = ENDLESS.joint_names
GEARED = ENDLESS.with_armature(dict.fromkeys(NAMES, ARMATURE))
IDEAL = {"noise": (0.0,) * 3, "torque_step": 0.0, "friction": 0.0, "step": 0.001}
WAYS = {"counts": {}, "wraps at pi": {MOTOR: -math.pi}, "wraps at 2 pi": {MOTOR: 0.0}}


def at(place):
    return np.where(np.arange(7) == JOINT, place, Q)


def loop_of(law, place, wraps, **options):
    loop = Loop(law, model=GEARED, q=at(place), **IDEAL | options)
    loop.bus.wraps.update(wraps)
    return loop


def pushed(law, wraps, target):
    """Return positions and torques while an arm is pushed, follows a target and is released."""
    loop, found = loop_of(law, 3.1, wraps).enabled(0.6), []
    for k in range(500):
        loop.bus.push[JOINT] = 1.0 if 50 < k < 150 else 0.0
        if k == 200 and target is not None:
            loop.arm.aim(loop.now, target)
        if k == 400:
            loop.arm.disable(loop.now)
        loop.run(PERIOD)
        found.append(np.concatenate([loop.bus.q, loop.command.torques]))
    assert loop.arm.fault is None
    assert not any("does not hold" in event for event in loop.events)
    return np.array(found)


C = mbs.forward_kinematics(ENDLESS, at(3.2), bodies=["tool"])[0]
POINTS = at(3.1) + np.outer([0.0, 0.3], np.ones(7))


@pytest.mark.long
@pytest.mark.parametrize(
    ("law", "target"),
    [
        (laws.Gravity(damping=0.5), None),
        (laws.JointImpedance(20.0), JointTarget(["joint7", "joint2"], [3.3, 0.6])),
        (laws.JointImpedance(20.0), Trajectory(NAMES, [0.0, 1.0], POINTS)),
        (
            laws.CartesianImpedance("tool", 500.0, 20.0),
            PoseTarget(se3.pose(C[:3, :3], C[:3, 3] - [0.0, 0.0, 0.03])),
        ),
    ],
    ids=["gravity", "joint target", "trajectory", "pose"],
)
def test_wrapped_angles_and_counted_turns_give_the_same_motion(law, target):
    expected = pushed(law, WAYS["counts"], target)
    assert np.ptp(expected[:, JOINT]) > 0.1
    assert (expected[:, JOINT] > math.pi).any()
    for way in ("wraps at pi", "wraps at 2 pi"):
        np.testing.assert_allclose(pushed(law, WAYS[way], target), expected, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "turns"), [("counts", 1), ("wraps at pi", -2), ("wraps at 2 pi", 1)]
)
def test_targets_whole_turns_away_are_taken_as_near_ones(way, turns):
    loop = loop_of(laws.JointImpedance(20.0), 9.0, WAYS[way]).enabled()
    away, travelled = math.tau * turns * (np.arange(7) == JOINT), 0.0
    for target in (
        JointTarget(["joint7"], [9.2 + math.tau * turns]),
        Trajectory(NAMES, [0.0, 1.0], np.array([at(9.2), at(9.0)]) + away),
    ):
        loop.arm.aim(loop.now, target)
        for _ in range(600):
            before = loop.bus.q[JOINT]
            loop.run(PERIOD)
            travelled += abs(loop.bus.q[JOINT] - before)
    assert travelled == pytest.approx(0.4, abs=0.02)
    assert loop.bus.q[JOINT] == pytest.approx(9.0, abs=0.01)
    assert loop.arm.trajectory is None


@pytest.mark.parametrize("way", list(WAYS))
def test_drives_hold_a_joint_that_stands_where_its_angle_wraps(way):
    place = {"counts": math.pi, "wraps at pi": math.pi, "wraps at 2 pi": math.tau}[way]
    loop = loop_of(laws.Gravity(), place, WAYS[way], noise=(1e-4, 0.0, 0.0))
    loop.arm.step(0.0, loop.bus.read())
    assert loop.arm.hold(0.0) == []
    loop.run(1.0)
    assert loop.events == []
    assert abs(loop.bus.q[JOINT] - place) < 1e-3


@pytest.mark.long
def test_two_motors_of_a_joint_may_wrap_apart():
    made = table()
    row = made["motors"]["joint7"]
    made["motors"]["joint7"] = [row, {**row, "motor": 0x17}]
    loop = Loop(laws.JointImpedance(20.0), model=GEARED, q=at(3.1), made=made, **IDEAL)
    loop.bus.wraps.update({MOTOR: -math.pi, 0x17: 0.0})
    loop.enabled()
    loop.arm.aim(loop.now, JointTarget(["joint7"], [3.3]))
    loop.run(2.0)
    loop.arm.disable(loop.now)
    loop.run(0.5)
    assert len(loop.motors.motors) == 8
    assert loop.arm.fault is None
    assert loop.bus.q[JOINT] == pytest.approx(3.3, abs=0.01)


def test_states_that_come_back_whole_turns_away_are_the_same_place():
    joints = JointInput(("turns", "slides"), wraps=(True, False), stale_timeout=0.5)

    def q(seconds, *positions):
        stamp = int(1e9 * seconds)
        names, none = ("turns", "slides"), (0.0, 0.0)
        return joints.read(names, positions, none, stamp=stamp, received=seconds).q.tolist()

    assert q(1.0, 7.0, 7.0) == [7.0, 7.0]
    assert q(1.1, 7.1 - math.tau, 7.1) == pytest.approx([7.1, 7.1])
    assert q(9.0, 7.2 - 3.0 * math.tau, 7.2 - math.tau) == pytest.approx([7.2, 7.2 - math.tau])
    assert q(9.1, 0.9, 0.9) == pytest.approx([7.2 + math.remainder(0.9 - 7.2, math.tau), 0.9])


@pytest.mark.parametrize("place", [3.0, math.pi, -math.pi])
def test_a_wrist_pose_is_taken_where_an_angle_wraps(place):
    rng, sensor = np.random.default_rng(0), ForceSensor(ENDLESS, "flange")
    for n in range(1, 101):
        t, q = 0.01 * n, at(place) + rng.normal(0.0, 1e-4, 7)
        q[JOINT] = (q[JOINT] + math.pi) % math.tau - math.pi
        sensor.move(q, int(1e9 * t), t)
        W = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -12.0])
        sensor.read(W, int(1e9 * t), t)
    assert "1 pose(s) taken" in sensor.take_pose(t)


PAIR = """<robot name="m"><link name="base"/>
<link name="a"><inertial><mass value="0.5"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><origin xyz="0.2 0 0"/><mass value="3"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="leader" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit effort="60" velocity="3"/></joint>
<joint name="follower" type="{kind}"><parent link="base"/><child link="b"/><axis xyz="0 1 0"/>
<limit effort="60" velocity="3" {limits}/><mimic joint="leader" multiplier="{ratio}"/></joint>
</robot>"""


@pytest.mark.parametrize(
    ("kind", "ratio", "limits", "warns"),
    [
        ("continuous", 0.5, "", True),
        ("continuous", -1.5, "", True),
        ("continuous", -2.0, "", False),
        ("revolute", 0.5, 'lower="-1" upper="1"', False),
    ],
)
def test_a_mimic_joint_that_depends_on_turns_of_its_leader_is_warned_of(
    kind, ratio, limits, warns, recwarn
):
    mbs.Model.from_urdf(PAIR.format(kind=kind, ratio=ratio, limits=limits))
    said = [str(one.message) for one in recwarn if "turns of 'leader'" in str(one.message)]
    assert bool(said) == warns
