# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bringing an arm up finds motors whose commands are not as the table states."""

import pytest

from mbs_dynamics.control import BringUp
from simulated.guarded_bench import PERIOD, Loop, table


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
    assert loop.bus.moved < 0.1
    assert loop.arm.hold(loop.now) == []
    assert "joint7: moves by" in str(check)


@pytest.mark.long
def test_motors_that_are_not_as_in_the_table_are_named():
    loop = Loop(made=table(kp=2000.0, kd=40.0))
    wrong = {2: (-1.0, "moves against"), 4: (4.0, "moves, 4"), 6: (0.0, "not move")}
    for joint, (factor, _) in wrong.items():
        loop.bus.command_factor[0x0F + joint] = factor
    check = brought_up(loop)
    for joint, (_, said) in wrong.items():
        named = [one for one in check.problems if f"joint{joint} " in one]
        assert any(said in one for one in named), check.problems
    assert all(any(f"joint{joint} " in one for joint in wrong) for one in check.problems)
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
