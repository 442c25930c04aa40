# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulations of real arms against MuJoCo.

The same schemes with the same steps: what differs is rounding, which the motion lets grow.
"""

import mujoco
import numpy as np
import pytest
from cases import mostly_slow
from mujoco_reference import INTEGRATORS, mujoco_model
from robots import robot
from urdf_reference import load

from mbs_dynamics.integrate import JointForces, simulate

ARMS = ("ur5_robot.urdf", "kinova.urdf", "xarm7.urdf")
every_arm = pytest.mark.parametrize("name", mostly_slow(ARMS, ARMS[:1]))
STEPS = 300


def start_and_torques(n):
    rng = np.random.default_rng(n)
    return rng.uniform(-0.5, 0.5, n), rng.uniform(-0.5, 0.5, n), rng.uniform(-2.0, 2.0, (STEPS, n))


def positions_of(theirs, q, qd, torques):
    """Return the positions through which MuJoCo goes under these torques."""
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = q, qd
    positions = [q]
    for tau in torques:
        data.qfrc_applied[:] = tau
        mujoco.mj_step(theirs, data)
        positions.append(data.qpos.copy())
    return positions


@every_arm
@pytest.mark.parametrize("method", INTEGRATORS)
def test_trajectories_are_those_of_mujoco(name, method):
    ours, theirs = load(robot(name)), mujoco_model(robot(name), method)
    names = [theirs.joint(k).name for k in range(theirs.njnt)]
    assert names == list(ours.joint_names)
    q, qd, torques = start_and_torques(ours.n)
    motion = simulate(ours, q, qd, duration=STEPS * 1e-3, control=torques, method=method)
    assert np.abs(motion.q - q).max() > 0.1
    assert np.abs(motion.q - positions_of(theirs, q, qd, torques)).max() < 1e-9


def test_damping_is_that_of_mujoco():
    """Euler's semi-implicit scheme takes the damping of the joints implicitly, as MuJoCo does."""
    name = ARMS[0]
    ours, theirs = load(robot(name)), mujoco_model(robot(name), "semi_implicit_euler")
    theirs.dof_damping[:] = 5.0
    q, qd, torques = start_and_torques(ours.n)
    forces = JointForces.of(ours, damping=5.0, friction=0.0)
    given = {"duration": STEPS * 1e-3, "method": "semi_implicit_euler", "forces": forces}
    motion = simulate(ours, q, qd, control=torques, **given)
    assert np.abs(motion.q - positions_of(theirs, q, qd, torques)).max() < 1e-9
