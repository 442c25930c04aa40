# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A node that commands an arm, and the arm in MuJoCo, in two processes connected by DDS.

The arm's process publishes joint_states at 500 Hz from a simulation in real time, and applies the
commands like a forward_command_controller: the latest one, indefinitely. Its actions are scripted
through :class:`Rig` in the measuring process, which does not use ROS.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.records import Record
from mbs_dynamics.control.period.evidence import WATCHED
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from simulated.mujoco_arm import Load, MujocoArm

DEFAULTS = GravityCompensationSettings()

ANNOUNCED = 3.0
"""Seconds after which a load is announced again that torques do not show."""

PERIOD = 0.002
"""Seconds between joint states."""

LATE = 0.01
"""Seconds that the simulation catches up after a pause of the machine; it leaves out the rest."""

KEPT = 30.0
"""Seconds of motion that are kept."""

TIMEOUT = 90.0
"""Seconds to wait for what must come; nothing is measured by it."""

BEFORE = 0.3
"""Seconds before an event that belong to its record."""

PAUSE, NEAR = 0.02, 0.1
"""Seconds without joint states, or without an answer to them, that spoil a trial, and how near to
an event that must be."""

UNSHARED = ("FASTDDS_BUILTIN_TRANSPORTS",)
"""Variables of the environment that are left out: the transport is the middleware's default."""


# -- the process of the arm ------------------------------------------------------------------------


class ArmNode:
    """The arm and its driver. Methods are called by name, see :meth:`Rig.do`."""

    def __init__(
        self, namespace: str, node: str, text: str, arm: Mapping[str, Any], imu: str = ""
    ) -> None:
        import rclpy
        from geometry_msgs.msg import InertiaStamped, PoseStamped, Vector3Stamped
        from lifecycle_msgs.srv import ChangeState
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
        from sensor_msgs.msg import Imu, JointState
        from std_msgs.msg import Bool, Float64MultiArray, String
        from std_srvs.srv import SetBool, Trigger

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
        self.ended = False
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
        from std_msgs.msg import String

        self._description.publish(String(data=text))

    def payload(self, link: str, mass: float) -> None:
        from geometry_msgs.msg import InertiaStamped

        message = InertiaStamped()
        message.header.frame_id = link
        message.inertia.m = mass
        self._payload.publish(message)

    def gravity(self, x: float, y: float, z: float) -> None:
        from geometry_msgs.msg import Vector3Stamped

        message = Vector3Stamped()
        message.vector.x, message.vector.y, message.vector.z = x, y, z
        self._gravity.publish(message)

    def target_joint(self, name: str, position: float, velocity: float | None = None) -> None:
        """Send impedance control a position of one joint, and the velocity of it there."""
        from sensor_msgs.msg import JointState

        given = [] if velocity is None else [velocity]
        self._target_joint.publish(JointState(name=[name], position=[position], velocity=given))

    def target_pose(self, frame: str, x: float, y: float, z: float) -> None:
        """Send impedance control a position of its link, upright."""
        from geometry_msgs.msg import PoseStamped

        message = PoseStamped()
        message.header.frame_id = frame
        position = message.pose.position
        position.x, position.y, position.z = x, y, z
        self._target_pose.publish(message)

    def rival(self) -> None:
        """Advertise commands, as somebody else would who controls the arm."""
        from std_msgs.msg import Float64MultiArray

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
        from std_srvs.srv import SetBool

        return self._call("enable", SetBool.Request(data=on))

    def clear(self) -> int:
        from std_srvs.srv import Trigger

        return self._call("clear", Trigger.Request())

    def transition(self, label: str) -> int:
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

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

    def end(self) -> None:
        self.ended = True

    # -- in real time ------------------------------------------------------------------------------

    def run(self, requests: queue.Queue[Any], reply: Callable[[Any], None]) -> None:
        """Simulate and publish until asked to end."""
        due = time.monotonic()
        while not self.ended:
            with contextlib.suppress(queue.Empty):
                self._serve(requests.get_nowait(), reply)
            self.arm.advance(PERIOD)
            arm = self.arm
            sample = (arm.data.time, arm.q.copy(), arm.qd.copy(), arm.exerted.copy())
            self._publish()
            self._rows.append((time.monotonic(), *sample, self._arrivals))
            due = max(due + PERIOD, time.monotonic() - LATE)
            self.executor.spin_once(timeout_sec=0.0)
            while (left := due - time.monotonic()) > 0.0:
                self.executor.spin_once(timeout_sec=left)

    def _serve(self, calls: Any, reply: Callable[[Any], None]) -> None:
        now = time.monotonic()
        try:
            reply((now, [getattr(self, name)(*args) for name, *args in calls]))
        except Exception as error:
            reply(error)

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


