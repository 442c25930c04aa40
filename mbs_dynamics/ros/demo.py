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
from collections import OrderedDict
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

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, ModelWarning
from mbs_dynamics.model import Model
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import demo_plan as planning
from mbs_dynamics.ros.demo_plan import LASTING, Plan
from mbs_dynamics.ros.messages import stamp_of, wrench_message
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.ros.process import EndingSignals, ros_with_signals

TIMEOUT = 30.0
"""Longest wait for an event, in s."""

COMMANDS = "/forward_effort_controller/commands"

STILL, SEEN = 0.01, 0.05
"""In rad or m: a robot that moves less is still, one that moves more has moved."""

LONGEST_SETTLE, WATCH = 15.0, 1.5
"""Time in s in which the robot must come to rest, and for which it must then stay."""

KEPT_STATES = 2000
"""Joint states that are kept until the answer to them arrives."""

ATTEMPTS = 3
"""Number of attempts to enable. On a busy machine the node may receive the reset after ~/enable; it
then stops, because the position jumps."""

COMPENSATION = (
    "compensates_itself:=false",
    "ramp_time:=0.3",
    "max_age:=0.0",  # a simulation that was cut off goes on with stamps of the past
    "callback_timeout:=0.5",  # a busy machine is no fault here
    "stale_timeout:=2.0",  # the robot stands still while it waits for the machine
)


class MissingError(Exception):
    """An expected event did not occur."""


class Claim(NamedTuple):
    """A statement that must be true, with what was found."""

    text: str
    good: bool


