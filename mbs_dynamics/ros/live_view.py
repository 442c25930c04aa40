# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A live robot in the browser. The node only subscribes; it publishes and serves nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import ORANGE
from mbs_dynamics.control.joint_input import JointInput, Rejection
from mbs_dynamics.errors import ArgumentError, MbsError, listed
from mbs_dynamics.lie import so3
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros.dynamics.interface import THROTTLE
from mbs_dynamics.ros.messages import components, stamp_of, wrench_of
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.ros.process import LAST_MOMENTS, prefer_udp, ros_with_signals
from mbs_dynamics.ros.robot_description import model_of
from mbs_dynamics.view import layers
from mbs_dynamics.view.drawings import Drawing, Frames, Labels, Lines, same
from mbs_dynamics.view.opening import Opened, announce, open_page
from mbs_dynamics.view.page import REFRESH
from mbs_dynamics.view.scene import Scene
from mbs_dynamics.view.server import check_port

STALE = 0.5
"""Time in s after which a message no longer counts as the current state."""

REMINDER = 5.0
"""Time in s between two messages that no robot description has been received."""

TORQUES = ("gravity_torques", "external_torques")
"""Topics of ``dynamics_node`` with torques."""

TOPICS = {
    "enabled": "gravity_compensation_node/enabled",
    "target_pose": "impedance_control_node/target_pose",
    "tool_wrench": f"dynamics_node/tool_wrench{THROTTLE}",
    "contact": "simulator_node/contact",
}
"""Default topics, relative to the namespace, by what they show."""

WRENCHES = ("tool_wrench", "contact")

REPORTED = 3.0
"""Time in s after which the state of a node in the diagnostics is no longer current."""


class LiveRobot:
    """The latest messages about a robot. The executor writes it, the page reads it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._input = JointInput.of_model(model, stale_timeout=STALE, velocity_from_position=False)
        self._coordinates = {name: k for k, name in enumerate(model.joint_names)}
        self.state: tuple[FloatArray, FloatArray | None] | None = None
        """Positions and rates (n,); None before the first message."""
        self.received = time.monotonic()
        """Time of the state."""
        self.fault = ""
        """Why the latest message was rejected; empty if it was accepted."""
        self._latest: dict[str, tuple[float, Any]] = {}
        """Time, and torques (n,) or link and wrench, by topic."""
        self.target: tuple[float, str, FloatArray] | None = None
        """Time, link and pose (4, 4) in its frame of the latest target; None before the first."""

    def on_state(self, message: JointState) -> None:
        """Store the positions and rates of ``joint_states``."""
        now = time.monotonic()
        read = self._input.read(
            message.name,
            message.position,
            message.velocity,
            stamp=stamp_of(message.header.stamp),
            received=now,
        )
        if isinstance(read, Rejection):
            self.fault = "" if read.kind in ("partial", "incomplete_joints") else read.reason
            return
        self.state = read.q.copy(), None if read.qd is None else read.qd.copy()
        self.received, self.fault = now, ""

    def on_torques(self, message: JointState, topic: str) -> None:
        """Store the torques of one of ``TORQUES``; other joints are ignored."""
        tau = np.full(self.model.n, np.nan)
        for name, effort in zip(message.name, message.effort, strict=False):
            if name in self._coordinates:
                tau[self._coordinates[name]] = effort
        self._latest[topic] = time.monotonic(), tau

    def _link(self, frame: str) -> str:
        """Return the link of a frame, which may have a prefix; empty if there is none."""
        return max(
            (link for link in self.model.frames if frame.endswith(link)), key=len, default=""
        )

    def on_wrench(self, message: WrenchStamped, topic: str) -> None:
        """Store the wrench on a link."""
        link, W = self._link(message.header.frame_id), wrench_of(message)
        if link and np.isfinite(W).all():
            self._latest[topic] = time.monotonic(), (link, W)

    def on_target(self, message: PoseStamped) -> None:
        """Store the target of the tool, if it can be a pose."""
        turn = np.array(components(message.pose.orientation))
        if not 0.9 < np.linalg.norm(turn) < 1.1:
            return
        link, C = self._link(message.header.frame_id), np.eye(4)
        C[:3, :3], C[:3, 3] = so3.from_quaternion(turn), components(message.pose.position)
        if link and np.isfinite(C).all():
            self.target = time.monotonic(), link, C

    def _fresh(self, topic: str) -> Any:
        at, value = self._latest.get(topic, (-np.inf, None))
        return value if time.monotonic() - at < STALE else None

    def torques(self, topic: str) -> FloatArray | None:
        """Return the torques (n,) of a topic; None if they are stale or incomplete."""
        tau: FloatArray | None = self._fresh(topic)
        return tau if tau is not None and np.isfinite(tau).all() else None

    def wrench(self, topic: str) -> tuple[str, FloatArray] | None:
        """Return link and wrench (6,) of one of WRENCHES in its frame, moment first, or None."""
        wrench: tuple[str, FloatArray] | None = self._fresh(topic)
        return wrench


class LiveView(Node):
    """Subscribes to the topics of a robot and its nodes."""

    def __init__(self, namespace: str, topics: Mapping[str, str] = {}) -> None:
        for name in topics:
            if name not in TOPICS:
                raise ArgumentError(f"no topic is called {name!r}; valid are {listed(TOPICS)}")
        self.topics = TOPICS | dict(topics)
        super().__init__(
            "mbs_dynamics_view",
            namespace=namespace,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self.description = ""
        """The latest robot description."""
        self.robot: LiveRobot | None = None
        """The robot that receives the messages; None before a valid description."""
        self._enabled: bool | None = None
        self._nodes: dict[str, tuple[float, str]] = {}
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.create_subscription(Bool, self.topics["enabled"], self._on_enabled, LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._receive(JointState, "joint_states", LiveRobot.on_state)
        for name in TORQUES:
            store = partial(LiveRobot.on_torques, topic=name)
            self._receive(JointState, f"dynamics_node/{name}{THROTTLE}", store)
        for name in WRENCHES:
            keep = partial(LiveRobot.on_wrench, topic=name)
            self._receive(WrenchStamped, self.topics[name], keep)
        self._receive(PoseStamped, self.topics["target_pose"], LiveRobot.on_target)

    def _receive(self, kind: Any, topic: str, method: Callable[[LiveRobot, Any], None]) -> None:
        def callback(message: Any) -> None:
            if self.robot is not None:
                method(self.robot, message)

        self.create_subscription(kind, topic, callback, qos_profile_sensor_data)

    def _on_description(self, message: String) -> None:
        self.description = message.data

    def _on_enabled(self, message: Bool) -> None:
        self._enabled = bool(message.data)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Store state and mode of the nodes of this namespace that command torques."""
        for status in message.status:
            node, _, _ = status.name.partition(": ")
            values = {one.key: one.value for one in status.values}
            if "state" in values and f"/{node}".startswith(self.get_namespace()):
                mode = ", ".join(values[key] for key in ("state", "law") if key in values)
                self._nodes[node] = time.monotonic(), mode

    @property
    def modes(self) -> dict[str, str]:
        """State and law by node, as the diagnostics report them."""
        now = time.monotonic()
        return {node: mode for node, (at, mode) in self._nodes.items() if now - at < REPORTED}

    @property
    def compensation(self) -> bool | None:
        """Whether gravity compensation is enabled; None if no node reports it."""
        return self._enabled if self.count_publishers(self.topics["enabled"]) else None


