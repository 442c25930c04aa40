# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the diagnostics of the simulator say, without a node."""

import pytest

pytest.importorskip("rclpy")

import numpy as np
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


def said(world, commands, pace=IN_TIME, refused=0, last=""):
    """Return level, message and values of the simulation and of its input."""
    statuses = [
        simulation_status(world, pace, {}),
        input_status(world, commands, refused, last),
    ]
    assert [one.name for one in statuses] == ["simulation", "input"]
    return [
        (one.level, one.message, {pair.key: pair.value for pair in one.values}) for one in statuses
    ]


def test_commands_from_none_to_lapsed(world):
    commands = EffortCommands(world.model.joint_names, timeout=0.1)
    level, message, values = said(world, commands)[1]
    assert (level, message) == (OK, "no command yet: efforts are zero")
    assert "since last command [s]" not in values
    assert values["joints at their effort limit"] == values["last refusal"] == "none"
    commands.set(np.zeros(7), world.time)
    for _ in range(25):
        world.advance(commands.at(world.time))
    level, message, values = said(world, commands)[1]
    assert (level, message) == (OK, "commands in force")
    assert values["since last command [s]"] == "0.050"
    assert (values["commands accepted"], values["commands refused"]) == ("1", "0")
    for _ in range(75):
        world.advance(commands.at(world.time))
    level, message, _ = said(world, commands)[1]
    assert (level, message) == (WARN, "no command for 0.2 s: efforts are zero")


def test_brakes_are_said(world):
    commands = EffortCommands(world.model.joint_names)
    assert said(world, commands)[0][2]["brakes"] == "released"
    world.brake(True)
    assert said(world, commands)[0][1] == "brakes hold the robot; 500.0 Hz"
    assert said(world, commands)[0][2]["brakes"] == "hold the robot"
    commands.set(np.zeros(7), world.time)
    level, message, _ = said(world, commands)[1]
    assert (level, message) == (
        OK,
        "commands in force, which do not carry the robot: brakes hold it",
    )


def test_saturation_and_refusals(world):
    commands = EffortCommands(world.model.joint_names)
    commands.set([0.0, 1e6, *[0.0] * 5], world.time)
    world.advance(commands.at(world.time))
    level, message, values = said(world, commands)[1]
    assert (level, message) == (WARN, "at their effort limit: joint2")
    assert values["joints at their effort limit"] == "joint2"
    level, message, _ = said(world, commands, refused=3, last="too long")[1]
    assert (level, message) == (WARN, "3 messages refused: too long")


def test_pace_and_halt(world):
    commands = EffortCommands(world.model.joint_names)
    level, message, values = said(world, commands)[0]
    assert (level, message) == (OK, "500.0 Hz")
    assert values["real-time factor"] == "1.000"
    assert values["step [s]"] == "0.001"
    assert values["payloads"] == "none"
    slow = Pace(rate=400.0, wanted=500.0, load=1.0, lost=0.25)
    level, message, _ = said(world, commands, slow)[0]
    assert (level, message) == (WARN, "too slow: 400.0 Hz of 500.0 Hz, 0.25 s lost")
    behind = {
        IN_TIME._replace(lost=0.25): True,
        IN_TIME._replace(rate=480.0): True,  # below 97 %
        IN_TIME._replace(rate=490.0): False,
    }
    assert {pace: said(world, commands, pace)[0][0] == WARN for pace in behind} == behind
    world.halted = "it fell"
    level, message, _ = said(world, commands, slow)[0]
    assert (level, message) == (ERROR, "halted until ~/reset: it fell")
