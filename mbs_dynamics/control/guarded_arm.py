# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm behind a bus of motors, under guard: frames in, commands out.

    arm = GuardedArm(model, laws.Gravity(damping=0.3), Motors.read("motors.yaml", model))
    problems = arm.enable(now())
    while True:
        command = arm.step(now(), bus.read())
        for m in command.motors:
            bus.write(m.motor, m.position, m.velocity, m.kp, m.kd, m.effort)

Drives that can hold the arm do so whenever torques are disabled or a fault has stopped them: their
position loops hold the latest trusted positions, with gravity torques fed forward. A drive with a
doubted encoder damps. A drive with a doubted motor receives no torque; instead its position command
is offset by the error at which its loop exerts that torque. If the drives do not hold the arm, for
example without power, the held positions follow it, so that it is not thrown back later. Torques
ramp down only where drives cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TextIO

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import (
    LinkGravity,
    LinkLoad,
    check_load,
    replaced,
    root_gravity,
)
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.laws import AnyLaw, Gravity
from mbs_dynamics.control.log import Log
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.motors import Frame, MotorCommand, Motors
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.records import NEVER
from mbs_dynamics.control.period.settings import of_commanded
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model

DEFAULTS: dict[str, Any] = {
    "frozen_timeout": 0.05,
    "max_age": 0.0,
    "ramp_in_time": 0.1,
    "ramp_time": 1.0,
    "tracking_tolerance": 0.05,
}
"""Defaults that differ from those of nodes, since frames come from this arm alone and often."""

HAND_OVER = 0.2
"""Time in s over which the gains of the drives fade out once torques hold the arm."""

SLIP, SLIP_SHARE = 0.05, 0.3
"""Largest distance of held from measured positions: the first in rad or m, or if it is longer, the
distance at which the drive exerts this share of its largest torque."""


class Command(NamedTuple):
    """Commands for the motors, and the latest change."""

    mode: str
    """``"off"``: nothing is commanded; ``"hold"``: the drives hold the arm; ``"torque"``."""
    torques: Sequence[float]
    """(m,) commanded torques of the joints with motors, in N m or N."""
    motors: Sequence[MotorCommand]
    """Commands in the units of the drives; empty while nothing is commanded."""
    event: str
    """The change with this step; empty if there is none."""


