# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The launch file of the command watchdog starts a node that deactivates a controller."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("ros2launch")

from launch_bench import launch_command, make_installation
from test_command_watchdog_node import TOPIC, Arm, WatchdogProcess

from mbs_dynamics.ros.command_watchdog_node import DEACTIVATED

pytestmark = pytest.mark.usefixtures("ros", "controller_manager_msgs")


class Launched(WatchdogProcess):
    """The watchdog, started by launch."""

    def __init__(self, *arguments):
        super().__init__(*arguments, command_topic=None, position_controller=None)

    def command(self, *arguments):
        return launch_command("command_watchdog", self.namespace, *arguments)


def test_launch_with_a_position_controller(tmp_path, monkeypatch):
    make_installation(tmp_path, monkeypatch)
    arguments = [f"command_topic:={TOPIC}", "position_controller:=holder", "command_timeout:=0.2"]
    with Launched(*arguments) as process, Arm(process) as arm:
        arm.command(arm.publisher(), 1.0)
        arm.waits_for(DEACTIVATED)
        assert arm.there.requests == [(["holder"], ["forward_effort_controller"])]
        assert process.stop(signal.SIGINT) == 0
