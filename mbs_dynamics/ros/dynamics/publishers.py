# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of dynamics_node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.publisher import Publisher

from mbs_dynamics.ros.dynamics.outputs import Output
from mbs_dynamics.ros.dynamics.robot import Results, Robot
from mbs_dynamics.ros.messages import topic_names


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

    def publish(self, stamp: Time, results: Results) -> None:
        """Publish the results on the topics that have subscribers."""
        assert self._robot is not None
        for one, k, name in self._topics:
            publisher = self._publishers[name]
            if publisher.get_subscription_count():
                value = one.value(results, k)
                if value is not None:
                    publisher.publish(one.message(stamp, self._robot, k, value))

    def clear(self) -> None:
        """Destroy all publishers."""
        while self._publishers:
            self._node.destroy_publisher(self._publishers.popitem()[1])


def _topics(robot: Robot) -> Iterator[tuple[Output, int, str]]:
    """Yield the outputs that are asked for, the number of the body or joint, and the topic."""
    owners = {
        "<body>": topic_names(robot.bodies).values(),
        "<joint>": topic_names(robot.settings.joint_wrenches, "joint").values(),
    }
    for one in robot.settings.asked:
        group, _, placeholder = one.topic.partition("/")
        if not placeholder:
            yield one, 0, f"~/{group}"
        for k, name in enumerate(owners.get(placeholder, ())):
            yield one, k, f"~/{group}/{name}"
