# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node in this process: transitions of its lifecycle, errors in them, and hostile messages.

No message that a stranger can publish delays the commands of the node while it is enabled.
"""

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import InertiaStamped, Vector3, Vector3Stamped
from gravity_bench import ARM7, JOINTS, REST, Q
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String
from std_srvs.srv import SetBool
from waiting import wait_until

from mbs_dynamics.ros import gravity_compensation_node
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.ros.gravity_compensation_node import GravityCompensationNode

pytestmark = pytest.mark.usefixtures("ros")

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
ERROR = TransitionCallbackReturn.ERROR


def made(kind, **values):
    """Return a node that is configured."""
    overrides = [Parameter(k, value=x) for k, x in ({"autostart": False} | values).items()]
    node = kind(namespace="in_process", parameter_overrides=overrides)
    assert node.trigger_configure() == SUCCESS
    return node


def ask(node):
    """Return the answer to ``~/enable``."""
    return asyncio.run(node._on_enable(SetBool.Request(data=True), SetBool.Response()))


def heard(node):
    """Return the names of the topics that the node hears, those of rclpy left out."""
    return {Path(s.topic_name).name for s in node.subscriptions} - {"parameter_events"}


def stated(**fields):
    """Return the joint states of the robot, now, with other fields."""
    fields = {"name": JOINTS, "position": Q.tolist(), "velocity": REST.tolist()} | fields
    message = JointState(**fields)
    stamp = message.header.stamp
    stamp.sec, stamp.nanosec = divmod(time.time_ns(), 10**9)
    return message


class Enabled:
    """The gravity compensation node, enabled again before each message."""

    def __init__(self):
        given = {"joints": JOINTS, "compensates_itself": False, "use_imu": True}
        self.node = made(GravityCompensationNode, ramp_time=0.1, stale_timeout=10.0, **given)
        self.core = self.node._core
        self.callbacks = {Path(one.topic_name).name: one for one in self.node.subscriptions}

    def receive(self, topic, message):
        self.callbacks[topic].callback(message)

    def enable(self):
        """Enable it if the message before has stopped it."""
        wait_until(lambda: self.core.engaged, self.try_to_enable)
        self.receive("joint_states", stated())

    def try_to_enable(self):
        self.node._on_time()
        self.receive("robot_description", String(data=ARM7))
        level = Imu(linear_acceleration=Vector3(z=9.81))
        level.header.stamp, level.header.frame_id = stated().header.stamp, "base_link"
        self.receive("imu", level)
        self.receive("joint_states", stated())
        if self.core.fault is not None and self.core.at_rest:
            self.core.clear(time.monotonic())
        self.core.enable(time.monotonic())

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


@pytest.fixture
def enabled():
    one = Enabled()
    yield one
    one.node.destroy_node()


# -- the lifecycle ---------------------------------------------------------------------------------


def test_deactivation_fails_and_ramps_out_until_torques_are_out(enabled, monkeypatch):
    node = enabled.node
    enabled.enable()
    assert ask(node).success
    wait_until(
        lambda: node._core.state == "enabled", lambda: enabled.receive("joint_states", stated())
    )
    events, now = [], time.monotonic()
    monkeypatch.setattr(gravity_compensation_node.time, "monotonic", lambda: now)
    monkeypatch.setattr(node._outputs, "send", lambda command, stamp=None: events.append(command))
    monkeypatch.setattr(node._enabled, "publish", lambda message: events.append(message.data))
    assert node.trigger_deactivate() == FAILURE
    assert events == [False]
    assert "joint_states" in heard(node)
    while not node._core.at_rest:
        now += 0.01
        node._on_time()
    sizes = [max(map(abs, command)) for command in events[1:] if command is not None]
    assert len(sizes) > 3
    assert sizes[0] > 1.0
    assert sizes[-1] == 0.0
    assert (np.diff(sizes) <= 0.0).all()
    assert node.trigger_deactivate() == SUCCESS
    assert "joint_states" in heard(node)
    assert node.trigger_cleanup() == SUCCESS
    assert "joint_states" not in heard(node)
    assert "configure the node first" in ask(node).message
    assert node._core.arm is None
    assert node.trigger_configure() == SUCCESS


@pytest.fixture(params=[DynamicsNode, GravityCompensationNode])
def node(request):
    one = made(request.param, robot_description=ARM7)
    if request.param is DynamicsNode:
        assert one.trigger_activate() == SUCCESS
    yield one
    one.destroy_node()


def end(node):
    """Trigger the transition that ends the subscription to joint states."""
    return (node.trigger_deactivate if isinstance(node, DynamicsNode) else node.trigger_cleanup)()


def test_after_an_error_it_is_unconfigured_and_can_begin_anew(node, monkeypatch):
    listening = heard(node)
    assert "joint_states" in listening
    with monkeypatch.context() as patched:
        destroy, calls = node.destroy_subscription, []

        def fails_once(subscription):
            calls.append(subscription)
            if len(calls) == 1:
                raise RuntimeError("spoilt")
            return destroy(subscription)

        patched.setattr(node, "destroy_subscription", fails_once)
        assert end(node) == ERROR
    assert node.trigger_configure() == SUCCESS  # which is possible when unconfigured only
    assert heard(node) <= listening


@pytest.mark.parametrize("node", [GravityCompensationNode], indirect=True)
def test_if_that_fails_as_well_torques_cannot_be_enabled(node, monkeypatch):
    def fails(_):
        raise RuntimeError("spoilt")

    with monkeypatch.context() as patched:
        patched.setattr(node, "destroy_subscription", fails)
        assert end(node) == ERROR
    answer = ask(node)
    assert not answer.success
    assert "configure the node first" in answer.message


# -- hostile messages ------------------------------------------------------------------------------

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
