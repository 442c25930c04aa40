# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of dynamics_node: results of the robot and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.publisher import Publisher

from mbs_dynamics.ros import messages
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.outputs import Output
from mbs_dynamics.ros.dynamics.robot import ModelManager, Results, Robot
from mbs_dynamics.ros.performance import Report


class Outputs:
    """The publishers of one node. A change of robot keeps those that it does not affect."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}
        self._robot: Robot | None = None

    def arrange(self, robot: Robot) -> None:
        """Create the publishers for this robot and its settings."""
        self._robot, self._topics = robot, list(_topics(robot))
        for name in self._publishers.keys() - {name for _, _, name in self._topics}:
            self._node.destroy_publisher(self._publishers.pop(name))
        for one, _, name in self._topics:
            if name not in self._publishers:
                self._publishers[name] = self._node.advertise(f"~/{one.topic}", name)

    def publish(self, stamp: Time, results: Results, contact: Contact) -> None:
        """Publish the results on the topics that have subscribers."""
        assert self._robot is not None
        for one, k, name in self._topics:
            publisher = self._publishers[name]
            if publisher.get_subscription_count():
                value = one.value(results, contact, k)
                if value is not None:
                    publisher.publish(one.message(stamp, self._robot, k, value))

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
    """Return the state of the model, and why the latest payload was refused."""
    robot, values = manager.robot, dict[str, object]()
    if robot is not None:
        values = {
            "joints": len(robot.joint_names),
            "joint names": ", ".join(robot.joint_names),
            "bodies": ", ".join(robot.bodies),
            "representation": robot.settings.representation,
            "algorithm": robot.settings.algorithm,
        }
    model = None if robot is None else robot.model
    return messages.model_status(
        model, values, manager.environment.loads, refused=manager.refused, refusals=refusals
    )


def effort_status(contact: Contact, missing: str, answered: bool) -> DiagnosticStatus:
    """Return the state of what depends on efforts; ``missing`` says why something is missing."""
    summary = "efforts of all joints" if answered else "nothing received yet"
    values: dict[str, object] = {"external torques of": ", ".join(contact.joints) or "none"}
    wrench = contact.wrench
    if wrench is not None:
        values["wrench directions observed"] = f"{wrench.observed} of 6"
        if wrench.observed < 6:
            missing = missing or (
                f"the joint torques show {wrench.observed} of 6 directions of the tool wrench: it "
                "is partial"
            )
    return messages.status("effort", summary, values, warning=missing)


def desired_status(report: Report) -> DiagnosticStatus:
    """Return how many desired points and trajectories were answered or rejected."""
    warning = ""
    if report.rejected:
        warning = f"{report.rejected} desired motions rejected: {report.values['last rejection']}"
    answered = f"{report.values['answered']} desired motions answered"
    return messages.status("desired", answered, report.values, warning=warning)
