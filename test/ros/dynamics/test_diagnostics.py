# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the diagnostics of dynamics_node say, without a node."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus

import mbs_dynamics as mbs
from mbs_dynamics.control.contact import ToolWrench
from mbs_dynamics.control.joint_input import Rejection
from mbs_dynamics.errors import MbsError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.feed_forward import DesiredTorques
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.outputs import (
    desired_status,
    effort_status,
    input_status,
    model_status,
)
from mbs_dynamics.ros.dynamics.robot import ModelManager, Robot
from mbs_dynamics.ros.performance import InputStatistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
ARM7 = robot_path("arm7").read_text(encoding="utf-8")


@pytest.fixture
def manager():
    made = ModelManager(DynamicsSettings())
    assert made.describe(ARM7)
    return made


@pytest.fixture
def statistics():
    """Return the statistics of ten seconds with 50 messages."""
    made = InputStatistics(0.0)
    for k in range(50):
        made.answered(0.2 * k, 0.2 * k, 0.2 * k, "")
    return made


def said(manager, statistics, state="active", stale_for=None, joints=()):
    """Return level, message and values of each status."""
    report = statistics.report(10.0)
    found = [
        model_status(manager, {}),
        input_status(state, manager.settings, report, stale_for, joints),
    ]
    assert [one.name for one in found] == ["model", "input"]
    return [
        (one.level, one.message, {pair.key: pair.value for pair in one.values}) for one in found
    ]


def test_good_input(manager, statistics):
    model, given = said(manager, statistics)
    assert model[:2] == (OK, f"model {manager.robot.model.name!r} in force")
    assert (model[2]["joints"], model[2]["payloads"]) == ("7", "none")
    assert given[:2] == (OK, "5.0 Hz")
    assert (given[2]["answered"], given[2]["joints not fresh"]) == ("50", "none")


def test_stale_rejected_and_inactive_input(manager, statistics):
    found = said(manager, statistics, stale_for=2.5, joints=("joint2", "joint3"))[1]
    assert found[:2] == (ERROR, "stale: no valid joint_states for 2.5 s")
    assert found[2]["joints not fresh"] == "joint2, joint3"
    statistics.rejected(Rejection("not_finite", "q is NaN"))
    found = said(manager, statistics, stale_for=2.5)[1]
    expected = "stale: no valid joint_states for 2.5 s; 1 rejected: q is NaN"
    assert found[:2] == (ERROR, expected)
    statistics.rejected(Rejection("not_finite", "q is NaN"))
    found = said(manager, statistics)[1]
    assert found[:2] == (WARN, "1 joint_states rejected: q is NaN")
    found = said(manager, statistics, state="inactive", stale_for=2.5)[1]
    assert found[:2] == (OK, "not active: inactive")


def test_input_without_velocities(manager, statistics):
    statistics.answered(9.9, 9.9, 9.9, "the message has none")
    level, message, _ = said(manager, statistics)[1]
    assert level == WARN
    assert message.startswith("no ")
    assert message.endswith(": the message has none")


def test_models_that_are_missing_or_refused(manager, statistics):
    none = ModelManager(DynamicsSettings())
    assert said(none, statistics)[0] == (WARN, "no robot_description yet", {})
    for made, kept in ((none, "there is no model"), (manager, "the model before it stays")):
        with pytest.raises(MbsError):
            made.describe("<robot/>")
        level, message, _ = said(made, statistics)[0]
        assert level == ERROR
        assert message.startswith(f"robot_description refused, {kept}")


@pytest.mark.parametrize(("observed", "level"), [(4, WARN), (6, OK)])
def test_efforts_tell_external_torques_and_how_much_of_the_wrench_is_observed(observed, level):
    contact = SimpleNamespace(
        joints=("joint1", "joint3"),
        torques=np.array([2.0, -3.5]),
        wrench=ToolWrench(np.ones(6), observed, 0.25),
        why_not="",
    )
    wanted = DynamicsSettings(publish_external_torques=True)
    found = effort_status(wanted, contact, "", 1)
    assert found.level == level
    assert ("it is partial" in found.message) == (observed < 6)
    assert {pair.key: pair.value for pair in found.values} == {
        "external torques of": "joint1, joint3",
        "largest external torque [N m]": "3.5",
        "wrench directions observed": f"{observed} of 6",
        "smallest singular value": "0.25",
    }


def test_efforts_that_are_missing_or_not_heard_yet_are_said():
    contact = SimpleNamespace(joints=(), torques=None, wrench=None, why_not="no effort of joint2")
    wanted = DynamicsSettings(publish_external_torques=True)
    found = effort_status(wanted, contact, "no effort of joint2", 1)
    assert (found.level, found.message) == (WARN, "no effort of joint2")
    assert {pair.key: pair.value for pair in found.values} == {"external torques of": "none"}
    assert effort_status(wanted, contact, "", 0).message == "nothing received yet"
    assert effort_status(wanted, contact, "", 1).message == "efforts of all joints"


@pytest.mark.parametrize(
    ("asked", "of_observer", "of_others", "said"),
    [
        ("external_torques", "none", "none", "~/external_torques missing or partial: none"),
        ("energy", "", "none", "the power on ~/energy missing or partial: none"),
        ("energy", "no stamp", "", ""),
        (
            "external_torques tool_wrench energy",
            "no stamp",
            "none",
            "~/external_torques and ~/tool_wrench missing or partial: no stamp; "
            "the power on ~/energy missing or partial: none",
        ),
    ],
)
def test_topics_that_lack_efforts_are_named(asked, of_observer, of_others, said):
    contact = Contact()
    contact.why_not = of_observer
    settings = DynamicsSettings(**{f"publish_{name}": True for name in asked.split()})
    assert contact.lacking(settings, of_others) == said


def test_desired_points_that_were_refused_since_the_status_before_are_a_warning():
    desired = DesiredTorques(Robot(mbs.Model.from_urdf(ARM7), DynamicsSettings()))
    desired.answers((), [([0.0] * 7, [], [], [])], None)
    found = desired_status(desired)
    assert (found.level, found.message) == (OK, "1 desired points answered")
    values = {pair.key: pair.value for pair in found.values}
    assert values == {"answered": "1", "rejected": "0", "last rejection": "none"}
    desired.answers((), [([0.0] * 6, [], [], [])], None)
    found = desired_status(desired)
    said = "7 desired joints but 6 position value(s)"
    assert (found.level, found.message) == (WARN, f"1 desired points rejected: {said}")
    found = desired_status(desired)
    assert (found.level, found.message) == (OK, "1 desired points answered")
    values = {pair.key: pair.value for pair in found.values}
    assert values == {"answered": "1", "rejected": "1", "last rejection": said}
