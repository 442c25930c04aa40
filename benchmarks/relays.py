# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A node compared with a bare rclpy relay of the same messages: processes, and round trips in turn.

Three processes: this one sends joint states and waits for the answers; the node computes them; the
relay answers with ready messages of the same types and sizes. Node and relay are asked in turn and
restarted for each round, because the times depend on the cores that they run on.
"""

import contextlib
import os
import random
import statistics
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState


def start() -> None:
    """Start ROS in a domain of its own."""
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 101))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    rclpy.init()


def relay(answers: Mapping[str, Any], name: str = "relay") -> None:
    """Answer every message of joint_states with ready messages, by topic."""
    rclpy.init()
    node = Node(name, namespace="relay")
    pairs = [(node.create_publisher(type(m), topic, 10), m) for topic, m in answers.items()]

    def answer(message: JointState) -> None:
        for publisher, prepared in pairs:
            if hasattr(prepared, "header"):
                prepared.header.stamp = message.header.stamp
            publisher.publish(prepared)

    node.create_subscription(JointState, "joint_states", answer, qos_profile_sensor_data)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        executor.spin()


@contextlib.contextmanager
def running(**modules: Sequence[str]) -> Iterator[dict[str, int]]:
    """Run modules with arguments, and give their process ids by name."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    commands = {name: [sys.executable, "-m", *module] for name, module in modules.items()}
    started = {name: subprocess.Popen(command, **quiet) for name, command in commands.items()}
    try:
        yield {name: process.pid for name, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.wait()


def memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmRSS"))


def cpu(pid: int) -> float:
    """Return the seconds that a process has computed."""
    return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid does


class Asker(ABC):
    """Sends joint states to a namespace, and waits for the answers."""

    def __init__(
        self, node: Node, executor: SingleThreadedExecutor, namespace: str, message: JointState
    ) -> None:
        self.node, self.executor, self.namespace = node, executor, namespace
        self.message = message
        self.publisher = node.create_publisher(
            JointState, f"/{namespace}/joint_states", qos_profile_sensor_data
        )

    @abstractmethod
    def answered(self) -> bool:
        """Return whether all answers to the last message are there."""

    def send(self) -> float:
        """Send the message with the present time as its stamp; return when."""
        stamp = self.message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        begin = time.perf_counter()
        self.publisher.publish(self.message)
        return begin

    def spin(self, seconds: float) -> None:
        """Take one message, waiting for at most so long."""
        self.executor.spin_once(timeout_sec=seconds)

    def round_trip(self) -> float | None:
        """Return the seconds until all answers were there; None if that takes 0.5 s."""
        begin = self.send()
        while not self.answered():
            self.spin(0.05)
            if time.perf_counter() - begin > 0.5:
                return None
        return time.perf_counter() - begin

    def warm(self, messages: int) -> None:
        """Wait until it answers, and some messages longer."""
        deadline = time.perf_counter() + 30.0
        while self.round_trip() is None:
            if time.perf_counter() > deadline:
                raise SystemExit(f"no answer from the {self.namespace} within 30 s")
        for _ in range(messages):
            self.round_trip()


class Round(NamedTuple):
    """Results of one pair of processes, by name."""

    round_trip: dict[str, float]
    """Median in ms."""
    slowest: dict[str, float]
    """Round trip in ms that one in a hundred exceeds."""
    cpu: dict[str, float]
    """Time of the processor per message in ms."""
    resident: dict[str, float]
    """Memory in MB."""
    lost: int
    """Messages without an answer."""


def in_turn(askers: Mapping[str, Asker], pids: Mapping[str, int], messages: int) -> Round:
    """Ask all of them so many times, in random order."""
    times: dict[str, list[float]] = {name: [] for name in askers}
    before = {name: cpu(pid) for name, pid in pids.items()}
    for _ in range(messages):
        for name in random.sample(sorted(askers), len(askers)):
            taken = askers[name].round_trip()
            if taken is not None:
                times[name].append(1e3 * taken)
    return Round(
        {name: statistics.median(taken) for name, taken in times.items()},
        {name: float(np.percentile(taken, 99)) for name, taken in times.items()},
        {name: 1e3 * (cpu(pid) - before[name]) / messages for name, pid in pids.items()},
        {name: memory(pid) for name, pid in pids.items()},
        len(askers) * messages - sum(map(len, times.values())),
    )


def report(rounds: Sequence[Round]) -> None:
    """Print the results of a node and a relay, and the medians of their ratios."""
    for k, each in enumerate(rounds):
        for name in each.round_trip:
            print(
                f"round {k}  {name:5}  round trip median {each.round_trip[name]:.3f} ms, 99 % "
                f"below {each.slowest[name]:.3f} ms; cpu {each.cpu[name]:.3f} ms; resident "
                f"{each.resident[name]:.0f} MB; {each.lost} lost"
            )
    for what in ("round_trip", "cpu"):
        ratios = [getattr(each, what)["node"] / getattr(each, what)["relay"] for each in rounds]
        print(
            f"node / relay, {what.replace('_', ' ')}: median of {len(ratios)} rounds "
            f"{statistics.median(ratios):.3f}"
        )