def arm_process() -> None:
    """Run an arm: what to simulate and what to do comes on standard input, pickled."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that measures ends this one
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    about = pickle.load(sys.stdin.buffer)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = ArmNode(**about)
    gc.disable()
    requests: queue.Queue[Any] = queue.Queue()

    def read() -> None:
        with contextlib.suppress(EOFError):
            while True:
                requests.put(pickle.load(sys.stdin.buffer))
        requests.put([("end",)])

    def reply(what: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            pickle.dump(what, replies)
            replies.flush()

    threading.Thread(target=read, daemon=True).start()
    node.run(requests, reply)
    rclpy.try_shutdown()


# -- the process that measures ---------------------------------------------------------------------


def environment() -> dict[str, str]:
    """Return the environment of both processes."""
    return {name: value for name, value in os.environ.items() if name not in UNSHARED}


class Motion(NamedTuple):
    """Motion of the arm after an event."""

    record: Record
    said: str
    """Log of the node from the event on."""
    disturbed: str
    """How a pause of the machine spoiled it; empty if none did."""

    def that_goes_on(self) -> Motion:
        """Return this motion, spoiled if a pause has stopped a node that nothing should stop."""
        paused = re.search(
            r"stopped by a fault \(\w+\): (no valid .*|the callback of .*)", self.said
        )
        return self._replace(disturbed=paused.group(1)) if paused else self

    @property
    def outcome(self) -> str:
        """Reaction of the node, from its log."""
        fault = re.search(
            r"stopped by a fault \(\w+\): (?:joint_states rejected: )?(.*)", self.said
        )
        if fault:
            return f"stops: {fault.group(1)}"
        states = re.findall(r"(?:gravity compensation|impedance control) is (.*)", self.said)
        refused = re.findall(r"(target_\w+) (?:rejected|refused|ignored)", self.said)
        return ", then ".join(states) or ("refuses " + refused[0] if refused else "continues")


class Rig:
    """A node that commands an arm, and the arm, ready to be scripted.

    Parameters: ``text`` is a URDF; ``arm`` are further arguments of MujocoArm, ``imu`` is the link
    of an imu if there is one, ``executable`` is the name of the node. All others are parameters of
    the node, whose own defaults stay in force. To be used in a with statement, which ends both
    processes.
    """

    def __init__(
        self,
        text: str,
        arm: Mapping[str, Any] | None = None,
        imu: str = "",
        executable: str = "gravity_compensation_node",
        **parameters: Any,
    ) -> None:
        self.executable = executable
        self.model = MujocoArm(text, **(arm or {}))
        """The same arm, at hand for what is computed from the record."""
        self.namespace = f"/rig_{os.getpid()}_{time.monotonic_ns()}"
        self.parameters = {
            "joints": f"[{','.join(self.model.names)}]",
            "compensates_itself": "false",
            "command_topic": "commands",
            **({"use_imu": "true"} if imu else {}),
            **parameters,
        }
        self._log = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115
        self._arm = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mujoco_over_dds"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=Path(__file__).parents[1],
            env=environment(),
            preexec_fn=urgent,
        )
        about = {"namespace": self.namespace, "text": text, "arm": dict(arm or {}), "imu": imu}
        about["node"] = f"{self.namespace}/{executable}"
        self._send(about)
        self.load: Load | None = (arm or {}).get("load")
        self.node: subprocess.Popen[bytes] | None = None
        self.start()

    @staticmethod
    def joints(text: str) -> list[str]:
        """Return the names of an arm's joints, in the order of parameters and commands."""
        return MujocoArm(text).names

    @property
    def ramp_time(self) -> float:
        """Of the node, in s."""
        return float(self.parameters.get("ramp_time", DEFAULTS.ramp_time))

    @property
    def stale_timeout(self) -> float:
        """Of the node, in s."""
        return float(self.parameters.get("stale_timeout", DEFAULTS.stale_timeout))

    def start(self) -> None:
        """Start the node."""
        module = ["-m", f"mbs_dynamics.ros.{self.executable}", "--ros-args"]
        command = [sys.executable, *module, "-r", f"__ns:={self.namespace}"]
        for name, value in self.parameters.items():
            command += ["-p", f"{name}:={value}"]
        self.node = subprocess.Popen(
            command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=Path(__file__).parents[1],
            env=environment(),
            start_new_session=True,
            preexec_fn=urgent,
        )

    def stop(self, seconds: float = 20.0) -> int:
        """End the node by SIGTERM, or wait until it has ended; return its exit code."""
        assert self.node is not None
        self.node.terminate()
        try:
            return self.node.wait(seconds)
        except subprocess.TimeoutExpired:
            self.node.kill()
            return self.node.wait()

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert self._arm.stdin is not None
        self._arm.stdin.close()
        try:
            self._arm.wait(10.0)
        except subprocess.TimeoutExpired:
            self._arm.kill()
            self._arm.wait()
        self._log.close()

    @property
    def log(self) -> str:
        """Log of both processes."""
        return Path(self._log.name).read_text(encoding="utf-8")

    def _send(self, what: Any) -> None:
        assert self._arm.stdin is not None
        pickle.dump(what, self._arm.stdin)
        self._arm.stdin.flush()

    def do(self, *calls: tuple[Any, ...]) -> tuple[float, list[Any]]:
        """Call methods of ArmNode, all between the same two joint states.

        Each call is a name followed by arguments. Return the time of the clock of the machine, and
        the results.
        """
        self._send(calls)
        assert self._arm.stdout is not None
        try:
            answer = pickle.load(self._arm.stdout)
        except EOFError:
            raise RuntimeError(f"the arm's process has ended\n{self.log}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def ask(self, name: str, *args: Any) -> Any:
        """Call one method of ArmNode, and return its result."""
        return self.do((name, *args))[1][0]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; RuntimeError if it does not come."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not come\n{self.log}")
            time.sleep(0.02)

    def call(self, name: str, *args: Any, service: str) -> tuple[bool, str]:
        """Call a service of the node until it answers; return success and message."""
        self.until(lambda: self.ask("ready", service), f"the service {service}")
        numbers: list[int] = []
        asked = -math.inf

        def answered() -> bool:
            nonlocal asked
            if time.monotonic() > asked + 1.0:  # an answer may get lost at discovery
                numbers.append(self.ask(name, *args))
                asked = time.monotonic()
            return any(self.ask("answer", number) for number in numbers)

        self.until(answered, f"an answer of {service}")
        answers = (self.ask("answer", number) for number in numbers)
        return next(answer for answer in answers if answer)

    def activate(self) -> None:
        """Bring the node back from the lifecycle state inactive."""
        self.call("transition", "activate", service="change_state")

    def enable(self) -> None:
        """Clear the latest fault, and enable as soon as the node is ready for it."""
        end = time.monotonic() + TIMEOUT
        while True:
            good, reason = self.call("enable", True, service="enable")
            if good:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"not enabled: {reason}\n{self.log}")
            self.call("clear", service="clear")
            time.sleep(0.1)

    def disable(self) -> None:
        """Lock the arm, disable, and wait until torques are gone."""
        self.do(("heal",), ("motion", "lock"), ("motion", "release"))
        self.call("enable", False, service="enable")
        self.until(lambda: not self.ask("status")["torque"], "a torque of zero")

    def prepare(self, posture: ArrayLike) -> None:
        """Put the arm somewhere and lock it, with everything in order, torques off."""
        q = np.asarray(posture, dtype=float)
        self.do(
            ("heal",), ("motion", "lock"), ("motion", "place", q), ("motion", "release"), ("tidy",),
        )  # fmt: skip
        self.announce()

    def announce(self) -> None:
        """Tell the node what the arm carries; a node that has just been started may miss it."""
        if self.load is not None:
            self.ask("payload", self.load.link, self.load.mass)

    def ready(self, posture: ArrayLike, held: bool = False) -> None:
        """Put the arm somewhere, locked, and enable; return once its torques are gravity's.

        With ``held`` a position loop holds it instead of locks, and the commands do not reach it.
        """
        self.prepare(posture)
        if held:
            self.do(("motion", "let_go"), ("motion", "hold"))
        arrivals = self.ask("status")["arrivals"]
        self.announce()
        self.enable()
        since = announced = time.monotonic()

        def settled() -> bool:
            nonlocal since, announced
            if time.monotonic() > announced + ANNOUNCED:
                self.announce()
                announced = time.monotonic()
            status = self.ask("status")
            if not status["enabled"]:  # a pause of the machine has stopped it
                self.enable()
            elif status["short"] < 1e-2 and status["arrivals"] > arrivals:
                return time.monotonic() > since + WATCHED + 0.2  # a push now would be a fault
            since = time.monotonic()
            return False

        self.until(settled, "torques that are gravity's")

    def event(self, *calls: tuple[Any, ...], seconds: float = 1.0) -> Motion:
        """Make calls, let time pass, and return what the arm did."""
        begin = len(self.log)
        at, (status, *_) = self.do(("status",), *calls)
        time.sleep(seconds)
        motion = self.motion(at, begin, True)
        return motion if status["enabled"] else motion._replace(disturbed="stopped before")

    def unsupported(self, posture: ArrayLike, seconds: float) -> Motion:
        """Enable an arm at rest whose locks open at the first command, which is the event."""
        self.prepare(posture)
        begin, before = len(self.log), self.ask("status")["arrivals"]
        at, _ = self.do(("then", "motion", "let_go"))
        self.enable()
        time.sleep(seconds)
        rows = self.ask("rows", at)
        return self.motion(next(row[0] for row in rows if row[-1] > before), begin, False)

    def motion(self, at: float, begin: int, enabled: bool) -> Motion:
        """Return what the arm did since, and somewhat before, the time of an event.

        ``begin`` is the length of the log at the event; ``enabled``: whether the node was.
        """
        record = Record(self.ask("rows", at - BEFORE), self.model.statics, at)
        return Motion(record, self.log[begin:], pause(record, enabled))


def pause(record: Record, enabled: bool) -> str:
    """Return what pause of the machine spoiled a record; empty if none did.

    ``enabled`` is what the node said of itself at the event. Where it was, it must have answered
    joint states until then. While the arm's process pauses, simulated time stands still.
    """
    near = np.abs(record.t) < NEAR
    gap = float(np.diff(record.t[near]).max())
    if gap > PAUSE:
        return f"no joint states for {gap:.3f} s"
    if enabled:
        before = near & (record.t <= 0.0)
        heard = record.t[before][1:][np.diff(record.arrivals[before]) > 0]
        gap = float(np.diff([*heard, record.t[record.at]]).max(initial=0.0 if len(heard) else NEAR))
        return f"no commands for {gap:.3f} s" if gap > PAUSE else ""
    return ""


def urgent() -> None:
    """Run this process before others, where that is permitted."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)


if __name__ == "__main__":
    arm_process()
