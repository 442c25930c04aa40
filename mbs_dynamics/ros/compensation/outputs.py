# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of gravity_compensation_node: commands and diagnostics."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.topic_endpoint_info import TopicEndpointInfo
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.compiler import call_mechanism, default_backend
from mbs_dynamics.control.called_laws import name_of
from mbs_dynamics.control.collision import Collision
from mbs_dynamics.errors import quoted
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.performance import Report

FLUSH_TIMEOUT = Duration(seconds=4.0)
"""Longest wait until the controller has received the last command. Fast DDS sends what was lost
again within 3 s."""


def full_name(end: TopicEndpointInfo) -> str:
    """Return the full name of the node of a publisher or subscription."""
    return f"{end.node_namespace.rstrip('/')}/{end.node_name}"


class Traffic(NamedTuple):
    """State of the command topic."""

    topic: str
    subscribers: int
    rivals: int
    """Other publishers on it."""
    commands: int
    """Number published since the report before."""


class CommandOutputs:
    """Publishes commands, the same torques by name if subscribed to, and collisions."""

    def __init__(
        self, node: Any, topic: str, joints: Sequence[str], *, collisions: bool = False
    ) -> None:
        self._node = node
        self._name = topic
        self.topic: str = node.resolve_topic_name(topic)
        """The full name of the command topic."""
        self._command = Float64MultiArray()
        self._effort = messages.JointMessage(joints, "effort")
        self._commands: Publisher | None = None
        self._torques: Publisher | None = None
        self._collisions: list[Publisher] = []
        self._detects = collisions
        self._count = 0
        self._by_name = False

    def open(self) -> None:
        """Create the publishers."""
        self._commands = self._node.advertise("<command_topic>", self._name)
        self._torques = self._node.advertise("~/commanded_torques")
        if self._detects:
            topics = "~/collision", "~/contact_wrench"
            self._collisions = [self._node.advertise(topic) for topic in topics]

    def close(self) -> None:
        """Destroy the publishers, once the last command has arrived.

        A subscriber discards messages of a destroyed publisher that it has not yet received, and a
        controller would hold the command before.
        """
        self.flush()
        for publisher in (self._commands, self._torques, *self._collisions):
            if publisher is not None:
                self._node.destroy_publisher(publisher)
        self._commands = self._torques = None
        self._collisions = []

    def send(self, command: Sequence[float] | None, stamp: Time | None = None) -> None:
        """Publish a command (n,) in N m or N; None: nothing. ``stamp`` is that of its cause."""
        if command is None or self._commands is None or self._torques is None:
            return
        self._command.data = array("d", command)
        self._commands.publish(self._command)
        if self._by_name:
            when = stamp or self._node.stamp_now()
            self._torques.publish(self._effort.fill(when, np.array(command)))
        self._count += 1

    def look(self) -> None:
        """Notice who subscribes to the torques by name: to ask for each command takes too long."""
        self._by_name = self._torques is not None and self._torques.get_subscription_count() > 0

    def collided(self, collision: Collision, names: Sequence[str], prefix: str) -> None:
        """Publish a collision of the joints ``names`` (n,)."""
        stamp = messages.time_of(collision.stamp)
        watched = [
            k for k in np.flatnonzero(collision.torques).tolist() if names[k] != collision.joint
        ]
        order = [names.index(collision.joint), *watched]
        torques = messages.JointMessage([names[k] for k in order], "effort")
        wrench = messages.wrench_message(prefix + collision.link)
        filled = torques.fill(stamp, collision.torques[order]), wrench.fill(stamp, collision.wrench)
        for publisher, message in zip(self._collisions, filled, strict=False):
            publisher.publish(message)

    def flush(self) -> None:
        """Wait until the last command has arrived."""
        if self._commands is not None and not self._commands.wait_for_all_acked(FLUSH_TIMEOUT):
            self._node.get_logger().error(f"the last command on {self.topic} was not received")

    def other_publishers(self) -> int:
        """Return the number of other publishers on the command topic."""
        publishing: int = self._node.count_publishers(self.topic)
        return max(0, publishing - (self._commands is not None))

    def rivals(self) -> list[str]:
        """Return the full names of the other nodes that publish on the command topic."""
        publishing = map(full_name, self._node.get_publishers_info_by_topic(self.topic))
        own = self._node.get_fully_qualified_name()
        return [name for name in publishing if name != own]

    def reporting(self, topic: str) -> list[str]:
        """Return the full names of the nodes that publish on a topic of the node."""
        resolved = self._node.resolve_topic_name(topic)
        return sorted({full_name(x) for x in self._node.get_publishers_info_by_topic(resolved)})

    def subscribers(self) -> list[str]:
        """Return the full names of the nodes that subscribe to the command topic."""
        return [full_name(one) for one in self._node.get_subscriptions_info_by_topic(self.topic)]

    def traffic(self) -> Traffic:
        """Return the state of the command topic, and restart the counts."""
        subscribers = self._commands.get_subscription_count() if self._commands is not None else 0
        traffic = Traffic(self.topic, subscribers, self.other_publishers(), self._count)
        self._count = 0
        return traffic


