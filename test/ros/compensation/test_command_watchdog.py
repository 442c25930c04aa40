# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""When the watchdog deactivates the controller, and what it asks for."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("rclpy")

from hypothesis import given
from hypothesis import strategies as st

from mbs_dynamics.errors import ArgumentError, ControllerError
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


def test_silence_under_torque_deactivates_after_the_timeout():
    bench = Bench()
    bench.on_command(0.0, -3.0)
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


def test_a_number_that_is_not_finite_counts_as_torque():
    bench = Bench()
    bench.on_command(float("nan"))
    assert bench.looks(2.0 * TIMEOUT) is not None


def test_a_lost_publisher_deactivates_before_the_timeout():
    bench = Bench(command_timeout=60.0)
    bench.on_command(1.0)
    assert bench.looks(30.0, publishers=1) is None
    assert bench.looks(30.0, publishers=0) is not None
    assert bench.core.reason == "the command topic has lost its publisher under torque"


def test_a_pause_of_the_watchdog_itself_is_no_silence():
    bench = Bench()
    bench.on_command(1.0)
    bench.now += 100.0 * TIMEOUT  # suspended; the timer is served before the messages are
    assert not bench.core.look(1, bench.now)
    bench.on_command(1.0)
    assert bench.looks(0.9 * TIMEOUT) is None
    assert bench.looks(2.0 * TIMEOUT) is not None


@given(gaps=st.lists(st.floats(0.001, 10.0), max_size=60))
def test_torque_never_outlasts_silence_of_the_timeout_and_its_looks(gaps):
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


def test_both_controllers_are_switched_in_one_call():
    bench = fallen_silent()
    assert request(bench, HOLDER, EFFORTS) == Switch(("holder",), ("efforts",))
    assert not any(request(bench, *SWITCHED))
    assert bench.core.state == DEACTIVATED


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


def test_an_arm_that_was_released_calls_for_nothing_and_raises_no_alarm():
    bench = fallen_silent()
    assert not any(request(bench, *SWITCHED))
    assert bench.core.state == IDLE
    assert not bench.core.alarmed


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
def test_a_position_controller_that_would_leap_is_reported_and_not_activated(starts, used):
    bench = Bench()
    said = pytest.raises(ControllerError, match="would leap")
    with contextlib.nullcontext() if used else said:
        bench.core.inspect(listed(EFFORTS, JTC), starts)
    bench.on_command(1.0)
    bench.looks(2.0 * TIMEOUT)
    assert request(bench, EFFORTS, JTC).activate == (("holder",) if used else ())


def test_commands_that_resume_end_the_attempts():
    bench = fallen_silent()
    bench.on_command(1.0)
    assert bench.core.state == WATCHING
    assert request(bench, EFFORTS, HOLDER) == Switch()
    assert bench.core.state == WATCHING


def test_a_deactivated_controller_is_watched_again_from_the_next_command():
    bench = fallen_silent()
    request(bench, EFFORTS, HOLDER)
    request(bench, *SWITCHED)
    assert bench.looks(5.0) is None
    bench.on_command(1.0)
    assert bench.looks(2.0 * TIMEOUT) is not None


def test_controllers_that_do_not_exist_are_found_before_they_are_needed():
    core = Bench().core
    with pytest.raises(ControllerError, match="'holder' is not loaded"):
        core.inspect(listed(EFFORTS), None)
    core.inspect(listed(EFFORTS, HOLDER), None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"command_topic": "/commands"}, "'/commands' does not name a controller"),
        ({"position_controller": "efforts"}, "position_controller is 'efforts'"),
        ({"command_timeout": 0.0}, "command_timeout is 0; must be 0.1 to 60"),
    ],
)
def test_refuses_settings_with_a_reason(changes, said):
    with pytest.raises(ArgumentError) as caught:
        SETTINGS.changed(changes)
    assert said in str(caught.value)
