# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Closed loop with MuJoCo as the arm: it floats, it falls, or its torques prove to be wrong."""

import math

import numpy as np
import pytest
from cases import mostly_slow
from gravity_bench import Bench
from robots import all_files, robot

pytest.importorskip("mujoco")

from mbs_dynamics.control.guard import UNVERIFIED
from mbs_dynamics.resources import robot_path
from simulated.mujoco_arm import POSTURES, MujocoArm, bare

PERIOD = 0.004
ARMS = {
    "arm7": robot_path("arm7"),
    "Panda": robot("panda_description/urdf/panda.urdf") if all_files() else None,
}
EFFORTS = ("none", "NaN", "zeros", "commanded")


class Moving(Bench):
    """A bench whose robot moves by the commands, in another order of joints.

    ``carried`` is the share of its weight that it carries itself, ``efforts`` what it reports.
    """

    def __init__(
        self, name="arm7", *, carried=0.0, efforts="none", friction=0.3, armature=0.1, **values
    ):
        if ARMS[name] is None:
            pytest.skip("the package example-robot-data is not installed")
        text = bare(ARMS[name])
        self.arm = MujocoArm(text, damping=friction)
        self.arm.model.dof_armature[:] = armature
        self.arm.place(POSTURES[name])
        self.start = self.arm.q.copy()
        given = {"joints": tuple(self.arm.names[::-1]), "ramp_in_time": 0.03, "ramp_time": 2.0}
        super().__init__(text, **(given | values))
        self.carried, self.efforts = carried, efforts
        self.tau, self.moved, self.said = np.zeros(self.arm.n), 0.0, []

    def go(self, seconds, braked=False):
        """Let time pass, and store the farthest that any joint came from its posture."""
        n = self.arm.n
        reported = {"none": (), "NaN": [math.nan] * n, "zeros": [0.0] * n}
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            efforts = reported.get(self.efforts, self.tau.tolist())
            self.send(self.arm.q, self.arm.qd, self.arm.names, efforts=efforts)
            if self.core.arm.stopping:
                self.tick()
            self.said += self.core.arm.new_remarks()
            if self.commands:
                self.tau = np.array(self.commands[-1][1][::-1])
            self.arm.command = self.tau + self.carried * self.arm.statics.gravity(self.arm.q)
            if not braked:
                self.arm.advance(PERIOD)
            self.moved = max(self.moved, abs(self.arm.q - self.start).max())
        return self

    def enable(self):
        assert self.core.enable(self.now) == ""
        return self


def floating(name):
    """Return an arm without friction that floats, once ramp and settling are over with brakes."""
    bench = Moving(name, friction=0.0, armature=0.0, ramp_time=0.5, damping=(0.05,) * 7)
    return bench.go(PERIOD, braked=True).enable().go(1.2, braked=True)


@pytest.mark.long
@pytest.mark.parametrize("seconds", mostly_slow([5.0, 60.0], [5.0]))
@pytest.mark.parametrize("name", mostly_slow(ARMS, ["arm7"]))
def test_floats_where_it_is(name, seconds):
    bench = floating(name).go(seconds)
    assert bench.moved <= 0.01
    assert bench.state == "enabled"


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_slow(ARMS, ["arm7"]))
def test_ramping_out_lets_it_sink_more_slowly_than_it_falls(name):
    bench, falling = floating(name), Moving(name, friction=0.0, armature=0.0)
    bench.core.disable(bench.now)
    assert 0.0 < bench.go(0.4).moved < 0.5 * falling.go(0.4).moved
    bench.go(0.5)
    assert bench.state == "disabled"
    assert not bench.tau.any()


# -- torques that nothing has shown to be right ----------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        *({"efforts": efforts} for efforts in EFFORTS),
        {"on_fault": "hold"},
        {"ramp_in_time": 1.0},
        {"friction": 0.05},
    ],
)
def test_an_arm_that_carries_its_own_weight_is_stopped_before_it_moves_far(values):
    bench = Moving(carried=1.0, **values).go(0.1).enable().go(1.5)
    assert bench.fault == "support"
    assert bench.moved < 0.05
    assert abs(bench.arm.qd).max() < 0.05
    assert UNVERIFIED in bench.said
    bench.go(1.0)  # damping may act for the ramp time
    assert bench.core.at_rest


@pytest.mark.parametrize(
    ("efforts", "braked"),
    [("none", True), ("none", False), ("NaN", False), ("zeros", True), ("commanded", False)],
)
def test_an_arm_of_right_signs_is_enabled_in_a_second(efforts, braked):
    """Whether something supports it meanwhile, or brakes open at the first command."""
    bench = Moving(efforts=efforts).go(0.1, braked=True).enable().go(1.1, braked=braked)
    assert bench.state == "enabled"
    bench.go(2.0)
    assert bench.fault is None
    assert bench.moved < 0.06


def test_efforts_that_agree_with_gravity_let_torques_come_in_at_once():
    bench = Moving(efforts="commanded")
    bench.tau = bench.arm.statics.gravity(bench.arm.q)
    bench.go(0.1, braked=True).enable().go(0.05)
    assert bench.state == "enabled"
    assert bench.moved < 0.02
    assert not any(bench.said)
