# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of dynamics_node: results of the robot and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.publisher import Publisher

from mbs_dynamics.compiler import call_mechanism
from mbs_dynamics.errors import quoted
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.feed_forward import DesiredMotion
from mbs_dynamics.ros.dynamics.interface import THROTTLE, DynamicsSettings
from mbs_dynamics.ros.dynamics.outputs import Output
from mbs_dynamics.ros.dynamics.robot import ModelManager, Results, Robot


class Channel(NamedTuple):
    """A topic of results, and the message that is filled for it."""

    output: Output
    number: int
    """Number of the body or joint; 0 if there is one topic for all."""
    message: Any
    publishers: list[Publisher]
    """Of the topic, and of the one for displays if there is one."""


class Outputs:
    """The publishers of one node. A change of robot keeps those that it does not affect."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}

    def arrange(self, robot: Robot) -> None:
        """Create the publishers and messages for this robot and its settings."""
        wanted = {name: one for one, k, name in _topics(robot)}
        declared = {name: f"~/{one.topic}" for name, one in wanted.items()}
        declared |= {f"{x}{THROTTLE}": f"{x}{THROTTLE}" for x in wanted if wanted[x].displayed}
        for name in set(self._publishers) - set(declared):
            self._node.destroy_publisher(self._publishers.pop(name))
        for name, topic in declared.items():
            if name not in self._publishers:
                self._publishers[name] = self._node.advertise(topic, name)
        self._channels = []
        for one, k, name in _topics(robot):
            names = [name, f"{name}{THROTTLE}"] if one.displayed else [name]
            publishers = [self._publishers[each] for each in names]
            message = one.message(robot, k)
            self._channels.append(Channel(one, k, message, publishers))

    def filled(
        self, stamp: Time, results: Results, contact: Contact, display: bool = False
    ) -> list[tuple[Publisher, Any]]:
        """Return publishers with the messages to publish, for topics with subscribers.

        ``display`` includes the topics for displays.
        """
        ready: list[tuple[Publisher, Any]] = []
        for channel in self._channels:
            due = channel.publishers if display else channel.publishers[:1]
            subscribed = [one for one in due if one.get_subscription_count()]
            value = channel.output.value(results, contact, channel.number) if subscribed else None
            if value is not None:
                message = channel.message.fill(stamp, value)
                ready += [(one, message) for one in subscribed]
        return ready

    def clear(self) -> None:
        """Destroy all publishers."""
        while self._publishers:
            self._node.destroy_publisher(self._publishers.popitem()[1])


def _topics(robot: Robot) -> Iterator[tuple[Output, int, str]]:
    """Yield the outputs that are asked for, the number of the body or joint, and the topic."""
    owners = {
        "<body>": messages.topic_names(robot.bodies).values(),
        "<joint>": messages.topic_names(robot.settings.joint_wrenches, "joint").values(),
    }
    for one in robot.settings.asked:
        group, _, placeholder = one.topic.partition("/")
        if not placeholder:
            yield one, 0, f"~/{group}"
        for k, name in enumerate(owners.get(placeholder, ())):
            yield one, k, f"~/{group}/{name}"


# -- diagnostics -----------------------------------------------------------------------------------


def model_status(manager: ModelManager, refusals: Mapping[str, str]) -> DiagnosticStatus:
    """Return the state of the model, why the latest payload was refused."""
    robot, summary, error = manager.robot, "", ""
    values: dict[str, object] = {}
    if robot is not None:
        summary = f"model {quoted(robot.model.name)} in force"
        values = {
            "model": robot.model.name,
            "joints": len(robot.joint_names),
            "joint names": ", ".join(robot.joint_names),
            "bodies": ", ".join(robot.bodies),
            "representation": robot.settings.representation,
            "algorithm": robot.settings.algorithm,
            "backend": robot.backend,
            "kernels called through": call_mechanism(robot.backend),
            **messages.environment_values(robot.model.gravity, manager.loads),
        }
    if manager.refused:
        kept = "the model before it stays in force" if robot else "there is no model"
        error = f"robot_description refused, {kept}: {manager.refused}"
    missing = "" if robot else "no robot_description yet"
    return messages.status(
        "model", summary, values, warning=missing, error=error, refusals=refusals
    )


def effort_status(
    settings: DynamicsSettings, contact: Contact, missing: str, answered: int
) -> DiagnosticStatus:
    """Return the state of what depends on efforts; ``missing`` says why something is missing."""
    summary = "efforts of all joints" if answered else "nothing received yet"
    values: dict[str, object] = {}
    if settings.observed:
        values["external torques of"] = ", ".join(contact.joints) or "none"
        if contact.torques is not None:
            values["largest external torque [N m]"] = f"{abs(contact.torques).max():.6g}"
    wrench = contact.wrench
    if wrench is not None:
        values["wrench directions observed"] = f"{wrench.observed} of 6"
        values["smallest singular value"] = f"{wrench.weakest:.3g}"
        if wrench.observed < 6:
            missing = missing or (
                f"the joint torques show {wrench.observed} of 6 directions of the tool wrench: it "
                "is partial"
            )
    return messages.status("effort", summary, values, warning=missing)


def desired_status(desired: DesiredMotion) -> DiagnosticStatus:
    """Return how many desired points were answered or rejected."""
    rejected, warning = desired.rejected_since_report(), ""
    if rejected:
        warning = f"{rejected} desired points rejected: {desired.last_rejection}"
    values = {
        "answered": desired.answered,
        "rejected": desired.rejected,
        "last rejection": desired.last_rejection or "none",
    }
    answered = f"{desired.answered} desired points answered"
    return messages.status("desired", answered, values, warning=warning)
