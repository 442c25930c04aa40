# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The gravity compensation node over DDS: what stops it, what it refuses, and how it ends."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from gravity_node_bench import ARM7, JOINTS, MODEL, READY, REST, Driver, G, GravityProcess, Q
from rclpy.parameter import parameter_value_to_python
from std_msgs.msg import Float64MultiArray

import mbs_dynamics as mbs
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.settings import parameters_of

DECLARED = parameters_of(GravityCompensationSettings)
WHOLE = [item for item in DECLARED if not item.per]
BY_JOINT = [item for item in DECLARED if item.per == "joint"]

pytestmark = pytest.mark.usefixtures("ros")

TEXT = ARM7.read_text(encoding="utf-8")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def arm(ros):
    """Start a node that can be enabled, for tests that leave it able to be enabled."""
    with GravityProcess() as process, Driver(process) as driver:
        yield driver


def stamp_of(message):
    return 10**9 * message.header.stamp.sec + message.header.stamp.nanosec


def late(arm):
    arm.send(JOINTS, Q, REST, stamp=arm._stamp - 10**6)


def overrun(arm):
    assert arm.set(callback_timeout=1e-6) == ""
    arm.waits(lambda: arm.faults() and "callback of joint_states took" in arm.faults()[-1])
    assert arm.set(callback_timeout=READY["callback_timeout"]) == ""


STOPS = {
    "no valid joint_states for": lambda arm: arm.spin(1.0),
    "time goes backwards": late,
    "no valid joint_states of joint6 for": lambda arm: [
        (arm.send(JOINTS[:5], Q[:5], REST[:5]), arm.spin(0.01)) for _ in range(120)
    ],
    "joints named more than once: joint2": lambda arm: arm.send(
        [*JOINTS, "joint2"], [*Q, 1.0], [*REST, 0.0]
    ),
    "position is not finite: joint3 = nan": lambda arm: arm.send(
        JOINTS, np.where(np.arange(7) == 2, np.nan, Q), REST
    ),
    "velocity is not finite: joint7 = inf": lambda arm: arm.send(
        JOINTS, Q, np.where(np.arange(7) == 6, np.inf, REST)
    ),
    "joint2 is at 2.06; valid is -2.05 to 2.05": lambda arm: arm.send(
        JOINTS, np.where(np.arange(7) == 1, 2.06, Q), REST
    ),
    "joint4 moves at -99 by its reported velocity": lambda arm: arm.send(
        JOINTS, Q, np.where(np.arange(7) == 3, -99.0, REST)
    ),
    "joint1 jumped by 0.6 in 0.01 s": lambda arm: arm.send(
        JOINTS, Q + 0.6 * np.eye(7)[0], REST, stamp=arm.latest_stamp + 10**7
    ),
    "callback_timeout is": overrun,
}


@pytest.mark.parametrize("reason", STOPS)
def test_stops_on(arm, reason):
    arm.enable()
    before = len(arm.faults())
    STOPS[reason](arm)
    arm.until(lambda: len(arm.faults()) > before, every=0.01)
    assert reason in arm.faults()[-1]
    arm.zero()
    arm.check_commands()
    assert arm.silent()
    arm.waits(lambda: reason in (arm.value("fault reason") or ""))
    assert arm.value("state") == "fault"
    assert arm.level("command") == DiagnosticStatus.ERROR
    arm.waits(lambda: arm.enabled[-1:] == [False])


def test_a_new_description_stops_it_and_is_taken_up_afterwards(ros):
    with GravityProcess(robot_description_file=None) as process, Driver(process) as arm:
        arm.describe(TEXT)
        arm.enable()
        arm.describe(TEXT)  # the same again, as a publisher that is started anew sends it
        arm.describe(TEXT.replace("<robot", "<!-- new --><robot", 1))  # the same in other words
        until = time.monotonic() + 0.3
        arm.waits(lambda: time.monotonic() > until)
        assert arm.faults() == []
        arm.describe(TEXT.replace('effort="180"', 'effort="170"'))
        said = "the robot_description of another robot came while enabled"
        arm.waits(lambda: arm.faults() == [said])
        arm.zero()
        arm.waits(lambda: process.log.count("model 'arm7'") == 2)
        arm.enable()
        arm.describe("<robot/>")
        arm.waits(lambda: "robot_description refused" in process.log)
        arm.waits(lambda: "robot_description was refused" in arm.ask(True).message)


