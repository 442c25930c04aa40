# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The simulator as a process of its own, over DDS: it falls, it is held, it is pushed and reset."""

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from rosgraph_msgs.msg import Clock
from simulator_bench import SMOOTH, SimulatorProcess, Watcher
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.messages import stamp_of
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import World

pytestmark = pytest.mark.usefixtures("ros")

ARM = mbs.Model.from_urdf(robot_path("arm7"))
TEXT = SMOOTH.read_text(encoding="utf-8")
START = [0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4]
EXACT = {"robot_description": SMOOTH, "joint_damping": "[0.0]", "initial_positions": str(START)}
EXACT |= {"brakes": False}


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
        still, push = np.abs(probe.qd).max(), lambda: probe.push("link4", (40.0, 0.0, 0.0))
        probe.until(lambda: np.abs(probe.qd).max() > 2.0 * still + 0.5, again=push)
        # a load is taken up, and said
        probe.until(
            lambda: probe.value_of("simulation", "payloads") == "2 kg at tool",
            again=lambda: probe.payload("tool", 2.0),
            every=0.3,
        )
        probe.payload("rope", 1.0)
        probe.until(
            lambda: "no body 'rope'" in (probe.value_of("simulation", "refused payload") or "")
        )
        assert probe.set(gravity=[9.81, 0.0, 0.0]) == ""
        probe.until(lambda: probe.value_of("simulation", "gravity [m/s^2]") == "9.81, 0, 0")
        assert "length of 981" in probe.set(gravity=[0.0, 0.0, -981.0])
        assert process.stop(signal.SIGINT) == 0


def test_brakes_hold_the_arm_until_commands_carry_it_or_the_service_releases_it():
    """At half the speed of real time, by a clock that the simulator publishes."""
    held, clocks = mbs.gravity_torques(ARM, START), []
    given = {"publish_clock": True, "rate": 100.0, "realtime_factor": 0.5}
    given["initial_positions"] = str(START)
    with SimulatorProcess("-r", "/clock:=clock", **given) as process, Watcher(process) as probe:
        probe.node.create_subscription(Clock, "clock", clocks.append, 10)
        probe.until(lambda: len(clocks) > 20 and len(probe.states) > 50)  # nobody commands
        assert {tuple(one.position) for one in probe.states} == {tuple(START)}
        stamps = np.array([1e-9 * stamp_of(one.header.stamp) for one in probe.states])
        assert 0.0 < stamps[0] < stamps[-1] < 60.0  # simulated time, from zero
        np.testing.assert_allclose(stamps, np.round(stamps, 2), atol=1e-8)
        assert (np.diff(stamps) > 0.0).all()
        probe.until(lambda: "simulation" in probe.health)
        assert float(probe.value_of("simulation", "wanted rate [Hz]")) == pytest.approx(50.0)
        probe.until(
            lambda: "moves nothing: brakes hold the robot" in process.log,
            again=lambda: probe.push("link4", (40.0, 0.0, 0.0)),
        )
        half = 0.5 * held
        probe.until(lambda: np.allclose(probe.tau, half), again=lambda: probe.effort(half))
        probe.until(lambda: "do not carry the robot" in probe.said("input"))
        np.testing.assert_array_equal(probe.q, START)
        probe.until(
            lambda: "the commands carry the robot: brakes are released" in process.log,
            again=lambda: probe.effort(held),
        )
        assert np.abs(probe.q - START).max() < 0.01
        answer = probe.call(SetBool, "brakes", SetBool.Request(data=True))
        assert answer.message == "brakes hold the robot"
        assert "held by brakes" in probe.reset().message


def test_after_a_stall_the_arm_is_where_its_stamps_say():
    given = {"joint_damping": (0.0,), "initial_positions": tuple(START), "brakes": False}
    settings = SimulatorSettings(robot_description=TEXT, **given)
    world = World(mbs.Model.from_urdf(SMOOTH), settings)
    with SimulatorProcess(**EXACT) as simulator, Watcher(simulator) as probe:
        probe.until(lambda: len(probe.states) > 20)
        simulator.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        simulator.process.send_signal(signal.SIGCONT)
        probe.drain()
        end = probe.now + 0.7
        probe.until(lambda: probe.now > end)
    periods = [round(settings.rate * 1e-9 * stamp_of(one.header.stamp)) for one in probe.states]
    while not np.allclose(world.state[0], probe.states[0].position, rtol=0.0, atol=1e-9):
        assert world.advance()  # until the first state that was heard
        assert world.time < 100.0
    done = periods[0]
    assert max(np.diff(periods)) > 0.3 * settings.rate  # late states are not published
    for period, heard in zip(periods, probe.states, strict=True):
        for _ in range(period - done):
            world.advance()
        done = period
        np.testing.assert_allclose(heard.position, world.state[0], rtol=0.0, atol=1e-6)
