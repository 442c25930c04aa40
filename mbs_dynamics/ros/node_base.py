# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the nodes have in common: log lines held back, unknown parameters refused, a lifecycle."""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from copy import copy
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from mbs_dynamics.errors import UrdfError
from mbs_dynamics.ros import parameters
from mbs_dynamics.ros.input_statistics import Throttle
from mbs_dynamics.ros.robot_description import read_description

LOG_PERIOD = 5.0
"""Seconds between two log lines about the same kind of bad message."""

REMINDING = 10.0
"""Seconds between two log lines about the same thing that a node waits for."""

CLOCK = "/clock"

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


OVERRIDABLE = QoSOverridingOptions(
    (
        QoSPolicyKind.HISTORY,
        QoSPolicyKind.DEPTH,
        QoSPolicyKind.RELIABILITY,
        QoSPolicyKind.DURABILITY,
    )
)
"""What parameters ``qos_overrides.<topic>.<publisher or subscription>.<policy>`` may change."""


class CarefulNode(Node):
    """A node that floods no log and takes no parameter that does not exist.

    The QoS of its topics can be overridden by parameters.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self._overridable: dict[str, Any] = {}  # rclpy's own topics come before parameters
        super().__init__(name, **options)
        self._overridable = {"qos_overriding_options": OVERRIDABLE}
        self._throttle = Throttle(LOG_PERIOD)
        self._reminded: dict[str, tuple[str, float]] = {}

    def create_publisher(self, kind: Any, topic: str, qos: Any, **options: Any) -> Publisher:
        """Create a publisher whose QoS parameters can override."""
        # rclpy writes what overrides into the profile that it is given
        options = {**self._overridable, **options}
        return super().create_publisher(kind, topic, copy(qos), **options)

    def create_subscription(
        self, kind: Any, topic: str, callback: Any, qos: Any, **options: Any
    ) -> Subscription:
        """Create a subscription whose QoS parameters can override."""
        options = {**self._overridable, **options}
        return super().create_subscription(kind, topic, callback, copy(qos), **options)

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set parameters, integers as doubles where those are declared, or refuse them all."""
        for parameter in parameter_list:
            if not self.has_parameter(parameter.name):
                reason = parameters.unknown(parameters.declared(self), parameter.name)
                return SetParametersResult(successful=False, reason=reason)
        return super().set_parameters_atomically(parameters.converted(self, parameter_list))

    def _warn(self, kind: str, said: str) -> None:
        """Log a warning, unless one of its kind was logged a moment ago."""
        line = self._held_back(kind, said)
        if line:
            self.get_logger().warning(line)

    def _inform(self, kind: str, said: str) -> None:
        """Log what was accepted, unless some of its kind was logged a moment ago."""
        line = self._held_back(kind, said)
        if line:
            self.get_logger().info(line)

    def _held_back(self, kind: str, said: str) -> str:
        held_back = self._throttle.due(kind, time.monotonic())
        if held_back is None:
            return ""
        return said + (f" ({held_back} more like this since the last line)" if held_back else "")

    def _remind(self, kind: str, said: str) -> None:
        """Log what the node lacks, at once and then every ten seconds; empty if it lacks nothing.

        To be called once a second.
        """
        what = re.sub(r"\d[\d.]*", "#", said)  # an age that grows is nothing new
        before, when = self._reminded.get(kind, ("", 0.0))
        now = time.monotonic()
        if said and (what != before or now - when >= REMINDING):
            self.get_logger().warning(said)
            self._reminded[kind] = what, now
        elif not said:
            self._reminded.pop(kind, None)

    def _remind_of_clock(self, publishes: bool = False) -> None:
        """Log that nobody publishes the time that the node goes by, or more than one does."""
        if not (publishes or self.get_clock().ros_time_is_active):
            return
        topic = self.resolve_topic_name(CLOCK)
        publishers = self.count_publishers(topic)
        said = ""
        if publishers > 1:
            said = f"{publishers} nodes publish {topic}: time jumps between theirs; end all but one"
        elif publishers == 0:
            said = f"waiting for {topic}, as use_sim_time is true: nobody publishes it"
        self._remind("clock", said)


class DescribedNode(CarefulNode, LifecycleNode):
    """A node with a lifecycle, for a robot that a URDF describes."""

    _settings: Any

    def _waiting_for_description(self, refused: str) -> str:
        """Return that the node waits for a description, and why the latest was refused."""
        topic = self.resolve_topic_name("robot_description")
        why = f"; the latest was refused: {refused}" if refused else ""
        return f"waiting for a robot_description on {topic}{why}"

    @abstractmethod
    def _describe(self, text: str) -> bool:
        """Take a URDF; False, and a log line, if it is refused."""

    @abstractmethod
    def _forget(self) -> None:
        """Be as before it was configured."""

    def start(self) -> bool:
        """Configure and activate, if ``autostart`` says so. False if that fails."""
        if not self._settings.autostart:
            return True
        transitions = (self.trigger_configure, self.trigger_activate)
        return all(change() == TransitionCallbackReturn.SUCCESS for change in transitions)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the model, gravity and loads."""
        self._forget()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Be as before it was configured after a transition that has raised an error."""
        # rclpy keeps the error to itself
        self.get_logger().error(f"an internal error in a transition from {state.label!r}")
        self.on_deactivate(state)
        self._forget()
        return TransitionCallbackReturn.SUCCESS

    def _describe_by_parameters(self) -> bool | None:
        """Take the description that the parameters give; None if they give none."""
        text, path = self._settings.robot_description, self._settings.robot_description_file
        if not text and not path:
            return None
        try:
            return self._describe(text or read_description(path))
        except UrdfError as error:
            self.get_logger().error(str(error))
            return False