# -- diagnostics -----------------------------------------------------------------------------------


def model_status(core: GravityCompensator, refusals: Mapping[str, str]) -> DiagnosticStatus:
    """Return the state of the model, and why the latest payload or gravity was refused."""
    arm, summary = core.arm, ""
    values: dict[str, object] = {}
    warning = "" if arm is not None else "no robot_description yet"
    if arm is not None:
        summary = f"model {quoted(arm.model.name)} in force"
        limits = arm.running.given.effort[arm.joints]
        names, fastest = arm.model.joint_names, arm.model.velocity_limits
        unwatched = [names[k] for k in arm.joints if fastest[k] == math.inf]
        values = {
            "model": arm.model.name,
            "joints": ", ".join(core.settings.joints),
            "algorithm": core.settings.algorithm,
            "backend": default_backend(),
            "kernels called through": call_mechanism(default_backend()),
            "effort limits": ", ".join(f"{most:.6g}" for most in limits),
            "speed not watched": ", ".join(unwatched) or "none",
            **messages.environment_values(arm.gravity, core.loads),
        }
    if core.pending is not None:
        warning = "a new robot_description waits until no torque is commanded or held"
    error = f"robot_description refused: {core.refused}" if core.refused else ""
    return messages.status(
        "model", summary, values, warning=warning, error=error, refusals=refusals
    )


def input_status(
    lifecycle: str, core: GravityCompensator, report: Report, now: float
) -> DiagnosticStatus:
    """Return the state of the input: rates, latencies and rejections."""
    values: dict[str, object] = {
        "lifecycle state": lifecycle,
        "valid": report.answered,
        **report.values,
    }
    if lifecycle not in ("inactive", "active"):
        return messages.status("input", f"not configured: {lifecycle}", values)
    problem, unused = core.input_problem(now), ""
    if report.rejected:
        unused = f"{report.rejected} joint_states not used: {report.last_rejection}"
    inactive = "" if core.arm is None else "; ".join(core.arm.events.inactive_checks())
    if inactive:
        values["inactive checks"] = inactive
        unused = "; ".join(filter(None, (inactive, unused)))
    rate = f"{report.rate:.1f} Hz"
    return messages.status("input", rate, values, warning=unused, error=problem)


def command_status(
    core: GravityCompensator,
    problems: Sequence[str],
    traffic: Traffic,
    trouble: str = "",
    *,
    alone: bool = False,
) -> DiagnosticStatus:
    """Return the state of the commands.

    ``problems`` prevent enabling, ``trouble`` is that with the controllers; ``alone``: it leaves
    the torques as all that holds the arm.
    """
    state, fault, arm = core.state, core.fault, core.arm
    holding = not core.at_rest and not core.engaged and not core.stopping
    values: dict[str, object] = {
        "state": state,
        **({} if arm is None else {"law": name_of(arm.law) if arm.law else "gravity compensation"}),
        "fault": fault.kind if fault else "none",
        "fault reason": fault.reason if fault else "none",
        "would be refused because": "; ".join(problems) or "nothing",
        "on_fault": core.settings.on_fault,
        "command topic": traffic.topic,
        "subscribers": traffic.subscribers,
        "other publishers": traffic.rivals,
        "commands in the last second": traffic.commands,
    }
    for joint, torque in zip(core.settings.joints, core.latest, strict=True):
        values[f"last command: {joint}"] = f"{torque:.4f}"
    warning = error = ""
    if fault is not None:
        error = f"stopped by a fault, until ~/clear: {fault.reason}"
        if holding:
            error += "; the controller holds the last torques until disabled or cleared"
    elif state == "disabled":
        warning = f"disabled; cannot be enabled: {problems[0]}" if problems else ""
    elif trouble:
        warning = f"{state}; {trouble}"
        error = f"{warning}; the torques alone hold the arm" if alone else ""
    elif traffic.subscribers == 0:
        warning = f"{state}, but {traffic.topic} has no subscriber"
    elif arm is not None and (saturated := arm.state_record.saturated_since < math.inf).any():
        joints = ", ".join(arm.model.joint_names[k] for k in np.flatnonzero(saturated))
        warning = f"{state}, at the effort limit of {joints}"
    elif arm is not None and arm.state_record.behind:
        warning = f"{state}, at the rate limit"
    if traffic.rivals and not warning:
        warning = f"{state}; {traffic.rivals} other publisher(s) on {traffic.topic}"
    return messages.status("command", state, values, warning=warning, error=error)
