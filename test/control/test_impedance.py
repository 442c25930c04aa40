# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Impedance laws on a simulated arm: ratio, stiffness, energy, drift, switches, references."""

import numpy as np
import pytest
from guarded_bench import ARMATURE, Loop, Q
from guarded_bench import MODEL as LINKS

import mbs_dynamics as mbs
from mbs_dynamics.control import PoseTarget, laws
from mbs_dynamics.lie import se3, so3

MODEL = LINKS.with_armature(dict.fromkeys(LINKS.joint_names, ARMATURE))
TOOL, NAMES = "tool", MODEL.joint_names
IDEAL = {"model": MODEL, "noise": (0.0,) * 3, "torque_step": 0.0, "friction": 0.0, "latency": 0.0}
AT_ONCE = {
    "reference_velocity": 100.0,
    "reference_acceleration": 1e4,
    "reference_linear_velocity": 100.0,
    "reference_linear_acceleration": 1e4,
    "reference_angular_velocity": 100.0,
    "reference_angular_acceleration": 1e4,
}
"""Limits with which references jump."""


def joint(stiffness=30.0, ratio=1.0):
    return laws.JointImpedance(stiffness, ratio)


def cartesian(linear=500.0, ratio=1.0, **options):
    return laws.CartesianImpedance(TOOL, linear, 20.0, ratio, **options)


def pose_of(q):
    return mbs.forward_kinematics(MODEL, q, bodies=[TOOL])[0]


def moved(C, *offset):
    return se3.pose(C[:3, :3], C[:3, 3] + offset)


def recorded(loop, seconds, period, value):
    found = []
    for _ in range(round(seconds / period)):
        loop.run(period, period)
        found.append(value(loop))
    return np.array(found)


# -- stiffness and damping -------------------------------------------------------------------------


def mode_of(law, q):
    """The direction (k,) of a step that moves one mode of the arm on its springs, and its w."""
    inverse = mbs.inverse_mass_matrix(MODEL, q)
    J, K = np.eye(7), 200.0 * np.ones(7)
    if law is cartesian:
        J = mbs.jacobian(MODEL, q, TOOL, representation="hybrid")
        K = np.array([20.0] * 3 + [500.0] * 3)
    w2, modes = np.linalg.eig(J @ inverse @ J.T @ np.diag(K))
    order = w2.real.argsort()
    return modes[:, order[1]].real, np.sqrt(w2.real[order[1]])


@pytest.mark.parametrize("ratio", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("law", [joint, cartesian])
def test_a_step_of_1_cm_settles_with_the_damping_ratio_that_is_set(law, ratio):
    """The overshoot of a mode is exp(-pi zeta / sqrt(1 - zeta^2))."""
    made = joint(200.0, ratio) if law is joint else cartesian(500.0, ratio)
    loop = Loop(made, limits={"settle_time": 0.0, **AT_ONCE}, **IDEAL)
    loop.arm.step(0.0, loop.bus.read())
    loop.arm.enable(0.0)
    loop.run(15.0 / mode_of(law, Q)[1], 0.001)  # the arm sagged before the first command
    q, C = loop.bus.q, pose_of(loop.bus.q)
    mode, w = mode_of(law, q)
    if law is joint:
        mode *= 0.01 / abs(mode).max()
        loop.bus.place(q - mode)  # a reference that jumps is fed forward, until limits are reached
        q = q - mode
    else:
        mode *= 0.01 / np.linalg.norm(mode[3:])
        target = se3.pose(so3.exp(mode[:3]) @ C[:3, :3], C[:3, 3] + mode[3:])
        loop.arm.aim(loop.now, PoseTarget(target))
    way = recorded(
        loop,
        15.0 / w,
        0.001,
        lambda loop: loop.bus.q - q if law is joint else pose_of(loop.bus.q)[:3, 3] - C[:3, 3],
    )
    along = mode if law is joint else mode[3:]
    share = way @ along / (along @ along)
    expected = np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2)) if ratio < 1.0 else 0.0
    assert share.max() - 1.0 == pytest.approx(expected, abs=0.03)
    assert share[-1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("depth", [0.01, 0.03])
def test_the_force_against_a_wall_is_that_of_the_spring(depth):
    wall = pose_of(Q)[:3, 3] - [0.0, 0.0, 0.03]
    loop = Loop(cartesian(800.0), wall=(TOOL, se3.pose(np.eye(3), wall)), **IDEAL).enabled()
    target = moved(pose_of(loop.bus.q), 0.0, 0.0, -0.01 - depth)
    loop.arm.aim(loop.now, PoseTarget(target))
    loop.run(4.0)
    e = target[:3, 3] - pose_of(loop.bus.q)[:3, 3]
    assert loop.bus.contact > 0.9 * 800.0 * depth
    assert loop.bus.contact == pytest.approx(-800.0 * e[2], rel=0.02)
