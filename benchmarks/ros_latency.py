# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Round trip of the dynamics node and of a bare rclpy relay of the same messages.

    python -m benchmarks.ros_latency [--robot PATH] [--messages 1000] [--rounds 5]

With --kernels it measures the computation for one message without ROS: by the kernel of the node,
and by a kernel for each of its parts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TwistStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState

import mbs_dynamics as mbs
from benchmarks import relays
from benchmarks.timing import Call, interleaved, median
from mbs_dynamics.control.joint_input import Efforts, Reading
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.messages import jacobian_message, joint_message, topic_names


def outputs(model: mbs.Model) -> dict[str, Any]:
    """Return an empty message for each topic that the node publishes by default."""
    efforts = joint_message(Time(), model.joint_names, effort=np.zeros(model.n))
    made: dict[str, Any] = {"gravity_torques": efforts, "bias_torques": efforts}
    bodies = Robot(model, DynamicsSettings()).bodies
    for link, name in topic_names(bodies).items():
        made[f"twist/{name}"] = TwistStamped()
        made[f"twist/{name}"].header.frame_id = link
        made[f"jacobian/{name}"] = jacobian_message(
            Time(), model.joint_names, name, "hybrid", np.zeros((6, model.n))
        )
    return made


class Probe(relays.Asker):
    """Sends joint states to one of the two, and waits for all topics."""

    def __init__(
        self, node: Node, executor: SingleThreadedExecutor, namespace: str, model: mbs.Model
    ) -> None:
        q, qd, _ = model.random_state(1)
        message = JointState(
            name=list(model.joint_names), position=q.tolist(), velocity=qd.tolist()
        )
        super().__init__(node, executor, namespace, message)
        self.topics = outputs(model)
        self.arrived: set[str] = set()
        for topic, answer in self.topics.items():
            node.create_subscription(
                type(answer),
                f"/{namespace}/dynamics_node/{topic}",
                lambda _, topic=topic: self.arrived.add(topic),
                10,
            )

    def send(self) -> float:
        self.arrived.clear()
        return super().send()

    def answered(self) -> bool:
        return len(self.arrived) == len(self.topics)


def one_round(robot: str, model: mbs.Model, messages: int) -> tuple[relays.Round, dict[str, str]]:
    """Start both, warm them up, and ask them in turn; return the node's diagnostics as well."""
    node = Node("probe")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    diagnostics: dict[str, str] = {}

    def store(message: DiagnosticArray) -> None:
        for status in message.status:
            diagnostics.update({pair.key: pair.value for pair in status.values})

    node.create_subscription(DiagnosticArray, "/diagnostics", store, 10)
    command = ["mbs_dynamics.ros.dynamics_node", "--ros-args", "-r", "__ns:=/node"]
    command += ["-p", f"robot_description:={robot}"]
    other = ["benchmarks.ros_latency", "--relay", "--robot", robot]
    with relays.running(node=command, relay=other) as pids:
        probes = {name: Probe(node, executor, name, model) for name in pids}
        for probe in probes.values():
            probe.warm(100)
        result = relays.in_turn(probes, pids, messages)
        diagnostics.clear()
        while not diagnostics:  # the latencies of the last second
            probes["node"].round_trip()
    node.destroy_node()
    return result, diagnostics


def kernels(robot: str) -> None:
    """Print what one kernel takes, for a compilation and a call, beside its parts."""
    os.environ["MBS_CACHE"] = "0"
    more = ("mass_matrix", "energy", "external_torques", "tool_wrench")
    for asked in ((), more):
        settings = DynamicsSettings(publish=(*DynamicsSettings().publish, *asked))
        model, other = (mbs.Model.from_urdf(robot) for _ in range(2))
        mbs.compile(mbs.momenta, other)  # the first compilation also starts the compiler
        begin = time.thread_time()
        one = Robot(model, settings)
        built = time.thread_time() - begin
        parts = []
        for entry in one.algorithms.values():
            function, options = entry if isinstance(entry, tuple) else (entry, {})
            parts.append(mbs.compile(function, other, **options))
        compiled = time.thread_time() - begin - built
        q, qd, _ = model.random_state(0)
        known = {"q": q, "qd": qd, "gravity": np.array(model.gravity)}
        together = mbs.compile_together(one.algorithms, model, defaults=False)
        pairs = [(kernel, [known[port.name] for port in kernel.inputs]) for kernel in parts]

        def separately(pairs: list[tuple[Any, Any]] = pairs) -> None:
            for kernel, arrays in pairs:
                kernel(*arrays)

        calls = {
            "one kernel": Call(together, tuple(known[port.name] for port in together.inputs)),
            "the node's evaluation with it": Call(
                one.evaluate, (Reading(q, qd, "", Efforts(q), 0, False),)
            ),
            f"{len(parts)} kernels": Call(separately),
        }
        taken = {name: median(times) for name, times in interleaved(calls).items()}
        print(f"{model.name}: built in {built:.3f} s, {len(parts)} kernels in {compiled:.3f} s")
        print("  " + ", ".join(f"{name} {each:.2f} us" for name, each in taken.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Round trip of the dynamics node and of a relay.")
    parser.add_argument("--robot", default=None, help="URDF; the arm that comes along by default")
    parser.add_argument("--messages", type=int, default=1000, help="to each, in each round")
    parser.add_argument(
        "--rounds", type=int, default=5, help="new processes each; where they run matters"
    )
    parser.add_argument("--kernels", action="store_true", help="computation without ROS")
    parser.add_argument("--relay", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    robot = options.robot or str(robot_path("arm7"))
    if options.kernels:
        kernels(robot)
        return 0
    model = mbs.Model.from_urdf(robot)
    if options.relay:
        ready = outputs(model)
        relays.relay({f"~/{topic}": ready[topic] for topic in ready}, "dynamics_node")
        return 0
    relays.start()
    rounds = [one_round(robot, model, options.messages) for _ in range(options.rounds)]
    rclpy.try_shutdown()
    relays.report([result for result, _ in rounds])
    for key, value in sorted(rounds[-1][1].items()):
        if "latency" in key or key == "backend":
            print(f"{key}: {value}")
    return 0 if not any(result.lost for result, _ in rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
