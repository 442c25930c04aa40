# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The demonstration: its independent check, its motion, and the whole of it over DDS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import demo_check
from mbs_dynamics.ros.demo_source import Motion

ARM7 = mbs.Model.from_urdf(robot_path("arm7"))
PANDA = mbs.Model.from_urdf(robot("panda_description/urdf/panda.urdf"))


@pytest.mark.parametrize("model", [ARM7, PANDA], ids=["arm7", "panda"])
def test_the_independent_check_agrees_with_the_kernels(model):
    for seed in range(3):
        q, qd, _ = model.random_state(seed)
        tau = mbs.gravity_torques(model, q)
        assert demo_check.error(tau, demo_check.gravity_torques(model, q)) < demo_check.TOLERANCE
        for body in (*model.leaves, list(model.frames)[-1]):
            V = mbs.twists(model, q, qd, bodies=(body,), representation="hybrid")[0]
            expected = demo_check.hybrid_twist(model, q, qd, body)
            assert demo_check.error(V, expected) < demo_check.TOLERANCE


@pytest.mark.parametrize("joint", range(7))
def test_the_independent_check_sees_what_is_wrong(joint):
    q, qd, _ = ARM7.random_state(1)
    tau, V = mbs.gravity_torques(ARM7, q), mbs.twists(ARM7, q, qd, bodies=("link7",))[0]
    tau[joint] *= 1.001
    tau[joint] += 1e-3
    assert demo_check.error(tau, demo_check.gravity_torques(ARM7, q)) > demo_check.TOLERANCE
    # body-fixed in place of hybrid
    expected = demo_check.hybrid_twist(ARM7, q, qd, "link7")
    assert demo_check.error(V, expected) > demo_check.TOLERANCE


@pytest.mark.parametrize("model", [ARM7, PANDA], ids=["arm7", "panda"])
def test_the_motion_keeps_within_the_limits_and_its_velocity_is_its_rate(model):
    motion = Motion(model)
    for t in np.linspace(0.0, 20.0, 201):
        q, qd = motion.at(t)
        for joint, position, velocity in zip(model.joints, q, qd, strict=True):
            assert joint.limits.lower <= position <= joint.limits.upper
            assert abs(velocity) <= joint.limits.velocity
        rate = (motion.at(t + 1e-6)[0] - motion.at(t - 1e-6)[0]) / 2e-6
        np.testing.assert_allclose(qd, rate, atol=1e-8)
    assert np.all(motion.amplitude > 0.0)


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "mbs_dynamics.cli", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )


@pytest.mark.parametrize("arguments", [(), ("--robot", str(robot("ur5_robot.urdf")))])
def test_the_demonstration(arguments):
    done = run("--seconds", "2.5", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK: " in done.stdout
    assert " 0 wrong" in done.stdout
    assert "gravity" in done.stdout
    assert "twist of" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_demonstration_refuses_what_is_no_robot_that_moves(tmp_path):
    stone = tmp_path / "stone.urdf"
    stone.write_text("<robot name='stone'><link name='stone'/></robot>", encoding="utf-8")
    for path, said in (("/no/such/robot.urdf", "/no/such/robot.urdf"), (stone, "no joint")):
        done = run("--robot", str(path))
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