class Live:
    """A live robot, as a source of scenes."""

    def __init__(self, opened: Opened, node: LiveView, robot: LiveRobot) -> None:
        self.page, self._drawn = opened.page, opened.drawn
        self._node, self._robot = node, robot
        self._shown: object = None
        self._reported = 0.0
        self._rows: list[tuple[str, str]] = []
        """Rows of the table beside torques."""
        gui = self.page.server.gui
        with self.page.tabs.add_tab("Nodes"):
            self._nodes = gui.add_html("")

    def due(self) -> bool:
        """Return whether the state is new, or a message about its absence may be due."""
        return self._robot.state is not self._shown or time.monotonic() - self._reported > STALE

    def scene(self, body: str, representation: str) -> Scene | None:
        """Return the scene in the latest state, with published gravity torques if available."""
        self._shown = state = self._robot.state
        self._report()
        if state is None:
            return None
        gravity = self._robot.torques("gravity_torques")
        scene = Scene(self._drawn, *state, body, representation, measured=gravity)
        self._rows = []
        for name in WRENCHES:
            drawings, measured = [], self._robot.wrench(name)
            if measured is not None:
                link, W = measured
                tool = replace(scene, body=link)
                R = tool.pose[:3, :3]
                drawings = layers.wrench(replace(tool, wrench=np.append(R @ W[:3], R @ W[3:])))
                sizes = np.linalg.norm(W.reshape(2, 3), axis=1)
                message = f"{sizes[1]:.1f} N, {sizes[0]:.2f} N m"
                self._rows.append((f"{name.replace('_', ' ')} on {link}", message))
                if drawings:  # large enough to be seen
                    text = f"{name.replace('_', ' ')}: {message}"
                    drawings.append(Labels(tool.pose[None, :3, 3], (text,)))
            self.page.canvas.draw(name.replace("_", " "), drawings)
        self.page.canvas.draw("target", self._target(scene))
        return scene

    def _target(self, scene: Scene) -> list[Drawing]:
        """Return the drawings of the target, and note how far the tool is from it."""
        if self._robot.target is None:
            return []
        at, link, C = self._robot.target
        tool = replace(scene, body="").pose
        goal = replace(scene, body=link).pose @ C
        far = float(np.linalg.norm(goal[:3, 3] - tool[:3, 3]))
        turn = float(np.degrees(np.linalg.norm(so3.log(tool[:3, :3].T @ goal[:3, :3]))))
        age = time.monotonic() - at
        self._rows.append(("target", f"error {1e3 * far:.1f} mm, {turn:.2f} deg; {age:.0f} s old"))
        ends = np.array([[tool[:3, 3], goal[:3, 3]]])
        return [
            Frames(goal[None], 0.12 * scene.drawn.size),
            Lines(ends, same(ORANGE, 1)),
            Labels(goal[None, :3, 3], (f"target: {1e3 * far:.1f} mm",)),
        ]

    def _report(self) -> None:
        """Update the table of the nodes and the message about ``joint_states``."""
        now = time.monotonic()
        age = now - self._robot.received
        missing = f"no joint_states of this robot for {age:.0f} s" if age > STALE else ""
        self.page.set_message("joint_states", self._robot.fault or missing)
        if now - self._reported > 0.1:
            self._reported = now
            self._nodes.content = self._table()

    def _table(self) -> str:
        """Return the published torques and the state of the compensation as HTML."""
        names = {None: "unknown", True: "enabled", False: "disabled"}
        columns = {topic: self._robot.torques(topic) for topic in TORQUES}
        rows = [("joint, N m or N", *columns)]
        for k, name in enumerate(self._robot.model.joint_names):
            values = ("-" if tau is None else layers.fixed(tau[k], 3) for tau in columns.values())
            rows.append((name, *values))
        return (
            f'<div class="mbs-nodes" style="font-size:0.8em;padding:0 0.5em">'
            f"<p>gravity compensation: <b>{names[self._node.compensation]}</b></p>"
            f"{_html([*self._node.modes.items(), *self._rows])}{_html(rows)}</div>"
        )