@pytest.mark.parametrize("how", ["hold", "zero"])
def test_on_fault(arm, how):
    assert arm.set(on_fault=how) == ""
    arm.enable()
    arm.named.clear()
    last = arm.send(JOINTS, Q, REST)
    before = len(arm.faults())
    arm.until(lambda: len(arm.faults()) > before, every=0.01)
    arm.spin(0.3)
    assert all((np.sign(c) * np.sign(G) >= 0.0).all() for _, c in arm.commands)
    if how == "hold":
        np.testing.assert_allclose(arm.commands[-1][1], G, atol=1e-9)
        assert max(map(stamp_of, arm.named)) <= stamp_of(last)
        arm.ask(False)  # lets the torques go
    else:
        stop = [one for one in arm.named if stamp_of(one) > stamp_of(last)]
        # with this rate limit and this silence, the first command of the stop is zero
        assert len(stop) == 1
        assert not any(stop[0].effort)
        assert stamp_of(stop[0]) - stamp_of(last) >= 1e9 * (READY["stale_timeout"] - 0.05)
    arm.zero()
    assert arm.silent()
    assert arm.set(on_fault="ramp_down") == ""


def test_commands_and_named_torques_are_the_same(arm):
    arm.enable()
    arm.named.clear()
    sent = arm.send(JOINTS, Q, REST)
    arm.waits(lambda: any(stamp_of(one) == stamp_of(sent) for one in arm.named))
    named = next(one for one in arm.named if stamp_of(one) == stamp_of(sent))
    assert tuple(named.name) == JOINTS
    np.testing.assert_allclose(named.effort, G, atol=1e-9)
    assert arm.ask(False).success
    arm.zero()
    assert arm.silent()


def test_payload_and_gravity(arm):
    loaded = MODEL.with_payload("tool", 2.0, (0.0, 0.02, 0.05))
    goal = mbs.gravity_torques(loaded, Q)  # compiles
    arm.enable()
    arm.payload("tool", 2.0, (0.0, 0.02, 0.05))
    arm.waits(lambda: np.allclose(arm.commands[-1][1], goal, atol=1e-9))
    between = [c[1] for _, c in arm.commands if min(G[1], goal[1]) < c[1] < max(G[1], goal[1])]
    assert between  # it did not leap
    arm.gravity((0.0, 1.0, -9.7))
    goal = mbs.gravity_torques(loaded.with_gravity((0.0, 1.0, -9.7)), Q)
    arm.waits(lambda: np.allclose(arm.commands[-1][1], goal, atol=1e-9))
    for bad in (("tool", -1.0), ("nowhere", 1.0), ("tool", np.nan), ("base_link", 1.0)):
        arm.payload(*bad)
    arm.gravity((0.0, 0.0, np.inf))
    arm.waits(lambda: "payload refused" in arm.target.log and "gravity refused" in arm.target.log)
    np.testing.assert_allclose(arm.commands[-1][1], goal, atol=1e-9)
    arm.payload("tool", 0.0)
    arm.gravity((0.0, 0.0, -9.81))
    arm.waits(lambda: np.allclose(arm.commands[-1][1], G, atol=1e-9))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"on_fault": "explode"}, "valid is one of hold, ramp_down, zero"),
        ({"stale_timeout": 0.0}, "out of range"),
        ({"ramp_time": float("nan")}, "ramp_time"),
        ({"effort_scale": 2.0}, "out of range"),
        ({"damping.joint2": -1.0}, "out of range"),
        ({"damping.joint2": 91.0}, "out of range"),  # 180 N m at 2 rad/s need 90 N m s/rad
        ({"damping.joint2": "much"}, "Wrong parameter type"),
        ({"damping.joint9": 1.0}, "no parameter 'damping.joint9' (did you mean"),
        ({"compensates_itself": "no"}, "Wrong parameter type"),
        ({"gravity": [0.0, 0.0]}, "gravity has shape (2,); valid is (3,)"),
        ({"joints": ["joint1"]}, "read-only"),
        ({"command_topic": "/elsewhere"}, "read-only"),
    ],
)
def test_bad_parameters_are_refused_with_the_reason(arm, values, said):
    assert said in arm.set(**values)


