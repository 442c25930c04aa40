# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A node that commands an arm, and the arm in MuJoCo, in two processes connected by DDS.

The arm is a process of :mod:`benchmarks.arm_node`. Both are scripted through :class:`Rig`.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arm_node import arm_process, urgent
from benchmarks.records import Record
from mbs_dynamics.control.period.evidence import WATCHED
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from simulated.mujoco_arm import Load, MujocoArm

DEFAULTS = GravityCompensationSettings()

ANNOUNCED = 3.0
"""Seconds after which a load is announced again that torques do not show."""

TIMEOUT = 90.0
"""Seconds to wait for what must come; nothing is measured by it."""

BEFORE = 0.3
"""Seconds before an event that belong to its record."""

PAUSE, NEAR = 0.02, 0.1
"""Seconds without joint states, or without an answer to them, that spoil a trial, and how near to
an event that must be."""

PROCESSES = multiprocessing.get_context("spawn")


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
        self._log = tempfile.NamedTemporaryFile("a+", suffix=".log")  # noqa: SIM115
        about = {"namespace": self.namespace, "text": text, "arm": dict(arm or {}), "imu": imu}
        about["node"] = f"{self.namespace}/{executable}"
        self._connection, theirs = PROCESSES.Pipe()
        given = theirs, self._log.name, about
        self._arm = PROCESSES.Process(target=arm_process, args=given, daemon=True)
        self._arm.start()
        theirs.close()
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
        self._connection.close()
        self._arm.join(10.0)
        self._arm.kill()
        self._log.close()

    @property
    def log(self) -> str:
        """Log of both processes."""
        return Path(self._log.name).read_text(encoding="utf-8")

    def do(self, *calls: tuple[Any, ...]) -> tuple[float, list[Any]]:
        """Call methods of ArmNode, all between the same two joint states.

        Each call is a name followed by arguments. Return the time of the clock of the machine, and
        the results.
        """
        try:
            self._connection.send(calls)
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
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
