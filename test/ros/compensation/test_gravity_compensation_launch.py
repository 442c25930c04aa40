# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The launch file of gravity compensation starts a node that can be enabled."""

from __future__ import annotations

import signal

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("ros2launch")
pytest.importorskip("xacro")

import yaml
from gravity_node_bench import ARM7, JOINTS, READY, Driver, GravityProcess
from launch_bench import launch_command, make_installation

pytestmark = pytest.mark.usefixtures("ros")


class Launched(GravityProcess):
    """The node, started by launch."""

    def __init__(self, *arguments):
        super().__init__(*arguments, **dict.fromkeys([*READY, "robot_description"]))

    def command(self, *arguments):
        return launch_command("gravity_compensation", self.namespace, *arguments)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    make_installation(tmp_path, monkeypatch)


def test_launch_with_a_xacro_file_and_parameters_and_ramp_out_at_the_end(installed, tmp_path):
    robot = tmp_path / "arm.urdf.xacro"
    text = ARM7.read_text(encoding="utf-8")
    xmlns = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'
    robot.write_text(text.replace("<robot", xmlns, 1), encoding="utf-8")
    parameters = tmp_path / "arm.yaml"
    given = {
        "joints": list(JOINTS),
        "compensates_itself": False,
        "stale_timeout": READY["stale_timeout"],
    }
    parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}), encoding="utf-8")
    arguments = [f"urdf:={robot}", f"params_file:={parameters}", "command_topic:=commands"]
    with Launched(*arguments) as process, Driver(process) as arm:
        arm.enable()
        arm.commands.clear()
        process.process.send_signal(signal.SIGINT)
        arm.until_end(arm.well)
        arm.drain()
        assert process.wait() == 0
        torques = np.array([command for _, command in arm.commands])
        assert not torques[-1].any()
        assert len(torques) > 5
