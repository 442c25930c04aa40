# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation while participants of ROS come and go all the time.

A driver sends joint states, the node answers with commands, and processes such as `ros2 topic echo`
and `ros2 topic pub` come and go, some by SIGKILL. How long did publishing block, what were the
longest gaps, and did the node stop? All processes use the default transport, unless options say
otherwise.

    python -m benchmarks.participants [--comings 500] [--driver-env NAME=VALUE] [--node-env ...]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rclpy
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import SetBool

from benchmarks.gravity_compensation import SETTINGS, states
from mbs_dynamics.ros import gravity_compensation_node
from mbs_dynamics.ros.domain import unused_domain

ENABLE = "/gravity_compensation_node/enable"
ENABLED = "/gravity_compensation_node/enabled"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LONG = 0.05
"""Seconds from which on a gap or a blocked call is counted."""


class Longest:
    """The longest of many durations in s, and how many were long."""

    def __init__(self) -> None:
        self.longest, self.long, self.all = 0.0, 0, 0

    def add(self, seconds: float) -> None:
        """Take up one duration."""
        self.longest = max(self.longest, seconds)
        self.long += seconds > LONG
        self.all += 1


class Gaps(Longest):
    """The times between events."""

    def __init__(self) -> None:
        super().__init__()
        self._before: float | None = None

    def event(self, counts: bool = True) -> None:
        """Note an event; if it does not count, the time before it is left out."""
        now = time.monotonic()
        if counts and self._before is not None:
            self.add(now - self._before)
        self._before = now


def write(path: Path, **durations: Longest) -> None:
    """Write what was found."""
    path.write_text(
        json.dumps({name: vars(one) for name, one in durations.items()}), encoding="utf-8"
    )


# -- the node ------------------------------------------------------------------------------------


def run_node(path: Path, arguments: list[str]) -> int:
    """Run the node, with a clock around what it publishes and between the states that it gets."""
    publishing, states = Longest(), Gaps()
    publish, subscribe = Publisher.publish, Node.create_subscription

    def timed_publish(self: Publisher, message: Any) -> None:
        begin = time.monotonic()
        publish(self, message)
        publishing.add(time.monotonic() - begin)

    def noted_subscription(
        self: Node, kind: Any, topic: str, callback: Callable[[Any], None], *rest: Any, **more: Any
    ) -> Any:
        def noted(message: Any) -> None:
            states.event()
            callback(message)

        return subscribe(
            self, kind, topic, noted if kind is JointState else callback, *rest, **more
        )

    Publisher.publish = timed_publish
    Node.create_subscription = noted_subscription
    code = gravity_compensation_node.main(arguments)
    write(path, publishing_in_node=publishing, states_at_node=states)
    return code


# -- the driver ----------------------------------------------------------------------------------


class Driver:
    """Sends joint states at a rate, takes commands, and keeps the node enabled."""

    def __init__(self, rate: float) -> None:
        self.node = Node("driver")
        self.period = 1.0 / rate
        self.publishing, self.commands = Longest(), Gaps()
        self.enabled = False
        self._asked = 0.0
        quiet = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._publisher = self.node.create_publisher(
            JointState,
            "/joint_states",
            qos_profile_sensor_data,
            event_callbacks=PublisherEventCallbacks(use_default_callbacks=False),
        )
        subscribe = self.node.create_subscription
        subscribe(Float64MultiArray, "commands", self._on_command, 1, event_callbacks=quiet)
        subscribe(Bool, ENABLED, self._on_enabled, LATCHED, event_callbacks=quiet)
        self._client = self.node.create_client(SetBool, ENABLE)
        self.message = states()
        self._due = time.monotonic()
        self.node.create_timer(self.period, self._on_time)

    def _on_command(self, _: Float64MultiArray) -> None:
        self.commands.event(self.enabled)

    def _on_enabled(self, message: Bool) -> None:
        self.enabled = message.data

    def _on_time(self) -> None:
        stamp = self.message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        begin = time.monotonic()
        self._publisher.publish(self.message)
        end = time.monotonic()
        self.publishing.add(end - begin)
        if not self.enabled and end > self._asked + 1.0 and self._client.service_is_ready():
            self._client.call_async(SetBool.Request(data=True))
            self._asked = end


def run_driver(path: Path, rate: float) -> int:
    """Run the driver until SIGTERM, with the default transport unless its environment says more."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    driver = Driver(rate)
    executor = SingleThreadedExecutor()
    executor.add_node(driver.node)
    while not asked:
        executor.spin_once(timeout_sec=0.1)
    write(path, publishing_in_driver=driver.publishing, commands_at_driver=driver.commands)
    rclpy.try_shutdown()
    return 0


# -- those who come and go -----------------------------------------------------------------------


def visit(number: int) -> None:
    """Take part for a moment, as the tools of the command line do: first a node, then the rest."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node(f"visitor_{number}")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    spin_for(executor, random.uniform(0.0, 2.5))
    kind = number % 5
    if kind < 2:
        node.create_subscription(
            JointState, "/joint_states", lambda _: None, qos_profile_sensor_data
        )
    elif kind == 2:
        node.create_subscription(Float64MultiArray, "commands", lambda _: None, 10)
    elif kind == 3:
        node.create_publisher(String, "/chatter", 10).publish(String(data="hello"))
    spin_for(executor, random.uniform(0.1, 1.0))
    rclpy.try_shutdown()


