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
"""Watches the dynamics node: what arrives, how often, how late, and whether it is right."""

from __future__ import annotations

import statistics
import time
from collections import OrderedDict
from collections.abc import Iterable

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TwistStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model import Model
from mbs_dynamics.ros import demo_check
from mbs_dynamics.ros.messages import stamp_of, topic_names

KEPT_STATES = 1000
"""Joint states that are kept until the answer to them arrives."""

DEEP = QoSProfile(depth=1000)


class Observer(Node):
    """Hears joint states and answers, and compares some of them with finite differences."""

    def __init__(self, model: Model) -> None:
        super().__init__("observer")
        self.model = model
        self.body = model.leaves[0]
        self.count = 0
        self.checked = 0
        self.wrong = 0
        self.worst = 0.0
        self.own_share = "-"
        self.arrivals: list[tuple[float, float]] = []
        """Time of arrival and age of the answers since the last table."""
        self._states: OrderedDict[int, tuple[FloatArray, FloatArray]] = OrderedDict()
        self._torques: JointState | None = None
        self._twist: TwistStamped | None = None
        topic = topic_names(model.leaves)[self.body]
        self.create_subscription(
            JointState, "joint_states", self._on_state, qos_profile_sensor_data
        )
        self.create_subscription(
            JointState, "dynamics_node/gravity_torques", self._on_torques, DEEP
        )
        self.create_subscription(TwistStamped, f"dynamics_node/twist/{topic}", self._on_twist, DEEP)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_state(self, message: JointState) -> None:
        state = np.array(message.position), np.array(message.velocity)
        self._states[stamp_of(message.header.stamp)] = state
        if len(self._states) > KEPT_STATES:
            self._states.popitem(last=False)

    def _on_torques(self, message: JointState) -> None:
        age = 1e-9 * (self.get_clock().now().nanoseconds - stamp_of(message.header.stamp))
        self.arrivals.append((time.monotonic(), age))
        self.count += 1
        self._torques = message

    def _on_twist(self, message: TwistStamped) -> None:
        self._twist = message

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for pair in status.values:
                if pair.key == "latency computed median [ms]":
                    self.own_share = pair.value

    def check(self) -> None:
        """Compare the latest answers with finite differences of poses."""
        torques, twist = self._torques, self._twist
        if torques is not None:
            state = self._states.get(stamp_of(torques.header.stamp))
            if state is not None and tuple(torques.name) == self.model.joint_names:
                expected = demo_check.gravity_torques(self.model, state[0])
                self._judge(demo_check.error(np.array(torques.effort), expected))
        if twist is not None:
            state = self._states.get(stamp_of(twist.header.stamp))
            if state is not None:
                expected = demo_check.hybrid_twist(self.model, *state, self.body)
                self._judge(demo_check.error(_angular_first(twist), expected))

    def _judge(self, error: float) -> None:
        self.checked += 1
        self.worst = max(self.worst, error)
        self.wrong += not error <= demo_check.TOLERANCE  # so that NaN is wrong

    def rate(self) -> float:
        """Return the answers per second since the last table."""
        if len(self.arrivals) < 2:
            return 0.0
        return (len(self.arrivals) - 1) / max(self.arrivals[-1][0] - self.arrivals[0][0], 1e-9)

    def table(self, elapsed: float) -> Iterable[str]:
        """Yield the lines of a table, and begin the next one."""
        ages = sorted(age for _, age in self.arrivals)
        late = f"{1e3 * statistics.median(ages):.2f} ms" if ages else "-"
        yield (
            f"t {elapsed:5.1f} s   {self.rate():5.1f} Hz   joint state to torque {late}   "
            f"node's own share {self.own_share} ms"
        )
        self.arrivals.clear()
        if self._torques is None:
            yield "  nothing has arrived yet"
            return
        state = self._states.get(stamp_of(self._torques.header.stamp))
        for k, (name, tau) in enumerate(zip(self._torques.name, self._torques.effort, strict=True)):
            prismatic = self.model.joints[k].kind == "prismatic"
            q = f"{state[0][k]:8.3f} {'m  ' if prismatic else 'rad'}" if state else 12 * " "
            yield f"  {name:28.28} {q}   gravity {tau:9.3f} {'N' if prismatic else 'N m'}"
        if self._twist is not None:
            V = _angular_first(self._twist)
            yield (f"  twist of {self.body}: omega {_vector(V[:3])} rad/s, v {_vector(V[3:])} m/s")
        yield (
            f"  {self.checked} answers compared with finite differences of poses: "
            f"{self.wrong} wrong, largest relative error {self.worst:.1e}"
        )


def _angular_first(message: TwistStamped) -> FloatArray:
    w, v = message.twist.angular, message.twist.linear
    return np.array([w.x, w.y, w.z, v.x, v.y, v.z])


def _vector(x: FloatArray) -> str:
    return "(" + ", ".join(f"{value:6.3f}" for value in x) + ")"
