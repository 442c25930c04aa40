# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The demonstration: its plan, its acts, and the whole of it over DDS."""

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from robots import robot
from waiting import TIMEOUT

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import domain
from mbs_dynamics.ros.demo import PUSH, plan
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import initial_state

MODELS = {
    "arm7": robot_path("arm7"),
    "panda": robot("panda_description/urdf/panda.urdf"),
    "ur5": robot("ur_description/urdf/ur5_robot.urdf"),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_plan_asks_nothing_impossible(name):
    model = mbs.Model.from_urdf(MODELS[name])
    (push, load), (tip, *_) = plan(model), tools(model)
    q, _ = initial_state(model, SimulatorSettings(robot_description="<robot/>"))
    loaded = model.with_payload(tip, mass=load, com=(0.0, 0.0, 0.0))
    assert load > 0.0
    assert np.all(np.abs(mbs.gravity_torques(loaded, q)) < model.effort_limits)
    tau = mbs.jacobian(model, q, tip).T @ push
    assert np.abs(tau / model.effort_limits).max() == pytest.approx(PUSH)


def run(*arguments):
    command = [sys.executable, "-m", "mbs_dynamics.cli", "demo", *arguments]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, timeout=TIMEOUT, cwd=Path(__file__).parents[2], **output)


@pytest.mark.serial  # a robot at 500 Hz, in real time
def test_the_demonstration():
    done = run()
    assert done.returncode == 0, done.stdout
    assert "OK: 12 claims, 0 of them wrong" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.process
def test_the_demonstration_refuses_what_is_no_robot_that_moves(tmp_path):
    stone = tmp_path / "stone.urdf"
    stone.write_text("<robot name='stone'><link name='stone'/></robot>", encoding="utf-8")
    done = run("--robot", str(stone))
    assert done.returncode == 1
    assert "no joint" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_domain_with_a_participant_is_not_chosen(monkeypatch):
    quiet = domain.unused_domain()
    assert domain._is_unused(quiet)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        somebody.bind(("", 7400 + 250 * quiet + 10))  # of the first participant
        assert not domain._is_unused(quiet)
        other = domain.unused_domain()
        monkeypatch.setattr(domain, "DOMAINS", range(min(quiet, other), max(quiet, other) + 1))
        assert all(domain.unused_domain() != quiet for _ in range(20))
        monkeypatch.setattr(domain, "DOMAINS", range(quiet, quiet + 1))
        assert domain.unused_domain() == quiet  # there is no other
    assert domain._is_unused(quiet)
