# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A live robot in the browser: its description and joint states, as a source of scenes."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros.messages import stamp_of
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.ros.process import LAST_MOMENTS, ros_with_signals
from mbs_dynamics.ros.robot_description import model_of
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.page import REFRESH, Page
from mbs_dynamics.view.scene import Scene
from mbs_dynamics.view.showing import announce

STALE = 0.5  # s after which a message no longer counts as the current state


class LiveView(Node):
    """Subscribes to the description and the state of a robot. The page reads what it stores."""

    def __init__(self, namespace: str) -> None:
        quiet: dict[str, Any] = {"start_parameter_services": False, "enable_rosout": False}
        super().__init__("mbs_dynamics_view", namespace=namespace, **quiet)
        self.description = self.fault = ""
        """The latest description, and why the latest state was rejected; empty if it was not."""
        self.state: tuple[FloatArray, FloatArray | None] | None = None
        """Positions and rates (n,); None before the first message."""
        self.received = time.monotonic()
        self._input: JointInput | None = None
        subscribe = self.create_subscription
        subscribe(String, "robot_description", self._on_description, LATCHED)
        subscribe(JointState, "joint_states", self._on_state, qos_profile_sensor_data)

    def show(self, model: Model) -> None:
        """Read the states of another robot."""
        self._input = JointInput.of_model(model, stale_timeout=STALE, velocity_from_position=False)
        self.state, self.fault, self.received = None, "", time.monotonic()

    def _on_description(self, message: String) -> None:
        self.description = message.data

    def _on_state(self, message: JointState) -> None:
        if self._input is None:
            return
        now, stamp = time.monotonic(), stamp_of(message.header.stamp)
        given = message.name, message.position, message.velocity
        read = self._input.read(*given, stamp=stamp, received=now)
        if isinstance(read, Rejection):
            self.fault = "" if read.kind in ("partial", "incomplete_joints") else read.reason
            return
        self.state = read.q.copy(), None if read.qd is None else read.qd.copy()
        self.received, self.fault = now, ""


class Live:
    """A source of scenes: the robot of the node in its latest state."""

    def __init__(self, page: Page, node: LiveView) -> None:
        self.page, self._node = page, node
        self._shown: object = None

    def due(self) -> bool:
        """Return whether the state is new, or missing."""
        return self._node.state is not self._shown or time.monotonic() - self._node.received > STALE

    def scene(self, body: str, representation: str) -> Scene | None:
        """Return the scene in the latest state; None before the first."""
        self._shown = state = self._node.state
        age = time.monotonic() - self._node.received
        missing = f"no joint_states of this robot for {age:.0f} s" if age > STALE else ""
        self.page.set_message("joint_states", self._node.fault or missing)
        return None if state is None else Scene(self.page.drawn, *state, body, representation)


def live_view(namespace: str, options: PageOptions, *, browse: bool = False) -> int:
    """Show the robot of a namespace until SIGINT; return the exit code.

    ``browse`` opens a browser. The description in ``options`` is that of the topic. Raises
    ArgumentError for an invalid namespace, port or layer.
    """
    with ros_with_signals(["mbs-dynamics"]) as signals:
        try:
            node = LiveView(namespace)
        except InvalidNamespaceException as error:
            raise ArgumentError(f"invalid namespace {namespace!r}") from error
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        spinning = threading.Thread(target=executor.spin, daemon=True)
        spinning.start()
        live, shown = None, ""
        print(f"waiting for {node.resolve_topic_name('robot_description')}", flush=True)
        try:
            while not signals.asked:
                if node.description == shown:
                    time.sleep(REFRESH)
                    continue
                shown = node.description
                try:
                    model = model_of(shown)
                except MbsError as error:
                    print(f"the robot description is invalid: {error}", file=sys.stderr)
                    continue
                if live is not None:
                    options = options._replace(port=live.page.port)
                    live.page.close()
                page = Page(model, options._replace(description=shown))
                node.show(model)
                first, live = live is None, Live(page, node)
                if first:
                    announce(page, browse)

                def outdated(old: str = shown) -> bool:
                    return signals.asked or node.description != old

                live.page.run(live, outdated)
        finally:
            if live is not None:
                live.page.close()
            executor.shutdown()
            spinning.join(LAST_MOMENTS)
            node.destroy_node()
    return 0