class Act(NamedTuple):
    """A part of the demonstration."""

    title: str
    play: Callable[[], Iterator[Claim]]
    expected: str = ""
    """Warnings and errors of the nodes that belong to it."""


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
        self.gravity: tuple[FloatArray, FloatArray] | None = None
        """The latest gravity torques of the dynamics node, and their positions."""
        self._states: OrderedDict[int, FloatArray] = OrderedDict()
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
        self._enable = self.create_client(SetBool, "gravity_compensation_node/enable")

    def _on_state(self, message: JointState) -> None:
        stamp = stamp_of(message.header.stamp)
        self.now, self.q = 1e-9 * stamp, np.array(message.position)
        self._states[stamp] = self.q
        if len(self._states) > KEPT_STATES:
            self._states.popitem(last=False)

    def _on_command(self, message: Float64MultiArray) -> None:
        self.commands += 1
        self.commanded = np.array(message.data)

    def _on_enabled(self, message: Bool) -> None:
        self.enabled = bool(message.data)

    def _on_gravity(self, message: JointState) -> None:
        q = self._states.get(stamp_of(message.header.stamp))
        if q is not None and tuple(message.name) == self.model.joint_names:
            self.gravity = np.array(message.effort), q

    # -- time --------------------------------------------------------------------------------------

    def soon(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Spin until a condition holds, at most for so many seconds; return whether it does."""
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.05)
            if self._signals.asked:
                raise KeyboardInterrupt
        return condition()

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Spin until a condition holds; raise MissingError after TIMEOUT."""
        if not self.soon(condition, TIMEOUT):
            raise MissingError(f"within {TIMEOUT:g} s: {what}")

    def pause(self, seconds: float) -> None:
        """Spin for so many seconds of the robot's time."""
        end = self.now + seconds
        self.until("joint states", lambda: self.now >= end)

    def listen(self, seconds: float) -> None:
        """Spin for so many seconds of real time."""
        self.soon(lambda: False, seconds)

    # -- the nodes ---------------------------------------------------------------------------------

    def ready(self) -> None:
        """Wait until all nodes have discovered each other."""
        self.until("joint states of the simulator", lambda: bool(np.isfinite(self.q).all()))
        self.until("the state of the compensation", lambda: self.enabled is not None)
        self.until("torques of the dynamics node", lambda: self.gravity is not None)
        clients = (self._reset, self._enable)
        self.until("services", lambda: all(client.service_is_ready() for client in clients))
        ours = [self._disturbances, *self._payloads.values()]  # each message is sent once only
        self.until("subscribers", lambda: all(one.get_subscription_count() for one in ours))
        self.until(
            "both ends of the command topic",
            lambda: self.count_subscribers(COMMANDS) > 1 and self.count_publishers(COMMANDS) > 0,
        )

    def reset(self) -> None:
        """Return the robot to its initial state."""
        self._call(self._reset, Trigger.Request())

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
        message = wrench_message(self.plan.tip).fill(
            self.get_clock().now().to_msg(), self.plan.push
        )
        self._disturbances.publish(message)

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


def acts(stage: Stage, simulator: Callable[[int], None]) -> list[Act]:
    """Return the acts. ``simulator`` sends a signal to the process of the robot."""
    plan = stage.plan

    def at_its_place() -> bool:
        """Reset the robot; on a busy machine it may have fallen before its first message."""
        stage.reset()
        return stage.soon(lambda: _moved(stage, plan.posture) < STILL, 1.0)

    def sag() -> Iterator[Claim]:
        stage.until("a robot at its place", at_its_place)
        stage.pause(0.5)
        fell = _moved(stage, plan.posture)
        message = f"moves by {fell:.2f} rad or m in half a second"
        yield Claim(f"the robot {message}", fell > SEEN if plan.sags else fell < SEEN)
        yield Claim(f"{stage.commands} commands while disabled", stage.commands == 0)

    def float_() -> Iterator[Claim]:
        for _ in range(ATTEMPTS):
            stage.until("a robot at its place", at_its_place)
            refused = stage.enable()
            if refused:
                break
            stage.until("a message that it is enabled", lambda: stage.enabled is True)
            if not stage.soon(lambda: stage.enabled is False, 0.5):
                break
        yield Claim(f"~/enable {'refuses: ' + refused if refused else 'is granted'}", not refused)
        stage.until("a message that it is enabled", lambda: stage.enabled is True)
        yield _stays(stage)
        yield _right(stage, 0.0)

    def push() -> Iterator[Claim]:
        before = stage.q
        stage.push()
        stage.until("an effect of the push", lambda: _moved(stage, before) > SEEN)
        yield Claim(f"a push on {plan.tip} moves it", True)
        yield _stays(stage)

    def payload() -> Iterator[Claim]:
        before = stage.q
        stage.payload("simulator_node")
        if plan.sags:
            stage.until("a load that pulls", lambda: _moved(stage, before) > SEEN)
            yield Claim(f"{plan.load:g} kg on {plan.tip}, not announced, pull it down", True)
        else:
            stage.pause(WATCH)
        stage.payload("gravity_compensation_node", "dynamics_node")
        yield _stays(stage)
        yield _right(stage, plan.load)

    def cut() -> Iterator[Claim]:
        simulator(signal.SIGSTOP)
        try:
            stage.until("a message that it has stopped", lambda: stage.enabled is False)
            stage.until("a last command of zero", lambda: not stage.commanded.any())
            yield Claim("joint states stop: compensation stops, torques ramp to zero", True)
            before = stage.commands
            stage.listen(1.0)
            yield Claim("and it commands nothing any more", stage.commands == before)
        finally:
            simulator(signal.SIGCONT)
        stage.pause(1.0)
        latched = stage.enabled is False and stage.commands == before
        yield Claim("joint states are back: it stays off until it is enabled again", latched)

    jump = "a warning that a joint jumped, since the robot is reset"
    stops = "a warning that joint_states are stale, and an error that the compensation stopped by "
    return [
        Act("without compensation", sag, jump),
        Act("compensation is enabled", float_, jump),
        Act("a push", push),
        Act("a payload", payload),
        Act("joint_states are cut", cut, stops + "a fault"),
    ]


def _moved(stage: Stage, q: FloatArray) -> float:
    return float(np.abs(stage.q - q).max())


def _stays(stage: Stage) -> Claim:
    """Let the robot come to rest, and see whether it stays."""
    end, still = stage.now + LONGEST_SETTLE, False
    while not still and stage.now < end:
        before = stage.q
        stage.pause(0.5)
        still = _moved(stage, before) < 0.1 * STILL
    before = stage.q
    stage.pause(WATCH)
    if not stage.enabled:
        return Claim("compensation has stopped", False)
    drift = _moved(stage, before)
    return Claim(f"it floats: moves by {drift:.4f} rad or m in {WATCH:g} s", drift < STILL)


def _right(stage: Stage, mass: float) -> Claim:
    """Compare the dynamics node with finite differences of the energy of the loaded robot."""
    model = stage.model.with_payload(stage.plan.tip, mass=mass, com=(0.0, 0.0, 0.0)).loaded()
    end = stage.now + LONGEST_SETTLE
    while True:  # a load that is new takes the node a moment
        assert stage.gravity is not None
        tau, q = stage.gravity
        error = planning.error(tau, planning.gravity_torques(model, q))
        if error <= planning.TOLERANCE or stage.now > end:
            message = (
                f"gravity torques of dynamics_node against finite differences: {error:.0e} off"
            )
            return Claim(message, error <= planning.TOLERANCE)
        stage.pause(0.2)


def main(robot: str | None) -> int:
    """Run the demonstration and return 0 if each act went as it should, else 1.

    ``robot`` is the path of a URDF, by default the arm that comes with this package. Raises
    UrdfError if it cannot be read, ModelError if it has no joint.
    """
    path = Path(robot) if robot is not None else robot_path("arm7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the nodes log them
        model = Model.from_urdf(path)
    if model.n == 0:
        raise ModelError(f"robot {model.name!r} has no joint that moves: there is nothing to show")
    plan = Plan.of(model)
    os.environ["ROS_DOMAIN_ID"] = str(planning.unused_domain())
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.pop("ROS_STATIC_PEERS", None)
    names = ", ".join(f"'{name}'" for name in model.joint_names)
    each = [
        f"{what}.{joint}:={value!r}"
        for what, values in (("damping", plan.damping), ("effort_limits", plan.efforts))
        for joint, value in zip(model.joint_names, values.tolist(), strict=True)
    ]
    nodes = {
        "simulator_node": [
            f"robot_description_file:={path.resolve()}",
            f"initial_positions:={plan.posture.tolist()}",
            f"disturbance_duration:={LASTING}",
            f"joint_damping:={plan.own_damping.tolist()}",
            "brakes:=false",
        ],
        "gravity_compensation_node": [
            *(f"joints:=[{names}]", f"max_payload:={plan.load}"),
            *COMPENSATION,
            *each,
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
    claims = []
    stage.ready()
    for act in acts(stage, simulator.send_signal):
        print(f"\n== {act.title}", flush=True)
        if act.expected:
            print(f"  expected in the log: {act.expected}", flush=True)
        for claim in act.play():
            claims.append(claim)
            print(f"  {'ok    ' if claim.good else 'FAILED'}  {claim.text}", flush=True)
    failed = sum(not claim.good for claim in claims)
    print(f"\n{'FAILED' if failed else 'OK'}: {len(claims)} claims, {failed} of them wrong")
    return 1 if failed else 0