def test_parameters_take_effect_and_some_wait_for_rest(arm):
    arm.enable()
    assert "disable first" in arm.set(compensates_itself=True)
    assert "disable first" in arm.set(**{"effort_limits.joint2": 5.0})
    assert arm.set(**{"gravity_scale.joint2": 0.5}) == ""
    goal = np.where(np.arange(7) == 1, 0.5 * G, G)
    arm.waits(lambda: np.allclose(arm.commands[-1][1], goal, atol=1e-9))
    assert arm.set(**{"gravity_scale.joint2": 1.0}) == ""
    arm.ask(False)
    arm.zero()
    arm.waits(lambda: arm.value("state") == "disabled")
    assert arm.set(**{"effort_limits.joint2": 5.0}) == ""
    said = f"joint2 needs {G[1]:.4g} against gravity, and its effort limit is 5"
    assert said in arm.ask(True).message
    assert arm.set(**{"effort_limits.joint2": 40.0}) == ""
    arm.enable()
    assert arm.set(**{"damping.joint2": 90.0}) == ""

    def moving():
        arm.send(JOINTS, Q, np.where(np.arange(7) == 1, 0.5, REST))

    arm.waits(lambda: "at the effort limit of joint2" in arm.said("command"), moving)
    assert np.abs([torques[1] for _, torques in arm.commands]).max() <= 40.0
    arm.waits(lambda: any("joint2 has been at its effort limit" in x for x in arm.faults()), moving)
    arm.zero()
    arm.waits(lambda: arm.set(**{"effort_limits.joint2": 0.0, "damping.joint2": 0.0}) == "")


LARGEST = {
    "effort_limits": 110.0,
    "friction": 110.0,
    "damping": 110.0 / 2.2,
    "effort_rate_limit": 50.0 * 180.0,
    "max_payload": MODEL.total_mass,
}
"""Ends of ranges at the limits of the arm, for joint3."""


def test_every_parameter_is_described(arm):
    names = [item.name for item in WHOLE] + [f"{item.name}.joint3" for item in BY_JOINT]
    for item, descriptor in zip([*WHOLE, *BY_JOINT], arm.described(*names), strict=True):
        unit = f" Unit: {item.unit}." if item.unit else ""
        assert descriptor.description == item.description + unit
        assert descriptor.read_only == item.read_only
        ranges = [(r.from_value, r.to_value) for r in descriptor.floating_point_range]
        low, high = item.range or (None, None)
        expected = [(low, LARGEST.get(item.name, high))] if item.range else []
        np.testing.assert_allclose(ranges, expected, rtol=1e-12)


# -- nodes of their own ----------------------------------------------------------------------------


def test_enabling_is_refused_until_all_is_in_order(ros):
    with GravityProcess(compensates_itself=None) as process, Driver(process) as arm:
        answer = arm.ask(True)
        assert not answer.success
        assert "refused: the parameter compensates_itself is not set" in answer.message
        assert arm.set(compensates_itself=True) == ""
        assert "would double the compensation" in arm.ask(True).message
        assert arm.set(compensates_itself=False) == ""
        arm.send(JOINTS, np.where(np.arange(7) == 1, 2.06, Q), REST)
        arm.waits(lambda: arm.ask(True).success)
        arm.waits(lambda: arm.enabled[-1:] == [True])
        # what the controller's place is without a controller
        arm.node.destroy_subscription(
            next(s for s in arm.node.subscriptions if s.topic_name.endswith("/commands"))
        )
        arm.waits(lambda: "has no subscriber" in arm.said("command"))
        assert arm.level("command") == DiagnosticStatus.WARN


def test_enabling_is_refused_while_another_node_commands(ros):
    with GravityProcess() as process, Driver(process) as arm:
        topic = f"{process.namespace}/commands"
        rival = arm.node.create_publisher(Float64MultiArray, topic, 1)
        arm.waits(lambda: arm.node.count_publishers(topic) == 2)
        arm.waits(lambda: "1 other publisher(s) on commands" in arm.ask(True).message)
        arm.waits(lambda: arm.enabled == [False])
        arm.node.destroy_publisher(rival)
        arm.enable()
        rival = arm.node.create_publisher(Float64MultiArray, topic, 1)
        arm.waits(lambda: arm.said("command") == "enabled; 1 other publisher(s) on " + topic)


