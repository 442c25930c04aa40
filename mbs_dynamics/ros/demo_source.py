# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""A robot that moves by itself: it publishes its description and its joint states.

python -m mbs_dynamics.ros.demo_source URDF
"""

from __future__ import annotations

import sys
import warnings
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelWarning
from mbs_dynamics.model import Model
from mbs_dynamics.ros.process import ros

RATE = 100.0
"""Joint states per second."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Motion:
    """Each joint swings as a sine within its limits of position and velocity. No ROS here."""

    def __init__(self, model: Model) -> None:
        ways = [self._way(joint) for joint in model.joints]
        self.middle, self.amplitude, fastest = np.array(ways).T
        wanted = 0.6 + 0.15 * np.arange(model.n)  # rad/s, so that no two joints swing together
        self.frequency = np.minimum(wanted % 1.5 + 0.3, fastest)

    @staticmethod
    def _way(joint: Any) -> tuple[float, float, float]:
        """Return the middle, the amplitude and the largest angular frequency of one joint."""
        limits = joint.limits
        middle, amplitude = 0.0, 0.8 if joint.kind == "revolute" else 0.1
        if limits.lower is not None and limits.upper is not None:
            middle = 0.5 * (limits.lower + limits.upper)
            amplitude = min(amplitude, 0.4 * (limits.upper - limits.lower))
        fastest = 2.0
        if limits.velocity is not None and amplitude > 0.0:
            fastest = min(fastest, 0.8 * limits.velocity / amplitude)
        return middle, amplitude, fastest

    def at(self, t: float) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities (n,) at the time t in s."""
        phase = self.frequency * t
        q = self.middle + self.amplitude * np.sin(phase)
        return q, self.amplitude * self.frequency * np.cos(phase)


def main(arguments: list[str]) -> int:
    """Publish until a signal comes."""
    text = Path(arguments[0]).read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the node says them
        model = Model.from_urdf(text)
    with ros():
        _publish(text, model)
    return 0


def _publish(text: str, model: Model) -> None:
    motion = Motion(model)
    node = Node("robot")
    description = node.create_publisher(String, "robot_description", LATCHED)
    description.publish(String(data=text))
    states = node.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    message = JointState(name=list(model.joint_names))
    start = node.get_clock().now()

    def publish() -> None:
        now = node.get_clock().now()
        q, qd = motion.at(1e-9 * (now - start).nanoseconds)
        message.header.stamp = now.to_msg()
        message.position, message.velocity = array("d", q), array("d", qd)
        states.publish(message)

    node.create_timer(1.0 / RATE, publish)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.spin()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
