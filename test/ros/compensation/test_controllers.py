# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which controller takes the efforts of these joints, from what the controller manager lists."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")

from mbs_dynamics.ros.compensation.controllers import Controller, controller_of, problem

pytestmark = pytest.mark.backend_independent

JOINTS = ("shoulder", "elbow")
KIND = "forward_command_controller/ForwardCommandController"
RIGHT = Controller("efforts", "active", KIND, ("shoulder/effort", "elbow/effort"))
HOLDER = Controller("holder", "inactive", "some/Other", ("shoulder/position", "elbow/position"))


def test_the_right_controller_has_no_problem():
    assert problem([HOLDER, RIGHT], "efforts", JOINTS) == ""


def test_an_inactive_controller_is_right_only_where_that_is_asked_for():
    idle = RIGHT._replace(state="inactive")
    assert problem([idle], "efforts", JOINTS) == "controller 'efforts' is inactive; valid is active"
    assert problem([idle], "efforts", JOINTS, states=("inactive", "active")) == ""


@pytest.mark.parametrize(
    ("controllers", "said"),
    [
        ([], "controller 'efforts' is not loaded; loaded controllers: none"),
        ([HOLDER], "controller 'efforts' is not loaded; loaded controllers: holder"),
        (
            [RIGHT._replace(state="unconfigured", command_interfaces=())],
            "controller 'efforts' is unconfigured; valid is active",
        ),
        (
            [RIGHT._replace(command_interfaces=())],
            f"controller 'efforts' ({KIND}) commands no joint",
        ),
        (
            [RIGHT._replace(command_interfaces=("shoulder/effort", "elbow/position"))],
            "controller 'efforts' commands elbow/position; valid is the interface effort",
        ),
        (
            [RIGHT._replace(command_interfaces=("elbow/effort", "shoulder/effort"))],
            "controller 'efforts' has other order: it takes [elbow, shoulder]; "
            "joints is [shoulder, elbow]",
        ),
        (
            [RIGHT._replace(command_interfaces=("shoulder/effort",))],
            "controller 'efforts' has other joints: it takes [shoulder]; "
            "joints is [shoulder, elbow]",
        ),
        (
            [RIGHT._replace(command_interfaces=("left/shoulder/effort", "left/elbow/effort"))],
            "controller 'efforts' has other joints: it takes [left/shoulder, left/elbow]; "
            "joints is [shoulder, elbow]",
        ),
    ],
    ids=["none", "another", "state", "no joint", "interface", "order", "fewer", "chained"],
)
def test_a_problem_is_said_with_what_is_valid(controllers, said):
    assert problem(controllers, "efforts", JOINTS) == said


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("/forward_effort_controller/commands", "forward_effort_controller"),
        ("/left/efforts/commands", "efforts"),
        ("efforts/commands", "efforts"),
        ("/commands", ""),
        ("commands", ""),
        ("/efforts/targets", ""),
        ("", ""),
    ],
)
def test_the_topic_names_the_controller(topic, name):
    assert controller_of(topic) == name
