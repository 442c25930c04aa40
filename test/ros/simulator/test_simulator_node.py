# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator as a process of its own, over DDS: it falls, it is held, it is pushed and reset."""

from __future__ import annotations

import re
import signal
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from documented import declared, found, qualities, quality, says, types
from ros_bench import Probe
from rosgraph_msgs.msg import Clock
from simulator_bench import SimulatorProcess, Watcher
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.simulator.interface import SimulatorSettings

pytestmark = pytest.mark.usefixtures("ros")

ARM = mbs.Model.from_urdf(robot_path("arm7"))
TEXT = robot_path("arm7").read_text(encoding="utf-8")
START = [0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4]
EXACT = {
    "joint_friction": "[0.0]",
    "joint_damping": "[0.0]",
    "initial_positions": str(START),
    "brakes": False,
}


def test_an_arm_is_held_by_commands_pushed_loaded_and_reset():
    held = mbs.gravity_torques(ARM, START)
    # slowly, so that little happens between a reset and the command after it
    with SimulatorProcess(**EXACT, realtime_factor=0.1) as process, Watcher(process) as probe:
        probe.until(lambda: probe.states and probe.descriptions)
        assert probe.descriptions[-1].data == TEXT
        assert tuple(probe.states[-1].name) == ARM.joint_names
        probe.until(lambda: np.abs(probe.q - START).max() > 0.05)  # without efforts it falls

        def is_held():
            there = probe.states and np.array_equal(probe.tau, held)
            return there and np.abs(probe.q - START).max() < 0.05

        def hold():
            assert probe.reset().success
            probe.states.clear()
            for _ in range(10):
                probe.effort(held)
                probe.spin(0.02)

        probe.until(is_held, again=hold)
        # a push shows in the speed
        still = np.abs(probe.qd).max()
        probe.until(
            lambda: np.abs(probe.qd).max() > 2.0 * still + 0.5,
            again=lambda: probe.push("link4", (40.0, 0.0, 0.0)),
        )
        # a load is taken up, and said
        probe.until(
            lambda: probe.value("simulation", "payloads") == "2 kg at tool",
            again=lambda: probe.hang("tool", 2.0),
            every=0.3,
        )
        probe.hang("rope", 1.0)
        probe.until(
            lambda: "no body 'rope'" in (probe.value("simulation", "refused payload") or "")
        )
        assert probe.set(gravity=[9.81, 0.0, 0.0]) == ""
        probe.until(lambda: probe.value("simulation", "gravity [m/s^2]") == "9.81, 0, 0")
        assert "length of 981" in probe.set(gravity=[0.0, 0.0, -981.0])
        # by name: one joint's effort changes, the others hold
        probe.until(lambda: probe.tau[6] == 1.25, again=lambda: probe.effort_of(joint7=1.25))
        np.testing.assert_array_equal(probe.tau[:6], held[:6])
        assert process.stop(signal.SIGINT) == 0


def test_brakes_hold_the_arm_until_commands_carry_it_or_the_service_releases_it():
    held = mbs.gravity_torques(ARM, START)
    given = {"initial_positions": str(START)}
    with SimulatorProcess(**given) as process, Watcher(process) as probe:
        probe.until(lambda: len(probe.states) > 100)  # nobody commands
        assert {tuple(one.position) for one in probe.states} == {tuple(START)}
        probe.until(
            lambda: "moves nothing: brakes hold the robot" in process.log,
            again=lambda: probe.push("link4", (40.0, 0.0, 0.0)),
        )
        probe.until(
            lambda: np.allclose(probe.tau, 0.5 * held), again=lambda: probe.effort(0.5 * held)
        )
        probe.until(lambda: "do not carry the robot" in probe.said("input"))
        np.testing.assert_array_equal(probe.q, START)
        probe.until(
            lambda: "the commands carry the robot: brakes are released" in process.log,
            again=lambda: probe.effort(held),
        )
        assert np.abs(probe.q - START).max() < 0.01
        # released, it falls; the service holds it where it is
        probe.until(
            lambda: np.abs(probe.q - START).max() > 0.1, again=lambda: probe.effort(0 * held)
        )
        answer = probe.call(SetBool, "brakes", SetBool.Request(data=True))
        assert answer.message == "brakes hold the robot"
        probe.states.clear()
        probe.until(lambda: len(probe.states) > 10)
        assert len({tuple(one.position) for one in probe.states}) == 1
        assert not probe.qd.any()
        assert probe.call(SetBool, "brakes", SetBool.Request(data=False)).success
        probe.until(lambda: probe.qd.any())
        assert "held by brakes" in probe.reset().message


