# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Payload estimation by states that come in one buffer, without a running node."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.joint_input import Efforts, Reading
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.resources import robot_path

pytest.importorskip("geometry_msgs")

from mbs_dynamics.ros.dynamics.payload_estimation import TOPIC, PayloadEstimation

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
LOADED = MODEL.with_payload("tool", 2.0, (0.0, 0.0, 0.05))


class Bench:
    """The estimation, with what it publishes and the buffer in which states arrive."""

    def __init__(self):
        self.services, self.published = {}, []
        node = SimpleNamespace(
            advertise=lambda topic: SimpleNamespace(publish=self.published.append),
            answer=self.services.__setitem__,
        )
        settings = SimpleNamespace(estimate_payload=True, frame_prefix="")
        robot = SimpleNamespace(model=MODEL, tool_body="tool", settings=settings)
        self.estimation = PayloadEstimation(node, lambda: robot)
        self.estimation._message = lambda robot, load: load
        self.estimation.listen(settings, active=True)
        self.q, self.tau = np.zeros(7), np.zeros(7)
        self._reading = Reading(self.q, np.zeros(7), "", Efforts(self.tau), 0, False)

    def show(self, now, pose, error=0.1):
        self.q[:] = pose
        self.tau[:] = mbs.gravity_torques(LOADED, pose) + error
        self.estimation.note(now, self._reading)

    def take(self):
        return self.services[f"{TOPIC}/take"](None)


def test_torques_are_averaged_over_all_states_of_a_pose_although_they_share_one_buffer():
    bench, rng = Bench(), np.random.default_rng(0)
    now = 0.0
    for _ in range(4):
        pose = rng.uniform(-1.0, 1.0, 7)
        now += 10.0
        for k in range(51):  # the last state alone is far off
            bench.show(now + 0.01 * k, pose, -5.0 if k == 50 else 0.1)
        bench.take()
    assert bench.published[-1].mass == pytest.approx(2.0, abs=0.05)


def test_states_that_a_busy_machine_loses_do_not_make_a_still_arm_move():
    bench, pose = Bench(), np.full(7, 0.5)
    for now in (0.0, 0.1, 0.2, 1.5, 1.6):
        bench.show(now, pose)
    assert bench.take().startswith("1 pose(s) taken")


def test_a_pose_reached_while_states_were_lost_is_not_averaged_with_the_one_before():
    bench, pose = Bench(), np.full(7, 0.5)
    for now in (0.0, 0.3, 0.6):
        bench.show(now, pose)
    for now in (1.5, 1.7):
        bench.show(now, -pose)
    with pytest.raises(ArgumentError, match="must stand still"):
        bench.take()
    bench.show(2.0, -pose)
    assert bench.take().startswith("1 pose(s) taken")
