# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of dynamics_node: results of the robot and diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.publisher import Publisher

from mbs_dynamics.compiler import way_of_calling
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.errors import quoted
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.feed_forward import DesiredTorques
from mbs_dynamics.ros.dynamics.interface import (
    DISPLAYED,
    DYNAMICS_NODE,
    THROTTLE,
    DynamicsSettings,
)
from mbs_dynamics.ros.dynamics.robot import ModelManager, Results, Robot
from mbs_dynamics.ros.performance import Cost, Report

if TYPE_CHECKING:
    from mbs_dynamics.ros.dynamics.markers import Markers

MARKERS = "~/markers"


class Channel(NamedTuple):
    """A topic of results, and the message that is filled for it."""

    declared: str
    """Name in the interface, with placeholders."""
    name: str
    message: Any
    select: Callable[[Results, Contact], Any]
    """Returns what the message holds; None if there is nothing to publish."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topic, and of the one for displays if there is one."""
        return (self.name, self.name + THROTTLE) if self.name in DISPLAYED else (self.name,)


class Outputs:
    """The publishers of one node. A change of robot keeps those that it does not affect."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}

    def arrange(self, robot: Robot) -> None:
        """Create the publishers and messages for this robot and its settings."""
        on = {
            topic.name
            for topic in DYNAMICS_NODE.published
            if getattr(robot.settings, topic.condition, False)
        }
        channels = [one for one in _channels(robot) if one.declared in on]
        wanted = {name: name for one in channels for name in one.topics[1:]}
        wanted |= {one.name: one.declared for one in channels}
        wanted |= {MARKERS: MARKERS} if MARKERS in on else {}
        for name in set(self._publishers) - set(wanted):
            self._node.destroy_publisher(self._publishers.pop(name))
        for name, declared in wanted.items():
            if name not in self._publishers:
                self._publishers[name] = self._node.advertise(declared, name)
        self._channels = [
            (one, [self._publishers[name] for name in one.topics]) for one in channels
        ]
        self._markers: Markers | None = None
        if MARKERS in on:
            from mbs_dynamics.ros.dynamics.markers import Markers  # rarely needed, and not small

            self._markers = Markers(robot)

    def filled(
        self, stamp: Time, results: Results, contact: Contact, display: bool = False
    ) -> list[tuple[Publisher, Any]]:
        """Return publishers with the messages to publish, for topics with subscribers.

        ``display`` includes the topics for displays.
        """
        ready: list[tuple[Publisher, Any]] = []
        for channel, publishers in self._channels:
            due = publishers if display else publishers[:1]
            subscribed = [one for one in due if one.get_subscription_count()]
            value = channel.select(results, contact) if subscribed else None
            if value is not None:
                message = channel.message.fill(stamp, value)
                ready += [(one, message) for one in subscribed]
        return ready

    def draw(self, stamp: Time, reading: Reading, contact: Contact) -> None:
        """Publish markers, if the topic has subscribers."""
        if self._markers is not None and self._publishers[MARKERS].get_subscription_count():
            drawn = self._markers.message(stamp, reading.q, reading.qd, contact.wrench)
            self._publishers[MARKERS].publish(drawn)

    def clear(self) -> None:
        """Destroy all publishers."""
        while self._publishers:
            self._node.destroy_publisher(self._publishers.popitem()[1])


def _channels(robot: Robot) -> Iterator[Channel]:
    """Yield all topics of results that a robot can have."""
    settings, model, joints = robot.settings, robot.model, robot.model.velocity_names
    prefix, rep = settings.frame_prefix, settings.body_representation
    root = prefix + robot.root
    for name in ("gravity_torques", "bias_torques"):
        yield _whole(name, messages.JointMessage(robot.joint_names, "effort", frame_id=root))
    base = messages.wrench_message(prefix + robot.model.body_names[0])
    yield _whole("base_wrench", base)
    names = messages.topic_names(robot.bodies)
    for k, body in enumerate(robot.bodies):
        twist = messages.twist_message(prefix + robot.twist_frame(body))
        yield _row("~/twist/<body>", names[body], "twists", k, twist)
        frame = prefix + robot.velocity_frame(body)
        velocity = messages.velocity_message(prefix + body, root, frame)
        yield _row("~/velocity/<body>", names[body], "velocities", k, velocity)
        jacobian = messages.JacobianMessage(joints, body, rep)
        yield _row("~/jacobian/<body>", names[body], "jacobians", k, jacobian)
    yield _whole("center_of_mass", messages.PointMessage(root))
    yield _whole("mass_matrix", messages.matrix_message(joints))
    yield _whole("energy", messages.EnergyMessage())
    names = messages.topic_names(settings.joint_wrenches, "joint")
    for k, (joint, i) in enumerate(zip(settings.joint_wrenches, robot.wrench_bodies, strict=True)):
        wrench = messages.wrench_message(prefix + model.bodies[i].name)
        yield _row("~/joint_wrench/<joint>", names[joint], "joint_wrenches", k, wrench)
    yield _of_contact(
        "~/external_torques",
        messages.KnownEffortsMessage(root),
        lambda contact: None if contact.torques is None else (contact.joints, contact.torques),
    )
    yield _of_contact(
        "~/tool_wrench",
        messages.wrench_message(prefix + robot.tool_body),
        lambda contact: None if contact.wrench is None else contact.wrench.W,
    )


def _of_contact(name: str, message: Any, select: Callable[[Contact], Any]) -> Channel:
    """Return the channel of a result of the momentum observer."""
    return Channel(name, name, message, lambda _, contact: select(contact))


def _whole(field: str, message: Any) -> Channel:
    """Return the channel of one of the results."""
    return Channel(f"~/{field}", f"~/{field}", message, lambda results, _: getattr(results, field))


def _row(declared: str, owner: str, field: str, k: int, message: Any) -> Channel:
    """Return the channel of one entry of the results."""

    def select(results: Results, _: Contact) -> Any:
        rows = getattr(results, field)
        return None if rows is None else rows[k]

    return Channel(declared, f"{declared.partition('<')[0]}{owner}", message, select)


# -- diagnostics -----------------------------------------------------------------------------------


def model_status(
    manager: ModelManager, refusals: Mapping[str, str], cost: Cost | None = None
) -> DiagnosticStatus:
    """Return the state of the model, why the latest payload was refused, and the cost."""
    robot = manager.robot
    values: dict[str, object] = {}
    if robot is None:
        level, summary = DiagnosticStatus.WARN, "no robot_description yet"
    else:
        level, summary = DiagnosticStatus.OK, f"model {quoted(robot.model.name)} in force"
        values = {
            "model": robot.model.name,
            "joints": len(robot.joint_names),
            "joint names": ", ".join(robot.joint_names),
            "bodies": ", ".join(robot.bodies),
            "representation": robot.settings.representation,
            "algorithm": robot.settings.algorithm,
            **(cost.values() if cost is not None else {}),
            "backend": robot.backend,
            "kernels called through": way_of_calling(robot.backend),
            **messages.environment_values(robot.model.gravity, manager.loads),
        }
    values |= messages.refused_values(refusals)
    level, summary = messages.with_refusals(level, summary, refusals)
    if manager.refused:
        level = DiagnosticStatus.ERROR
        kept = "the model before it stays in force" if robot else "there is no model"
        summary = f"robot_description refused, {kept}: {manager.refused}"
    return messages.status("model", level, summary, values)


def input_status(
    state: str,
    settings: DynamicsSettings,
    report: Report,
    stale_for: float | None,
    stale_joints: Sequence[str],
) -> DiagnosticStatus:
    """Return the state of the input: rates, latencies and rejections.

    ``stale_for`` is the age in s of stale input, else None; ``stale_joints`` the stale joints.
    """
    values: dict[str, object] = {
        "lifecycle state": state,
        "answered": report.total_answered,
        "skipped by max_rate": report.total_skipped,
        "repeated stamps": report.total_repeated,
        "joints not fresh": ", ".join(stale_joints) or "none",
        **report.values(),
    }
    level, summary = DiagnosticStatus.OK, f"{report.rate:.1f} Hz"
    if state != "active":
        summary = f"not active: {state}"
    elif stale_for is not None:
        level = DiagnosticStatus.ERROR
        summary = f"stale: no valid joint_states for {stale_for:.1f} s"
        if report.rejected:
            summary += f"; {report.rejected} rejected: {report.last_rejection}"
    elif report.rejected:
        level = DiagnosticStatus.WARN
        summary = f"{report.rejected} joint_states rejected: {report.last_rejection}"
    elif report.without_velocity:
        level = DiagnosticStatus.WARN
        summary = f"no {' and '.join(settings.needing_velocity)}: {report.without_velocity}"
    return messages.status("input", level, summary, values)


def effort_status(
    settings: DynamicsSettings, contact: Contact, missing: str, answered: int
) -> DiagnosticStatus:
    """Return the state of what depends on efforts; ``missing`` says why something is missing."""
    level = DiagnosticStatus.OK
    summary = "efforts of all joints" if answered else "nothing received yet"
    values: dict[str, object] = {}
    if settings.observes:
        values["external torques of"] = ", ".join(contact.joints) or "none"
        if contact.torques is not None:
            values["largest external torque [N m]"] = f"{abs(contact.torques).max():.6g}"
    wrench = contact.wrench
    if wrench is not None:
        values["wrench directions observed"] = f"{wrench.observed} of 6"
        values["smallest singular value"] = f"{wrench.weakest:.3g}"
        if wrench.observed < 6:
            level = DiagnosticStatus.WARN
            summary = (
                f"the joint torques show {wrench.observed} of 6 directions of the tool wrench: it "
                "is partial"
            )
    if missing:
        level, summary = DiagnosticStatus.WARN, missing
    return messages.status("effort", level, summary, values)


def desired_status(desired: DesiredTorques) -> DiagnosticStatus:
    """Return how many desired points were answered or rejected."""
    rejected = desired.rejected_since_report()
    level, summary = DiagnosticStatus.OK, f"{desired.answered} desired points answered"
    if rejected:
        level = DiagnosticStatus.WARN
        summary = f"{rejected} desired points rejected: {desired.last_rejection}"
    values = {
        "answered": desired.answered,
        "rejected": desired.rejected,
        "last rejection": desired.last_rejection or "none",
    }
    return messages.status("desired", level, summary, values)
