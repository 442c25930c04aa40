# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A simulator in its own process, and a probe that commands it and watches its joints."""

import re
import tempfile
from pathlib import Path

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from ros_bench import NodeProcess, Probe
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.messages import stamp_of
from mbs_dynamics.ros.node_base import LATCHED

SMOOTH = Path(tempfile.mkdtemp()) / "arm7.urdf"
"""The shipped arm without friction."""
SMOOTH.write_text(re.sub(r'friction="[^"]*"', 'friction="0"', robot_path("arm7").read_text()))

DAMPED = {"robot_description": SMOOTH, "joint_damping": [5.0] * 4 + [0.2] * 3}
"""An arm whose joints are damped so much that torques of a busy machine may be late."""


class SimulatorProcess(NodeProcess):
    """The simulator node, with the shipped arm unless told otherwise."""

    def __init__(self, *arguments, **parameters):
        given = {"robot_description": robot_path("arm7")} | parameters
        super().__init__("simulator_node", *arguments, **given)

    def command(self, *arguments):
        return super().command("-p", f"command_topic:={self.topic}", *arguments)

    @property
    def topic(self):
        """The topic of commands: absolute by default, so that tests must not share it."""
        return f"{self.namespace}/controller/commands"


class Watcher(Probe):
    """A probe that publishes commands, pushes and loads, and keeps the joint states."""

    def __init__(self, simulator):
        super().__init__(simulator)
        self.states = []
        self.descriptions = []
        node, name = self.node, simulator.name
        subscribe = node.create_subscription
        subscribe(JointState, "joint_states", self.states.append, qos_profile_sensor_data)
        subscribe(String, "robot_description", self.descriptions.append, LATCHED)
        self.commands = node.create_publisher(Float64MultiArray, simulator.topic, 10)
        self.disturbance = node.create_publisher(WrenchStamped, f"{name}/disturbance", 10)

    @property
    def q(self):
        return np.array(self.states[-1].position)

    @property
    def qd(self):
        return np.array(self.states[-1].velocity)

    @property
    def tau(self):
        return np.array(self.states[-1].effort)

    @property
    def now(self):
        """The time of the simulation in s, which is slower than ours on a busy machine."""
        return 1e-9 * stamp_of(self.states[-1].header.stamp)

    def lasts(self, seconds):
        """Wait for so many seconds of the simulation."""
        self.drain()
        end = self.now + seconds
        self.until(lambda: self.now >= end, every=0.01)

    def rests(self, seconds=0.5, within=0.002):
        """Wait until no joint moves by more than that in so many seconds of the simulation."""
        self.until(lambda: self.states)
        self.drain()
        since, q = self.now, self.q

        def still():
            nonlocal since, q
            if np.abs(self.q - q).max() > within:
                since, q = self.now, self.q
            return self.now - since >= seconds

        self.until(still, every=0.01)

    def effort(self, values):
        self.commands.publish(Float64MultiArray(data=list(map(float, values))))

    def push(self, link, force):
        message = WrenchStamped()
        message.header.frame_id = link
        force = map(float, force)
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force
        self.disturbance.publish(message)

    def reset(self):
        return self.call(Trigger, "reset", Trigger.Request())
