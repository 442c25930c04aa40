# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""No message that a stranger can publish delays the commands of the node while it is enabled."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import InertiaStamped, Vector3, Vector3Stamped
from gravity_bench import ARM7, JOINTS, REST, Q
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String
from waiting import TIMEOUT

from mbs_dynamics.ros.gravity_compensation_node import GravityCompensationNode

LONGEST_DELAY = 0.020
"""Processor time in s of a callback; waiting for other processes does not count."""

MANY = 1_000_000
DESCRIPTIONS = (
    ARM7.replace('mass value="', f'mass value="{"1" * 300_000}'),
    "<robot name='r'>" + "<a>" * MANY + "</a>" * MANY + "</robot>",
    "<!-- " * (MANY // 5),
    "<!---->" * (MANY // 7),
    ARM7 + f"<!-- {'x' * 7_000_000} -->",
    " \n" * 4_000_000,
)


def stated(**fields):
    """Return the joint states of the robot, now, with other fields."""
    fields = {"name": JOINTS, "position": Q.tolist(), "velocity": REST.tolist()} | fields
    message = JointState(**fields)
    stamp = message.header.stamp
    stamp.sec, stamp.nanosec = divmod(time.time_ns(), 10**9)
    return message


def oversized():
    """Yield (topic, message) with long names and arrays."""
    yield from (("robot_description", String(data=text)) for text in DESCRIPTIONS)
    for count in (7000, MANY):
        zeros = [0.0] * count
        for names in (["x" * count], [""] * count, [f"{k}" for k in range(count)]):
            yield "joint_states", stated(name=names)
        yield "joint_states", stated(name=[*JOINTS, *map(str, range(count))], position=zeros)
        for field in ("position", "velocity", "effort"):
            yield "joint_states", stated(**{field: zeros})
        for topic, kind in (("gravity", Vector3Stamped), ("payload", InertiaStamped), ("imu", Imu)):
            yield topic, kind(header=Header(frame_id="x" * count))


class Enabled:
    """The node in this process, enabled again before each message."""

    def __init__(self):
        values = {
            "joints": JOINTS,
            "compensates_itself": False,
            "use_imu": True,
            "ramp_time": 0.05,
            "stale_timeout": 10.0,
        }
        given = [Parameter(name, value=value) for name, value in values.items()]
        self.node = GravityCompensationNode(namespace="hostile", parameter_overrides=given)
        assert self.node.start()
        self.core = self.node._core
        self.callbacks = {Path(one.topic_name).name: one for one in self.node.subscriptions}

    def receive(self, topic, message):
        self.callbacks[topic].callback(message)

    def enable(self):
        """Enable it if the message before has stopped it."""
        end = time.monotonic() + TIMEOUT
        while not self.core.engaged:
            assert time.monotonic() < end
            self.node._on_time()
            self.receive("robot_description", String(data=ARM7))
            level = Imu(linear_acceleration=Vector3(z=9.81))
            level.header.stamp, level.header.frame_id = stated().header.stamp, "base_link"
            self.receive("imu", level)
            self.receive("joint_states", stated())
            if self.core.fault is not None and self.core.at_rest:
                self.core.clear(time.monotonic())
            self.core.enable(time.monotonic())
        self.receive("joint_states", stated())

    def delay(self, topic, message):
        """Return the processor time in s of the callback; the least of three."""
        spent = []
        for _ in range(3):
            self.enable()
            begin = time.thread_time()
            self.receive(topic, message)
            spent.append(time.thread_time() - begin)
            if spent[-1] < LONGEST_DELAY:
                break
        return min(spent)


@pytest.fixture(scope="module")
def enabled(ros):
    made = Enabled()
    yield made
    made.node.destroy_node()


def test_no_message_delays_the_commands_of_an_enabled_node(enabled):
    slow = []
    for topic, message in oversized():
        spent = enabled.delay(topic, message)
        if spent > LONGEST_DELAY:
            slow.append((topic, str(message)[:200], spent))
    assert slow == []


def test_another_description_stops_the_node_before_it_is_read(enabled, monkeypatch):
    """The same with another comment does not; either is read once no torque is commanded."""
    read = []
    module = "mbs_dynamics.ros.compensation.gravity_compensator.model_of"
    enabled.enable()
    monkeypatch.setattr(module, lambda *given: read.append(given))
    for text in (ARM7, ARM7 + "<!-- new -->", ARM7.replace("<robot", "<!-- <!-- a --><robot", 1)):
        enabled.receive("robot_description", String(data=text))
        assert enabled.core.engaged
    enabled.receive("robot_description", String(data=ARM7.replace("180", "170")))
    assert enabled.core.fault.kind == "new_description"
    assert enabled.core.pending is not None
    assert read == []
