# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levels and values of the diagnostics of the simulator, without a node."""

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import EffortCommands, Pace, World
from mbs_dynamics.ros.simulator_node import input_status, simulation_status

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
IN_TIME = Pace(rate=500.0, wanted=500.0, load=0.25, lost=0.0)


@pytest.fixture
def world():
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    settings = SimulatorSettings(robot_description="<robot/>", rate=500.0, step=0.001, brakes=False)
    return World(arm, settings)


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


def test_commands_from_none_to_lapsed_and_beyond_limits(world):
    commands = EffortCommands(world.model.joint_names, timeout=0.1)
    level, _, values = parts(input_status(world, commands, 0, ""))
    assert (level, values["last refusal"]) == (OK, "none")
    assert "since last command [s]" not in values
    commands.set(np.zeros(7), world.time)
    for periods, level, since in ((25, OK, "0.050"), (75, WARN, "0.200")):
        for _ in range(periods):
            world.advance(commands.at(world.time))
        found, _, values = parts(input_status(world, commands, 0, ""))
        assert (found, values["since last command [s]"]) == (level, since)
        assert (values["commands accepted"], values["commands refused"]) == ("1", "0")
    commands.set([0.0, 1e6, *[0.0] * 5], world.time)
    world.advance(commands.at(world.time))
    level, _, values = parts(input_status(world, commands, 0, ""))
    assert (level, values["joints at their effort limit"]) == (WARN, "joint2")
    level, message, _ = parts(input_status(world, commands, 3, "too long"))
    assert level == WARN
    assert message.endswith("3 messages refused: too long")


@pytest.mark.parametrize(
    ("pace", "halted", "level"),
    [
        (IN_TIME, "", OK),
        (IN_TIME._replace(rate=490.0), "", OK),
        (IN_TIME._replace(rate=480.0), "", WARN),  # below 97 %
        (IN_TIME._replace(lost=0.25), "", WARN),
        (IN_TIME, "it fell", ERROR),
    ],
)
def test_pace_and_halt(world, pace, halted, level):
    world.halted = halted
    found, message, values = parts(simulation_status(world, pace, {}))
    assert found == level
    assert halted in message
    assert (values["step [s]"], values["payloads"]) == ("0.001", "none")


def test_brakes_are_said(world):
    assert parts(simulation_status(world, IN_TIME, {}))[2]["brakes"] == "released"
    world.brake(True)
    assert "hold" in parts(simulation_status(world, IN_TIME, {}))[2]["brakes"]
    commands = EffortCommands(world.model.joint_names)
    commands.set(np.zeros(7), world.time)
    level, message, _ = parts(input_status(world, commands, 0, ""))
    assert level == OK
    assert "brakes" in message
