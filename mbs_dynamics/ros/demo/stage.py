# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration sees and does over ROS: it hears three nodes, and calls their services."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped, Vector3, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model import Model
from mbs_dynamics.ros.demo.plan import Plan
from mbs_dynamics.ros.demo.table import Table
from mbs_dynamics.ros.messages import stamp_of

PATIENCE = 30.0
"""Seconds to wait for anything that must come."""

KEPT_STATES = 2000
"""Joint states that are kept until the answer to them arrives."""

COMMANDS = "/forward_effort_controller/commands"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class MissingError(Exception):
    """Something that must come did not."""


class Stage(Node):
    """The robot and the two nodes, as seen from outside."""

    def __init__(self, model: Model, plan: Plan, table: Table) -> None:
        super().__init__("demo")
        self.model, self.plan, self.table = model, plan, table
        self.q = np.full(model.n, np.nan)
        """(n,) the latest positions."""
        self.now = 0.0
        """Time of the robot in s: that of its joint states."""
        self.commands = 0
        """How many commands were heard."""
        self.commanded = np.zeros(model.n)
        """(n,) the latest of them."""
        self.enabled: bool | None = None
        """What the compensation says; None before it has said anything."""
        self.gravity: tuple[FloatArray, FloatArray] | None = None
        """The latest gravity torques of the dynamics node, and the positions they belong to."""
        self.answers = 0
        """How many of those were heard."""
        self._states: OrderedDict[int, FloatArray] = OrderedDict()
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)
        best_effort = qos_profile_sensor_data
        self.create_subscription(JointState, "joint_states", self._on_state, best_effort)
        self.create_subscription(Float64MultiArray, COMMANDS, self._on_command, 10)
        self.create_subscription(
            Bool, "gravity_compensation_node/enabled", self._on_enabled, LATCHED
        )
        self.create_subscription(JointState, "dynamics_node/gravity_torques", self._on_gravity, 10)
        self._disturbances = self.create_publisher(WrenchStamped, "simulator_node/disturbance", 10)
        nodes = ("simulator_node", "gravity_compensation_node", "dynamics_node")
        self._payloads = {
            name: self.create_publisher(InertiaStamped, f"{name}/payload", 10) for name in nodes
        }
        self._reset = self.create_client(Trigger, "simulator_node/reset")
        self._enable = self.create_client(SetBool, "gravity_compensation_node/enable")

    # -- what it hears -----------------------------------------------------------------------------

    def _on_state(self, message: JointState) -> None:
        stamp = stamp_of(message.header.stamp)
        self.now = 1e-9 * stamp
        self.q = np.array(message.position)
        self._states[stamp] = self.q
        if len(self._states) > KEPT_STATES:
            self._states.popitem(last=False)

    def _on_command(self, message: Float64MultiArray) -> None:
        self.commands += 1
        self.commanded = np.array(message.data)

    def _on_enabled(self, message: Bool) -> None:
        self.enabled = bool(message.data)

    def _on_gravity(self, message: JointState) -> None:
        self.answers += 1
        q = self._states.get(stamp_of(message.header.stamp))
        if q is not None and tuple(message.name) == self.model.joint_names:
            self.gravity = np.array(message.effort), q

    # -- what it does ------------------------------------------------------------------------------

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Listen until a condition holds; MissingError if it does not for a long time."""
        begin = drawn = time.monotonic()
        since = self.now
        while not condition():
            self._executor.spin_once(timeout_sec=0.05)
            now = time.monotonic()
            if now - begin > PATIENCE:
                raise MissingError(
                    f"within {PATIENCE:g} s ({self.now - since:.2f} s of the robot's time, "
                    f"compensation {'on' if self.enabled else 'off'}): {what}"
                )
            if now - drawn > 0.25:
                self.table.update(self)
                drawn = now

    def soon(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Listen until a condition holds, at most for so many seconds; return whether it does."""
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.05)
        return condition()

    def pause(self, seconds: float) -> None:
        """Listen for so many seconds of the robot's time."""
        end = self.now + seconds
        self.until("joint states", lambda: self.now >= end)

    def listen(self, seconds: float) -> None:
        """Listen for so many seconds, whatever the robot does."""
        end = time.monotonic() + seconds
        self.until("the end of a pause", lambda: time.monotonic() >= end)

    def ready(self) -> None:
        """Wait until all nodes are there and have found each other."""
        self.until("joint states of the simulator", lambda: bool(np.isfinite(self.q).all()))
        self.until("word of the compensation", lambda: self.enabled is not None)
        self.until("torques of the dynamics node", lambda: self.answers > 0)
        clients = (self._reset, self._enable)
        self.until("services", lambda: all(client.service_is_ready() for client in clients))
        ours = [self._disturbances, *self._payloads.values()]  # what is sent once must be heard
        self.until(
            "subscribers",
            lambda: (
                all(publisher.get_subscription_count() for publisher in ours)
                and self.count_subscribers(COMMANDS) > 0
                and self.count_publishers(COMMANDS) > 0
            ),
        )

    def reset(self) -> None:
        """Put the robot back where it began."""
        self._call(self._reset, Trigger.Request())

    def enable(self) -> str:
        """Ask for compensation until it is granted; return "" or why it is refused for good."""
        end = time.monotonic() + 0.5 * PATIENCE
        while True:  # it is refused as long as the node has not heard enough of the robot
            response = self._call(self._enable, SetBool.Request(data=True))
            if response.success or time.monotonic() > end:
                return "" if response.success else str(response.message)
            self.listen(0.2)

    def push(self) -> None:
        """Push the tip."""
        W = self.plan.push
        message = WrenchStamped()
        message.header.frame_id = self.plan.tip
        message.wrench.torque = Vector3(x=W[0], y=W[1], z=W[2])
        message.wrench.force = Vector3(x=W[3], y=W[4], z=W[5])
        self._disturbances.publish(message)

    def payload(self, *nodes: str) -> None:
        """Tell these nodes of the load: for the simulator, it hangs there."""
        message = InertiaStamped()
        message.header.frame_id = self.plan.tip
        message.inertia.m = self.plan.load
        for name in nodes:
            self._payloads[name].publish(message)

    def _call(self, client: Any, request: Any) -> Any:
        future = client.call_async(request)
        self.until(f"an answer of {client.srv_name}", future.done)
        return future.result()
