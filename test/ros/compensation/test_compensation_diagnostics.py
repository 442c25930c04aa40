# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levels and values of the diagnostics of gravity_compensation_node, without a node."""

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import Bench

from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.ros.compensation import outputs
from mbs_dynamics.ros.compensation.outputs import Traffic

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
TRAFFIC = Traffic("/commands", 1, 0)


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


def command(bench, controller="", **traffic):
    problems = bench.core.problems(bench.now, traffic.get("rivals", 0))
    problems += [controller] if controller else []
    return parts(outputs.command_status(bench.core, problems, TRAFFIC._replace(**traffic)))


def test_command_while_disabled_says_why_it_cannot_be_enabled():
    bench, key = Bench(), "would be refused because"
    level, message, values = command(bench)
    assert level == WARN
    assert values[key] in message
    bench.send()
    level, message, values = command(bench)
    assert (level, message, values[key], values["fault"]) == (OK, "disabled", "nothing", "none")
    for given in ({"controller": "it holds positions"}, {"rivals": 2}):
        level, message, values = command(bench, **given)
        assert level == WARN
        assert values[key] in message


@pytest.mark.parametrize(
    ("limited", "words"),
    [
        ({"behind": 1.0}, "rate limit"),
        ({"saturated_since": np.where(np.arange(7) == 1, 0.0, np.inf)}, "limit of joint2"),
    ],
)
def test_limits_that_clip_torques_are_warnings(limited, words, monkeypatch):
    bench = Bench().enabled()
    record = bench.core.arm.state_record._replace(**limited)
    monkeypatch.setattr(Guard, "state_record", record)
    level, message, _ = command(bench)
    assert level == WARN
    assert words in message


@pytest.mark.parametrize("on_fault", ["ramp_down", "hold"])
def test_a_fault_is_an_error_that_says_whether_torques_are_held(on_fault):
    bench = Bench(on_fault=on_fault).enabled()
    bench.core.fail(Fault("test", "it was tried"), bench.now)
    bench.silence(3.0)
    level, message, values = command(bench, subscribers=0)
    assert level == ERROR
    assert "it was tried" in message
    assert ("holds the last torques" in message) == (on_fault == "hold")
    assert (values["fault"], values["fault reason"]) == ("test", "it was tried")
