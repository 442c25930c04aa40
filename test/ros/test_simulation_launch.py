# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The launch file of the simulation starts three nodes that work together."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")
pytest.importorskip("ros2launch")

from launch_bench import launch_command, make_installation
from ros_bench import NodeProcess
from sensor_msgs.msg import JointState
from simulator_bench import Watcher
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

JOINTS = mbs.Model.from_urdf(robot_path("arm7")).joint_names


class Launched(NodeProcess):
    """The simulation, started by launch."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.name = f"{self.namespace}/simulator_node"
        self.topic = f"{self.namespace}/forward_effort_controller/commands"

    def command(self, *arguments):
        return launch_command("simulation", self.namespace, *arguments)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    make_installation(tmp_path, monkeypatch)


REAL = {
    "joints": [*reversed(JOINTS)],
    "command_topic": "real/commands",
    "robot_description": str(robot_path("arm7")),
    "compensates_itself": True,
    "position_controller": "holder",
    "adds_to_position_control": True,
    "use_imu": True,
}
"""Parameters of a real arm."""

PATIENT = {"stale_timeout": 10.0}
"""Parameters for a busy machine."""

POSTURE = [0.1, 0.6, 0.1, 1.0, 0.1, 0.5, 0.1]


@pytest.mark.parametrize("real", [False, True], ids=["shipped", "rehearsed"])
def test_the_arm_floats_once_gravity_is_compensated(installed, tmp_path, real):
    file = tmp_path / "real.yaml"
    section = {"/**/gravity_compensation_node": {"ros__parameters": REAL}}
    file.write_text(yaml.safe_dump(section), encoding="utf-8")
    given = [f"gravity_compensation_params_file:={file}", f"initial_positions:={POSTURE}"]
    given = given if real else ["algorithm:=hybrid"]  # of all three nodes
    given = [*given, f"gravity_compensation_params:={PATIENT}"]
    with Launched(*given) as process, Watcher(process) as probe:
        probe.node.destroy_publisher(probe.commands)  # beside which nothing can be enabled
        external = []
        topic = f"{process.namespace}/dynamics_node/external_torques"
        probe.node.create_subscription(JointState, topic, external.append, 10)
        probe.until(lambda: probe.states and external)
        assert tuple(probe.states[-1].name) == JOINTS
        assert tuple(external[-1].name) == JOINTS
        if real:
            np.testing.assert_allclose(probe.q, POSTURE)
        enable = probe.node.create_client(
            SetBool, f"{process.namespace}/gravity_compensation_node/enable"
        )
        probe.until(enable.service_is_ready)
        answers = []

        def ask():
            future = enable.call_async(SetBool.Request(data=True))
            future.add_done_callback(lambda done: answers.append(done.result()))
            probe.spin(0.5)

        probe.until(lambda: any(answer.success for answer in answers), again=ask)
        held = np.zeros(7)

        def compensated():
            held[:] = mbs.gravity_torques(mbs.Model.from_urdf(robot_path("arm7")), probe.q)
            return np.abs(probe.tau - held).max() < 0.5 and np.abs(probe.qd).max() < 0.1

        probe.until(compensated)
        assert np.abs(held).max() > 1.0
        assert process.stop(signal.SIGINT) == 0
