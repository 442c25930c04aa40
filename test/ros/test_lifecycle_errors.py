# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""A transition of the lifecycle that raises an error: no node goes on as if nothing had been."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.ros.gravity_compensation_node import GravityCompensationNode

pytestmark = [pytest.mark.usefixtures("ros"), pytest.mark.backend_independent]

SUCCESS, ERROR = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.ERROR
GIVEN = {"robot_description_file": str(robot_path("arm7")), "autostart": False}


@pytest.fixture(params=[DynamicsNode, GravityCompensationNode])
def node(request):
    overrides = [Parameter(name, value=value) for name, value in GIVEN.items()]
    made = request.param(namespace="lifecycle_errors", parameter_overrides=overrides)
    assert made.trigger_configure() == SUCCESS
    assert made.trigger_activate() == SUCCESS
    yield made
    made.destroy_node()


def heard(node):
    """Return the names of the topics that the node hears, those of rclpy left out."""
    return {Path(s.topic_name).name for s in node.subscriptions} - {"parameter_events"}


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
        assert node.trigger_deactivate() == ERROR
    assert node.trigger_configure() == SUCCESS  # which is possible when unconfigured only
    assert node.trigger_activate() == SUCCESS


@pytest.mark.parametrize("node", [GravityCompensationNode], indirect=True)
def test_if_that_fails_as_well_torques_cannot_be_enabled(node, monkeypatch):
    def fails(_):
        raise RuntimeError("spoilt")

    with monkeypatch.context() as patched:
        patched.setattr(node, "destroy_subscription", fails)
        assert node.trigger_deactivate() == ERROR
    answer = node._on_enable(SetBool.Request(data=True), SetBool.Response())
    assert not answer.success
    assert "activate the node first" in answer.message
