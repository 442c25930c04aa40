# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""When the watchdog deactivates the controller, and what it asks for, without ROS and over DDS."""

import pytest

pytest.importorskip("rclpy")

import contextlib
import signal
import subprocess
import sys

from controller_manager_bench import StandIn
from diagnostic_msgs.msg import DiagnosticStatus
from hypothesis import given
from hypothesis import strategies as st
from launch_bench import Launched
from ros_bench import NodeProcess, Probe
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.errors import ControllerError
from mbs_dynamics.ros.command_watchdog_node import (
    DEACTIVATED,
    DEACTIVATING,
    IDLE,
    SUCCESSOR_TIMEOUT,
    WATCHING,
    CommandWatchdog,
    CommandWatchdogSettings,
)
from mbs_dynamics.ros.compensation.controller_list import Controller, ControllerList, Switch

EFFORTS = Controller("efforts", "active", "", ("a/effort",))
HOLDER = Controller("holder", "inactive", "", ("a/position",))
SETTINGS = CommandWatchdogSettings(command_topic="efforts/commands", position_controller="holder")
TIMEOUT = SETTINGS.command_timeout
PERIOD = TIMEOUT / 10.0


class Bench:
    """A watchdog and a clock that advances by its period."""

    def __init__(self, **changes):
        self.now = 5.0
        self.core = CommandWatchdog(SETTINGS.changed(changes), self.now)

    def on_command(self, *efforts):
        self.core.on_command(efforts)

    def looks(self, seconds, publishers=1, step=PERIOD):
        """Look for so long; return how long it took until it was to deactivate, None if never."""
        begin = self.now
        while self.now < begin + seconds - 1e-9:
            self.now += step
            if self.core.look(publishers, self.now):
                return self.now - begin
        return None


def fallen_silent(**changes):
    bench = Bench(**changes)
    bench.on_command(1.0, 0.0)
    assert bench.looks(2.0 * TIMEOUT) is not None
    return bench


@pytest.mark.parametrize("command", [(0.0, -3.0), (float("nan"),)])
def test_silence_under_torque_deactivates_after_the_timeout(command):
    bench = Bench()
    bench.on_command(*command)
    taken = bench.looks(5.0)
    assert TIMEOUT < taken <= TIMEOUT + 1.5 * PERIOD
    assert bench.core.state == DEACTIVATING
    assert bench.core.reason == "no command for 1 s, the last one was not zero"


def test_nothing_happens_while_commands_come():
    bench = Bench()
    for _ in range(50):
        bench.on_command(1.0)
        assert bench.looks(0.9 * TIMEOUT) is None
    assert bench.core.commands == 50
    assert not bench.core.alarmed


@pytest.mark.parametrize("commands", [[], [(0.0, -0.0)], [(2.0, 1.0), (0.0, 0.0)], [()]])
def test_silence_without_torque_is_no_reason(commands):
    bench = Bench()
    for command in commands:
        bench.on_command(*command)
    assert bench.looks(10.0, publishers=0) is None
    assert bench.core.state == IDLE


def test_a_lost_publisher_deactivates_before_the_timeout():
    bench = Bench(command_timeout=60.0)
    bench.on_command(1.0)
    assert bench.looks(30.0, publishers=1) is None
    assert bench.looks(30.0, publishers=0) is not None
    assert bench.core.reason == "the command topic has lost its publisher under torque"


@given(gaps=st.lists(st.floats(0.001, 10.0), max_size=60))
def test_torque_never_outlasts_silence_of_the_timeout_and_its_looks(gaps):
    """A pause of the watchdog itself, such as a suspended machine, is no silence."""
    bench = Bench()
    bench.on_command(1.0)
    silent = 0.0
    for gap in gaps:
        bench.now += gap
        silent += min(gap, 2.0 * PERIOD)
        assert bench.core.look(1, bench.now) == (silent > TIMEOUT)


def listed(*controllers):
    return ControllerList(controllers, "efforts", "holder")


