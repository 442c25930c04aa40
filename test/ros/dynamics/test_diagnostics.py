# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levels and values of the diagnostics of dynamics_node, without a node."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus

from mbs_dynamics.control.contact import ToolWrench
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import MbsError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.dynamics import publishers
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import ModelManager
from mbs_dynamics.ros.performance import InputStatistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
ARM7 = robot_path("arm7").read_text(encoding="utf-8")
OBSERVING = DynamicsSettings(publish=("external_torques",))


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


@pytest.mark.parametrize(
    ("state", "stale_for", "rejected", "missing", "level", "words"),
    [
        ("active", None, 0, "", OK, "Hz"),
        ("active", 2.5, 0, "", ERROR, "2.5 s"),
        ("active", 2.5, 1, "", ERROR, "2.5 s; 1 joint_states rejected: q is NaN"),
        ("active", None, 2, "", WARN, "2 joint_states rejected: q is NaN"),
        ("active", None, 0, "no twists: it has none", WARN, "no twists: it has none"),
        ("inactive", 2.5, 1, "", OK, "inactive"),
    ],
)
def test_input_that_is_good_stale_rejected_inactive_or_without_velocities(
    state, stale_for, rejected, missing, level, words
):
    statistics = InputStatistics(0.0)
    for k in range(50):
        statistics.answered(0.2 * k, 0.2 * k)
    for _ in range(rejected):
        statistics.rejected(Rejection("not_finite", "q is NaN"))
    report, joints = statistics.report(10.0), ("joint2", "joint3")
    found, message, values = parts(
        messages.input_status(state, report, stale_for, joints, missing=missing)
    )
    assert found == level
    assert words in message
    assert (values["answered"], values["joints not fresh"]) == ("50", "joint2, joint3")


def test_models_that_are_missing_in_force_or_refused():
    manager = ModelManager(DynamicsSettings())
    level, message, values = parts(publishers.model_status(manager, {}))
    assert (level, values) == (WARN, {})
    assert manager.describe(ARM7)
    level, message, values = parts(publishers.model_status(manager, {}))
    assert level == OK
    assert "'arm7'" in message
    assert (values["joints"], values["payloads"]) == ("7", "none")
    with pytest.raises(MbsError):
        manager.describe("<robot/>")
    level, message, values = parts(publishers.model_status(manager, {}))
    assert level == ERROR
    assert values["model"] == "arm7"


@pytest.mark.parametrize(("observed", "level"), [(4, WARN), (6, OK)])
def test_efforts_show_external_torques_and_how_much_of_the_wrench_is_observed(observed, level):
    wrench = ToolWrench(np.ones(6), observed, 0.25)
    torques = np.array([2.0, -3.5])
    contact = SimpleNamespace(joints=("joint1", "joint3"), torques=torques, wrench=wrench)
    found, _, values = parts(publishers.effort_status(OBSERVING, contact, "", 1))
    assert found == level
    assert values == {
        "external torques of": "joint1, joint3",
        "largest external torque [N m]": "3.5",
        "wrench directions observed": f"{observed} of 6",
        "smallest singular value": "0.25",
    }
    contact = SimpleNamespace(joints=(), torques=None, wrench=None)
    found, message, values = parts(
        publishers.effort_status(OBSERVING, contact, "no effort of a", 1)
    )
    assert (found, message) == (WARN, "no effort of a")
    assert values == {"external torques of": "none"}
