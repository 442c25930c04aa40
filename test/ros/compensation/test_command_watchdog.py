# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""When the watchdog deactivates the controller, and what it asks for."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")

from hypothesis import given
from hypothesis import strategies as st

from mbs_dynamics.errors import ArgumentError, ControllerError
from mbs_dynamics.ros.command_watchdog_node import (
    RETRY_PERIOD,
    CommandWatchdog,
    CommandWatchdogSettings,
    Switch,
    Watch,
)
from mbs_dynamics.ros.compensation.controllers import Controller

pytestmark = pytest.mark.backend_independent

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
        self.core.on_command(efforts, self.now)

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
    assert bench.core.state is Watch.DEACTIVATING
    assert bench.core.reason == "no command for 1 s, the last one was not zero"


def test_nothing_happens_while_commands_come():
    bench = Bench()
    for _ in range(50):
        bench.on_command(1.0)
        assert bench.looks(0.9 * TIMEOUT) is None
    core = bench.core
    assert (core.commands, core.deactivations, core.attempts) == (50, 0, 0)


@pytest.mark.parametrize("commands", [[], [(0.0, -0.0)], [(2.0, 1.0), (0.0, 0.0)], [()]])
def test_silence_without_torque_is_no_reason(commands):
    bench = Bench()
    for command in commands:
        bench.on_command(*command)
    assert bench.looks(10.0, publishers=0) is None
    assert bench.core.state is Watch.IDLE


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


def test_both_controllers_are_switched_in_one_call():
    core = fallen_silent().core
    assert core.plan([HOLDER, EFFORTS]) == Switch(("holder",), ("efforts",), 0)
    core.succeed()
    assert core.state is Watch.DEACTIVATED


@pytest.mark.parametrize("state", ["inactive", "unconfigured"])
def test_a_controller_that_is_not_active_is_left_alone(state):
    core = fallen_silent().core
    assert core.plan([HOLDER, EFFORTS._replace(state=state)]) is None


@pytest.mark.parametrize(
    "others", [[], [HOLDER._replace(state="unconfigured")], [HOLDER._replace(state="active")]]
)
def test_without_a_controller_to_take_over_zeros_come_before_the_deactivation(others):
    assert fallen_silent().core.plan([EFFORTS, *others]) == Switch((), ("efforts",), 1)


def test_a_refused_switch_is_tried_again_without_the_position_controller():
    bench = fallen_silent()
    core = bench.core
    asked = core.plan([EFFORTS, HOLDER])
    core.fail("busy", asked, bench.now)
    assert RETRY_PERIOD <= bench.looks(2.0 * RETRY_PERIOD) <= RETRY_PERIOD + PERIOD + 1e-9
    again = core.plan([EFFORTS, HOLDER])
    assert again == Switch((), ("efforts",), 1)
    core.fail("busy", again, bench.now)
    assert core.plan([EFFORTS, HOLDER]) == asked
    assert (core.attempts, core.failure) == (2, "busy")


def test_a_controller_that_is_not_loaded_is_an_error():
    with pytest.raises(ControllerError, match=r"'efforts' is not loaded; .*: holder$"):
        fallen_silent().core.plan([HOLDER])


def test_commands_that_come_again_end_the_deactivation():
    bench = fallen_silent()
    bench.on_command(1.0)
    assert bench.core.state is Watch.WATCHING
    assert bench.core.plan([EFFORTS, HOLDER]) is None
    bench.core.succeed()
    assert bench.core.state is Watch.WATCHING
    assert bench.looks(2.0 * TIMEOUT) is not None
    assert bench.core.deactivations == 2


def test_it_watches_again_after_a_deactivation():
    bench = fallen_silent()
    bench.core.succeed()
    assert bench.looks(10.0) is None
    bench.on_command(1.0)
    assert bench.looks(2.0 * TIMEOUT) is not None


def test_controllers_that_do_not_exist_are_found_before_they_are_needed():
    core = Bench().core
    core.inspect([EFFORTS])
    assert core.misfit == "controller 'holder' is not loaded; loaded controllers: efforts"
    core.inspect([EFFORTS, HOLDER])
    assert core.misfit == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"command_topic": "/commands"}, "'/commands' does not name a controller"),
        ({"position_controller": "efforts"}, "position_controller is 'efforts'"),
        ({"command_timeout": 0.0}, "command_timeout is 0; valid is 0.1 to 60"),
    ],
)
def test_refuses_settings_with_a_reason(changes, said):
    with pytest.raises(ArgumentError) as caught:
        SETTINGS.changed(changes)
    assert said in str(caught.value)


def test_a_named_controller_needs_no_name_in_the_topic():
    changes = {"command_topic": "/torques", "effort_controller": "mine"}
    assert SETTINGS.changed(changes).controller == "mine"


def test_age_of_the_last_command():
    bench = Bench()
    assert bench.core.since_command(bench.now) is None
    bench.on_command(1.0)
    assert bench.core.since_command(bench.now + 0.5) == 0.5
    bench.now += 2.0
    bench.on_command(0.0)
    assert bench.core.since_command(bench.now + 0.25) == 0.25
    assert bench.core.commands == 2
