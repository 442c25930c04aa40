# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levels and values of the diagnostics of dynamics_node, without a node."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus

from mbs_dynamics.control.contact import ToolWrench
from mbs_dynamics.ros.dynamics import publishers
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
OBSERVING = DynamicsSettings(publish=("external_torques",))


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


@pytest.mark.parametrize(("observed", "level"), [(4, WARN), (6, OK)])
def test_efforts_show_external_torques_and_how_much_of_the_wrench_is_observed(observed, level):
    wrench = ToolWrench(np.ones(6), observed, 0.25)
    torques = np.array([2.0, -3.5])
    contact = SimpleNamespace(joints=("joint1", "joint3"), torques=torques, wrench=wrench)
    found, _, values = parts(publishers.effort_status(OBSERVING, contact, "", 1))
    assert found == level
    assert values == {
        "external torques of": "joint1, joint3",
        "wrench directions observed": f"{observed} of 6",
    }
    contact = SimpleNamespace(joints=(), torques=None, wrench=None)
    found, message, values = parts(
        publishers.effort_status(OBSERVING, contact, "no effort of a", 1)
    )
    assert (found, message) == (WARN, "no effort of a")
    assert values == {"external torques of": "none"}