class GuardedArm(Guard):
    """One arm under guard; see the module.

    Parameters: ``law`` is one of :mod:`mbs_dynamics.control.laws`, or any function of model,
    :class:`~mbs_dynamics.control.laws.LawState` and reference that returns the torques (m,) of the
    joints with motors, gravity included; it is called once at the start. ``fixed`` are positions in
    rad or m of joints that have no motor, by name; all others must have one. ``limits`` are further
    settings, such as ``effort_scale``, and ``max_temperature`` is in degrees Celsius. Gravity and
    loads are those of ``model``; a limit ``gravity`` replaces its gravity. ``log`` is an open text
    file, to which each step in which all motors report writes a row that ``identify`` and
    ``calibrate-motors`` read.

    Raises ArgumentError, ModelError and UnknownJointError for invalid arguments. ``step`` raises
    nothing for what motors report.
    """

    def __init__(
        self,
        model: Model,
        law: Gravity | AnyLaw,
        motors: Motors,
        *,
        fixed: Mapping[str, float] = {},
        max_temperature: float = math.inf,
        log: TextIO | None = None,
        **limits: Any,
    ) -> None:
        options = {
            **DEFAULTS,
            "stale_timeout": motors.max_age,
            "other_joints_timeout": motors.max_age,
            "effort_limits": motors.limits,
            "fixed_positions": tuple(fixed.items()),
            **(law.options if isinstance(law, Gravity) else {}),
            **limits,
        }
        without = [name for name in model.joint_names if name not in (*motors.joint_names, *fixed)]
        if without:
            raise ArgumentError(
                f"no motor moves {listed(without)}; valid: joints of the table, or positions in "
                "fixed"
            )
        if motors.coordinates != tuple(coordinate_of(model, x) for x in motors.joint_names):
            raise ArgumentError("the table of motors was read for another model than this one")
        settings = MotionSettings.of(motors.joint_names, **options)
        gravity = None
        if "gravity" in options:
            gravity = root_gravity(model, LinkGravity("", settings.gravity))
        pairs = zip(motors.limits, motors.stiffness, strict=True)
        slip = [max(SLIP, SLIP_SHARE * most / K) if K else math.inf for most, K in pairs]
        of_joints = partial(of_commanded, model.n, motors.coordinates)
        drives: dict[str, Any] = {
            "stiffness": of_joints(motors.stiffness),
            "drive_damping": of_joints(motors.damping),
            "slip": of_joints(slip, NEVER),
            "can_hold": float(motors.can_hold),
            "hottest": max_temperature,
            "longest_pause": motors.max_age,
            "hand_over": HAND_OVER,
        }
        used = () if isinstance(law, Gravity) else (law,)
        super().__init__(model, settings, gravity=gravity, options=drives, used=used)
        self.motors = motors
        m = len(self.joints)
        self._columns = model.n * np.arange(4).repeat(m) + np.tile(self.joints, 4)
        """(4 m,) places of the commands of joints with motors in the output of a period."""
        self.nudge: Sequence[float] = ()
        """(m,) torques in addition while the drives hold the arm; empty: none."""
        self._unknown_motors: set[int | str] = set()
        self.remark(*motors.remarks)
        self._log = None if log is None else Log(log, motors)
        self._seen, self._told = self.running.reported, "disabled"
        if not isinstance(law, Gravity):
            self.switch(0.0, law)

    def hold(self, t: float) -> list[str]:
        """Let the drives hold the arm where it is; return the reasons against it, empty if they do.

        Torques need not have been enabled before.
        """
        if not self.motors.can_hold:
            return ["the drives cannot hold the arm: kp is 0 in the table of motors"]
        problem = self.input_problem(t)
        if problem:
            return [problem]
        self._request(t, transitions.HOLD)
        return []

    def load(
        self,
        link: str,
        mass: float,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        *,
        time: float | None = None,
    ) -> None:
        """Set the load on a link: ``mass`` in kg, centre of mass ``com`` (3,) in m; 0 removes it.

        It takes effect in ``time`` s, None: ``ramp_time``. Raises UnknownBodyError and ModelError
        for a load that cannot be, or with which the arm could not be held.
        """
        x, y, z = map(float, com)
        load = LinkLoad(link, float(mass), (x, y, z), ((0.0,) * 3,) * 3)
        check_load(load)
        self.set_loads(replaced(self.loads, load), time=time, check=mass > 0.0)

    def step(self, t: float, frames: Sequence[Frame] = ()) -> Command:
        """Return the command for the motors at time ``t``, from the frames since the last step."""
        self._read(t, frames)
        command = self._command(self.advance(t))
        if self._log is not None:
            self._log.write(t, self.state_record, frames, command.motors)
        return command

    def _read(self, t: float, frames: Sequence[Frame]) -> None:
        """Put the time and the reports in frames into the sample."""
        joints, values, unknown = self.motors.reports(frames)
        self.running.report(t, joints, values)
        if len(self.nudge):
            self.running.put("nudge", self.nudge, self.joints)
        if unknown and not self._unknown_motors.issuperset(unknown):
            self._unknown_motors.update(unknown)
            names = listed(map(str, unknown))
            self.remark(f"frames of unknown motors {names} are ignored")

    def _command(self, output: FloatArray) -> Command:
        """Return the command of the latest period, in the units of the drives."""
        event = self._change()
        if not event and (self._warnings or self._remarks):
            event = "; ".join([*self.new_warnings(), *self.new_remarks()])
        if not output[-1]:
            return Command("off", (0.0,) * len(self.joints), (), event)
        row = output[self._columns]
        torques = row[: len(self.joints)].tolist()
        mode = "hold" if self.running.reported.hold == 1.0 else "torque"
        return Command(mode, torques, self.motors.drive_commands(row), event)

    def _change(self) -> str:
        """Return the state or fault since the last call; empty if it is as before."""
        now = self.running.reported
        if now is self._seen:
            return ""
        self._seen, before = now, self._told
        self._told = f"fault {self.fault}" if self.fault is not None else self.state
        return self._told if self._told != before else ""
