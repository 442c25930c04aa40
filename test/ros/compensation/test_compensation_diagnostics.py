# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Levels and values of the diagnostics of gravity_compensation_node, without a node."""

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import JOINTS, Bench

from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.ros.compensation import outputs
from mbs_dynamics.ros.compensation.outputs import Traffic
from mbs_dynamics.ros.performance import InputStatistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
TRAFFIC = Traffic("/commands", 1, 0, commands=100)


def parts(status):
    """Return level, message and values of a status."""
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


def command(bench, controller="", **traffic):
    problems = bench.core.problems(bench.now, traffic.get("rivals", 0))
    problems += [controller] if controller else []
    return parts(outputs.command_status(bench.core, problems, TRAFFIC._replace(**traffic)))


def test_input_that_is_good_rejected_missing_or_not_wanted():
    bench, bad = Bench().enabled(), Rejection("partial", "joint7 is missing")
    for lifecycle, rejected, silence, level in (
        ("inactive", 0, 0.0, OK),
        ("active", 1, 0.0, WARN),
        ("unconfigured", 1, 0.0, OK),
        ("active", 1, 1.0, ERROR),
        ("unconfigured", 1, 1.0, OK),
    ):
        bench.silence(silence)
        statistics = InputStatistics(bench.now - 1.0)
        for _ in range(rejected):
            statistics.rejected(bad)
        report = statistics.report(bench.now)
        found, message, values = parts(
            outputs.input_status(lifecycle, bench.core, report, bench.now)
        )
        assert found == level
        assert values["lifecycle state"] == lifecycle
        assert level != WARN or "joint7 is missing" in message


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
    ("traffic", "level", "words"),
    [
        ({}, OK, "enabled"),
        ({"subscribers": 0}, WARN, "/commands"),
        ({"rivals": 2}, WARN, "2 other publisher(s) on /commands"),
    ],
)
def test_command_while_enabled_says_what_holds_it_back(traffic, level, words):
    bench = Bench().enabled()
    found, message, values = command(bench, **traffic)
    assert found == level
    assert words in message
    assert values["commands in the last second"] == "100"
    last = [float(values[f"last command: {joint}"]) for joint in JOINTS]
    assert last == pytest.approx(bench.commands[-1][1], abs=1e-4)


@pytest.mark.parametrize(
    ("limited", "words"),
    [({"behind": True}, "rate limit"), ({"saturated": [1], "behind": True}, "limit of joint2")],
)
def test_limits_that_clip_torques_are_warnings(limited, words, monkeypatch):
    bench = Bench().enabled()
    for name, value in limited.items():
        monkeypatch.setattr(Guard, name, value)
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
