# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrenches in fixed joints, compared with Pinocchio and with sensors of MuJoCo.

Of joints that were locked: test_editing.py.
"""

from __future__ import annotations

import mujoco
import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path


def same(found, expected, tolerance=1e-11):
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * (1.0 + np.abs(expected).max())
    )


def in_all_representations(model, motion, wrenches=None, **asked):
    """Return the body-fixed wrenches of joints, after a check that all representations agree."""
    W = mbs.joint_wrenches(model, *motion, wrenches, **asked)
    child = {body.joint.name: body.name for body in model.bodies}
    child.update({name: joint.child.name for name, joint in model.fixed_joints.items()})
    poses = mbs.forward_kinematics(model, motion[0], bodies=[child[j] for j in asked["joints"]])
    for other in mbs.REPRESENTATIONS:
        found = mbs.joint_wrenches(model, *motion, wrenches, representation=other, **asked)
        same(mbs.convert_wrench(found, poses, source=other, target="body_fixed"), W)
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
    same(W.ravel(), d.sensordata, 1e-10)


def test_a_wrench_counts_beyond_the_nearest_of_the_named_joints():
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    motion, joints = arm.random_state(1), ["flange_joint", "joint7", "tool_joint"]
    own, flange, tool = np.eye(6)[:3]
    given = {"link7": own, "flange": flange, "tool": tool}
    array = np.zeros((arm.nb + 2, 6))
    array[[6, 7, 8]] = own, flange, tool
    W = mbs.joint_wrenches(arm, *motion, given, joints=joints)
    same(mbs.joint_wrenches(arm, *motion, array, joints=joints), W)
    batch = mbs.joint_wrenches(arm, *motion, np.stack([array, 0 * array]), joints=joints)
    same(batch[0], W)
    free = mbs.joint_wrenches(arm, *motion, joints=joints)
    same(batch[1], free)
    same((W - free)[2], -tool)
