# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the diagnostics of the gravity compensation node say of the model, without a node."""

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import ARM7, JOINTS, Bench, Q

from mbs_dynamics.control.joint_input import Rejection
from mbs_dynamics.control.policy import Fault
from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros.compensation.outputs import (
    Traffic,
    command_status,
    input_status,
    model_status,
)
from mbs_dynamics.ros.performance import InputStatistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
TRAFFIC = Traffic(
    "/commands", subscribers=1, rivals=0, commands=100, limited_effort=0, limited_rate=0
)


def said(bench, part, lifecycle="active", controller="", rejection=None, **traffic):
    """Return level, message and values of the status of a part."""
    statistics = InputStatistics(bench.now - 1.0)
    if rejection:
        statistics.rejected(rejection)
    problems = bench.core.problems(bench.now, traffic.get("rivals", 0))
    problems += [controller] if controller else []
    one = {
        "model": lambda: model_status(bench.core, {}),
        "input": lambda: input_status(
            lifecycle, bench.core, statistics.report(bench.now), bench.now
        ),
        "command": lambda: command_status(bench.core, problems, TRAFFIC._replace(**traffic)),
    }[part]()
    assert one.name == part
    return one.level, one.message, {pair.key: pair.value for pair in one.values}


def test_the_model_in_force_and_waiting():
    found = model_status(Bench(describe="").core, {})
    assert (found.level, found.message) == (DiagnosticStatus.WARN, "no robot_description yet")
    bench = Bench().enabled()
    found = model_status(bench.core, {})
    assert (found.level, found.message) == (DiagnosticStatus.OK, "model 'arm7' in force")
    other = ARM7.replace('effort="180"', 'effort="170"', 1)
    assert bench.core.describe(other, bench.now)
    found = model_status(bench.core, {})
    assert found.level == DiagnosticStatus.WARN
    assert found.message.startswith("a new robot_description waits")


def test_a_description_that_is_refused_is_an_error():
    bench = Bench()
    bench.core.describe("no XML", bench.now)
    with pytest.raises(MbsError):
        bench.core.adopt(bench.now)
    level, message, _ = said(bench, "model")
    assert level == ERROR
    assert message.startswith("robot_description refused: ")


def test_input_that_is_good_rejected_missing_or_not_wanted():
    bench = Bench().enabled()
    level, message, values = said(bench, "input")
    assert (level, message) == (OK, "0.0 Hz")
    assert (values["lifecycle state"], values["valid"]) == ("active", "0")
    bad = Rejection("partial", "joint7 is missing")
    level, message, _ = said(bench, "input", rejection=bad)
    assert (level, message) == (WARN, "1 joint_states not used: joint7 is missing")
    assert said(bench, "input", lifecycle="inactive")[:2] == (OK, "not active: inactive")
    bench.silence(1.0)
    level, message, _ = said(bench, "input", rejection=bad)
    assert level == ERROR
    assert message.startswith("no valid joint_states for")
    assert said(bench, "input", lifecycle="inactive")[:2] == (OK, "not active: inactive")
    assert said(Bench(describe=""), "input")[:2] == (OK, "0.0 Hz")


def test_command_while_disabled_says_why_it_cannot_be_enabled():
    bench = Bench()
    level, message, values = said(bench, "command")
    assert (level, message) == (WARN, "disabled; cannot be enabled: no valid joint_states so far")
    assert values["would be refused because"] == "no valid joint_states so far"
    bench.send()
    level, message, values = said(bench, "command")
    assert (level, message) == (OK, "disabled")
    assert values["would be refused because"] == "nothing"
    assert values["fault"] == values["fault reason"] == "none"
    level, message, _ = said(bench, "command", controller="it holds positions")
    assert (level, message) == (WARN, "disabled; cannot be enabled: it holds positions")
    level, message, _ = said(bench, "command", rivals=2)
    assert level == WARN
    assert message.startswith("disabled; cannot be enabled: 2 other publisher(s) on ")


@pytest.mark.parametrize(
    ("traffic", "expected"),
    [
        ({}, (OK, "enabled")),
        ({"subscribers": 0}, (WARN, "enabled, but /commands has no subscriber")),
        ({"subscribers": 2}, (OK, "enabled")),
        ({"limited_rate": 3}, (WARN, "enabled, at the rate limit")),
        (
            {"limited_effort": 1, "limited_rate": 3},
            (WARN, "enabled, at the effort limit of some joint, not just now"),
        ),
        ({"rivals": 2}, (WARN, "enabled; 2 other publisher(s) on /commands")),
        ({"rivals": 2, "limited_rate": 3}, (WARN, "enabled, at the rate limit")),
    ],
)
def test_command_while_enabled_says_what_holds_it_back(traffic, expected):
    bench = Bench().enabled()
    level, message, values = said(bench, "command", **traffic)
    assert (level, message) == expected
    assert values["commands in the last second"] == "100"
    last = [float(values[f"last command: {joint}"]) for joint in JOINTS]
    assert last == pytest.approx(bench.commands[-1][1], abs=1e-4)


def test_joints_at_their_effort_limit_are_named():
    bench = Bench(effort_scale=0.05, saturation_timeout=2.0).enabled(q=0.0 * Q)
    bench.move(0.0 * Q, Q)
    held_back = bench.core.policy.limited.effort
    assert held_back
    level, message, _ = said(bench, "command", limited_effort=5)
    named = ", ".join(JOINTS[k] for k in held_back)
    assert (level, message) == (WARN, f"enabled, at the effort limit of {named}")


@pytest.mark.parametrize("on_fault", ["ramp_down", "hold"])
def test_a_fault_is_an_error_that_says_whether_torques_are_held(on_fault):
    bench = Bench(on_fault=on_fault).enabled()
    bench.core.fail(Fault("test", "it was tried"), bench.now)
    held = "; the controller holds the last torques until disabled or enabled"
    bench.silence(3.0)
    level, message, values = said(bench, "command", subscribers=0)
    assert level == ERROR
    assert message == "stopped by a fault: it was tried" + held * (on_fault == "hold")
    assert (values["fault"], values["fault reason"]) == ("test", "it was tried")
