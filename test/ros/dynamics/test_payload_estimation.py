# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Payload estimation by states that come in one buffer, without a running node."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.joint_input import Efforts, Reading
from mbs_dynamics.resources import robot_path

pytest.importorskip("geometry_msgs")

from mbs_dynamics.ros.dynamics.payload_estimation import TOPIC, PayloadEstimation


def test_torques_are_averaged_over_all_states_of_a_pose_although_they_share_one_buffer():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    loaded = model.with_payload("tool", 2.0, (0.0, 0.0, 0.05))
    services, published = {}, []
    node = SimpleNamespace(
        advertise=lambda topic: SimpleNamespace(publish=published.append),
        answer=services.__setitem__,
    )
    settings = SimpleNamespace(estimate_payload=True, frame_prefix="")
    robot = SimpleNamespace(model=model, tool_body="tool", settings=settings)
    estimation = PayloadEstimation(node, lambda: robot)
    estimation._message = lambda robot, load: load
    estimation.listen(settings, active=True)
    q, tau, rng = np.zeros(7), np.zeros(7), np.random.default_rng(0)
    reading = Reading(q, np.zeros(7), "", Efforts(tau), 0, False)
    now = 0.0
    for _ in range(4):
        pose = rng.uniform(-1.0, 1.0, 7)
        now += 10.0
        for k in range(51):  # the last state alone is far off
            q[:] = pose
            tau[:] = mbs.gravity_torques(loaded, pose) + (-5.0 if k == 50 else 0.1)
            estimation.note(now + 0.01 * k, reading)
        services[f"{TOPIC}/take"](None)
    assert published[-1].mass == pytest.approx(2.0, abs=0.05)
