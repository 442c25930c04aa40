# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node's state of health as diagnostic messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mbs_dynamics.compiler import way_of_calling
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.desired import DesiredTorques
from mbs_dynamics.ros.dynamics.model_manager import ModelManager
from mbs_dynamics.ros.dynamics.settings import DynamicsSettings
from mbs_dynamics.ros.evaluation_cost import Cost
from mbs_dynamics.ros.input_statistics import Report
from mbs_dynamics.ros.messages import status


def diagnostics(
    node_name: str,
    stamp: Time,
    state: str,
    manager: ModelManager,
    report: Report,
    stale_for: float | None,
    stale_joints: Sequence[str],
    more: Iterable[DiagnosticStatus] = (),
    cost: Cost | None = None,
) -> DiagnosticArray:
    """Return the message; ``stale_for`` is the age in s of stale input, else None.

    ``stale_joints`` says which joints are not fresh; ``more`` are further statuses, of outputs that
    not every user asks for; ``cost`` is that of an answer.
    """
    array = DiagnosticArray()
    array.header.stamp = stamp
    statuses = [
        model_status(manager, cost),
        input_status(state, manager, report, stale_for, stale_joints),
        *more,
    ]
    for one in statuses:
        one.name = f"{node_name}: {one.name}"
        one.hardware_id = manager.robot.model.name if manager.robot else ""
    array.status = statuses
    return array


def model_status(manager: ModelManager, cost: Cost | None = None) -> DiagnosticStatus:
    """Return the state of the model: which, with what back end, and what was refused."""
    robot = manager.robot
    values: dict[str, object] = {}
    if robot is None:
        level, said = DiagnosticStatus.WARN, "no robot_description yet"
    else:
        level, said = DiagnosticStatus.OK, f"model {robot.model.name!r} in force"
        g = robot.model.gravity
        values = {
            "model": robot.model.name,
            "joints": robot.model.n,
            "joint names": ", ".join(robot.model.joint_names),
            "bodies": ", ".join(robot.bodies),
            "representation": robot.settings.representation,
            "algorithm": robot.settings.algorithm,
            **(cost.values() if cost is not None else {}),
            "backend": robot.backend,
            "kernels called through": way_of_calling(robot.backend),
            "gravity [m/s^2]": f"{g[0]:.6g}, {g[1]:.6g}, {g[2]:.6g}",
            "payloads": ", ".join(f"{load.mass:.6g} kg at {load.link}" for load in manager.loads)
            or "none",
        }
    if manager.refused:
        level = DiagnosticStatus.ERROR
        kept = "the model before it stays in force" if robot else "there is no model"
        said = f"robot_description refused, {kept}: {manager.refused}"
    return status("model", level, said, values)


def input_status(
    state: str,
    manager: ModelManager,
    report: Report,
    stale_for: float | None,
    stale_joints: Sequence[str],
) -> DiagnosticStatus:
    """Return the state of the input: rates, latencies, what was rejected and why."""
    values: dict[str, object] = {
        "lifecycle state": state,
        "answered": report.total_answered,
        "skipped by max_rate": report.total_skipped,
        "repeated stamps": report.total_repeated,
        "joints not fresh": ", ".join(stale_joints) or "none",
        **report.values(),
    }
    level, said = DiagnosticStatus.OK, f"{report.rate:.1f} Hz"
    if state != "active":
        said = f"not active: {state}"
    elif stale_for is not None:
        level, said = DiagnosticStatus.ERROR, f"stale: no valid joint_states for {stale_for:.1f} s"
        if report.rejected:
            said += f"; {report.rejected} rejected: {report.last_rejection}"
    elif report.rejected:
        level = DiagnosticStatus.WARN
        said = f"{report.rejected} joint_states rejected: {report.last_rejection}"
    elif report.without_velocity:
        level = DiagnosticStatus.WARN
        lacking = " and ".join(manager.settings.needing_velocity)
        said = f"no {lacking}: {report.without_velocity}"
    return status("input", level, said, values)


def effort_status(
    settings: DynamicsSettings, contact: Contact, why_less: str, answered: int
) -> DiagnosticStatus:
    """Return what efforts in joint_states are good for: what is missing, and what was seen."""
    level, said = DiagnosticStatus.OK, "efforts of all joints" if answered else "nothing heard yet"
    values: dict[str, object] = {}
    if settings.observes:
        values["external torques of"] = ", ".join(contact.joints) or "none"
        if contact.torques is not None:
            values["largest external torque [N m]"] = f"{abs(contact.torques).max():.6g}"
    wrench = contact.wrench
    if wrench is not None:
        values["wrench directions felt"] = f"{wrench.felt} of 6"
        values["smallest singular value"] = f"{wrench.weakest:.3g}"
        if wrench.felt < 6:
            level = DiagnosticStatus.WARN
            said = (
                f"the joints feel {wrench.felt} of 6 directions of the tool wrench: it is partial"
            )
    why_not = contact.why_not or why_less
    if why_not:
        level, said = DiagnosticStatus.WARN, why_not
    return status("effort", level, said, values)


def desired_status(desired: DesiredTorques) -> DiagnosticStatus:
    """Return how desired points were answered."""
    lately = desired.rejected_lately()
    level, said = DiagnosticStatus.OK, f"{desired.answered} desired points answered"
    if lately:
        level = DiagnosticStatus.WARN
        said = f"{lately} desired points rejected: {desired.last_rejection}"
    values = {
        "answered": desired.answered,
        "rejected": desired.rejected,
        "last rejection": desired.last_rejection or "none",
    }
    return status("desired", level, said, values)