def spin_for(executor: SingleThreadedExecutor, seconds: float) -> None:
    """Spin for a time in s."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.0:
        executor.spin_once(timeout_sec=left)


def shared_memory(pid: int) -> set[Path]:
    """Return the files in shared memory that a process has locked as its own."""
    paths = set()
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                name = os.readlink(descriptor)
                if name.startswith("/dev/shm/fastrtps_") and name.endswith("_el"):
                    paths |= {Path(name), Path(name.removesuffix("_el"))}
    return paths


def come_and_go(comings: int, at_once: int, alive: Callable[[], bool]) -> None:
    """Let processes come and go, one in four by SIGKILL, until there were so many."""
    present: dict[int, float | None] = {}
    """Process: when to kill it."""
    left_behind: set[Path] = set()
    for number in range(comings):
        while len(present) >= at_once or (number == comings - 1 and present):
            time.sleep(0.01)
            for pid, when in list(present.items()):
                if when is not None and time.monotonic() > when:
                    left_behind |= shared_memory(pid)
                    os.kill(pid, signal.SIGKILL)
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del present[pid]
        if not alive():
            break
        pid = os.fork()
        if not pid:
            with contextlib.suppress(Exception):
                visit(number)
            os._exit(0)
        present[pid] = time.monotonic() + random.uniform(0.2, 3.0) if number % 4 == 3 else None
        time.sleep(random.uniform(0.0, 0.2))
    for pid in present:
        left_behind |= shared_memory(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for path in left_behind:
        path.unlink(missing_ok=True)


# -- all together --------------------------------------------------------------------------------


@contextlib.contextmanager
def started(role: str, path: Path, extra: list[str], environment: list[str]) -> Iterator[Any]:
    """Run this module in a role; terminate it in the end."""
    log = path.with_suffix(".log")
    with log.open("w", encoding="utf-8") as writing:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.participants", "--role", role, str(path), *extra],
            stdout=writing,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(one.split("=", 1) for one in environment)},
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def measure(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Run everything once; return what was found, and the reasons of all faults."""
    settings = SETTINGS | dict(one.split(":=", 1) for one in options.set)
    parameters = [part for name, value in settings.items() for part in ("-p", f"{name}:={value}")]
    with tempfile.TemporaryDirectory() as folder:
        node_path, driver_path = Path(folder, "node"), Path(folder, "driver")
        node_log = node_path.with_suffix(".log")
        with (
            started("node", node_path, ["--ros-args", *parameters], options.node_env) as node,
            started("driver", driver_path, [str(options.rate)], options.driver_env) as driver,
        ):
            deadline = time.monotonic() + 60.0
            while "compensation is enabled" not in node_log.read_text(encoding="utf-8"):
                if time.monotonic() > deadline or node.poll() is not None:
                    raise SystemExit(f"not enabled\n{node_log.read_text(encoding='utf-8')}")
                time.sleep(0.1)
            if options.comings:
                come_and_go(
                    options.comings,
                    options.at_once,
                    lambda: node.poll() is None and driver.poll() is None,
                )
            else:
                time.sleep(options.seconds)
            faults = re.findall(
                r"stopped by a fault \(\w+\): (.*)", node_log.read_text(encoding="utf-8")
            )
        durations = {}
        for path in (node_path, driver_path):
            durations |= json.loads(path.read_text(encoding="utf-8"))
    return durations, faults


def report(durations: dict[str, Any], faults: list[str], comings: int) -> None:
    """Print a table and a verdict."""
    print(f"{'':24}{'longest':>10}{f'over {1e3 * LONG:.0f} ms':>14}{'of':>10}")
    for name, one in durations.items():
        words = name.replace("_", " ")
        print(f"{words:24}{1e3 * one['longest']:7.1f} ms{one['long']:14}{one['all']:10}")
    for reason in faults:
        print(f"fault: {reason}")
    print(f"{len(faults)} faults while {comings} participants came and went")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Gravity compensation as participants come and go."
    )
    parser.add_argument("--comings", type=int, default=500, help="0: none, for --seconds")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a run without any")
    parser.add_argument("--at-once", type=int, default=4, help="participants at a time, at most")
    parser.add_argument("--rate", type=float, default=500.0, help="of joint states, in Hz")
    for role in ("driver", "node"):
        parser.add_argument(
            f"--{role}-env",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="of its process",
        )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME:=VALUE", help="parameters of the node"
    )
    options = parser.parse_args()
    os.environ.setdefault("ROS_DOMAIN_ID", str(unused_domain()))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    durations, faults = measure(options)
    report(durations, faults, options.comings)
    return 1 if faults else 0


def play(role: str, path: str, *arguments: str) -> int:
    """Run one of the processes that take part, before all others on this machine if allowed."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    if role == "node":
        return run_node(Path(path), list(arguments))
    return run_driver(Path(path), float(arguments[0]))


if __name__ == "__main__":
    sys.exit(play(*sys.argv[2:]) if sys.argv[1:2] == ["--role"] else main())
