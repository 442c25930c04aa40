# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The launch files: what all of them share, and those of dynamics node and simulation."""

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

import yaml
from launch_bench import Launched, declared_arguments, launch_command, left_running
from ros_bench import Probe, twist_of
from sensor_msgs.msg import JointState
from simulator_bench import Watcher
from std_srvs.srv import SetBool
from test_files import PENDULUM
from waiting import TIMEOUT

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "reference" / "launch.md").read_text(encoding="utf-8")
ARM = mbs.Model.from_urdf(robot_path("arm7"))
FILES = sorted(path.name.partition(".")[0] for path in (CHECKOUT / "launch").glob("*.py"))


def test_launch_with_a_xacro_file(installed, tmp_path):
    robot = tmp_path / "pendulum.urdf.xacro"
    robot.write_text(PENDULUM, encoding="utf-8")
    arguments = [f"urdf:={robot}", "xacro_args:=mass:=3", "representation:=body_fixed"]
    arguments.append("algorithm:=spatial")
    with Launched("dynamics", "dynamics_node", *arguments) as process, Probe(process) as probe:
        probe.hear("gravity_torques", "twist/rod")
        tau, twist = probe.answer(["gravity_torques", "twist/rod"], ["hinge"], [np.pi / 6.0], [1.0])
        np.testing.assert_allclose(tau.effort, [3.0 * 9.81 * 0.5 * 0.5], rtol=1e-12)
        np.testing.assert_allclose(twist_of(twist), [0, 0, 0, 0, 1, 0], atol=1e-12)
        assert twist.header.frame_id == "rod"
        probe.until(lambda: probe.value_of("model", "algorithm") == "spatial")
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
        ("simulation", "initial_positions:=[a]", "could not convert string to float: 'a'"),
        ("simulation", "rviz:=maybe", "maybe"),
        ("simulation", "robot_state_publisher:=true", "nothing was started"),
        ("command_watchdog", "brakes:=maybe", "Cannot convert value 'maybe'"),
        ("command_watchdog", "command_timeout:=soon", "could not convert string to float: 'soon'"),
        ("simulation", "use_sim_time:=soon", "soon"),
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


class Simulation(Launched):
    """The simulation, started by launch."""

    def __init__(self, *arguments):
        super().__init__("simulation", "simulator_node", *arguments)
        self.topic = f"{self.namespace}/forward_effort_controller/commands"


REAL = {
    "joints": [*reversed(ARM.joint_names)],
    "command_topic": "real/commands",
    "robot_description": str(robot_path("arm7")),
    "compensates_itself": True,
    "position_controller": "holder",
    "adds_to_position_control": True,
    "use_imu": True,
}
"""Parameters of a real arm."""

POSTURE = [0.1, 0.6, 0.1, 1.0, 0.1, 0.5, 0.1]


@pytest.mark.parametrize("rehearsed", [False, True], ids=["shipped", "rehearsed"])
def test_the_simulated_arm_floats_once_gravity_is_compensated(installed, tmp_path, rehearsed):
    """Rehearsed: with the parameters of a real arm, and after dynamics_node has died."""
    file = tmp_path / "real.yaml"
    section = {"/**/gravity_compensation_node": {"ros__parameters": REAL}}
    file.write_text(yaml.safe_dump(section), encoding="utf-8")
    given = ["algorithm:=hybrid"]  # of all three nodes
    if rehearsed:
        given = [f"gravity_compensation_params_file:={file}", f"initial_positions:={POSTURE}"]
        given.append("dynamics_params:={max_rate: -1.0}")
    patient = {"stale_timeout": 10.0}  # for a busy machine
    given.append(f"gravity_compensation_params:={patient}")
    with Simulation(*given) as process, Watcher(process) as probe:
        probe.node.destroy_publisher(probe.commands)  # beside which nothing can be enabled
        probe.until(lambda: probe.states)
        assert tuple(probe.states[-1].name) == ARM.joint_names
        if rehearsed:
            np.testing.assert_allclose(probe.q, POSTURE)
            probe.until(lambda: "process has died" in process.log)
        else:
            external = []
            topic = f"{process.namespace}/dynamics_node/external_torques"
            probe.node.create_subscription(JointState, topic, external.append, 10)
            probe.until(lambda: external)
            assert tuple(external[-1].name) == ARM.joint_names
        service = f"{process.namespace}/gravity_compensation_node/enable"
        enable, answers = probe.node.create_client(SetBool, service), []
        probe.until(enable.service_is_ready)

        def ask():
            future = enable.call_async(SetBool.Request(data=True))
            future.add_done_callback(lambda done: answers.append(done.result()))
            probe.spin(0.5)

        probe.until(lambda: any(answer.success for answer in answers), again=ask)

        def compensated():
            held = mbs.gravity_torques(ARM, probe.q)
            still = np.abs(probe.qd).max() < 0.1 and np.abs(held).max() > 1.0
            return still and np.abs(probe.tau - held).max() < 0.5

        probe.until(compensated)
        assert process.stop(signal.SIGINT) == 0


@pytest.mark.parametrize("name", FILES)
def test_every_argument_is_described_and_in_the_documentation(name):
    declared = declared_arguments(name)
    assert all(len(one.description) > 20 for one in declared)
    if name != "command_watchdog":
        assert not [one.name for one in declared if f"`{one.name}`" not in PAGE]
