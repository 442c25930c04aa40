# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Enabling an arm of which nothing has shown that its torques are right, by its motion."""

import math

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics import control
from mbs_dynamics.control.evidence import UNVERIFIED
from mbs_dynamics.resources import robot_path

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
START = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])
PERIOD, STEPS = 0.004, 2


class Arm:
    """An arm of simulated drives, whose position loops are ``kp`` times their effort limits.

    The drives carry a share ``carried`` of gravity themselves, and report efforts beyond it times
    ``reported``, or none. ``signs`` are those of the efforts that they exert. Until ``released`` is
    true something supports the arm from below: it can rise, but not sink.
    """

    def __init__(self, *, carried=0.0, kp=5.0, reported=1.0, signs=1.0, braked=False):
        self.carried, self.reported, self.braked = carried, reported, braked
        self.signs = np.broadcast_to(signs, 7)
        limits = MODEL.effort_limits
        rows = {
            name: {
                "motor": k,
                "sign": 1,
                "position_per_radian": 1.0,
                "command_per_newton_metre": 1.0,
                "feedback_per_newton_metre": 1.0,
                "kp": kp * limits[k],
                "kd": 0.1 * kp * limits[k],
            }
            for k, name in enumerate(MODEL.joint_names)
        }
        motors = control.Motors({"when_silent": "damp", "motors": rows}, MODEL)
        law = control.laws.Gravity(damping=1.0)
        tracking = {"tracking_tolerance": 0.0} if reported == 0.0 else {}
        self.arm = control.GuardedArm(MODEL, law, motors, **tracking)
        self.q, self.qd, self.tau, self.t = START.copy(), np.zeros(7), np.zeros(7), 0.0
        self.command = np.array([self.q, np.zeros(7), np.zeros(7), np.zeros(7), np.zeros(7)])
        self.moved, self.events = 0.0, []

    def run(self, seconds):
        for _ in range(round(seconds / PERIOD)):
            tau = self.reported * self.tau
            frames = [control.Frame(k, self.t, self.q[k], self.qd[k], tau[k]) for k in range(7)]
            answer = self.arm.step(self.t, frames)
            for m in answer.motors:
                self.command[:, m.motor] = m[1:]
            if answer.event:
                self.events.append(answer.event)
            p, v, kp, kd, effort = self.command
            h = PERIOD / STEPS
            for _ in range(STEPS):
                self.tau = self.signs * effort + kp * (p - self.q) - kd * (self.qd - v)
                g = mbs.gravity_torques(MODEL, self.q)
                A = mbs.mass_matrix(MODEL, self.q) + np.diag(0.1 + h * kd + h * h * kp)
                net = self.tau + self.carried * g - 0.3 * self.qd - h * kp * self.qd
                net = net - mbs.bias_torques(MODEL, self.q, self.qd)
                if self.braked:
                    continue
                self.qd = self.qd + h * np.linalg.solve(A, net)
                self.q = self.q + h * self.qd
            self.t += PERIOD
            self.moved = max(self.moved, abs(self.q - START).max())
        return self


NOT_MEASURED = {"measured": 1.0, "NaN": math.nan, "zeros": 0.0}


@pytest.mark.parametrize("first", ["hold", "enable"])
@pytest.mark.parametrize(("kp", "carried"), [(2.0, 1.0), (5.0, 0.8), (40.0, 1.0)])
@pytest.mark.parametrize("efforts", NOT_MEASURED)
def test_an_arm_that_carries_its_own_weight_is_not_enabled_and_stays(first, kp, carried, efforts):
    bench = Arm(carried=carried, kp=kp, reported=NOT_MEASURED[efforts], braked=True)
    bench.run(0.1)
    bench.braked = carried < 1.0
    if first == "hold":
        assert bench.arm.hold(bench.t) == []
        bench.run(0.004)
        bench.braked = False
        bench.run(1.0)
    refused = bench.arm.enable(bench.t)
    bench.run(0.004)
    bench.braked = False
    bench.run(2.0)
    assert bench.moved < 0.05
    assert refused or bench.arm.fault.kind == "support"
    assert bench.arm.state in ("fault", "disabled")


@pytest.mark.parametrize("first", ["hold", "enable"])
@pytest.mark.parametrize(("kp", "supported"), [(2.0, False), (5.0, True), (40.0, False)])
@pytest.mark.parametrize("efforts", NOT_MEASURED)
def test_an_arm_of_right_signs_is_enabled_whatever_it_measures(first, kp, efforts, supported):
    bench = Arm(kp=kp, reported=NOT_MEASURED[efforts], braked=True).run(0.1)
    if first == "hold":
        assert bench.arm.hold(bench.t) == []
        bench.run(0.004)
        bench.braked = supported
        bench.run(1.0)
        assert UNVERIFIED not in "".join(bench.events)  # that is said once torques are asked for
    assert bench.arm.enable(bench.t) == []
    bench.run(0.004)
    bench.braked = supported
    bench.run(1.5)
    bench.braked = False
    bench.run(0.5)
    assert bench.arm.fault is None
    assert bench.arm.state == "enabled"
    assert bench.arm.state_record.hold == 0.0
    assert first == "hold" or any(UNVERIFIED in event for event in bench.events)
    assert abs(bench.qd).max() < 0.1


@pytest.mark.parametrize("efforts", NOT_MEASURED)
@pytest.mark.parametrize("joints", [range(7), [1], [3]])
def test_torques_of_the_wrong_sign_are_found_before_the_drives_let_go(efforts, joints):
    signs = np.where(np.isin(np.arange(7), list(joints)), -1.0, 1.0)
    bench = Arm(signs=signs, reported=NOT_MEASURED[efforts], braked=True).run(0.1)
    assert bench.arm.enable(bench.t) == []
    bench.run(0.004)
    bench.braked = False
    bench.run(2.0)
    assert bench.arm.state == "fault"
    assert bench.moved < 0.15


def test_evidence_against_torques_is_cleared_without_a_fault():
    bench = Arm(carried=1.0, kp=5.0, braked=True).run(0.1)
    assert bench.arm.hold(bench.t) == []
    bench.run(0.004)
    bench.braked = False
    bench.run(2.0)
    assert bench.arm.fault is None
    assert any("rises" in one or "other efforts" in one for one in bench.arm.problems(bench.t))
    bench.arm.clear(bench.t)
    assert not any("rises" in one or "other efforts" in one for one in bench.arm.problems(bench.t))
