# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Writes what dynamics_node would have published for a recorded bag.

The node itself runs: messages of the bag are passed to its callbacks, at the times of the bag, and
its publications are written to a file.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from rclpy.exceptions import ParameterException

from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.dynamics.interface import THROTTLE
from mbs_dynamics.ros.dynamics_node import DynamicsNode
from mbs_dynamics.timeseries.bags import mcap_written

JOINT_STATE = "sensor_msgs/msg/JointState"

SECOND = 1_000_000_000

Write = Callable[[str, str, Any, int], None]
"""Arguments: topic, type, message and time in ns of a publication."""


class Replayed(NamedTuple):
    """Numbers of messages."""

    read: int
    """Messages of the bag that the node received."""
    written: dict[str, int]
    """Written messages by topic."""


class ReplayNode(DynamicsNode):
    """The node with files in place of topics; its time is that of the bag."""

    def __init__(self, write: Write, **options: Any) -> None:
        self.now = 0
        """The time of the bag in ns."""
        self.callbacks: dict[str, Callable[[bytes], object]] = {}
        """Callbacks of the subscribed topics, which take serialized messages, by full name."""
        self._write = write
        super().__init__(**options)

    def steady_time(self) -> float:
        """Return the time of the bag in s."""
        return 1e-9 * self.now

    def stamp_now(self) -> Time:
        """Return the time of the bag."""
        return messages.time_of(self.now)

    def create_publisher(self, kind: Any, topic: str, qos: Any, **options: Any) -> Any:
        """Return a stand-in that writes messages; topics for displays have no subscriber."""
        if not self._initialised:  # rclpy's own
            return super().create_publisher(kind, topic, qos, **options)
        name = self.resolve_topic_name(topic)
        package, message = kind.__module__.partition(".")[0], kind.__name__

        def publish(one: Any) -> None:
            self._write(name, f"{package}/msg/{message}", one, self.now)

        count = 0 if name.endswith(THROTTLE) else 1  # what they show is in the file at full rate
        return SimpleNamespace(
            publish=publish, get_subscription_count=lambda: count, topic_name=name
        )

    def create_subscription(
        self, kind: Any, topic: str, callback: Any, qos: Any, **options: Any
    ) -> Any:
        """Store the callback of a topic."""
        if not self._initialised:
            return super().create_subscription(kind, topic, callback, qos, **options)
        name = self.resolve_topic_name(topic)
        self.callbacks[name] = callback
        return SimpleNamespace(topic_name=name)

    def destroy_publisher(self, publisher: Any) -> bool:
        """Forget a publisher; there is nothing to destroy."""
        return isinstance(publisher, SimpleNamespace) or super().destroy_publisher(publisher)

    def destroy_subscription(self, subscription: Any) -> bool:
        """Forget the callback of a topic."""
        if not isinstance(subscription, SimpleNamespace):
            return bool(super().destroy_subscription(subscription))
        return self.callbacks.pop(subscription.topic_name, None) is not None


def replay(
    robot: Path,
    bag: Path,
    out: Path,
    *,
    params_file: Path | None = None,
    params: Sequence[str] = (),
    joint_states: str = "",
) -> Replayed:
    """Write to ``out``, a .mcap file, the messages that the node would have published for a bag.

    ``params`` are ``name:=value``; ``joint_states`` the topic in the bag, by default /joint_states
    or the only one of its type.

    Raises ArgumentError for files and topics that are not there, MbsError for a description or
    parameters that the node refuses.
    """
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
    except ImportError as error:
        raise MbsError(f"replay needs rosbags ({error}): install the extra 'identify'") from error
    for path in (robot, bag, *([params_file] if params_file else [])):
        if not path.exists():
            raise ArgumentError(f"there is no file {path}")
    counts: dict[str, int] = {}
    read = 0
    with mcap_written("--out", out) as (writer, store):
        connections: dict[str, Any] = {}

        def write(topic: str, kind: str, message: Any, when: int) -> None:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            data = store.serialize_cdr(_plain(message, store.types), kind)
            writer.write(connections[topic], when, data)
            counts[topic] = counts.get(topic, 0) + 1

        try:
            with (
                AnyReader([bag], default_typestore=store) as reader,
                _node(write, robot, params_file, params) as node,
            ):
                states = _topic(reader.connections, joint_states)
                names = {states: node.resolve_topic_name("joint_states")}
                due = 0
                for connection, when, data in reader.messages():
                    node.now = when
                    if not due:
                        if not node.start():
                            raise MbsError(
                                "dynamics_node does not start with this description and these "
                                "parameters"
                            )
                        due = when + SECOND
                    while when >= due:  # as its timer does
                        node.now = due
                        node._publish_diagnostics()
                        due += SECOND
                    node.now = when
                    name = names.get(connection.topic, connection.topic)
                    if name in node.callbacks:
                        node.callbacks[name](bytes(data))
                        read += 1
        except AnyReaderError as error:
            raise ArgumentError(f"{bag}: cannot be read as a bag: {error}") from error
    return Replayed(read, counts)


@contextmanager
def _node(
    write: Write,
    robot: Path,
    params_file: Path | None,
    params: Sequence[str],
) -> Iterator[ReplayNode]:
    """Yield the node, in a ROS without communication."""
    arguments = ["--ros-args"]
    if params_file is not None:
        arguments += ["--params-file", str(params_file)]
    for one in (*params, f"robot_description_file:={robot}"):
        arguments += ["-p", one]
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "OFF"
    rclpy.init(args=arguments)
    try:
        node = ReplayNode(write)
        yield node
        node.destroy_node()
    except ParameterException as error:
        raise ArgumentError(str(error)) from error
    finally:
        rclpy.try_shutdown()


def _plain(value: Any, types: Mapping[str, Any]) -> Any:
    """Return a message of rclpy, or a field of one, in the types of rosbags."""
    # a message serialized by rclpy may end with old content of its buffer
    if hasattr(value, "get_fields_and_field_types"):
        package, name = type(value).__module__.partition(".")[0], type(value).__name__
        fields = value.get_fields_and_field_types()
        made = {field: _plain(getattr(value, field), types) for field in fields}
        return types[f"{package}/msg/{name}"](**made)
    if isinstance(value, array):
        return np.asarray(value)
    if isinstance(value, bytes):  # an octet
        return value[0]
    return [_plain(one, types) for one in value] if isinstance(value, list) else value


def _topic(connections: Sequence[Any], asked: str) -> str:
    topics: list[str] = sorted({one.topic for one in connections if one.msgtype == JOINT_STATE})
    usual = "/joint_states"
    if asked in topics or (not asked and usual in topics):
        return asked or usual
    if not asked and len(topics) == 1:
        return topics[0]
    raise ArgumentError(
        f"joint states are on {', '.join(topics) or 'no topic'} of the bag; "
        + (f"there is no {asked}" if asked else "choose one by --joint-states")
    )
