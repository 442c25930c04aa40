# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo and its driver as a ROS node, in a process of its own.

The process publishes joint_states at 500 Hz from a simulation in real time, and applies the
commands like a forward_command_controller: the latest one, indefinitely.
"""

import contextlib
import gc
import math
import os
import signal
import time
from collections import deque
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import (
    Inertia,
    InertiaStamped,
    Point,
    Pose,
    PoseStamped,
    Vector3,
    Vector3Stamped,
)
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger

from simulated.mujoco_arm import MujocoArm

PERIOD = 0.002
"""Seconds between joint states."""

LATE = 0.01
"""Seconds that the simulation catches up after a pause of the machine; it leaves out the rest."""

KEPT = 30.0
"""Seconds of motion that are kept."""


class ArmNode:
    """The arm and its driver. Methods are called by name, see :meth:`Rig.do`."""

    def __init__(
        self, namespace: str, node: str, text: str, arm: Mapping[str, Any], imu: str = ""
    ) -> None:
        self.arm = MujocoArm(text, **arm)
        self.node = rclpy.create_node(
            "arm", namespace=namespace, start_parameter_services=False, enable_rosout=False
        )
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        publisher, client = self.node.create_publisher, self.node.create_client
        self._joint_states = publisher(JointState, "joint_states", qos_profile_sensor_data)
        self._description = publisher(String, "robot_description", latched)
        self._payload = publisher(InertiaStamped, f"{node}/payload", 1)
        self._gravity = publisher(Vector3Stamped, f"{node}/gravity", 1)
        self._target_joint = publisher(JointState, f"{node}/target_joint", 1)
        self._target_pose = publisher(PoseStamped, f"{node}/target_pose", 1)
        self._imu = publisher(Imu, "imu", qos_profile_sensor_data) if imu else None
        self._felt = Imu()
        self._felt.header.frame_id = imu
        self._felt.linear_acceleration.z = 9.81
        self._rival: Any = None
        self._clients = {
            "enable": client(SetBool, f"{node}/enable"),
            "clear": client(Trigger, f"{node}/clear"),
            "change_state": client(ChangeState, f"{node}/change_state"),
        }
        self.node.create_subscription(Float64MultiArray, "commands", self._on_command, 10)
        self.node.create_subscription(Bool, f"{node}/enabled", self._on_enabled, latched)
        self._message = JointState()
        self._faults: dict[str, Any] = {}
        self._stamp = 0
        self._futures: list[Any] = []
        self._enabled: bool | None = None
        self._arrivals = 0
        self._rows: deque[tuple[Any, ...]] = deque(maxlen=round(KEPT / PERIOD))
        self._on_first: list[tuple[str, tuple[Any, ...]]] = []
        self.describe(text)

    # -- subscriptions ----------------------------------------------------------------------------

    def _on_command(self, message: Any) -> None:
        self._arrivals += 1
        self.arm.command = np.array(message.data)
        while self._on_first:
            name, args = self._on_first.pop()
            getattr(self, name)(*args)

    def _on_enabled(self, message: Any) -> None:
        self._enabled = message.data

    # -- commands --------------------------------------------------------------------------------

    def motion(self, name: str, *args: Any) -> Any:
        """Call a method of the arm."""
        return getattr(self.arm, name)(*args)

    def inject(self, kind: str, *about: Any) -> None:
        """Send joint states with a fault from now on, see :meth:`_spoil`."""
        self._faults[kind] = about

    def heal(self) -> None:
        """Send joint states as they are."""
        self._faults.clear()
        if self._rival is not None:
            self.node.destroy_publisher(self._rival)
            self._rival = None

    def tidy(self) -> None:
        """Collect garbage, which pauses this process; it is not collected at other times."""
        gc.collect()

    def describe(self, text: str) -> None:
        self._description.publish(String(data=text))

    def payload(self, link: str, mass: float) -> None:
        inertia = Inertia(m=mass)
        self._payload.publish(InertiaStamped(header=Header(frame_id=link), inertia=inertia))

    def gravity(self, x: float, y: float, z: float) -> None:
        self._gravity.publish(Vector3Stamped(vector=Vector3(x=x, y=y, z=z)))

    def target_joint(self, name: str, position: float, velocity: float | None = None) -> None:
        """Send impedance control a position of one joint, and the velocity of it there."""
        given = [] if velocity is None else [velocity]
        self._target_joint.publish(JointState(name=[name], position=[position], velocity=given))

    def target_pose(self, frame: str, x: float, y: float, z: float) -> None:
        """Send impedance control a position of its link, upright."""
        pose = Pose(position=Point(x=x, y=y, z=z))
        self._target_pose.publish(PoseStamped(header=Header(frame_id=frame), pose=pose))

    def rival(self) -> None:
        """Advertise commands, as somebody else would who controls the arm."""
        self._rival = self.node.create_publisher(Float64MultiArray, "commands", 1)

    def signal(self, process: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    def then(self, name: str, *args: Any) -> None:
        """Call a method of this object with the first command that arrives from now on."""
        self._on_first.append((name, args))

    def ready(self, service: str) -> bool:
        return bool(self._clients[service].service_is_ready())

    def enable(self, on: bool) -> int:
        """Call the service; return the number to ask for its answer with."""
        return self._call("enable", SetBool.Request(data=on))

    def clear(self) -> int:
        return self._call("clear", Trigger.Request())

    def transition(self, label: str) -> int:
        request = ChangeState.Request(transition=Transition(label=label))
        return self._call("change_state", request)

    def _call(self, service: str, request: Any) -> int:
        self._futures.append(self._clients[service].call_async(request))
        return len(self._futures) - 1

    def answer(self, number: int) -> tuple[bool, str] | None:
        """Return success and message of a call; None while there is no answer."""
        future = self._futures[number]
        if not future.done():
            return None
        response = future.result()
        return response.success, getattr(response, "message", "")

    def status(self) -> dict[str, Any]:
        """Return what ~/enabled said last, and how far commands are from gravity's torques."""
        short = np.abs(self.arm.command - self.arm.statics.gravity(self.arm.q)).max()
        return {
            "enabled": self._enabled,
            "short": float(short),
            "torque": float(np.abs(self.arm.command).max()),
            "arrivals": self._arrivals,
        }

    def rows(self, since: float) -> list[tuple[Any, ...]]:
        """Return the motion since a time of the clock of the machine."""
        return [row for row in self._rows if row[0] >= since]

    # -- in real time ------------------------------------------------------------------------------

    def run(self, connection: Connection) -> None:
        """Simulate, publish and do what is asked for, until the connection is closed."""
        due = time.monotonic()
        while True:
            if connection.poll():
                try:
                    self._serve(connection)
                except (EOFError, BrokenPipeError):
                    return
            self.arm.advance(PERIOD)
            arm = self.arm
            sample = (arm.data.time, arm.q.copy(), arm.qd.copy(), arm.exerted.copy())
            self._publish()
            self._rows.append((time.monotonic(), *sample, self._arrivals))
            due = max(due + PERIOD, time.monotonic() - LATE)
            self.executor.spin_once(timeout_sec=0.0)
            while (left := due - time.monotonic()) > 0.0:
                self.executor.spin_once(timeout_sec=left)

    def _serve(self, connection: Connection) -> None:
        calls, now, answer = connection.recv(), time.monotonic(), None
        try:
            answer = now, [getattr(self, name)(*args) for name, *args in calls]
        except Exception as error:
            answer = error
        connection.send(answer)

    def _publish(self) -> None:
        if self._imu is not None and "imu_silence" not in self._faults:
            stamp = self._felt.header.stamp
            stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
            self._felt.linear_acceleration.x = math.nan if "imu_nan" in self._faults else 0.0
            self._imu.publish(self._felt)
        if "silence" in self._faults:
            return
        message, arm = self._message, self.arm
        message.name = list(arm.names)
        message.position, message.velocity = arm.q.tolist(), arm.qd.tolist()
        message.effort = arm.exerted.tolist()
        stamp = time.time_ns()
        if self._faults:
            stamp = self._spoil(message, stamp)
        self._stamp = stamp
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 1_000_000_000)
        self._joint_states.publish(message)

    def _spoil(self, message: Any, stamp: int) -> int:
        """Change a message as the faults in force say; return its stamp."""
        for kind, about in list(self._faults.items()):
            match kind, *about:
                case "stamp_back", seconds:
                    stamp -= int(1e9 * seconds)
                case ("stamp_zero",):
                    stamp = 0
                case ("stamp_repeated",):
                    stamp = self._stamp
                case "missing", k:
                    for values in (message.name, message.position, message.velocity):
                        del values[k]
                    del message.effort[k]
                case "twice", k:
                    message.name[k] = message.name[k - 1]
                case ("longer",):
                    message.position.append(0.0)
                case "position", k, value:
                    message.position[k] = value
                case "offset", k, value:
                    message.position[k] += value
                case "velocity", k, value:
                    message.velocity[k] = value
                case "glitch", k, value:
                    message.velocity[k] = value
                    del self._faults[kind]
                case ("stuck",):
                    message.velocity = [0.0] * len(message.velocity)
                case ("no_velocity",):
                    message.velocity = []
                case ("imu_silence" | "imu_nan",):
                    pass
                case _:
                    raise ValueError(f"no fault {kind!r} with {about!r}")
        return stamp


def urgent() -> None:
    """Run this process before others, where that is permitted."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)


def arm_process(connection: Connection, log: str, about: Mapping[str, Any]) -> None:
    """Run the arm that ``about`` describes, and do what comes over the connection."""
    urgent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that measures ends this one
    with open(log, "ab") as file:
        for output in (1, 2):
            os.dup2(file.fileno(), output)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = ArmNode(**about)
    gc.disable()
    node.run(connection)
    rclpy.try_shutdown()
