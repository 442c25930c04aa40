# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation compared with a bare rclpy relay, its stop without states, and a long run.

python -m benchmarks.gravity_compensation [--messages 2000] [--rounds 5] [--soak SECONDS]
"""

import argparse
import random
import statistics
import sys
import time
from contextlib import AbstractContextManager

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from benchmarks import relays
from mbs_dynamics.resources import robot_path

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = list(MODEL.joint_names)
NODE = "mbs_dynamics.ros.gravity_compensation_node"
SETTINGS = {
    "robot_description": str(robot_path("arm7")),
    "joints": f"[{','.join(JOINTS)}]",
    "compensates_itself": "false",
    "command_topic": "commands",
    "ramp_time": "0.3",
}


def states() -> JointState:
    """Return joint states of an arm at rest."""
    position = [0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1]
    return JointState(name=JOINTS, position=position, velocity=[0.0] * MODEL.n)


class Driver(relays.Asker):
    """Sends joint states to one of the two, and receives its commands."""

    def __init__(self, node: Node, executor: SingleThreadedExecutor, namespace: str) -> None:
        super().__init__(node, executor, namespace, states())
        self.commands: list[tuple[float, list[float]]] = []
        """(time of arrival, torques)."""
        node.create_subscription(Float64MultiArray, f"/{namespace}/commands", self._hear, 1000)
        self._before = 0

    def _hear(self, message: Float64MultiArray) -> None:
        self.commands.append((time.perf_counter(), list(message.data)))

    def send(self) -> float:
        self._before = len(self.commands)
        return super().send()

    def answered(self) -> bool:
        return len(self.commands) > self._before

    def enable(self) -> None:
        """Enable the node, and wait until it commands all of the torques."""
        client = self.node.create_client(
            SetBool, f"/{self.namespace}/gravity_compensation_node/enable"
        )
        deadline = time.perf_counter() + 30.0
        futures = []
        asked = 0.0
        while not any(f.done() and f.result().success for f in futures):
            if time.perf_counter() > deadline:
                raise SystemExit("the node was not enabled within 30 s")
            self.send()
            self.spin(0.01)
            if client.service_is_ready() and time.perf_counter() > asked + 1.0:
                futures.append(client.call_async(SetBool.Request(data=True)))
                asked = time.perf_counter()
        end = time.perf_counter() + 0.6
        while time.perf_counter() < end:
            self.send()
            self.spin(0.01)


def processes(relay_too: bool = True, **settings: str) -> AbstractContextManager[dict[str, int]]:
    """Run node and relay, and give their process ids."""
    command = [NODE, "--ros-args", "-r", "__ns:=/node"]
    for name, value in (SETTINGS | settings).items():
        command += ["-p", f"{name}:={value}"]
    other = {"relay": ["benchmarks.gravity_compensation", "--relay"]} if relay_too else {}
    return relays.running(node=command, **other)


def compare(node: Node, executor: SingleThreadedExecutor, messages: int) -> relays.Round:
    """Start both, enable the node, warm them up, and ask them in turn."""
    with processes(stale_timeout="5.0") as pids:
        drivers = {name: Driver(node, executor, name) for name in pids}
        drivers["node"].enable()
        for driver in drivers.values():
            driver.warm(200)
        return relays.in_turn(drivers, pids, messages)


def stops(node: Node, executor: SingleThreadedExecutor, trials: int) -> list[float]:
    """Return how long after the last joint states the first command of zero came, in s."""
    period, delays = 0.01, []
    with processes(False, stale_timeout="0.1", on_fault="zero") as _:
        driver = Driver(node, executor, "node")
        for _ in range(trials):
            driver.enable()
            driver.commands.clear()
            for _ in range(30):
                last = driver.send()
                end = time.perf_counter() + period
                while (left := end - time.perf_counter()) > 0.0:
                    driver.spin(left)
            end = time.perf_counter() + 1.0
            while time.perf_counter() < end:
                driver.spin(0.05)
            if not driver.commands or any(driver.commands[-1][1]):
                continue  # it was stopped before, by a pause of this machine
            count = sum(any(torques) for _, torques in driver.commands)
            delays.append(driver.commands[count][0] - last)
    return delays


def answers(node: Node, executor: SingleThreadedExecutor, trials: int) -> list[float]:
    """Return how long ``~/enable`` false took to be answered while states come at 500 Hz, in s."""
    delays = []
    with processes(False, stale_timeout="5.0") as _:
        driver = Driver(node, executor, "node")
        client = node.create_client(SetBool, "/node/gravity_compensation_node/enable")
        for _ in range(trials):
            driver.enable()
            due = time.perf_counter() + random.uniform(0.0, 0.01)
            while time.perf_counter() < due:
                driver.round_trip()
            begin = time.perf_counter()
            future = client.call_async(SetBool.Request(data=False))
            while not future.done():
                driver.send()
                end = time.perf_counter() + 0.002
                while (left := end - time.perf_counter()) > 0.0 and not future.done():
                    driver.spin(left)
            delays.append(time.perf_counter() - begin)
    return delays


def soak(node: Node, executor: SingleThreadedExecutor, seconds: float, rate: float) -> bool:
    """Run at a rate for a long time; print memory and latency as they go. False if they grow."""
    rows: list[tuple[float, float, float]] = []
    with processes(False, stale_timeout="5.0") as pids:
        driver = Driver(node, executor, "node")
        driver.enable()
        begin = due = time.perf_counter()
        window = max(10.0, seconds / 20.0)
        taken: list[float] = []
        while time.perf_counter() - begin < seconds:
            one = driver.round_trip()
            if one is not None:
                taken.append(1e3 * one)
            driver.commands.clear()
            due += 1.0 / rate
            while (left := due - time.perf_counter()) > 0.0:
                time.sleep(left)
            if due < time.perf_counter() - 0.1:
                due = time.perf_counter()
            elapsed = time.perf_counter() - begin
            if elapsed > window * (len(rows) + 1):
                rows.append((elapsed, relays.memory(pids["node"]), statistics.median(taken)))
                print(
                    f"{elapsed:7.0f} s  {len(taken) / window:5.0f} Hz  resident "
                    f"{rows[-1][1]:.2f} MB  median latency {rows[-1][2]:.3f} ms",
                    flush=True,
                )
                taken.clear()
    if len(rows) < 4:
        return True
    grown = rows[-1][1] - rows[1][1]
    early, late = (np.median([row[2] for row in part]) for part in np.array_split(rows, 2))
    print(f"grown by {grown:.2f} MB since the second row; latency {late / early:.3f} times")
    return grown < 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Gravity compensation and a bare relay.")
    parser.add_argument("--messages", type=int, default=2000, help="to each, in each round")
    parser.add_argument("--rounds", type=int, default=5, help="new processes each")
    parser.add_argument("--stops", type=int, default=10, help="how often to cut joint_states")
    parser.add_argument("--answers", type=int, default=10, help="how often to disable it")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of a long run")
    parser.add_argument("--rate", type=float, default=500.0, help="of the long run, in Hz")
    parser.add_argument("--relay", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.relay:
        relays.relay({"commands": Float64MultiArray(data=[0.0] * MODEL.n)})
        return 0
    relays.start()
    steady = True

    def fresh() -> tuple[Node, SingleThreadedExecutor]:
        node = Node("driver")
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        return node, executor

    if options.rounds:
        relays.report([compare(*fresh(), options.messages) for _ in range(options.rounds)])
    if options.stops:
        delays = sorted(stops(*fresh(), options.stops))
        print(
            f"zero after the last joint states: median {1e3 * statistics.median(delays):.1f} ms, "
            f"longest {1e3 * delays[-1]:.1f} ms; stale_timeout 100 ms, period 10 ms"
        )
    if options.answers:
        delays = sorted(answers(*fresh(), options.answers))
        print(
            f"answer to ~/enable false: median {1e3 * statistics.median(delays):.1f} ms, "
            f"longest {1e3 * delays[-1]:.1f} ms"
        )
    if options.soak:
        steady = soak(*fresh(), options.soak, options.rate)
    rclpy.try_shutdown()
    return 0 if steady else 1


if __name__ == "__main__":
    sys.exit(main())
