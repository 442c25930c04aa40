# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levels and values of the diagnostics of the simulator, without a node."""

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import World
from mbs_dynamics.ros.simulator_node import simulation_status

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.fixture
def world():
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    settings = SimulatorSettings(robot_description="<robot/>", rate=500.0, brakes=False)
    return World(arm, settings)


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


@pytest.mark.parametrize(
    ("rate", "lost", "halted", "level"),
    [
        (500.0, 0.0, "", OK),
        (490.0, 0.0, "", OK),
        (480.0, 0.0, "", WARN),  # below 97 %
        (500.0, 0.25, "", WARN),
        (500.0, 0.0, "it fell", ERROR),
    ],
)
def test_pace_and_halt(world, rate, lost, halted, level):
    world.halted = halted
    found, message, values = parts(simulation_status(world, rate, 500.0, lost, {}))
    assert found == level
    assert halted in message
    assert values["payloads"] == "none"
