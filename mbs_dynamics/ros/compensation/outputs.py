# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The topics on which gravity compensation commands, and the count of what went out on them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.ros.compensation.command_policy import Limited
from mbs_dynamics.ros.compensation.diagnostics import Traffic
from mbs_dynamics.ros.messages import EffortMessage

FLUSH_TIMEOUT = Duration(seconds=0.5)
"""How long to wait for the controller to have the last command."""


class CommandOutputs:
    """Publishes commands, and the same torques by name for those who listen."""

    def __init__(self, node: Node, topic: str, joints: Sequence[str]) -> None:
        self._node = node
        self._topic = topic
        self._resolved = node.resolve_topic_name(topic)
        self._command = Float64MultiArray()
        self._effort = EffortMessage(joints)
        self._commands: Publisher | None = None
        self._torques: Publisher | None = None
        self._counts = [0, 0, 0]

    def open(self) -> None:
        """Make the publishers."""
        # each event handler costs the executor time on every message
        quiet = PublisherEventCallbacks(use_default_callbacks=False)
        make = self._node.create_publisher
        self._commands = make(Float64MultiArray, self._topic, 1, event_callbacks=quiet)
        self._torques = make(JointState, "~/commanded_torques", 10, event_callbacks=quiet)

    def close(self) -> None:
        """Destroy the publishers, once what was commanded last has arrived.

        A subscriber discards what it has not yet received from a publisher that is gone, and a
        controller would hold the command before.
        """
        self.flush()
        for publisher in (self._commands, self._torques):
            if publisher is not None:
                self._node.destroy_publisher(publisher)
        self._commands = self._torques = None

    def send(
        self, command: Sequence[float] | None, limited: Limited, stamp: Time | None = None
    ) -> None:
        """Publish a command (n,) in N m or N; None is silence. ``stamp`` is that of its cause."""
        if command is None or self._commands is None or self._torques is None:
            return
        self._command.data = array("d", command)
        self._commands.publish(self._command)
        if self._torques.get_subscription_count():
            when = stamp or self._node.get_clock().now().to_msg()
            self._torques.publish(self._effort.fill(when, np.array(command)))
        counts = self._counts
        counts[0] += 1
        counts[1] += bool(limited.effort)
        counts[2] += bool(limited.rate)

    def flush(self) -> None:
        """Wait until what was commanded last has arrived."""
        if self._commands is not None:
            self._commands.wait_for_all_acked(FLUSH_TIMEOUT)

    def rivals(self) -> int:
        """Return how many others publish on the topic of the commands."""
        publishing: int = self._node.count_publishers(self._resolved)
        return max(0, publishing - (self._commands is not None))

    def traffic(self) -> Traffic:
        """Return who listens and what went out, and begin to count anew."""
        listening = self._commands.get_subscription_count() if self._commands is not None else 0
        traffic = Traffic(self._resolved, listening, self.rivals(), *self._counts)
        self._counts = [0, 0, 0]
        return traffic