def request(bench, *controllers):
    return bench.core.plan(listed(*controllers), bench.now)


SWITCHED = EFFORTS._replace(state="inactive"), HOLDER._replace(state="active")


def test_both_controllers_are_switched_in_one_call_and_a_released_arm_calls_for_nothing():
    bench = fallen_silent()
    assert request(bench, HOLDER, EFFORTS) == Switch(("holder",), ("efforts",))
    assert not any(request(bench, *SWITCHED))
    assert bench.core.state == DEACTIVATED
    bench = fallen_silent()
    assert not any(request(bench, *SWITCHED))
    assert bench.core.state == IDLE
    assert not bench.core.alarmed


@pytest.mark.parametrize(
    ("effort", "holder", "wanted"),
    [
        ("inactive", "active", Switch()),
        ("inactive", "inactive", Switch(("holder",), ())),
        ("active", "active", Switch((), ("efforts",))),
        ("active", "unconfigured", Switch((), ("efforts",))),
        ("inactive", "unconfigured", Switch()),
        ("unconfigured", "inactive", Switch(("holder",), ())),
    ],
)
def test_only_what_is_left_to_do_is_asked_for(effort, holder, wanted):
    controllers = (EFFORTS._replace(state=effort), HOLDER._replace(state=holder))
    assert request(fallen_silent(), *controllers) == wanted


def test_the_position_controller_is_tried_again_and_then_torques_end_without_it():
    bench = fallen_silent()
    begun = bench.now
    while bench.now < begun + SUCCESSOR_TIMEOUT:
        assert request(bench, EFFORTS, HOLDER) == Switch(("holder",), ("efforts",))
        assert bench.core.alarmed
        bench.now += 0.1
    assert request(bench, EFFORTS, HOLDER) == Switch((), ("efforts",))


JTC = HOLDER._replace(type="joint_trajectory_controller/JointTrajectoryController")


@pytest.mark.parametrize(("starts", "used"), [(True, False), (False, True)])
def test_a_position_controller_that_is_missing_or_would_leap_is_reported(starts, used):
    bench = Bench()
    said = pytest.raises(ControllerError, match="would leap")
    with contextlib.nullcontext() if used else said:
        bench.core.inspect(listed(EFFORTS, JTC), starts)
    with pytest.raises(ControllerError, match="'holder' is not loaded"):
        bench.core.inspect(listed(EFFORTS), None)  # what is known of it stays
    bench.on_command(1.0)
    bench.looks(2.0 * TIMEOUT)
    assert request(bench, EFFORTS, JTC).activate == (("holder",) if used else ())


def test_commands_that_resume_end_the_attempts_and_are_watched_again():
    bench = fallen_silent()
    bench.on_command(1.0)
    assert bench.core.state == WATCHING
    assert request(bench, EFFORTS, HOLDER) == Switch()
    assert bench.core.state == WATCHING
    assert bench.looks(2.0 * TIMEOUT) is not None
    request(bench, EFFORTS, HOLDER)
    request(bench, *SWITCHED)
    assert bench.looks(5.0) is None
    bench.on_command(1.0)
    assert bench.looks(2.0 * TIMEOUT) is not None


over_dds = pytest.mark.usefixtures("ros", "controller_manager_msgs")
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

    def __init__(self, **parameters):
        given = {"command_topic": TOPIC, "position_controller": "holder"}
        super().__init__(NAME, **given | parameters)


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
        return self.value_of("watchdog", key)

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


@over_dds
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


@over_dds
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


@over_dds
def test_launch_with_a_position_controller(installed):
    arguments = [f"command_topic:={TOPIC}", "position_controller:=holder", "command_timeout:=0.2"]
    with Launched("command_watchdog", NAME, *arguments) as process, Arm(process) as arm:
        arm.command(arm.publisher(), 1.0)
        arm.waits_for(DEACTIVATED)
        assert arm.there.requests == [(["holder"], ["forward_effort_controller"])]
        assert process.stop(signal.SIGINT) == 0
