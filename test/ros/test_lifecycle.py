# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Transitions of the lifecycle: what comes first, and what becomes of one that raises an error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.ros.gravity_compensation_node import GravityCompensationNode

pytestmark = [pytest.mark.usefixtures("ros"), pytest.mark.backend_independent]

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
