# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bringing an arm up finds motors whose commands or feedback are not as the table states."""

import numpy as np
import pytest

from mbs_dynamics.control import BringUp
from simulated.guarded_bench import PERIOD, Loop, table

MOTOR = 0x11


def brought_up(loop):
    check = BringUp(loop.arm)
    loop.bus.mark()
    while not check.done:
        loop.bus.write(check.step(loop.now, loop.bus.read()).motors)
        loop.bus.advance(PERIOD)
        assert loop.now < 60.0
    return check


@pytest.mark.long
def test_an_arm_as_in_its_table_has_no_problem_and_hardly_moves():
    loop = Loop(made=table(kp=2000.0, kd=40.0), friction=1.0)
    check = brought_up(loop)
    assert check.problems == []
    assert len(check.responses) == 7
    commands = [one.command for one in check.responses]
    assert min(commands) > 0.4
    assert max(commands) < 1.2
    shown = [one.feedback for one in check.responses if np.isfinite(one.feedback)]
    assert len(shown) >= 2  # the others are hardly loaded in this posture
    np.testing.assert_allclose(shown, 1.0, atol=0.15)
    assert loop.bus.moved < 0.1
    assert loop.arm.hold(loop.now) == []
    assert "joint7: command" in str(check)


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("command_factor", -1.0), "joint2 moves against"),
        (("command_factor", 4.0), "joint2 moves, 4"),
        (("command_factor", 0.0), "joint2 does not move"),
        (("feedback_factor", -1.0), "joint2 reports an effort against"),
        (("feedback_factor", 4.0), "joint2 reports an effort, 4"),
    ],
)
def test_a_motor_that_is_not_as_in_the_table_is_named(wrong, said):
    name, factor = wrong
    loop = Loop(made=table(kp=2000.0, kd=40.0))
    getattr(loop.bus, name)[MOTOR] = factor
    check = brought_up(loop)
    assert [one for one in check.problems if said in one], check.problems
    assert all("joint2" in one for one in check.problems)
    assert loop.bus.moved < 0.2


def test_a_bus_that_falls_silent_ends_it():
    loop = Loop()
    check = BringUp(loop.arm)
    for _ in range(50):
        loop.bus.write(check.step(loop.now, loop.bus.read()).motors)
        loop.bus.advance(PERIOD)
    for k in range(10):
        check.step(loop.now + k * PERIOD, [])
    assert check.done
    assert any("no valid state of" in one for one in check.problems)


def test_drives_that_cannot_hold_are_not_nudged():
    loop = Loop(made=table(kp=0.0))
    check = BringUp(loop.arm)
    command = check.step(0.0, loop.bus.read())
    assert command.mode == "off"
    assert check.done
    assert "kp is 0" in check.problems[0]
