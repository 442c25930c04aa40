# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the diagnostics of the gravity compensation node say of the model, without a node."""

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import ARM7, Bench

from mbs_dynamics.ros.compensation.diagnostics import model_status


def test_the_model_in_force_and_waiting():
    found = model_status(Bench(describe="").core)
    assert (found.level, found.message) == (DiagnosticStatus.WARN, "no robot_description yet")
    bench = Bench().enabled()
    found = model_status(bench.core)
    assert (found.level, found.message) == (DiagnosticStatus.OK, "model 'arm7' in force")
    other = ARM7.replace('effort="180"', 'effort="170"', 1)
    assert bench.core.describe(other, bench.now)
    found = model_status(bench.core)
    assert found.level == DiagnosticStatus.WARN
    assert found.message.startswith("a new robot_description waits")
