# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes for a robot that a URDF describes, under gravity and loads."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

from rclpy.subscription import Subscription

from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.node_base import LOG_PERIOD, BaseNode
from mbs_dynamics.ros.performance import InputStatistics
from mbs_dynamics.ros.robot_description import text_of


class DescribedNode(BaseNode):
    """A node for a robot that a URDF describes, under gravity and loads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._statistics = InputStatistics(self.steady_time())
        """Of the messages that are answered."""
        self._received: list[Subscription] = []
        """The subscriptions."""

    @abstractmethod
    def _describe(self, text: str) -> bool:
        """Build the robot of a URDF; False, and a log line, if it is refused."""

    @abstractmethod
    def _set_gravity(self, gravity: LinkGravity) -> None:
        """Apply a gravity. Raises MbsError if it is refused."""

    @abstractmethod
    def _set_load(self, load: LinkLoad) -> None:
        """Apply a load. Raises MbsError if it is refused."""

    @abstractmethod
    def _inputs(self) -> list[Subscription]:
        """Subscribe to the state of the robot, and to what else the node receives."""

    def steady_time(self) -> float:
        """Return the time in s of a clock that is never set."""
        return time.monotonic()

    def start(self) -> bool:
        """Begin to receive; see :meth:`listen`."""
        return self.listen()

    def listen(self) -> bool:
        """Use the description in the parameters, or subscribe to descriptions; begin to receive.

        False, and a log line, if the description is refused.
        """
        self._received = [
            self.subscribe("~/gravity", self._on_gravity),
            self.subscribe("~/payload", self._on_payload),
        ]
        given = self._settings.robot_description
        if not given:
            take = self.subscribe("robot_description", lambda one: self._describe(one.data))
            self._received.append(take)
        else:
            try:
                if not self._describe(text_of(given)):
                    return False
            except MbsError as error:
                self.get_logger().error(str(error))
                return False
        self._received += self._inputs()
        return True

    def _on_gravity(self, message: Any) -> None:
        gravity = messages.gravity_of(message, self._settings.frame_prefix)
        if self._try("gravity", lambda: self._set_gravity(gravity)):
            self.get_logger().info(messages.gravity_line(gravity), throttle_duration_sec=LOG_PERIOD)

    def _on_payload(self, message: Any) -> None:
        load = messages.load_of(message, self._settings.frame_prefix)
        if self._try("payload", lambda: self._set_load(load)):
            self.get_logger().info(messages.payload_line(load), throttle_duration_sec=LOG_PERIOD)

    def _waiting_for_description(self, refused: str) -> str:
        """Return that the node waits for a description; ``refused``: why the latest was refused."""
        topic = self.resolve_topic_name("robot_description")
        why = f"; the latest was refused: {refused}" if refused else ""
        return f"waiting for a robot_description on {topic}{why}"

    def _waiting_for_messages(self, topic: str) -> str:
        """Return that no message of a topic was valid so far; empty if one was."""
        if self._statistics.last_valid is not None:
            return ""
        rejected = self._statistics.last_rejection
        return f"waiting for {topic} on {self.resolve_topic_name(topic)}" + (
            f"; the latest was rejected: {rejected}" if rejected else ""
        )
