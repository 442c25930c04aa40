# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A demonstration over DDS: a simulated robot, gravity compensation, and the dynamics node.

Four processes communicate on this machine only, in a ROS domain chosen at random, so that no other
robot receives their messages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, ModelWarning
from mbs_dynamics.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.compensation.interface import COMMANDS
from mbs_dynamics.ros.domain import unused_domain
from mbs_dynamics.ros.messages import stamp_of, wrench_message
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.ros.process import EndingSignals, ros_with_signals
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import initial_state

TIMEOUT = 30.0
"""Longest wait for an event, in s."""

STILL, SEEN = 0.01, 0.05
"""In rad or m: a robot that moves less is still, one that moves more has moved."""

FALL = 0.3
"""Time in s in which the robot falls without compensation."""

LONGEST_SETTLE, WATCH = 15.0, 1.5
"""Time in s in which the robot must come to rest, and for which it must then stay."""

DECAY = 0.4
"""Time constant in s of the speed of a joint under the damping of the compensation alone."""

PUSH, LASTING = 0.05, 0.5
"""Largest share of an effort limit that the push exerts, and its duration in s."""

LOAD, HEAVIEST = 0.25, 3.0
"""Largest share of an effort limit that the load needs, and its largest mass in kg."""

AMPLE = 4.0
"""A joint without effort limit gets this many times the largest gravity torque."""

TOLERANCE = 1e-3
"""Error, relative to 1 plus the largest value, that counts as agreement: a robot that has come to
rest is still damped a little."""

COMPENSATION = (
    "compensates_itself:=false",
    "ramp_time:=0.3",
    "max_age:=0.0",  # a simulation that was cut off goes on with stamps of the past
    "stale_timeout:=2.0",  # the robot stands still while it waits for the machine
)


class MissingError(Exception):
    """An expected event did not occur."""


Claims = Iterator[tuple[str, bool]]
"""Statements, and whether they are true."""


class Plan(NamedTuple):
    """Values with which the demonstration moves a robot, by coordinate, in SI units."""

    efforts: FloatArray
    """(n,) effort limits: those of the description, and ample ones where it states none."""
    damping: FloatArray
    """(n,) damping that the compensation adds, so that the robot comes to rest."""
    tip: str
    """The link that is pushed and loaded: the tool or hand of the longest branch."""
    push: FloatArray
    """(6,) wrench on the tip in its own frame, moment first."""
    load: float
    """Mass in kg of the load on the tip."""
    sags: bool
    """Whether gravity moves the robot."""

    @classmethod
    def of(cls, model: Model) -> Plan:
        """Return the plan for a model with at least one joint, at its posture at the start."""
        q, _ = initial_state(model, SimulatorSettings(robot_description="<robot/>"))
        gravity, M, tip = mbs.gravity_torques(model, q), mbs.mass_matrix(model, q), tools(model)[0]
        stated, ample = model.effort_limits, max(AMPLE * float(np.abs(gravity).max()), 1.0)
        efforts = np.where(np.isfinite(stated), stated, ample)
        shares = np.abs(mbs.jacobian(model, q, tip)[3:] / efforts).max(axis=1)  # of 1 N, by axis
        push = np.zeros(6)
        push[3 + shares.argmax()] = PUSH / shares.max()
        loaded = model.with_payload(tip, mass=1.0, com=(0.0, 0.0, 0.0))
        share = float(np.abs((mbs.gravity_torques(loaded, q) - gravity) / efforts).max())
        load = HEAVIEST if share * HEAVIEST <= LOAD else LOAD / share
        sags = bool(np.abs(np.linalg.solve(M, gravity)).max() > 1.0)
        return cls(efforts, np.diag(M) / DECAY, tip, push, float(f"{load:.2g}"), sags)