def test_deactivation_ramps_out(ros):
    with GravityProcess(on_fault="hold") as process, Driver(process) as arm:
        arm.enable()
        assert arm.transition("deactivate")
        arm.zero()
        assert arm.silent()
        assert "activate the node first" in arm.ask(True).message
        assert arm.transition("activate")
        arm.enable()
        assert arm.transition("shutdown")
        arm.zero()
        assert process.stop() == 0


@pytest.mark.parametrize(("how", "moving"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_signals_ramp_out(ros, how, moving):
    with GravityProcess(on_fault="hold") as process, Driver(process) as arm:
        arm.enable()
        process.process.send_signal(how)
        arm.commands.clear()
        while process.process.poll() is None:
            if moving:
                arm.well()
            arm.spin(0.01)
        arm.spin(0.3)
        assert process.wait() == 0
        assert "Traceback" not in process.log
        torques = np.array([command for _, command in arm.commands])
        assert not torques[-1].any()
        assert len(torques) > 5  # a ramp, not a leap
        assert (np.diff(np.abs(torques), axis=0) <= 1e-9).all()


def test_ends_at_once_while_nothing_is_commanded(ros):
    with GravityProcess(ramp_time=10.0, publish_twists="true") as process, Driver(process) as arm:
        arm.waits(lambda: "model" in arm.health)
        assert "ignored, as they are no parameters: publish_twists" in process.log
        assert process.stop() == 0
        assert arm.commands == []


def test_a_clock_that_stands_still_does_not_stop_the_watchdog(ros):
    with GravityProcess(use_sim_time="true") as process, Driver(process) as arm:
        arm.enable()
        arm.until(lambda: any("no valid joint_states" in one for one in arm.faults()), every=0.01)
        arm.zero()


def test_the_imu_gives_gravity(ros):
    with GravityProcess(use_imu="true", imu_time_constant=0.0) as process, Driver(process) as arm:
        felt = np.array([0.0, 3.0, 9.0])

        def well():
            arm.feel(felt)
            arm.well()

        arm.waits(lambda: process.log.count("model 'arm7'"), well)
        arm.waits(lambda: "no valid imu so far" in arm.ask(True).message)
        arm.waits(lambda: arm.node.count_subscribers(f"{process.namespace}/imu"), well)
        until = time.monotonic() + 0.3
        arm.waits(lambda: time.monotonic() > until, well)
        assert arm.ask(True).success
        goal = mbs.gravity_torques(MODEL.with_gravity(-felt), Q)
        arm.waits(lambda: arm.commands and np.allclose(arm.commands[-1][1], goal, atol=1e-9), well)
        arm.feel((np.nan, 0.0, 0.0))
        arm.waits(lambda: any("imu refused" in one for one in arm.faults()), well)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"on_fault": "explode"}, "cannot start: on_fault is 'explode'"),
        ({"ramp_time": -1.0}, "out of range"),
        ({"compensates_itself": "maybe"}, "expecting type 'BOOL'"),
        ({"joints": "[joint1, joint1]"}, "got twice: joint1"),
        ({"joints": "[elbow]"}, "no joint 'elbow'"),
    ],
)
def test_does_not_start_with_bad_parameters(ros, parameters, said):
    with GravityProcess(**parameters) as process:
        assert process.wait() == 1
        assert said in process.log
        assert "Traceback" not in process.log


def test_the_parameter_file_holds_the_defaults_and_is_complete(ros):
    file = ROOT / "config" / "gravity_compensation.yaml"
    given = yaml.safe_load(file.read_text(encoding="utf-8"))["/**"]["ros__parameters"]
    joints = given["joints"]
    unset = {"compensates_itself", "robot_description", "fixed_positions"}
    assert {item.name for item in (*WHOLE, *BY_JOINT)} - unset == set(given)
    own = dict.fromkeys(READY, None) | {"robot_description_file": None}
    with (
        GravityProcess("--params-file", str(file), **own) as process,
        Driver(process) as arm,
    ):
        defaults = GravityCompensationSettings(joints=tuple(joints))
        for name in {item.name for item in WHOLE} - unset - {"joints"}:
            value = parameter_value_to_python(arm.get(name))
            default = getattr(defaults, name)
            if isinstance(default, tuple):
                value = tuple(x for x in value if x != "")
            assert value == default, name
        for group in BY_JOINT:
            for k, joint in enumerate(joints):
                value = parameter_value_to_python(arm.get(f"{group.name}.{joint}"))
                assert value == getattr(defaults, group.name)[k]
        assert "no parameter" not in process.log
