# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The launch files: what all of them share, and that of the dynamics node."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("ros2launch")
pytest.importorskip("xacro")

from launch_bench import (
    declared_arguments,
    launch_command,
    left_running,
    make_installation,
)
from ros_bench import NodeProcess, Probe, twist_of
from std_srvs.srv import SetBool
from waiting import TIMEOUT

pytestmark = pytest.mark.usefixtures("ros")

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "launch.md").read_text(encoding="utf-8")
FILES = sorted(path.name.partition(".")[0] for path in (CHECKOUT / "launch").glob("*.py"))

PENDULUM = """<robot name="pendulum" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="mass" default="1"/>
  <link name="ceiling"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="$(arg mass)"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous">
    <parent link="ceiling"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


class Launched(NodeProcess):
    """The dynamics node, started by launch."""

    def command(self, *arguments):
        return launch_command("dynamics", self.namespace, *arguments)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    make_installation(tmp_path, monkeypatch)


def test_launch_with_a_xacro_file(installed, tmp_path):
    robot = tmp_path / "pendulum.urdf.xacro"
    robot.write_text(PENDULUM, encoding="utf-8")
    arguments = [f"urdf:={robot}", "xacro_args:=mass:=2", "representation:=body_fixed"]
    arguments.append("algorithm:=spatial")
    with Launched(*arguments) as process, Probe(process) as probe:
        probe.hear("gravity_torques", "twist/rod")
        tau, twist = probe.answer(["gravity_torques", "twist/rod"], ["hinge"], [np.pi / 6.0], [1.0])
        np.testing.assert_allclose(tau.effort, [2.0 * 9.81 * 0.5 * 0.5], rtol=1e-12)
        np.testing.assert_allclose(twist_of(twist), [0, 0, 0, 0, 1, 0], atol=1e-12)
        assert twist.header.frame_id == "rod"
        probe.until(lambda: probe.model_value("algorithm") == "spatial")
        assert process.stop(signal.SIGINT) == 0


def refusal(name, *arguments):
    """Return the only line of errors of a launch that must fail at once."""
    command = launch_command(name, "/refused", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "Traceback" not in output
    (line,) = (line for line in output.splitlines() if "Caught exception" in line)
    assert not left_running(os.environ["AMENT_PREFIX_PATH"].partition(os.pathsep)[0])
    return line


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("dynamics", "urdf:=~/no.urdf", "urdf: there is no file '/[^~]*/no.urdf'"),
        ("dynamics", "params:=max_rate", "params is 'max_rate'; must be \"{name: value, ...}\""),
        ("simulation", "initial_positions:=[a]", r"initial_positions is '\[a\]'; must be a list"),
        ("dynamics", "robot_state_publisher:=true", "there is no urdf to use it on"),
        ("command_watchdog", "brakes:=maybe", "Cannot convert value 'maybe'"),
        ("command_watchdog", "command_timeout:=soon", "could not convert string to float: 'soon'"),
        ("simulation", "rviz:=2", "rviz must be true or false, got '2'"),
        ("simulation", "use_sim_time:=soon", "use_sim_time must be true or false, got 'soon'"),
    ],
)
def test_a_bad_argument_ends_the_launch_with_one_line(installed, name, argument, message):
    assert re.search(message, refusal(name, argument))


def test_the_end_of_the_simulated_arm_ends_the_others(installed):
    command = launch_command("simulation", f"/failing_{os.getpid()}", "params:={rate: -1.0}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    output = done.stdout + done.stderr
    assert re.search(r"simulator_node-\d\]: process has died .*exit code 1", output)
    for node in ("gravity_compensation_node", "dynamics_node"):
        assert re.search(rf"{node}-\d\]: process has finished cleanly", output)


def test_a_node_that_commands_nothing_does_not_end_one_that_commands(installed):
    class Simulation(Launched):
        executable = "gravity_compensation_node"

        def command(self, *arguments):
            return launch_command("simulation", self.namespace, *arguments)

    with Simulation("dynamics_params:={max_rate: -1.0}") as process, Probe(process) as probe:
        ready = "gravity_compensation_node]: ready, and disabled"
        probe.until(lambda: ready in process.log and "process has died" in process.log)
        request = SetBool.Request(data=True)
        probe.until(lambda: probe.call(SetBool, "enable", request).success)
        assert process.stop(signal.SIGINT) == 0


@pytest.mark.parametrize("name", FILES)
def test_every_argument_is_described_and_in_the_documentation(name):
    declared = declared_arguments(name)
    assert all(len(one.description) > 20 for one in declared)
    if name != "command_watchdog":
        assert not [one.name for one in declared if f"`{one.name}`" not in PAGE]
