# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrenches in joints and bearings, fixed ones too, by hand, by MuJoCo and by laws of mechanics.

Pinocchio's joint forces are in test_joints.py, momentum balances of the bodies in
test_algorithms.py.
"""

import mujoco
import numpy as np
import pytest
from mechanisms import MECHANISMS, every_mechanism
from reference import Reference, assert_close

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

every_representation = pytest.mark.parametrize("representation", mbs.REPRESENTATIONS)

G = 9.81


def state(name):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(400 + len(name))
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, mechanism.n))
    return mechanism, (q, qd, qdd), rng.uniform(-5.0, 5.0, (mechanism.nb, 6))


@every_representation
def test_a_cantilever(representation):
    """Two arms stretched out along x, locked by their motors, with a load at the tip."""
    homes = np.array([np.eye(4)] * 2)
    homes[1, 0, 3] = 1.0
    M = [mbs.spatial_inertia(m, (0.5, 0, 0), np.zeros((3, 3))) for m in (3.0, 2.0)]
    screws = [[0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]]  # about the vertical, about y
    model = mbs.Model.from_screws([-1, 0], homes, screws, M, frame="body_fixed")
    load = np.zeros((2, 6))
    load[1] = mbs.convert_wrench(  # 7 N downwards and 4 N sideways, one metre beyond the joint
        [0.0, 7.0, 4.0, 0.0, 4.0, -7.0], homes[0] @ homes[1], source="hybrid", target=representation
    )
    rest = [np.zeros(2)] * 3
    expected = [
        [0.0, -(0.5 * 3 * G + 1.5 * 2 * G + 2 * 7.0), -2 * 4.0, 0.0, -4.0, 5 * G + 7.0],
        [0.0, -(0.5 * 2 * G + 7.0), -4.0, 0.0, -4.0, 2 * G + 7.0],
    ]
    poses = mbs.forward_kinematics(model, rest[0])
    same = {"representation": representation}

    def hybrid(W):
        return mbs.convert_wrench(W, poses, source=representation, target="hybrid")

    W = mbs.joint_wrenches(model, *rest, load, **same)
    assert_close(hybrid(W), expected, 1e-14)
    expected[0][2] = expected[1][1] = 0.0  # what the motors hold
    assert_close(hybrid(mbs.joint_reactions(model, *rest, load, **same)), expected, 1e-14)


def test_a_nut_on_a_spindle():
    """The motor turns the nut; the thread, a part of the bearing, lifts it and pushes it round."""
    pitch = 0.02
    M = mbs.spatial_inertia(2.0, (0, 0, 0), np.diag([0.3, 0.4, 0.5]))
    thread = [0, 0, 1, 0, 0, pitch]
    model = mbs.Model.from_screws([-1], [np.eye(4)], [thread], [M], frame="body_fixed")
    rest = [[0.7], [0.0], [0.0]]
    assert_close(mbs.inverse_dynamics(model, *rest), [2.0 * G * pitch], 1e-14)
    assert_close(mbs.joint_wrenches(model, *rest), [[0, 0, 0, 0, 0, 2 * G]], 1e-14)
    expected = [[0, 0, -2 * G * pitch, 0, 0, 2 * G]]
    assert_close(mbs.joint_reactions(model, *rest), expected, 1e-14)


@pytest.mark.long
@every_representation
@every_mechanism
def test_reactions_do_no_work_and_torques_are_the_rest(name, representation):
    mechanism, motion, loads = state(name)
    model, reference = mechanism.model, Reference(mechanism, motion[0])
    same = {"representation": representation}
    for wrenches in (None, loads):
        W = mbs.joint_wrenches(model, *motion, wrenches, **same)
        reaction = mbs.joint_reactions(model, *motion, wrenches, **same)
        tau = np.zeros(mechanism.n)
        for i, body in enumerate(model.bodies):
            D = mbs.convert_twist(
                np.eye(6), reference.C[i], source="body_fixed", target=representation
            ).T
            S = D @ mechanism.screws[i]
            assert_close(S @ reaction[i], 0.0)
            tau[body.joint.coordinate] += body.joint.ratio * (S @ W[i])
        assert_close(tau, reference.inverse_dynamics(*motion[1:], wrenches, representation))


def in_all_representations(model, motion, wrenches=None, **asked):
    """Return the body-fixed wrenches of joints, after a check that all representations agree."""
    W = mbs.joint_wrenches(model, *motion, wrenches, **asked)
    child = {body.joint.name: body.name for body in model.bodies}
    child.update({name: joint.child.name for name, joint in model.fixed_joints.items()})
    poses = mbs.forward_kinematics(model, motion[0], bodies=[child[j] for j in asked["joints"]])
    for other in mbs.REPRESENTATIONS:
        found = mbs.joint_wrenches(model, *motion, wrenches, representation=other, **asked)
        assert_close(mbs.convert_wrench(found, poses, source=other, target="body_fixed"), W)
    return W


MJCF = """<mujoco><compiler angle="radian"/><option gravity="1 -2 -9"/><worldbody>
  <body name="plate" pos="0.1 0 0.2" euler="0.3 0 0.1">
    <inertial mass="2" pos="0.1 0 0" diaginertia="0.02 0.03 0.04"/><site name="at_plate"/>
    <body name="upper" pos="0 0 0.3"><joint name="shoulder" axis="0 1 0.2"/>
      <inertial mass="3" pos="0 0.1 0.2" diaginertia="0.05 0.04 0.03"/>
      <body name="sensor" pos="0.2 0 0.4" euler="0.5 -0.4 0.2"><site name="at_sensor"/>
        <inertial mass="0.4" pos="0 0.01 0" diaginertia="1e-3 1e-3 1e-3"/>
        <body name="tool" pos="0 0.1 0.05" euler="0 0.7 0"><site name="at_tool"/>
          <inertial mass="0.7" pos="0.02 0 0.1" diaginertia="2e-3 3e-3 1e-3"/>
          <body name="finger" pos="0 0 0.2"><joint name="slide" type="slide" axis="0 1 0"/>
            <inertial mass="0.2" pos="0 0 0.02" diaginertia="1e-4 1e-4 1e-4"/></body></body></body>
      <body name="other" pos="0 0.3 0"><joint name="wrist" axis="1 0 0"/>
        <inertial mass="1" pos="0.1 0 0.1" diaginertia="1e-2 1e-2 1e-2"/></body>
    </body></body></worldbody><sensor>
  %s</sensor></mujoco>"""
WELDS = ["plate", "sensor", "tool"]


def test_sensors_of_mujoco_read_these_wrenches():
    sensors = "".join(f'<torque site="at_{x}"/><force site="at_{x}"/>' for x in WELDS)
    m = mujoco.MjModel.from_xml_string(MJCF % sensors)
    model = mbs.Model.from_mjcf(m)
    d = mujoco.MjData(m)
    q, qd, qdd = model.random_state(2)
    d.qpos[:], d.qvel[:], d.qacc[:] = q, qd, qdd
    mujoco.mj_inverse(m, d)
    mujoco.mj_rnePostConstraint(m, d)
    mujoco.mj_sensorAcc(m, d)
    W = in_all_representations(model, (q, qd, qdd), joints=WELDS)
    assert_close(W.ravel(), d.sensordata, 1e-10)


def test_a_wrench_counts_beyond_the_nearest_of_the_named_joints():
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    motion, joints = arm.random_state(1), ["flange_joint", "joint7", "tool_joint"]
    own, flange, tool = np.eye(6)[:3]
    given = {"link7": own, "flange": flange, "tool": tool}
    array = np.zeros((arm.nb + 2, 6))
    array[[6, 7, 8]] = own, flange, tool
    W = mbs.joint_wrenches(arm, *motion, given, joints=joints)
    assert_close(mbs.joint_wrenches(arm, *motion, array, joints=joints), W)
    batch = mbs.joint_wrenches(arm, *motion, np.stack([array, 0 * array]), joints=joints)
    assert_close(batch[0], W)
    free = mbs.joint_wrenches(arm, *motion, joints=joints)
    assert_close(batch[1], free)
    assert_close((W - free)[2], -tool)