class Stage(Node):
    """Receives the topics of the robot and the two nodes, and calls their services."""

    def __init__(self, model: Model, plan: Plan, signals: EndingSignals) -> None:
        super().__init__("demo")
        self.model, self.plan, self._signals = model, plan, signals
        self.q = np.full(model.n, np.nan)
        """(n,) the latest positions."""
        self.now = 0.0
        """Time of the robot in s: that of its joint states."""
        self.commands = 0
        """Number of received commands."""
        self.commanded = np.zeros(model.n)
        """(n,) the latest of them."""
        self.enabled: bool | None = None
        """State of the compensation; None before its first message."""
        self.efforts = np.zeros(model.n)
        """(n,) the latest efforts of the simulated motors."""
        self.gravity = np.full(model.n, np.nan)
        """(n,) the latest gravity torques of the dynamics node."""
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)
        subscribe, publish = self.create_subscription, self.create_publisher
        subscribe(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        subscribe(Float64MultiArray, COMMANDS, self._on_command, 10)
        subscribe(Bool, "gravity_compensation_node/enabled", self._on_enabled, LATCHED)
        subscribe(JointState, "dynamics_node/gravity_torques", self._on_gravity, 10)
        self._disturbances = publish(WrenchStamped, "simulator_node/disturbance", 10)
        self._payloads = {
            name: publish(InertiaStamped, f"{name}/payload", 10)
            for name in ("simulator_node", "gravity_compensation_node", "dynamics_node")
        }
        self._reset = self.create_client(Trigger, "simulator_node/reset")
        self._brakes = self.create_client(SetBool, "simulator_node/brakes")
        self._enable = self.create_client(SetBool, "gravity_compensation_node/enable")

    def _on_state(self, message: JointState) -> None:
        self.now = 1e-9 * stamp_of(message.header.stamp)
        self.q, self.efforts = np.array(message.position), np.array(message.effort)

    def _on_command(self, message: Float64MultiArray) -> None:
        self.commands += 1
        self.commanded = np.array(message.data)

    def _on_enabled(self, message: Bool) -> None:
        self.enabled = bool(message.data)

    def _on_gravity(self, message: JointState) -> None:
        self.gravity = np.array(message.effort)

    # -- time --------------------------------------------------------------------------------------

    def listen(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Spin for so many seconds of real time, or until a condition holds; return whether."""
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.05)
            if self._signals.asked:
                raise KeyboardInterrupt
        return until()

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Spin until a condition holds; raise MissingError after TIMEOUT."""
        if not self.listen(TIMEOUT, condition):
            raise MissingError(f"within {TIMEOUT:g} s: {what}")

    def pause(self, seconds: float) -> None:
        """Spin for so many seconds of the robot's time."""
        end = self.now + seconds
        self.until("joint states", lambda: self.now >= end)

    # -- the nodes ---------------------------------------------------------------------------------

    def ready(self) -> None:
        """Wait until all nodes have discovered each other."""
        self.until("joint states of the simulator", lambda: bool(np.isfinite(self.q).all()))
        self.until("the state of the compensation", lambda: self.enabled is not None)
        self.until("torques of the dynamics node", lambda: bool(np.isfinite(self.gravity).all()))
        clients = (self._reset, self._brakes, self._enable)
        self.until("services", lambda: all(client.service_is_ready() for client in clients))
        ours = [self._disturbances, *self._payloads.values()]  # each message is sent once only
        self.until("subscribers", lambda: all(one.get_subscription_count() for one in ours))
        self.until(
            "both ends of the command topic",
            lambda: self.count_subscribers(COMMANDS) > 1 and self.count_publishers(COMMANDS) > 0,
        )

    def reset(self) -> None:
        """Return the robot to its initial state, in which brakes hold it."""
        self._call(self._reset, Trigger.Request())
        self.pause(0.5)  # until the compensation has received it

    def release_brakes(self) -> None:
        """Leave the robot to its motors."""
        self._call(self._brakes, SetBool.Request(data=False))

    def enable(self) -> str:
        """Enable compensation; return "", or why it is still refused after a while."""
        end = time.monotonic() + 0.5 * TIMEOUT
        while True:  # refused until the node has received enough joint states
            response = self._call(self._enable, SetBool.Request(data=True))
            if response.success or time.monotonic() > end:
                return "" if response.success else str(response.message)
            self.listen(0.2)

    def push(self) -> None:
        """Push the tip."""
        stamp = self.get_clock().now().to_msg()
        self._disturbances.publish(wrench_message(self.plan.tip).fill(stamp, self.plan.push))

    def payload(self, *nodes: str) -> None:
        """Announce the load to these nodes; the simulator attaches it."""
        message = InertiaStamped()
        message.header.frame_id, message.inertia.m = self.plan.tip, self.plan.load
        for name in nodes:
            self._payloads[name].publish(message)

    def _call(self, client: Any, request: Any) -> Any:
        future = client.call_async(request)
        self.until(f"an answer of {client.srv_name}", future.done)
        return future.result()


class Act(NamedTuple):
    """A part of the demonstration."""

    title: str
    play: Callable[[], Claims]
    expected: str = ""
    """Warnings and errors of the nodes that belong to it."""


def acts(stage: Stage, simulator: Callable[[int], None]) -> list[Act]:
    """Return the acts. ``simulator`` sends a signal to the process of the robot."""
    plan = stage.plan

    def sag() -> Claims:
        before = stage.q
        stage.release_brakes()
        stage.pause(FALL)
        fell = _moved(stage, before)
        message = f"the robot moves by {fell:.2f} rad or m in {FALL:g} s without brakes"
        yield message, fell > SEEN if plan.sags else fell < SEEN
        yield f"{stage.commands} commands while disabled", stage.commands == 0

    def float_() -> Claims:
        stage.reset()
        refused = stage.enable()
        yield f"~/enable {'refuses: ' + refused if refused else 'is granted'}", not refused
        stage.until("a message that it is enabled", lambda: stage.enabled is True)
        yield _stays(stage)
        yield _right(stage)

    def push() -> Claims:
        before = stage.q
        stage.push()
        stage.until("an effect of the push", lambda: _moved(stage, before) > SEEN)
        yield f"a push on {plan.tip} moves it", True
        yield _stays(stage)

    def payload() -> Claims:
        before = stage.q
        stage.payload("simulator_node")
        if plan.sags:
            stage.until("a load that pulls", lambda: _moved(stage, before) > SEEN)
            yield f"{plan.load:g} kg on {plan.tip}, not announced, pull it down", True
        else:
            stage.pause(WATCH)
        stage.payload("gravity_compensation_node", "dynamics_node")
        yield _stays(stage)
        yield _right(stage)

    def cut() -> Claims:
        simulator(signal.SIGSTOP)
        try:
            stage.until("a message that it has stopped", lambda: stage.enabled is False)
            stage.until("a last command of zero", lambda: not stage.commanded.any())
            yield "joint states stop: compensation stops, torques ramp to zero", True
            before = stage.commands
            stage.listen(1.0)
            yield "and it commands nothing any more", stage.commands == before
        finally:
            simulator(signal.SIGCONT)
        stage.pause(1.0)
        latched = stage.enabled is False and stage.commands == before
        yield "joint states are back: it stays off until it is enabled again", latched

    stops = (
        "a warning that joint_states are stale, an error that the compensation stopped by a fault, "
        "and warnings of joints that fall too fast"
    )
    return [
        Act("without compensation", sag),
        Act("compensation is enabled", float_, "a warning that a joint jumped, by the reset"),
        Act("a push", push),
        Act("a payload", payload),
        Act("joint_states are cut", cut, stops),
    ]


def _moved(stage: Stage, q: FloatArray) -> float:
    return float(np.abs(stage.q - q).max())


def _stays(stage: Stage) -> tuple[str, bool]:
    """Let the robot come to rest, and see whether it stays."""
    end, still = stage.now + LONGEST_SETTLE, False
    while not still and stage.now < end:
        before = stage.q
        stage.pause(0.5)
        still = _moved(stage, before) < 0.1 * STILL
    before = stage.q
    stage.pause(WATCH)
    if not stage.enabled:
        return "compensation has stopped", False
    drift = _moved(stage, before)
    return f"it floats: moves by {drift:.4f} rad or m in {WATCH:g} s", drift < STILL


def _right(stage: Stage) -> tuple[str, bool]:
    """Compare the dynamics node with the efforts that hold the robot still in the simulation."""

    def error() -> float:
        largest = float(np.abs(stage.efforts).max())
        return float(np.abs(stage.gravity - stage.efforts).max()) / (1.0 + largest)

    right = stage.listen(TIMEOUT, lambda: error() < TOLERANCE)  # a new load takes a moment
    return f"dynamics_node: gravity torques are {error():.0e} off the efforts that hold it", right


def main(robot: Path | None) -> int:
    """Run the demonstration and return 0 if each act went as it should, else 1.

    ``robot`` is the path of a URDF, by default the arm that comes with this package. Raises
    UrdfError if it cannot be read, ModelError if it has no joint.
    """
    path = robot if robot is not None else robot_path("arm7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the nodes log them
        model = Model.from_urdf(path)
    if model.n == 0:
        raise ModelError(f"robot {model.name!r} has no joint that moves: there is nothing to show")
    plan = Plan.of(model)
    os.environ["ROS_DOMAIN_ID"] = str(unused_domain())
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.pop("ROS_STATIC_PEERS", None)
    by_joint = [
        f"{what}.{joint}:={value!r}"
        for what, values in (("damping", plan.damping), ("effort_limits", plan.efforts))
        for joint, value in zip(model.joint_names, values.tolist(), strict=True)
    ]
    nodes = {
        "simulator_node": [
            f"robot_description_file:={path.resolve()}",
            f"disturbance_duration:={LASTING}",
            "joint_friction:=[0.0]",  # which would hold it as well
        ],
        "gravity_compensation_node": [
            f"joints:={[*model.joint_names]}",
            f"max_payload:={plan.load}",
            *COMPENSATION,
            *by_joint,
        ],
        "dynamics_node": [],
    }
    with ExitStack() as stack:
        signals = stack.enter_context(ros_with_signals())
        running = [stack.enter_context(_node(name, given)) for name, given in nodes.items()]
        try:
            return _play(Stage(model, plan, signals), running[0])
        except MissingError as error:
            print(f"FAILED: {error} did not come", file=sys.stderr)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    return 1


@contextmanager
def _node(name: str, parameters: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a node as a process of its own, and end it in any case."""
    given = [part for parameter in parameters for part in ("-p", parameter)]
    command = [sys.executable, "-m", f"mbs_dynamics.ros.{name}", "--ros-args", *given]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _play(stage: Stage, simulator: subprocess.Popen[bytes]) -> int:
    plan, model = stage.plan, stage.model
    print(f"{model.name}: {model.n} joints, {plan.tip} is pushed and loaded. Nodes start ...")
    verdicts = []
    stage.ready()
    for act in acts(stage, simulator.send_signal):
        print(f"\n== {act.title}", flush=True)
        if act.expected:
            print(f"  expected in the log: {act.expected}", flush=True)
        for text, good in act.play():
            verdicts.append(good)
            print(f"  {'ok    ' if good else 'FAILED'}  {text}", flush=True)
    failed = verdicts.count(False)
    print(f"\n{'FAILED' if failed else 'OK'}: {len(verdicts)} claims, {failed} of them wrong")
    return 1 if failed else 0
