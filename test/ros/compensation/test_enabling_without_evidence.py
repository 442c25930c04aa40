# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulated arm does when its node enables torques that nothing has shown to be right."""

import math

import numpy as np
import pytest
from gravity_bench import MODEL, Bench, Q

import mbs_dynamics as mbs
from mbs_dynamics.control.guard import UNVERIFIED

STEP = 0.002
EFFORTS = ("none", "NaN", "zeros", "commanded")


class Moving(Bench):
    """A bench whose robot moves by the commands; ``carried`` is the share of its own weight."""

    def __init__(self, *, carried=0.0, efforts="none", friction=0.3, **values):
        defaults = {"ramp_in_time": 0.03, "ramp_time": 2.0}
        super().__init__(**(defaults | values))
        self.carried, self.efforts, self.friction = carried, efforts, friction
        self.q, self.qd, self.tau = Q.copy(), np.zeros(7), np.zeros(7)
        self.moved, self.said, self.warned = 0.0, [], []

    def go(self, seconds, braked=False):
        reported = {"none": (), "NaN": [math.nan] * 7, "zeros": [0.0] * 7}
        for _ in range(round(seconds / (2 * STEP))):
            self.now += 2 * STEP
            efforts = reported.get(self.efforts, self.tau.tolist())
            self.send(self.q, self.qd, efforts=efforts)
            if self.core.stopping:
                self.tick()
            self.said += self.core.arm.events.remarks()
            self.warned += self.core.warnings(self.now)
            if self.commands:
                self.tau = self.torques[-1]
            for _ in range(0 if braked else 2):
                g = mbs.gravity_torques(MODEL, self.q)
                net = self.tau + self.carried * g - self.friction * self.qd
                net = net - mbs.bias_torques(MODEL, self.q, self.qd)
                A = mbs.mass_matrix(MODEL, self.q) + 0.1 * np.eye(7)
                self.qd = self.qd + STEP * np.linalg.solve(A, net)
                self.q = self.q + STEP * self.qd
            self.moved = max(self.moved, abs(self.q - Q).max())
        return self


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
    bench = Moving(carried=1.0, **values).go(0.1)
    assert bench.core.enable(bench.now) == ""
    bench.go(1.5)
    assert bench.fault == "support"
    assert bench.moved < 0.05
    assert abs(bench.qd).max() < 0.05
    assert UNVERIFIED in bench.said
    bench.go(1.0)  # damping may act for the ramp time
    assert bench.core.at_rest


@pytest.mark.parametrize(
    ("efforts", "braked"),
    [("none", True), ("none", False), ("NaN", False), ("zeros", True), ("commanded", False)],
)
def test_an_arm_of_right_signs_is_enabled_in_a_second(efforts, braked):
    """Whether something supports it meanwhile, or brakes open at the first command."""
    bench = Moving(efforts=efforts).go(0.1, braked=True)
    assert bench.core.enable(bench.now) == ""
    bench.go(1.1, braked=braked)
    assert bench.state == "enabled"
    bench.go(2.0)
    assert bench.fault is None
    assert bench.moved < 0.06


def test_efforts_that_agree_with_gravity_let_torques_come_in_at_once():
    bench = Moving(efforts="commanded")
    bench.tau = mbs.gravity_torques(MODEL, Q)
    bench.go(0.1, braked=True)
    assert bench.core.enable(bench.now) == ""
    bench.go(0.05)
    assert bench.state == "enabled"
    assert bench.moved < 0.02
    assert not any(bench.said)