def test_bad_input_is_refused_and_said():
    with SimulatorProcess(rate=100.0) as process, Watcher(process) as probe:
        good = np.arange(7.0)
        probe.until(
            lambda: probe.states and np.array_equal(probe.tau, good),
            again=lambda: probe.effort(good),
        )
        for bad in (good[:-1], np.full(7, np.nan)):
            probe.effort(bad)
        probe.effort_of(joint9=1.0)
        probe.push("wing", (1.0, 0.0, 0.0))
        probe.push("base_link", (1.0, 0.0, 0.0))
        probe.hang("rope", 1.0)
        for said in (
            "commands refused: 6 efforts for 7 joints",
            "commands refused: effort is not finite: joint1 = nan",
            "commands refused: no joints joint9",
            "disturbance refused: no body 'wing'",
            "payload refused: no body 'rope'",
        ):
            probe.until(lambda said=said: said in process.log)
        probe.until(lambda: probe.level("input") == DiagnosticStatus.WARN)
        probe.until(lambda: probe.value("input", "commands refused") == "3")
        np.testing.assert_array_equal(probe.tau, good)
        assert "no parameter 'realtime_fctor' (did you mean 'realtime_factor'?)" in probe.set(
            realtime_fctor=1.0
        )
        assert probe.set(rate=100.0) != ""  # read only
        assert probe.set(realtime_factor=0.0) != ""


@pytest.mark.backend_independent
def test_time_and_its_pace():
    parameters = {"publish_clock": True, "rate": 100.0, "realtime_factor": 0.5}
    with (
        SimulatorProcess("-r", "/clock:=clock", **parameters) as process,
        Watcher(process) as probe,
    ):
        clocks = []
        probe.node.create_subscription(Clock, "clock", clocks.append, 10)
        probe.until(lambda: len(clocks) > 20 and len(probe.states) > 20)
        stamps = np.array(
            [s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec for s in probe.states]
        )
        assert 0.0 < stamps[0] < stamps[-1] < 60.0  # simulated time, from zero
        periods = stamps / 0.01
        np.testing.assert_allclose(periods, np.round(periods), atol=1e-6)
        assert (np.diff(stamps) > 0.0).all()
        probe.until(lambda: "simulation" in probe.health)
        assert float(probe.value("simulation", "wanted rate [Hz]")) == pytest.approx(50.0)
        assert probe.set(realtime_factor=2.0) == ""
        probe.until(lambda: probe.value("simulation", "wanted rate [Hz]") == "200.0")


@pytest.mark.backend_independent
def test_the_last_command_holds_unless_it_may_lapse():
    with SimulatorProcess(rate=100.0) as process, Watcher(process) as probe:
        good = np.arange(7.0)
        probe.until(
            lambda: probe.states and np.array_equal(probe.tau, good),
            again=lambda: probe.effort(good),
        )
        probe.spin(1.0)
        np.testing.assert_array_equal(probe.tau, good)
        assert probe.set(command_timeout=0.3) == ""
        probe.until(lambda: not probe.tau.any())
        probe.until(lambda: "efforts are zero" in probe.said("input"))
        assert probe.level("input") == DiagnosticStatus.WARN


@pytest.mark.backend_independent
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (
            {"robot_description_file": "/nowhere.urdf"},
            "robot_description_file names '/nowhere.urdf', which is no file",
        ),
        ({"robot_description": "arm.urdf"}, "begins with 'arm.urdf'"),
        ({"integrator": "verlet"}, "valid is one of semi_implicit_euler"),
        ({"joints": "[joint9]"}, "no joint 'joint9'"),
        ({"initial_positions": "[1.0, 2.0]"}, "initial_positions has shape (2,)"),
    ],
)
def test_it_does_not_start_with_what_cannot_be(parameters, said):
    with SimulatorProcess(**parameters) as process, Probe(process):
        assert process.wait() == 1
        assert said in process.log


def test_a_simulation_that_cannot_keep_up_says_so():
    impossible = {"rate": 10000.0, "step": 1e-5, "realtime_factor": 100.0}  # 1e7 steps a second
    with SimulatorProcess(**impossible) as process, Probe(process) as probe:
        probe.until(lambda: probe.said("simulation").startswith("too slow: "))
        assert probe.level("simulation") == DiagnosticStatus.WARN


@pytest.mark.backend_independent
def test_the_parameter_file_holds_the_defaults():
    file = Path(__file__).parents[3] / "config" / "simulation.yaml"
    text = file.read_text(encoding="utf-8")
    given = yaml.safe_load(text)["/**"]["ros__parameters"]
    told = set(re.findall(r"^    (?:# )?([a-z_]+): ", text, re.MULTILINE))
    assert told == {item.name for item in fields(SimulatorSettings)} - {"robot_description"}
    for item in fields(SimulatorSettings):
        value = given.get(item.name, item.default)
        if isinstance(value, list):
            value = tuple(one for one in value if one != "")
        assert value == item.default, item.name
    # rcl reads it as well
    with SimulatorProcess("--params-file", str(file)) as process, Watcher(process) as probe:
        probe.until(lambda: probe.states)
        assert "no parameter" not in process.log


@pytest.mark.backend_independent
def test_topics_and_services_are_those_declared_and_diagnostics_are_documented():
    with SimulatorProcess(publish_clock=True, rate=100.0) as process, Watcher(process) as probe:
        probe.until(lambda: probe.states and "simulation" in probe.health)
        probe.spin(0.5)
        there = {}
        for kind in ("publishers", "subscribers", "services"):
            there |= found(probe, kind)
        entries = declared("simulator_node", command_topic="controller/commands")
        assert there == types(entries)
        for topic, words in (
            qualities(probe, "publishers") | qualities(probe, "subscribers")
        ).items():
            assert words == quality(entries[topic]), topic
        values = [pair.key for status in probe.health.values() for pair in status.values]
        assert [value for value in values if not says("simulator_node", value)] == []