def _html(rows: Iterable[Sequence[str]]) -> str:
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f'<table style="width:100%">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


class Viewer:
    """Shows the robot of a node, on a new page at the same address for each new description."""

    def __init__(
        self,
        node: LiveView,
        ended: Callable[[], bool],
        *,
        browse: bool = False,
        chosen: Sequence[str] | None = None,
        report: Callable[[str], None],
        **page: Any,
    ) -> None:
        """``page`` contains further arguments of ``open_page``."""
        self._node, self._ended, self._browse, self._chosen = node, ended, browse, chosen
        self._report, self._arguments = report, page
        self._description = ""
        self.live: Live | None = None
        """The robot on the page; None before the first valid description."""

    def run(self) -> None:
        """Show the robot until ``ended`` returns True."""
        reminded = time.monotonic() - REMINDER + 1.0
        while not self._ended():
            if self._node.description != self._description:
                self._open(self._node.description)
            elif self.live is not None:
                self.live.page.run(self.live, self._outdated)
            else:
                if time.monotonic() - reminded > REMINDER:
                    reminded = time.monotonic()
                    topic = self._node.resolve_topic_name("robot_description")
                    self._report(f"waiting for a robot description on {topic}")
                time.sleep(REFRESH)

    def close(self) -> None:
        """Close the page."""
        if self.live is not None:
            self.live.page.close()

    def _outdated(self) -> bool:
        return self._ended() or self._node.description != self._description

    def _open(self, description: str) -> None:
        self._description = description
        try:
            model = model_of(description)
        except MbsError as error:
            text = f"the robot description is invalid: {error}"
            self._report(text)
            if self.live is not None:
                self.live.page.set_message("robot_description", text)
            return
        before = self.live
        if before is not None:
            self._arguments["port"] = before.page.port
            before.page.close()
        opened = open_page(model, description, report=self._report, **self._arguments)
        opened.page.choose(self._chosen)
        self._node.robot = robot = LiveRobot(model)
        self.live = Live(opened, self._node, robot)
        if before is None:
            announce(opened.page, self._browse)


def live_view(namespace: str = "", topics: Mapping[str, str] = {}, **options: Any) -> int:
    """Show the robot of a namespace until SIGINT; return the exit code.

    ``topics`` replace some of TOPICS, by name; ``options`` are arguments of :class:`Viewer`. Raises
    ArgumentError for an invalid namespace, an unknown name of a topic, a port that is taken, and an
    unknown layer.
    """
    check_port(options.get("port"))
    prefer_udp(os.environ)  # publishers must not block on a page that starts or stops
    with ros_with_signals(["mbs-dynamics"]) as signals:
        try:
            node = LiveView(namespace, topics)
        except InvalidNamespaceException as error:
            raise ArgumentError(f"invalid namespace {namespace!r}") from error
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        spinning = threading.Thread(target=executor.spin, daemon=True)
        spinning.start()
        viewer = Viewer(node, lambda: signals.asked, report=_report, **options)
        try:
            viewer.run()
        finally:
            viewer.close()
            executor.shutdown()
            spinning.join(LAST_MOMENTS)
            node.destroy_node()
    return 0


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
