# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Round trip of the dynamics node and of a bare rclpy relay of the same messages.

Three processes: this one sends joint states and waits for all answers; the node computes them; the
relay answers with ready messages of the same types and sizes. Node and relay are measured in turn
and restarted for each round, because the times depend on the cores that they run on.

    python -m benchmarks.ros_latency [--robot PATH] [--messages 1000] [--rounds 5]

With --kernels it measures the computation for one message without ROS: by the kernel of the node,
and by a kernel for each of its parts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import TwistStamped
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

import mbs_dynamics as mbs
from benchmarks.timing import Call, interleaved, median
from mbs_dynamics.control.joint_input import Efforts, Reading
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.messages import JacobianMessage, JointMessage, topic_names


def outputs(model: mbs.Model) -> dict[str, Any]:
    """Return an empty message for each topic that the node publishes by default."""
    efforts = JointMessage(model.joint_names, "effort").message
    made: dict[str, Any] = {"gravity_torques": efforts, "bias_torques": efforts}
    for link, name in topic_names(leaves(model)).items():
        made[f"twist/{name}"] = TwistStamped()
        made[f"twist/{name}"].header.frame_id = link
        made[f"jacobian/{name}"] = JacobianMessage(model.joint_names, name, "hybrid").fill(
            Time(), np.zeros((6, model.n))
        )
    return made


def relay(robot: str) -> None:
    """Answer every message of joint_states with ready messages."""
    ready = outputs(mbs.Model.from_urdf(robot))
    rclpy.init()
    node = Node("dynamics_node", namespace="relay")
    pairs = [
        (node.create_publisher(type(message), f"~/{topic}", 10), message)
        for topic, message in ready.items()
    ]

    def answer(message: JointState) -> None:
        for publisher, prepared in pairs:
            if not isinstance(prepared, Float64MultiArray):
                prepared.header.stamp = message.header.stamp
            publisher.publish(prepared)

    node.create_subscription(JointState, "joint_states", answer, qos_profile_sensor_data)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        executor.spin()


class Probe:
    """Sends joint states to one of the two, and waits for all that comes back."""

    def __init__(
        self, node: Node, spin: Callable[[float], None], namespace: str, model: mbs.Model
    ) -> None:
        self.spin = spin
        self.topics = outputs(model)
        self.arrived: set[str] = set()
        for topic, message in self.topics.items():
            node.create_subscription(
                type(message),
                f"/{namespace}/dynamics_node/{topic}",
                lambda _, topic=topic: self.arrived.add(topic),
                10,
            )
        self.publisher = node.create_publisher(
            JointState, f"/{namespace}/joint_states", qos_profile_sensor_data
        )
        rng = np.random.default_rng(1)
        self.message = JointState(
            name=list(model.joint_names),
            position=rng.uniform(-1.0, 1.0, model.n).tolist(),
            velocity=rng.uniform(-1.0, 1.0, model.n).tolist(),
        )

    def round_trip(self) -> float | None:
        """Return the seconds until all answers were there; None if that takes 0.5 s."""
        stamp = time.time_ns()
        self.message.header.stamp.sec = stamp // 1_000_000_000
        self.message.header.stamp.nanosec = stamp % 1_000_000_000
        self.arrived.clear()
        begin = time.perf_counter()
        self.publisher.publish(self.message)
        while len(self.arrived) < len(self.topics):
            self.spin(0.05)
            if time.perf_counter() - begin > 0.5:
                return None
        return time.perf_counter() - begin


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmRSS"))


class Round(NamedTuple):
    """What one pair of processes did."""

    times: dict[str, list[float]]
    """Round trips in ms."""
    lost: int
    resident: dict[str, float]
    """Memory in MB."""
    said: dict[str, str]
    """The node's own diagnostics."""


@contextlib.contextmanager
def both(robot: str) -> Iterator[dict[str, int]]:
    """Run node and relay, and give their process ids."""
    node = ["mbs_dynamics.ros.dynamics_node", "--ros-args", "-r", "__ns:=/node"]
    commands = {
        "node": [*node, "-p", f"robot_description_file:={robot}"],
        "relay": ["benchmarks.ros_latency", "--relay", "--robot", robot],
    }
    running = {
        name: subprocess.Popen([sys.executable, "-m", *command])
        for name, command in commands.items()
    }
    try:
        yield {name: process.pid for name, process in running.items()}
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def one_round(robot: str, model: mbs.Model, messages: int) -> Round:
    """Start both, warm them up, and ask them in turn."""
    node = Node("probe")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    said: dict[str, str] = {}

    def hear(message: DiagnosticArray) -> None:
        for status in message.status:
            said.update({pair.key: pair.value for pair in status.values})

    node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
    with both(robot) as pids:
        probes = {
            name: Probe(node, lambda s: executor.spin_once(timeout_sec=s), name, model)
            for name in pids
        }
        deadline = time.perf_counter() + 30.0
        for name, probe in probes.items():
            while probe.round_trip() is None:
                if time.perf_counter() > deadline:
                    raise SystemExit(f"no answer from the {name} within 30 s")
            for _ in range(100):
                probe.round_trip()
        times: dict[str, list[float]] = {name: [] for name in probes}
        for _ in range(messages):
            for name in random.sample(sorted(probes), len(probes)):
                taken = probes[name].round_trip()
                if taken is not None:
                    times[name].append(1e3 * taken)
        said.clear()
        while not said:  # the latencies of the last second
            probes["node"].round_trip()
        resident = {name: memory(pid) for name, pid in pids.items()}
    node.destroy_node()
    return Round(times, 2 * messages - sum(map(len, times.values())), resident, said)


def report(rounds: list[Round]) -> None:
    ratios = []
    for k, result in enumerate(rounds):
        medians = {name: statistics.median(taken) for name, taken in result.times.items()}
        ratios.append(medians["node"] / medians["relay"])
        for name, taken in result.times.items():
            print(
                f"round {k}  {name:5}  round trip median {medians[name]:.3f} ms, 99 % below "
                f"{float(np.percentile(taken, 99)):.3f} ms, resident {result.resident[name]:.0f} MB"
            )
        print(f"round {k}  ratio of the medians {ratios[-1]:.3f}, {result.lost} answers lost")
    print(f"median of the ratios of {len(ratios)} rounds {statistics.median(ratios):.3f}")
    for key, value in sorted(rounds[-1].said.items()):
        if "latency" in key or key == "backend":
            print(f"{key}: {value}")


def kernels(robot: str) -> None:
    """Print what one kernel takes, for a compilation and a call, beside its parts."""
    os.environ["MBS_CACHE"] = "0"
    more = ("mass_matrix", "energy", "external_torques", "tool_wrench")
    for asked in ((), more):
        settings = DynamicsSettings(**{f"publish_{name}": True for name in asked})
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
    if options.relay:
        relay(robot)
        return 0
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 101))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    model = mbs.Model.from_urdf(robot)
    rclpy.init()
    rounds = [one_round(robot, model, options.messages) for _ in range(options.rounds)]
    rclpy.try_shutdown()
    report(rounds)
    return 0 if sum(result.lost for result in rounds) == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
