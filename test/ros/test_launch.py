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
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import TIMEOUT

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

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


def test_trajectories_reach_the_controller_with_efforts(installed):
    class FeedForward(Launched):
        def command(self, *arguments):
            return launch_command("feed_forward", self.namespace, *arguments)

    model = mbs.Model.from_urdf(robot_path("arm7"))
    q = np.linspace(-1.0, 1.0, model.n)
    point = JointTrajectoryPoint(positions=q.tolist(), accelerations=[0.1] * 7)
    point.velocities = [0.2] * 7
    planned = JointTrajectory(joint_names=model.joint_names, points=[point])
    arguments = [f"urdf:={robot_path('arm7')}", "controller:=arm_controller"]
    with FeedForward(*arguments) as process, Probe(process) as probe:
        heard, space = [], process.namespace
        probe.node.create_subscription(
            JointTrajectory, f"{space}/arm_controller/joint_trajectory", heard.append, 1
        )
        sent = probe.node.create_publisher(JointTrajectory, f"{space}/planned_trajectory", 1)
        probe.until(lambda: heard, again=lambda: sent.publish(planned), every=0.1)
        efforts = mbs.inverse_dynamics(model, q, np.full(7, 0.2), np.full(7, 0.1))
        np.testing.assert_allclose(heard[0].points[0].effort, efforts, rtol=1e-12)
        assert heard[0].points[0].positions == point.positions
        assert process.stop(signal.SIGINT) == 0


def test_a_launch_file_of_the_user_includes_ours(installed, tmp_path):
    own = tmp_path / "own.launch.py"
    text = re.search(r"```python\n(.*?IncludeLaunchDescription.*?)```", PAGE, re.DOTALL)[1]
    own.write_text(text.replace('"left"', 'LaunchConfiguration("namespace")'), encoding="utf-8")
    with own.open("a", encoding="utf-8") as file:
        file.write("\nfrom launch.substitutions import LaunchConfiguration\n")

    class Own(Launched):
        def command(self, *arguments):
            return launch_command(own, self.namespace, *arguments)

    model = mbs.Model.from_urdf(robot_path("arm7"))
    with Own() as process, Probe(process) as probe:
        probe.hear("twist/tool")
        (twist,) = probe.answer(["twist/tool"], model.joint_names, np.ones(7), np.ones(7))
        V = mbs.twists(model, np.ones(7), np.ones(7), representation="spatial")[-1]
        np.testing.assert_allclose(twist_of(twist), [*V[3:], *V[:3]], atol=1e-12)
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


@pytest.fixture
def alone(installed, tmp_path, monkeypatch):
    """Hide the packages that are installed on this machine."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "argument", "missing"),
    [
        ("simulation", "rviz:=True", "robot_state_publisher"),
        ("dynamics", "robot_state_publisher:=true", "robot_state_publisher"),
        ("simulation", "", "dynamics_node"),
    ],
)
def test_nothing_starts_if_a_package_is_missing(alone, tmp_path, name, argument, missing):
    (tmp_path / "lib" / "mbs_dynamics" / missing).unlink(missing_ok=True)
    given = [f"urdf:={robot_path('arm7')}", argument]
    said = refusal(name, *filter(None, given))
    assert f"this launch needs '{missing}', and nothing was started" in said


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
