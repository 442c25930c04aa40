# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command watchdog, run as a user runs it, over DDS."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytest.importorskip("rclpy")

from controller_manager_bench import StandIn
from diagnostic_msgs.msg import DiagnosticStatus
from launch_bench import launch_command
from ros_bench import NodeProcess, Probe
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.ros.command_watchdog_node import DEACTIVATED

pytestmark = pytest.mark.usefixtures("ros", "controller_manager_msgs")

NAME = "command_watchdog_node"
TOPIC = "forward_effort_controller/commands"

COMMANDER = """
import sys, rclpy
from std_msgs.msg import Float64MultiArray
rclpy.init()
node = rclpy.create_node("commander")
publisher = node.create_publisher(Float64MultiArray, sys.argv[1], 1)
node.create_timer(0.01, lambda: publisher.publish(Float64MultiArray(data=[3.0, -1.0])))
rclpy.spin(node)
"""


class WatchdogProcess(NodeProcess):
    """The watchdog of two controllers."""

    executable = NAME

    def __init__(self, *arguments, **parameters):
        given = {"command_topic": TOPIC, "position_controller": "holder"}
        super().__init__(*arguments, **given | parameters)


class Arm(Probe):
    """A probe that stands in for the controller manager, or for the commander."""

    def __init__(self, watchdog):
        super().__init__(watchdog)
        self.topic = f"{watchdog.namespace}/{TOPIC}"
        self.there = StandIn(
            self.node,
            forward_effort_controller=("active", "a/effort", "b/effort"),
            holder=("inactive", "a/position", "b/position"),
        )
        self.heard = []
        """All commands, as the controller receives them."""
        self.node.create_subscription(
            Float64MultiArray, self.topic, lambda message: self.heard.append(list(message.data)), 10
        )

    def commander(self):
        return subprocess.Popen([sys.executable, "-c", COMMANDER, self.topic])

    def value(self, key):
        return self._value("watchdog", key)

    def waits_for(self, state):
        self.until(lambda: self.value("state") == state)

    def command(self, publisher, *efforts):
        """Command once, and wait until that has arrived."""
        before = int(self.value("commands") or 0)
        self.until(lambda: publisher.get_subscription_count() > 2)  # ours and the controller's
        publisher.publish(Float64MultiArray(data=efforts))
        self.until(lambda: int(self.value("commands") or 0) > before)

    def publisher(self):
        return self.node.create_publisher(Float64MultiArray, self.topic, 1)


def test_sigkill_of_the_commander_deactivates_its_controller_and_activates_the_other():
    with WatchdogProcess(command_timeout=5.0) as process, Arm(process) as arm:
        commander = arm.commander()
        try:
            arm.until(lambda: arm.value("state") == "watching" and int(arm.value("commands")) > 50)
            assert arm.there.requests == []
            arm.until(lambda: arm.level("watchdog") == DiagnosticStatus.OK)
        finally:
            commander.send_signal(signal.SIGKILL)
            commander.wait()
        arm.until(lambda: arm.there.requests)
        assert arm.there.requests == [(["holder"], ["forward_effort_controller"])]
        arm.waits_for(DEACTIVATED)
        assert arm.there.state("forward_effort_controller") == "inactive"
        assert arm.there.state("holder") == "active"
        assert [0.0, 0.0] not in arm.heard  # the arm is handed over, not let go
        arm.until(lambda: arm.level("watchdog") == DiagnosticStatus.WARN)
        assert "deactivated 'forward_effort_controller', activated 'holder'" in process.log
        assert process.stop() == 0


def test_where_no_controller_takes_over_zeros_come_before_the_deactivation():
    alone = {"command_timeout": 0.2, "position_controller": '""'}
    with WatchdogProcess(**alone) as process, Arm(process) as arm:
        heard_before = []

        def refusal(activate):
            heard_before.append(list(arm.heard))
            return ""

        arm.there.there.refusal = refusal
        publisher = arm.publisher()
        arm.command(publisher, 3.0, -1.0)
        arm.waits_for(DEACTIVATED)
        assert arm.there.requests == [([], ["forward_effort_controller"])]
        assert heard_before[0][0] == [3.0, -1.0]
        assert heard_before[0][-1] == [0.0, 0.0]
        assert arm.node.count_publishers(arm.topic) == 1  # that of the watchdog is gone again
        arm.there.there.set("forward_effort_controller", "active")
        arm.command(publisher, 3.0, -1.0)
        arm.until(lambda: len(arm.there.requests) == 2)


def test_without_the_messages_it_does_not_start():
    class Without(WatchdogProcess):
        def command(self, *arguments):
            code = (
                "import sys; sys.modules['controller_manager_msgs'] = None\n"
                f"from mbs_dynamics.ros.{NAME} import main; sys.exit(main())"
            )
            namespace = ["--ros-args", "-r", f"__ns:={self.namespace}"]
            return [sys.executable, "-c", code, *namespace, *arguments]

    with Without() as process:
        assert process.wait() == 1
        log = process.log.strip()
        assert "cannot start: the package controller_manager_msgs is not installed" in log
        assert "\n" not in log


class Launched(WatchdogProcess):
    """The watchdog, started by launch."""

    def __init__(self, *arguments):
        super().__init__(*arguments, command_topic=None, position_controller=None)

    def command(self, *arguments):
        return launch_command("command_watchdog", self.namespace, *arguments)


def test_launch_with_a_position_controller(installed):
    arguments = [f"command_topic:={TOPIC}", "position_controller:=holder", "command_timeout:=0.2"]
    with Launched(*arguments) as process, Arm(process) as arm:
        arm.command(arm.publisher(), 1.0)
        arm.waits_for(DEACTIVATED)
        assert arm.there.requests == [(["holder"], ["forward_effort_controller"])]
        assert process.stop(signal.SIGINT) == 0
