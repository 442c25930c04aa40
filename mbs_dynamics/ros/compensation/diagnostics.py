# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The health of gravity compensation as diagnostic messages."""

from __future__ import annotations

from typing import NamedTuple

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mbs_dynamics.compiler import way_of_calling
from mbs_dynamics.ros.compensation.command_policy import State
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.input_statistics import Report
from mbs_dynamics.ros.messages import status


class Traffic(NamedTuple):
    """What the node knows about its command topic."""

    topic: str
    subscribers: int
    rivals: int
    """Others that publish on it."""
    commands: int
    """Sent since the report before."""
    limited_effort: int
    """How many of these were held back by an effort limit."""
    limited_rate: int
    """How many of these were held back by the rate limit."""


def diagnostics(
    node_name: str,
    stamp: Time,
    lifecycle: str,
    core: GravityCompensator,
    controller: str,
    report: Report,
    traffic: Traffic,
    now: float,
) -> DiagnosticArray:
    """Return the message about model, input and command."""
    array = DiagnosticArray()
    array.header.stamp = stamp
    problems = core.problems(now, traffic.rivals)
    if controller:
        problems.append(controller)
    statuses = [
        model_status(core),
        input_status(lifecycle, core, report, now),
        command_status(core, problems, traffic),
    ]
    for one in statuses:
        one.name = f"{node_name}: {one.name}"
        one.hardware_id = core.arm.model.name if core.arm else ""
    array.status = statuses
    return array


def model_status(core: GravityCompensator) -> DiagnosticStatus:
    """Return the state of the model: which, and what was refused or waits."""
    arm, values = core.arm, {}
    if arm is None:
        level, said = DiagnosticStatus.WARN, "no robot_description yet"
    else:
        level, said = DiagnosticStatus.OK, f"model {arm.model.name!r} in force"
        g, cost = arm.law.gravity.goal, core.cost()
        values = {
            "model": arm.model.name,
            "joints": ", ".join(core.settings.joints),
            "algorithm": arm.law.algorithm,
            **(cost.values() if cost is not None else {}),
            "backend": arm.backend,
            "kernels called through": way_of_calling(arm.backend),
            "effort limits": ", ".join(f"{most:.6g}" for most in arm.efforts),
            "speed not watched": ", ".join(arm.speeds.unlimited) or "none",
            "gravity [m/s^2]": f"{g[0]:.6g}, {g[1]:.6g}, {g[2]:.6g}",
            "payloads": ", ".join(f"{load.mass:.6g} kg at {load.link}" for load in core.loads)
            or "none",
        }
    if core.pending is not None:
        level = DiagnosticStatus.WARN
        said = "a new robot_description waits until no torque is commanded or held"
    if core.refused:
        level = DiagnosticStatus.ERROR
        said = f"robot_description refused: {core.refused}"
    return status("model", level, said, values)


def input_status(
    lifecycle: str, core: GravityCompensator, report: Report, now: float
) -> DiagnosticStatus:
    """Return the state of the input: rates, durations, what was rejected and why."""
    values: dict[str, object] = {
        "lifecycle state": lifecycle,
        "valid": report.total_answered,
        **report.values(),
    }
    problem = "" if core.arm is None else core.input_problem(now)
    level, said = DiagnosticStatus.OK, f"{report.rate:.1f} Hz"
    if lifecycle != "active":
        said = f"not active: {lifecycle}"
    elif problem:
        level, said = DiagnosticStatus.ERROR, problem
    elif report.rejected:
        level = DiagnosticStatus.WARN
        said = f"{report.rejected} joint_states not used: {report.last_rejection}"
    return status("input", level, said, values)


def command_status(
    core: GravityCompensator, problems: list[str], traffic: Traffic
) -> DiagnosticStatus:
    """Return what is commanded, why not, and what holds it back."""
    policy = core.policy
    fault = policy.fault
    values: dict[str, object] = {
        "state": policy.state.value,
        "fault": fault.kind if fault else "none",
        "fault reason": fault.reason if fault else "none",
        "would be refused because": "; ".join(problems) or "nothing",
        "on_fault": core.settings.on_fault,
        "command topic": traffic.topic,
        "subscribers": traffic.subscribers,
        "other publishers": traffic.rivals,
        "commands in the last second": traffic.commands,
        "of these at an effort limit": traffic.limited_effort,
        "of these at the rate limit": traffic.limited_rate,
    }
    for joint, torque in zip(core.settings.joints, policy.latest, strict=False):
        values[f"last command: {joint}"] = f"{torque:.4f}"
    level, said = DiagnosticStatus.OK, policy.state.value
    if policy.state is State.FAULT and fault is not None:
        level, said = DiagnosticStatus.ERROR, f"stopped by a fault: {fault.reason}"
        if policy.holding:
            said += "; the controller holds the last torques until disabled or enabled"
    elif policy.state is State.DISABLED:
        if problems:
            level, said = DiagnosticStatus.WARN, f"disabled; cannot be enabled: {problems[0]}"
    elif traffic.subscribers == 0:
        level = DiagnosticStatus.WARN
        said = f"{policy.state.value}, but nobody subscribes to {traffic.topic}"
    elif traffic.limited_effort:
        level = DiagnosticStatus.WARN
        said = f"{policy.state.value}, at the effort limit of {_limited(core)}"
    elif traffic.limited_rate:
        level, said = DiagnosticStatus.WARN, f"{policy.state.value}, at the rate limit"
    if traffic.rivals and level == DiagnosticStatus.OK:
        level = DiagnosticStatus.WARN
        said += f"; {traffic.rivals} other publisher(s) on {traffic.topic}"
    return status("command", level, said, values)


def _limited(core: GravityCompensator) -> str:
    joints = [core.settings.joints[k] for k in core.policy.limited.effort]
    return ", ".join(joints) or "some joint, not just now"
