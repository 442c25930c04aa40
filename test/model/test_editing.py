# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tools mounted, joints locked, compared with Pinocchio and by identities."""

import numpy as np
import pinocchio as pin
from reference import assert_close
from urdf_reference import joint, link, urdf

import mbs_dynamics as mbs
from mbs_dynamics.lie import se3
from mbs_dynamics.resources import robot_path

ARM7 = robot_path("arm7")
ARM = mbs.Model.from_urdf(ARM7)
THEIRS = pin.buildModelFromUrdf(str(ARM7))
SLIDES = '<limit lower="0" upper="0.04" effort="20" velocity="0.1"/>'
FINGER = '<origin xyz="0 0 0.06" rpy="0.1 0 0"/><axis xyz="0 1 0"/><dynamics damping="2"/>'
OTHER = '<origin xyz="0 0 0.06"/><axis xyz="0 -1 0"/><mimic joint="finger"/>'
GRIPPER = urdf(
    *map(link, ("palm", "left", "right")),
    link("tip", ""),
    joint("finger", "palm", "left", "prismatic", FINGER + SLIDES),
    joint("other", "palm", "right", "prismatic", OTHER + SLIDES),
    joint("end", "left", "tip", "fixed", '<origin xyz="0 0 0.05"/>'),
)
HAND = mbs.Model.from_urdf(GRIPPER).with_armature({"finger": 0.3}).with_payload("tip", 0.05)
AT = se3.pose(pin.rpy.rpyToMatrix(0.2, -0.1, 0.4), np.array([0.0, 0.02, 0.05]))
BOTH = ARM.attached(HAND, "tool", AT, prefix="hand/")


def test_a_mounted_tool_moves_and_weighs_as_in_one_description():
    gripper = GRIPPER
    for name in ("palm", "left", "right", "tip", "finger", "other", "end"):
        gripper = gripper.replace(f'"{name}"', f'"hand/{name}"')
    mount = (
        '<joint name="mount" type="fixed"><parent link="tool"/><child link="hand/palm"/>'
        '<origin xyz="0 0.02 0.05" rpy="0.2 -0.1 0.4"/></joint></robot>'
    )
    inner = gripper.partition(">")[2].replace("</robot>", mount)
    text = ARM7.read_text("utf-8").replace("</robot>", inner)
    q, qd, qdd = BOTH.random_state(3)
    theirs = pin.buildModelFromXML(text, mimic=True)
    bare = ARM.attached(mbs.Model.from_urdf(GRIPPER), "tool", AT, prefix="hand/")
    tau = pin.rnea(theirs, theirs.createData(), q, qd, qdd)
    assert_close(mbs.inverse_dynamics(bare, q, qd, qdd), tau, 1e-12)
    whole = mbs.Model.from_urdf(text).with_armature({"hand/finger": 0.3})
    whole = whole.with_payload("hand/tip", 0.05)
    tau = mbs.inverse_dynamics(whole, q, qd, qdd)
    assert_close(mbs.inverse_dynamics(BOTH, q, qd, qdd), tau, 1e-12)
    for name in ("lower", "upper", "velocity_limits", "effort_limits", "damping", "joint_names"):
        np.testing.assert_array_equal(getattr(BOTH, name), getattr(whole, name))
    assert set(BOTH.frames) == set(whole.frames)
    poses = [mbs.forward_kinematics(x, q, bodies=[*whole.frames]) for x in (BOTH, whole)]
    assert_close(*poses, 1e-14)


def test_locked_joints_keep_torques_and_frames():
    loaded = BOTH.with_payload("link4", 1.5, (0.1, 0.0, 0.0))
    fixed = loaded.locked({"joint3": 0.7, "hand/finger": 0.01})
    q, qd, qdd = fixed.random_state(4)
    whole, zero = loaded.vector({"joint3": 0.7, "hand/finger": 0.01}), loaded.vector({})
    rows = [loaded.joint_names.index(name) for name in fixed.joint_names]
    every = [whole, zero, zero.copy()]
    for x, given in zip(every, (q, qd, qdd), strict=True):
        x[rows] = given
    tau = mbs.inverse_dynamics(loaded, *every)
    np.testing.assert_allclose(mbs.inverse_dynamics(fixed, q, qd, qdd), tau[rows], atol=1e-12)
    links = ["tool", "link3", "hand/tip", "hand/right", "base_link"]
    poses = mbs.forward_kinematics(loaded, every[0], bodies=links)
    assert_close(mbs.forward_kinematics(fixed, q, bodies=links), poses, 1e-14)
    theirs = pin.buildReducedModel(THEIRS, [THEIRS.getJointId("joint3")], np.full(7, 0.7))
    M = pin.crba(theirs, theirs.createData(), q)
    assert_close(mbs.mass_matrix(ARM.locked({"joint3": 0.7}), q), M, 1e-12)


def test_the_joints_that_remain_are_named():
    q = ARM.random_state(5).q
    found = ARM.locked(q, but=["joint2", "joint4"])
    assert found.joint_names == ("joint2", "joint4")
    g = mbs.gravity_torques(ARM, q)[[1, 3]]
    assert_close(mbs.gravity_torques(found, q[[1, 3]]), g, 1e-12)
    mixed = ARM.locked({"joint1": q[0]}, but=["joint2", "joint4"])
    some = np.where(np.arange(7) == 0, q, ARM.neutral(within_limits=True))
    same = ARM.locked(some, but=["joint2", "joint4"])
    np.testing.assert_allclose(mbs.mass_matrix(mixed, q[:2]), mbs.mass_matrix(same, q[:2]))
    assert BOTH.locked(but=["hand/other"]).joint_names == ("hand/finger",)
    base = mbs.Model.from_urdf(ARM7, floating_base=True)
    held = base.locked(but=ARM.joint_names)
    np.testing.assert_allclose(mbs.mass_matrix(held, q), mbs.mass_matrix(ARM, q), atol=1e-12)


def test_a_tool_that_was_mounted_keeps_its_own_fixed_joints():
    assert list(BOTH.fixed_joints) == ["flange_joint", "tool_joint", "hand/end"]
    assert BOTH.fixed_joints["tool_joint"].links == {"tool", "hand/palm"}
    moved = BOTH.with_placements({"tool": AT}).fixed_joints["tool_joint"].child
    np.testing.assert_array_equal(
        moved.placement, BOTH.with_placements({"tool": AT}).placement("tool")
    )
    assert BOTH.with_frame("tcp", "tool", AT).fixed_joints["flange_joint"].links >= {"tcp"}
