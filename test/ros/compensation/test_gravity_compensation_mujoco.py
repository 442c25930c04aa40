# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Closed loop with MuJoCo as the arm: it floats under compensation, and falls without."""

from __future__ import annotations

import numpy as np
import pytest
from cases import mostly_slow

pytest.importorskip("mujoco")

import mujoco
from robots import all_files, robot

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from simulated.mujoco_arm import bare, compiled

STEP = 0.002
ARMS = {
    "arm7": (robot_path("arm7"), (0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1)),
    "panda": (
        robot("panda_description/urdf/panda.urdf") if all_files() else None,
        (0.2, -0.6, 0.3, -2.0, 0.1, 1.6, 0.7),
    ),
}


class Arm:
    """An arm in MuJoCo, with brakes, and its compensator."""

    def __init__(self, name):
        path, posture = ARMS[name]
        text = bare(path)
        self.model = compiled(text)
        self.model.opt.timestep = STEP
        self.data = mujoco.MjData(self.model)
        self.posture = np.array(posture)
        self.data.qpos[:] = self.posture
        names = [self.model.joint(k).name for k in range(self.model.njnt)]
        self.names = names
        self.core = GravityCompensator(
            GravityCompensationSettings(
                joints=tuple(names[::-1]),  # not the order of the simulation
                compensates_itself=False,
                ramp_time=0.5,
                damping=(0.05,) * len(names),
            )
        )
        self.core.describe(text, 0.0)
        self.core.adopt(0.0)
        self.time = 1.0

    def step(self, braked=False):
        """Report, command, and let a step of time pass; with brakes on, nothing moves."""
        answer = self.core.receive(
            self.names,
            self.data.qpos.tolist(),
            self.data.qvel.tolist(),
            stamp=int(1e9 * self.time),
            now=self.time,
        )
        if answer.command is not None:
            self.data.qfrc_applied[:] = answer.command[::-1]
        if not braked:
            mujoco.mj_step(self.model, self.data)
        self.time += STEP

    def float(self):
        """Enable, with the brakes on until the ramp and the settling are over."""
        self.step(braked=True)
        assert self.core.enable(self.time) == ""
        while self.core.state != "enabled" or self.time < 2.1:
            self.step(braked=True)

    def run(self, seconds):
        """Return the farthest that any joint came from its posture."""
        farthest = 0.0
        for _ in range(round(seconds / STEP)):
            self.step()
            farthest = max(farthest, np.abs(self.data.qpos - self.posture).max())
        return farthest


@pytest.fixture(params=mostly_slow(ARMS, ["arm7"]))
def name(request):
    if ARMS[request.param][0] is None:
        pytest.skip("the package example-robot-data is not installed")
    return request.param


@pytest.mark.long
@pytest.mark.parametrize("seconds", mostly_slow([5.0, 60.0], [5.0]))
def test_floats_where_it_is(name, seconds):
    arm = Arm(name)
    arm.float()
    assert arm.run(seconds) <= 0.01
    assert arm.core.state == "enabled"


@pytest.mark.long
def test_ramping_out_lets_it_sink_more_slowly_than_it_falls(name):
    arm, other = Arm(name), Arm(name)
    arm.float()
    arm.core.disable(arm.time)
    assert 0.0 < arm.run(0.4) < 0.5 * other.run(0.4)
    arm.run(0.5)
    assert arm.core.state == "disabled"
    assert not arm.data.qfrc_applied.any()
