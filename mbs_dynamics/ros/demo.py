# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A demonstration over DDS: a simulated robot, gravity compensation, and the dynamics node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError
from mbs_dynamics.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.ros.compensation.interface import COMMANDS
from mbs_dynamics.ros.domain import unused_domain
from mbs_dynamics.ros.messages import stamp_of, wrench_message
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.ros.process import EndingSignals, ros_with_signals
from mbs_dynamics.ros.robot_description import model_of
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import initial_state

TIMEOUT = 60.0
"""Longest wait for an event, in s."""

STILL, SEEN = 0.01, 0.05
"""In rad or m: a robot that moves less is still, one that moves more has moved."""

PUSH, LOAD, HEAVIEST = 0.1, 0.25, 3.0
"""Shares of an effort limit that the push exerts and the load needs at most; largest load in kg."""

NODES = "simulator_node", "gravity_compensation_node", "dynamics_node"


class Stage(Node):
    """Receives the topics of the robot and the two nodes, and moves the robot."""

    def __init__(self, model: Model, signals: EndingSignals) -> None:
        super().__init__("demo")
        self._signals, self.tip = signals, tools(model)[0]
        self.force, self.load = plan(model)
        self.q, self.now = np.full(model.n, np.nan), 0.0
        self.efforts = self.gravity = self.q
        self.commands, self.commanded = 0, np.zeros(model.n)
        self.enabled: bool | None = None
        subscribe, publish = self.create_subscription, self.create_publisher
        subscribe(JointState, "joint_states", self._on_message, qos_profile_sensor_data)
        subscribe(Float64MultiArray, COMMANDS, self._on_message, 10)
        subscribe(Bool, "gravity_compensation_node/enabled", self._on_message, LATCHED)
        subscribe(JointState, "dynamics_node/gravity_torques", self._on_message, 10)
        self._push = publish(WrenchStamped, "simulator_node/disturbance", 10)
        self._payloads = [publish(InertiaStamped, f"{one}/payload", 10) for one in NODES]
        self._brakes = self.create_client(SetBool, "simulator_node/brakes")
        self._enable = self.create_client(SetBool, "gravity_compensation_node/enable")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)

    def _on_message(self, message: Any) -> None:
        """Store the latest message of its topic."""
        if isinstance(message, Bool):
            self.enabled = message.data
        elif isinstance(message, Float64MultiArray):
            self.commands, self.commanded = self.commands + 1, np.array(message.data)
        elif message.position:
            self.now = 1e-9 * stamp_of(message.header.stamp)
            self.q, self.efforts = np.array(message.position), np.array(message.effort)
        else:
            self.gravity = np.array(message.effort)

    def until(self, what: str, condition: Callable[[], Any]) -> None:
        """Spin until a condition holds; raise TimeoutError after TIMEOUT."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            self._executor.spin_once(timeout_sec=0.05)
            if self._signals.asked:
                raise KeyboardInterrupt("interrupted")
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not come within {TIMEOUT:g} s")

    def pause(self, seconds: float) -> None:
        """Spin for some seconds of the robot's time."""
        end = self.now + seconds
        self.until("joint states", lambda: self.now >= end)

    def moved(self, q: FloatArray) -> float:
        """Return the largest distance of a joint from its position in q."""
        return float(np.abs(self.q - q).max())

    def ready(self) -> None:
        """Wait until all nodes have discovered each other."""
        ours = [self._push, *self._payloads]
        self.until("subscribers", lambda: all(one.get_subscription_count() for one in ours))
        self.until("the state of the compensation", lambda: self.enabled is not None)
        self.until("torques and joint states", lambda: np.isfinite([self.gravity, self.q]).all())

    def call(self, client: Any, value: bool) -> Any:
        """Return the answer of a service."""
        self.until(f"the service {client.srv_name}", client.service_is_ready)
        future = client.call_async(SetBool.Request(data=value))
        self.until(f"an answer of {client.srv_name}", future.done)
        return future.result()

    def compared(self) -> tuple[float, bool]:
        """Return how far gravity torques are from the efforts, and whether these hold the robot."""
        error = float(np.abs(self.gravity - self.efforts).max())
        return error, error < 1e-3 * (1.0 + float(np.abs(self.efforts).max()))

    def floats(self) -> Iterator[tuple[str, bool]]:
        """Claim that the robot comes to rest and stays, under the torques of both nodes."""
        before = np.full_like(self.q, np.inf)
        while self.moved(before) > 0.1 * STILL:
            before = self.q
            self.pause(0.5)
        self.pause(1.5)
        drift, (error, good) = self.moved(before), self.compared()
        yield f"it floats: moves by {drift:.4f} rad or m", bool(self.enabled) and drift < STILL
        yield f"dynamics_node: gravity torques are {error:.0e} off the efforts that hold it", good

    def play(self, signal_robot: Callable[[int], None]) -> Iterator[tuple[str, bool]]:
        """Play the acts; yield claims, and whether they are true."""
        before = self.q
        self.call(self._brakes, False)
        self.pause(0.3)
        sagged = f"without brakes it sags by {self.moved(before):.2f} rad or m"
        yield f"{sagged}, with {self.commands} commands while disabled", self.commands == 0
        self.call(self._brakes, True)
        for _ in range(50):
            self.pause(0.2)  # refused until the node has received enough joint states
            answer = self.call(self._enable, True)
            if answer.success:
                break
        yield f"~/enable: {answer.message}", answer.success
        self.until("torques that hold the robot", lambda: self.compared()[1])
        yield from self.floats()
        before, push = self.q, wrench_message(Time(), self.tip, self.force)
        for _ in range(50):
            self._push.publish(push)
            self.pause(0.1)
            if self.moved(before) > SEEN:
                break
        yield f"a push on {self.tip} moves it", self.moved(before) > SEEN
        yield from self.floats()
        load = InertiaStamped()
        load.header.frame_id, load.inertia.m = self.tip, self.load
        for publisher in self._payloads:  # the simulator attaches it
            publisher.publish(load)
        yield f"{self.load:g} kg on {self.tip} are announced", True
        yield from self.floats()
        signal_robot(signal.SIGSTOP)
        try:
            self.until("a message that it has stopped", lambda: self.enabled is False)
            self.until("a last command of zero", lambda: not any(self.commanded))
            yield "joint states stop (expected in the log): torques ramp to zero", True
        finally:
            signal_robot(signal.SIGCONT)
        count = self.commands
        self.pause(1.0)
        off = not self.enabled and self.commands == count
        yield "joint states are back: it stays off until it is enabled again", off


