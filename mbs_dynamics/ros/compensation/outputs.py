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

from mbs_dynamics.control.called_laws import name_of
from mbs_dynamics.control.collision import Collision
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.handover import UNKNOWN_NODE
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


class CommandOutputs:
    """Publishes commands, the same torques by name if subscribed to, and collisions."""

    def __init__(
        self, node: Any, topic: str, joints: Sequence[str], *, collisions: bool = False
    ) -> None:
        self._node = node
        self._name = topic
        self.topic: str = node.resolve_topic_name(topic)
        """The full name of the command topic."""
        self._joints = joints
        self._commands: Publisher | None = None
        self._torques = node.advertise("~/commanded_torques")
        topics = ("~/collision", "~/contact_wrench") if collisions else ()
        self._collisions = [node.advertise(topic) for topic in topics]

    def open(self) -> None:
        """Create the publisher of commands."""
        self._commands = self._node.advertise("<command_topic>", self._name)

    def close(self) -> None:
        """Destroy the publisher of commands, once the last command has arrived.

        A subscriber discards messages of a destroyed publisher that it has not yet received, and a
        controller would hold the command before.
        """
        self.flush()
        if self._commands is not None:
            self._node.destroy_publisher(self._commands)
        self._commands = None

    def send(self, command: Sequence[float] | None, stamp: Time | None = None) -> None:
        """Publish a command (n,) in N m or N; None: nothing. ``stamp`` is that of its cause."""
        if command is None or self._commands is None:
            return
        self._commands.publish(Float64MultiArray(data=array("d", command)))
        if self._torques.get_subscription_count():
            when = stamp or self._node.stamp_now()
            self._torques.publish(messages.joint_message(when, self._joints, effort=command))

    def collided(self, collision: Collision, names: Sequence[str], frame_prefix: str) -> None:
        """Publish a collision of the joints ``names`` (n,), the one that detects it first."""
        stamp, first = messages.time_of(collision.stamp), names.index(collision.joint)
        order = [first, *(k for k in np.flatnonzero(collision.torques).tolist() if k != first)]
        ordered, torques = [names[k] for k in order], collision.torques[order]
        wrench = messages.wrench_message(stamp, frame_prefix + collision.link, collision.wrench)
        collided, touched = self._collisions
        collided.publish(messages.joint_message(stamp, ordered, effort=torques))
        touched.publish(wrench)

    def flush(self) -> None:
        """Wait until the last command has arrived."""
        if self._commands is not None and not self._commands.wait_for_all_acked(FLUSH_TIMEOUT):
            self._node.get_logger().error(f"the last command on {self.topic} was not received")

    def other_publishers(self) -> int:
        """Return the number of other publishers on the command topic."""
        publishing: int = self._node.count_publishers(self.topic)
        return max(0, publishing - (self._commands is not None))

    def publishers_of(self, topic: str) -> list[str]:
        """Return the full names of the other nodes that publish on a topic of the node."""
        resolved = self._node.resolve_topic_name(topic)
        names = {full_name(one) for one in self._node.get_publishers_info_by_topic(resolved)}
        others = names - {self._node.get_fully_qualified_name()}
        return sorted(
            "a node whose name is not known yet" if name.endswith(UNKNOWN_NODE) else name
            for name in others
        )

    def subscribers(self) -> list[str]:
        """Return the full names of the nodes that subscribe to the command topic."""
        return [full_name(one) for one in self._node.get_subscriptions_info_by_topic(self.topic)]

    def traffic(self) -> Traffic:
        """Return the state of the command topic."""
        subscribers = self._commands.get_subscription_count() if self._commands is not None else 0
        return Traffic(self.topic, subscribers, self.other_publishers())


# -- diagnostics -----------------------------------------------------------------------------------


def model_status(core: GravityCompensator, refusals: Mapping[str, str]) -> DiagnosticStatus:
    """Return the state of the model, and why the latest payload or gravity was refused."""
    arm, values, model = core.arm, dict[str, object](), None
    if arm is not None:
        model = arm.model.with_gravity(arm.gravity)
        limits = arm.running.given.effort[arm.joints]
        names, fastest = arm.model.joint_names, arm.model.velocity_limits
        unwatched = [names[k] for k in arm.joints if fastest[k] == math.inf]
        values = {
            "effort limits": ", ".join(f"{most:.6g}" for most in limits),
            "speed not watched": ", ".join(unwatched) or "none",
        }
    pending = core.pending is not None
    waits = "a new robot_description waits until no torque is commanded or held" if pending else ""
    return messages.model_status(
        model, values, core.environment.loads, waits=waits, refused=core.refused, refusals=refusals
    )


def input_status(
    lifecycle: str, core: GravityCompensator, report: Report, now: float
) -> DiagnosticStatus:
    """Return the state of the input: rates, latencies and rejections."""
    values: dict[str, object] = {
        "lifecycle state": lifecycle,
        **report.values,
    }
    if lifecycle not in ("inactive", "active"):
        return messages.status("input", f"not configured: {lifecycle}", values)
    problem, unused = "" if core.arm is None else core.arm.input_problem(now), ""
    if report.rejected:
        unused = f"{report.rejected} joint_states not used: {report.values['last rejection']}"
    inactive = "" if core.arm is None else "; ".join(core.arm.inactive_checks())
    if inactive:
        values["inactive checks"] = inactive
        unused = "; ".join(filter(None, (inactive, unused)))
    rate = f"{report.rate:.1f} Hz"
    return messages.status("input", rate, values, warning=unused, error=problem)


def command_status(
    core: GravityCompensator, problems: Sequence[str], traffic: Traffic, trouble: str = ""
) -> DiagnosticStatus:
    """Return the state of the commands.

    ``problems`` prevent enabling; ``trouble`` is a problem with the controllers.
    """
    state, fault, arm = core.state, core.fault, core.arm
    holding = arm is not None and not (core.at_rest or arm.moving)
    values: dict[str, object] = {
        "state": state,
        **({} if arm is None else {"law": name_of(arm.law) if arm.law else "gravity compensation"}),
        "fault": fault.kind if fault else "none",
        "fault reason": fault.reason if fault else "none",
        "would be refused because": "; ".join(problems) or "nothing",
        "command topic": traffic.topic,
        "subscribers": traffic.subscribers,
        "other publishers": traffic.rivals,
    }
    warning = error = ""
    if fault is not None:
        error = f"stopped by a fault, until ~/clear: {fault.reason}"
        if holding:
            error += "; the controller holds the last torques until disabled or cleared"
    elif state == "disabled":
        warning = f"disabled; cannot be enabled: {problems[0]}" if problems else ""
    elif trouble:
        error = f"{state}; {trouble}"
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
