# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Transitions of the lifecycle: what comes first, and what becomes of one that raises an error."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from waiting import TIMEOUT

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import gravity_compensation_node
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.ros.gravity_compensation_node import GravityCompensationNode

pytestmark = pytest.mark.usefixtures("ros")

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
ERROR = TransitionCallbackReturn.ERROR
GIVEN = {"robot_description": str(robot_path("arm7")), "autostart": False}
JOINTS = mbs.Model.from_urdf(robot_path("arm7")).joint_names


@pytest.fixture(params=[DynamicsNode, GravityCompensationNode])
def node(request):
    overrides = [Parameter(name, value=value) for name, value in GIVEN.items()]
    made = request.param(namespace="lifecycle_errors", parameter_overrides=overrides)
    assert made.trigger_configure() == SUCCESS
    if request.param is DynamicsNode:
        assert made.trigger_activate() == SUCCESS
    yield made
    made.destroy_node()


def ask(node):
    """Return the answer to ``~/enable``."""
    return asyncio.run(node._on_enable(SetBool.Request(data=True), SetBool.Response()))


@pytest.fixture
def enabled():
    """Make a node of gravity compensation that commands torques, without a robot."""
    own = {"joints": list(JOINTS), "compensates_itself": False, "ramp_time": 0.2}
    own |= {"stale_timeout": 10.0}  # if it is busy here
    overrides = [Parameter(name, value=value) for name, value in (GIVEN | own).items()]
    made = GravityCompensationNode(namespace="lifecycle_order", parameter_overrides=overrides)
    assert made.trigger_configure() == SUCCESS
    made.create_subscription(Float64MultiArray, "forward_effort_controller/commands", list, 10)
    message = JointState(name=JOINTS, position=[0.3] * 7, velocity=[0.0] * 7)

    def hear():
        message.header.stamp = made.get_clock().now().to_msg()
        made._on_joint_states(message)

    hear()
    answer = ask(made)
    assert answer.success, answer.message
    end = time.monotonic() + TIMEOUT
    while made._core.state != "enabled" and time.monotonic() < end:
        hear()
        time.sleep(0.01)
    yield made
    made.destroy_node()


def test_deactivation_fails_and_ramps_out_until_torques_are_out(enabled, monkeypatch):
    events, now = [], time.monotonic()
    monkeypatch.setattr(gravity_compensation_node.time, "monotonic", lambda: now)
    send, publish = enabled._outputs.send, enabled._enabled.publish

    def sends(command, stamp=None):
        events.append(command)
        send(command, stamp)

    def publishes(message):
        events.append(message.data)
        publish(message)

    monkeypatch.setattr(enabled._outputs, "send", sends)
    monkeypatch.setattr(enabled._enabled, "publish", publishes)
    assert enabled.trigger_deactivate() == FAILURE
    assert events == [False]
    assert "joint_states" in heard(enabled)
    while not enabled._core.at_rest:
        now += 0.01
        enabled._on_time()
    sizes = [max(map(abs, command)) for command in events[1:] if command is not None]
    assert len(sizes) > 3
    assert sizes[0] > 1.0
    assert sizes[-1] == 0.0
    assert (np.diff(sizes) <= 0.0).all()
    assert enabled.trigger_deactivate() == SUCCESS
    assert "joint_states" in heard(enabled)
    assert enabled.trigger_cleanup() == SUCCESS
    assert "joint_states" not in heard(enabled)
    assert "configure the node first" in ask(enabled).message
    assert enabled._core.arm is None
    assert enabled.trigger_configure() == SUCCESS


def heard(node):
    """Return the names of the topics that the node hears, those of rclpy left out."""
    return {Path(s.topic_name).name for s in node.subscriptions} - {"parameter_events"}


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