def plan(model: Model) -> tuple[FloatArray, float]:
    """Return the wrench (6,) of the push on the first tool, and the load there in kg."""
    q, _ = initial_state(model, SimulatorSettings(robot_description="<robot/>"))
    tip, limits = tools(model)[0], np.minimum(model.effort_limits, 1e3)
    shares = np.abs(mbs.jacobian(model, q, tip)[3:] / limits).max(axis=1)  # of 1 N, by axis
    push = np.zeros(6)
    push[3 + shares.argmax()] = PUSH / shares.max()
    loaded = model.with_payload(tip, mass=1.0, com=(0.0, 0.0, 0.0))
    weight = mbs.gravity_torques(loaded, q) - mbs.gravity_torques(model, q)
    load = LOAD / max(float(np.abs(weight / limits).max()), LOAD / HEAVIEST)
    return push, float(f"{load:.2g}")


def main(urdf: str) -> int:
    """Run the demonstration with the robot of a URDF's text; return 0 if all went well, else 1.

    Raises UrdfError if the text is not a URDF, ModelError if it has no joint.
    """
    model = model_of(urdf)
    if model.n == 0:
        raise ModelError(f"robot {model.name!r} has no joint that moves: there is nothing to show")
    # other robots must not receive the messages
    os.environ["ROS_DOMAIN_ID"] = str(unused_domain())
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")  # see docs/how_to/real_time.md
    compensation: dict[str, Any] = {"joints": [*model.joint_names], "compensates_itself": "false"}
    # the robot stands still while it waits for the machine
    compensation |= {"ramp_time": 0.3, "stale_timeout": 2.0}
    verdicts, processes = [], []
    with tempfile.TemporaryDirectory() as folder, ros_with_signals() as signals:
        file = Path(folder) / "robot.urdf"
        file.write_text(urdf, encoding="utf-8")
        given: list[dict[str, Any]] = [{"robot_description": file}, compensation, {}]
        for name, parameters in zip(NODES, given, strict=True):
            command = [sys.executable, "-m", f"mbs_dynamics.ros.{name}", "--ros-args"]
            command += [part for k, x in parameters.items() for part in ("-p", f"{k}:={x}")]
            processes.append(subprocess.Popen(command))
        stage = Stage(model, signals)
        print(f"{model.name}: {model.n} joints, {stage.tip} is pushed and loaded. Nodes start ...")
        try:
            stage.ready()
            for text, good in stage.play(processes[0].send_signal):
                verdicts.append(good)
                print(f"  {'ok    ' if good else 'FAILED'}  {text}", flush=True)
        except (TimeoutError, KeyboardInterrupt) as error:
            verdicts.append(False)
            print(f"FAILED: {error}", file=sys.stderr)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(TIMEOUT)
    failed = verdicts.count(False)
    print(f"{'FAILED' if failed else 'OK'}: {len(verdicts)} claims, {failed} of them wrong")
    return 1 if failed else 0
