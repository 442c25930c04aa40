# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A running robot in the browser: what its topics say. It listens, and publishes nothing."""

from __future__ import annotations

import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import MbsError
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros.joint_input import JointInput, Rejection
from mbs_dynamics.ros.messages import stamp_of
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.ros.process import LAST_MOMENTS, prefer_udp, ros_with_signals
from mbs_dynamics.ros.robot_description import model_of
from mbs_dynamics.view import layers
from mbs_dynamics.view.layers import Scene
from mbs_dynamics.view.opening import Opened, open_page
from mbs_dynamics.view.page import REFRESH, Page

STALE = 0.5
"""Seconds after which what was heard last is no longer taken for the state."""

REMINDING = 5.0
"""Seconds between two lines about what is waited for."""


class Heard:
    """What was heard of one robot. Its methods are called by the thread that listens."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._input = JointInput.of_model(model, stale_timeout=STALE, velocity_from_position=False)
        self._places = {name: k for k, name in enumerate(model.joint_names)}
        self.state: tuple[FloatArray, FloatArray | None] | None = None
        self.at = time.monotonic()
        self.fault = ""
        """Why the latest message gave no state; empty if it did."""
        self.torques: dict[str, tuple[float, FloatArray]] = {}
        """When, and (n,): of the topics by their last names."""
        self.wrench: tuple[float, str, FloatArray] | None = None
        """When, on which link, and (6,) in its frame, moment first."""
        self.enabled: bool | None = None
        """Whether gravity compensation is; None if nobody says."""

    def on_state(self, message: JointState) -> None:
        """Take a message of ``joint_states``."""
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
        self.at, self.fault = now, ""

    def on_torques(self, topic: str, message: JointState) -> None:
        """Take the torques that a node has published; those of other joints are left out."""
        tau = np.full(self.model.n, np.nan)
        for name, effort in zip(message.name, message.effort, strict=False):
            if name in self._places:
                tau[self._places[name]] = effort
        self.torques[topic] = time.monotonic(), tau

    def on_wrench(self, message: WrenchStamped) -> None:
        """Take the wrench on the tool; the link may have a prefix before its name."""
        named = message.header.frame_id
        links = [link for link in self.model.frames if named.endswith(link)]
        if not links:
            return
        m, f = message.wrench.torque, message.wrench.force
        W = np.array([m.x, m.y, m.z, f.x, f.y, f.z])
        if np.isfinite(W).all():
            self.wrench = time.monotonic(), max(links, key=len), W

    def fresh(self, topic: str) -> FloatArray | None:
        """Return torques (n,) if all of them are known and new, else None."""
        at, tau = self.torques.get(topic, (-np.inf, np.full(self.model.n, np.nan)))
        return tau if time.monotonic() - at < STALE and np.isfinite(tau).all() else None


class Live:
    """A running robot as a source of the page."""

    def __init__(self, opened: Opened, heard: Heard) -> None:
        self._page, self._parts, self.heard = opened.page, opened.parts, heard
        self._drawn: object = None
        self._said_at = 0.0
        with self._page.tabs.add_tab("Nodes"):
            self._nodes = self._page.server.gui.add_html("")

    def due(self) -> bool:
        """Return whether there is a new state, or it is time to say that there is none."""
        return self.heard.state is not self._drawn or time.monotonic() - self._said_at > 0.5

    def scene(self, body: str, representation: str) -> Scene | None:
        """Return the latest state, with the torques that a node computed, if one does."""
        heard = self.heard
        self._drawn = state = heard.state
        self._say()
        if state is None:
            return None
        gravity = heard.fresh("gravity_torques")
        scene = Scene(self._parts, *state, body, representation, measured=gravity)
        drawings = []
        if heard.wrench is not None and time.monotonic() - heard.wrench[0] < STALE:
            _, link, W = heard.wrench
            on_tool = replace(scene, body=link)
            R = on_tool.pose[:3, :3]
            W = np.concatenate([R @ W[:3], R @ W[3:]])
            drawings = layers.wrench(replace(on_tool, wrench=W))
        self._page.canvas.draw("tool wrench", drawings)
        return scene

    def _say(self) -> None:
        """Say what is missing, and what the nodes publish."""
        now, heard = time.monotonic(), self.heard
        silent = now - heard.at
        missing = f"no joint_states of this robot for {silent:.0f} s" if silent > STALE else ""
        self._page.say("joint_states", heard.fault or missing)
        if now - self._said_at > 0.1:
            self._said_at = now
            self._nodes.content = self._table()

    def _table(self) -> str:
        """Return what the nodes publish, as HTML."""
        heard = self.heard
        enabled = {None: "nobody says", True: "enabled", False: "disabled"}[heard.enabled]
        columns = {name: heard.fresh(name) for name in ("gravity_torques", "external_torques")}
        rows = [("joint, N m or N", *columns)]
        for k, name in enumerate(heard.model.joint_names):
            values = ("-" if tau is None else f"{tau[k]:.3f}" for tau in columns.values())
            rows.append((name, *values))
        lines = [
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        ]
        return (
            f'<div class="mbs-nodes" style="font-size:0.8em;padding:0 0.5em">'
            f"<p>gravity compensation: <b>{enabled}</b></p>"
            f'<table style="width:100%">{"".join(lines)}</table></div>'
        )


class Listener(Node):
    """Listens to a robot and its nodes. It has no parameters, services or publishers of its own."""

    def __init__(self, namespace: str) -> None:
        super().__init__(
            "mbs_dynamics_view",
            namespace=namespace,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self.description = ""
        """The robot description as it was heard last."""
        self.heard: Heard | None = None
        """Where what is heard goes; None as long as no robot is known."""
        listen = self.create_subscription
        listen(String, "robot_description", self._on_description, LATCHED)
        listen(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        for topic in ("gravity_torques", "external_torques"):
            callback = self._torques(topic)
            listen(JointState, f"dynamics_node/{topic}", callback, qos_profile_sensor_data)
        tool_wrench = "dynamics_node/tool_wrench"
        listen(WrenchStamped, tool_wrench, self._on_wrench, qos_profile_sensor_data)
        listen(Bool, "gravity_compensation_node/enabled", self._on_enabled, LATCHED)

    def _on_description(self, message: String) -> None:
        self.description = message.data

    def _on_state(self, message: JointState) -> None:
        if self.heard is not None:
            self.heard.on_state(message)

    def _torques(self, topic: str) -> Any:
        def heard(message: JointState) -> None:
            if self.heard is not None:
                self.heard.on_torques(topic, message)

        return heard

    def _on_wrench(self, message: WrenchStamped) -> None:
        if self.heard is not None:
            self.heard.on_wrench(message)

    def _on_enabled(self, message: Bool) -> None:
        self.enabled = bool(message.data)
        if self.heard is not None:
            self.heard.enabled = self.enabled

    enabled: bool | None = None


class Viewer:
    """Shows what a listener hears, and opens a new page for each new description."""

    def __init__(self, listener: Listener, ended: Callable[[], bool], page: dict[str, Any]) -> None:
        self._listener, self._ended = listener, ended
        self._options = {"tell": _say, **page}
        self._shown = ""
        self._live: Live | None = None
        self._page: Page | None = None
        self._reminded = time.monotonic() - REMINDING + 1.0

    def run(self, browse: bool, chosen: Sequence[str] | None) -> None:
        """Show, until it is to end."""
        while not self._ended():
            if self._live is not None and self._page is not None:
                self._page.run(self._live, self._is_over)
            elif not self._is_over():
                self._wait()
            elif not self._ended():
                self._open(browse, chosen)
            if self._is_over() and self._page is not None:
                self._live = None

    def close(self) -> None:
        """Close the page."""
        if self._page is not None:
            self._page.close()

    def _is_over(self) -> bool:
        return self._ended() or self._listener.description != self._shown

    def _wait(self) -> None:
        if self._page is None and time.monotonic() - self._reminded > REMINDING:
            self._reminded = time.monotonic()
            topic = self._listener.resolve_topic_name("robot_description")
            self._options["tell"](f"waiting for a robot description on {topic}")
        time.sleep(REFRESH)

    def _open(self, browse: bool, chosen: Sequence[str] | None) -> None:
        """Open the page of the newest description, at the address of the one before."""
        self._shown = self._listener.description
        try:
            model = model_of(self._shown)
        except MbsError as error:
            words = f"the robot description cannot be shown: {error}"
            self._options["tell"](words)
            if self._page is not None:
                self._page.say("robot_description", words)
            return
        first = self._page is None
        if self._page is not None:
            self._options["port"] = self._page.server.get_port()
            self._page.close()
        opened = open_page(model, self._shown, **self._options)
        self._page = opened.page
        self._page.choose(chosen)
        self._listener.heard = Heard(model)
        self._listener.heard.enabled = self._listener.enabled
        self._live = Live(opened, self._listener.heard)
        if first:
            self._options["tell"](f"{model.name}: {self._page.address} (Ctrl+C ends)")
            if browse:
                webbrowser.open(self._page.address)


def live_view(
    namespace: str = "",
    *,
    packages: Sequence[Path] = (),
    port: int | None = None,
    browse: bool = True,
    dark: bool = False,
    chosen: Sequence[str] | None = None,
) -> int:
    """Show the robot of a namespace until SIGINT; return the exit code.

    Raises ArgumentError for a port that is taken, or a layer that there is not.
    """
    prefer_udp(os.environ)  # a page that comes and goes must not hold up those who publish
    with ros_with_signals(["mbs-dynamics"]) as signals:
        listener = Listener(namespace)
        executor = SingleThreadedExecutor()
        executor.add_node(listener)
        spinning = threading.Thread(target=executor.spin, daemon=True)
        spinning.start()
        options = {"packages": packages, "port": port, "dark": dark}
        viewer = Viewer(listener, lambda: signals.asked, options)
        try:
            viewer.run(browse, chosen)
        finally:
            viewer.close()
            executor.shutdown()
            spinning.join(LAST_MOMENTS)
            listener.destroy_node()
    return 0


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
