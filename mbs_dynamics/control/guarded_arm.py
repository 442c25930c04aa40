# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm behind a bus of motors, under guard: frames in, commands out.

    arm = GuardedArm(model, laws.Gravity(damping=0.3), Motors.read("motors.yaml", model))
    problems = arm.enable(now())
    while True:
        command = arm.step(now(), bus.read())
        for m in command.motors:
            bus.write(m.motor, m.position, m.velocity, m.kp, m.kd, m.effort)

The arm always has a holder, where its drives can hold it: their own position loops, with gravity
torques fed forward, whenever torques are disabled or a fault has stopped them. They hold the
positions that were trusted last. Where an encoder is doubted, its drive damps. Where a motor is
doubted, its drive is given no torque, but a position beyond by as much as its loop needs to exert
it. An arm that its drives do not hold, as without power, is not thrown back: the positions to be
held follow it. Torques ramp down alone only where drives cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from mbs_dynamics.control import enabling
from mbs_dynamics.control.collision import Collision
from mbs_dynamics.control.drive_hold import DriveHold
from mbs_dynamics.control.environment import (
    LinkGravity,
    LinkLoad,
    check_load,
    link_loads,
    replaced,
    root_gravity,
)
from mbs_dynamics.control.fast_path import maker
from mbs_dynamics.control.frame_input import FrameInput
from mbs_dynamics.control.gravity_and_loads import aim_loads
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.input_checks import JointStates
from mbs_dynamics.control.laws.gravity import Gravity
from mbs_dynamics.control.laws.law import Law
from mbs_dynamics.control.log import Log
from mbs_dynamics.control.motors import Frame, MotorCommand, Motors
from mbs_dynamics.control.policy import CommandPolicy, Doubt, Fault, GuardState
from mbs_dynamics.control.references import Target
from mbs_dynamics.control.settings import MotionSettings
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model

DEFAULTS: dict[str, Any] = {
    "frozen_timeout": 0.05,
    "max_age": 0.0,
    "ramp_in_time": 0.1,
    "ramp_time": 1.0,
    "tracking_tolerance": 0.05,
}
"""Settings that differ from those of nodes: frames are those of this arm, and fast."""

HAND_OVER = 0.2
"""Time in s in which the gains of the drives fade once torques hold the arm."""

SLIP, SLIP_SHARE = 0.05, 0.3
"""How far positions to be held may be from the measured ones, in rad or m: by the first, or by what
takes this share of the largest torque of the drive."""


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


_command, _states = maker(Command), maker(JointStates)


class GuardedArm:
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
        law: Gravity | Law,
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
            "fixed_joints": tuple(fixed),
            "fixed_positions": tuple(fixed.values()),
            **(law.options if isinstance(law, Gravity) else {}),
            **limits,
        }
        without = [name for name in model.joint_names if name not in (*motors.joint_names, *fixed)]
        if without:
            raise ArgumentError(
                f"no motor moves {listed(without)}; valid are joints of the table, or positions in "
                "fixed"
            )
        self.model, self.motors = model, motors
        settings = MotionSettings.of(motors.joint_names, **options)
        self.policy = CommandPolicy(settings.on_fault, drives_hold=motors.can_hold)
        self.guard = Guard(model, settings, self.policy, source="frames", from_messages=False)
        if "gravity" in options:
            stated = root_gravity(model, LinkGravity("", settings.gravity))
            self.guard.law.gravity.aim(stated, 0.0, 0.0)
        self.guard.switch(None if isinstance(law, Gravity) else law, 0.0)
        pairs = zip(motors.limits, motors.stiffness, strict=True)
        slip = [max(SLIP, SLIP_SHARE * most / K) if K else math.inf for most, K in pairs]
        self.guard.drives = DriveHold(
            motors.joint_names, self.guard.joints, motors.stiffness, motors.damping, slip
        )
        self._frames = FrameInput(motors, model, self.policy, max_temperature)
        self._log = None if log is None else Log(log, motors)
        self._loads = link_loads(model)
        self._remark = "; ".join(motors.remarks)
        self._slipped = ""
        self._collision: Collision | None = None
        self._linked: list[GuardedArm] = []
        self._now = -math.inf
        self._shown: tuple[GuardState, Fault | None] = (GuardState.DISABLED, None)

    # -- state -------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state: disabled, ramping in, enabled, ramping out, or fault."""
        return self.policy.state.value

    @property
    def fault(self) -> Fault | None:
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        return self.policy.fault if self.policy.state is GuardState.FAULT else None

    @property
    def collision(self) -> Collision | None:
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        return self.guard.collision

    def problems(self, t: float) -> list[str]:
        """Return all reasons why torques must not be enabled at time ``t``; empty if none."""
        reasons = enabling.problems(self.guard, t, held=self.policy.grip == 1.0)
        reasons += [
            f"{name}: {why}"
            for name, why in zip(self.motors.joint_names, self._frames.refused, strict=True)
            if why
        ]
        return reasons

    def enable(self, t: float) -> list[str]:
        """Ask for torques; return what forbids them, empty if they begin to ramp in.

        The drives hold the arm until the torques have ramped in, and let go of it then.
        """
        if self.policy.engaged:
            return []
        reasons = self.problems(t)
        if not reasons:
            try:
                self.guard.enable(t, self.guard.limits._replace(hand_over_time=HAND_OVER))
            except ArgumentError as error:
                reasons.append(str(error))
        return reasons

    def hold(self, t: float) -> list[str]:
        """Let the drives hold the arm where it is; return what forbids that, empty if they do.

        Torques need not have been enabled before.
        """
        problem = self.guard.input_problem(t)
        if problem:
            return [problem]
        try:
            self.guard.hold(t)
        except ArgumentError as error:
            return [str(error)]
        return []

    def disable(self, t: float) -> None:
        """Let the drives hold the arm where it is, or ramp torques down if they cannot."""
        self.policy.disable(t)

    def clear(self, t: float) -> None:
        """Forget the fault, once it has stopped the torques. The drives go on holding."""
        self.guard.clear()

    def load(
        self,
        link: str,
        mass: float,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        *,
        time: float | None = None,
    ) -> None:
        """Take up a load of ``mass`` kg with its centre at ``com`` (3,) m of a link; 0: put it off.

        It takes effect in ``time`` s, None: ``ramp_time``. Raises UnknownBodyError and ModelError
        for a load that cannot be, or with which the arm could not be held.
        """
        x, y, z = map(float, com)
        load = LinkLoad(link, float(mass), (x, y, z), ((0.0,) * 3,) * 3)
        check_load(load)
        loads = replaced(self._loads, load)
        now = max(self._now, 0.0)
        aim_loads(self.guard, loads, now, check=mass > 0.0, time=time)
        self.guard.settle(now)  # the arm has begun to move
        self._loads = loads

    def switch(self, t: float, law: Law | None) -> None:
        """Let another law take over from time ``t`` on, without a jump; None: the arm floats.

        Another law of the same kind, as one of another stiffness, goes on with the reference; else
        the present state is the reference. The first call of a law may compile for a second: switch
        to it once before torques are enabled. Raises MbsError, and changes nothing, for a law that
        fails, or of a stiffness that the period of the loop cannot bear.
        """
        self.guard.switch(law, t)

    def aim(self, t: float, reference: Target | None) -> None:
        """Let the law follow another reference from time ``t`` on; None: come to rest.

        It is approached within the ``reference_velocity`` and ``reference_acceleration`` of the
        settings, and a trajectory is played from its first point on, at the time of that point or
        later. Raises MbsError, and changes nothing, while torques are disabled and for a reference
        that is invalid or out of reach.
        """
        self.guard.aim(reference, t)

    @property
    def trajectory(self) -> Trajectory | None:
        """The trajectory that is approached or played; None if there is none."""
        joints = self.guard.following.joints
        return None if joints is None else joints.trajectory

    @property
    def elapsed(self) -> float | None:
        """Its time in s since its first point; None while that is approached, or without one."""
        joints = self.guard.following.joints
        return None if joints is None else joints.elapsed

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed along the same path; 0: pause, 1: go on.

        Raises ArgumentError unless it is from 0 to 1, and without a trajectory.
        """
        self.guard.following.pace(rate)

    def trip(self, t: float, fault: Fault) -> None:
        """Stop for an external reason, as an emergency button."""
        self.policy.trip(t, fault)

    # -- the loop ----------------------------------------------------------------------------------

    def step(self, t: float, frames: Sequence[Frame] = ()) -> Command:
        """Return the command for the motors at time ``t``, from the frames since the last step."""
        guard, policy = self.guard, self.policy
        gap, self._now = t - self._now, t
        accepted = self._frames.read(frames, t) if frames else None
        stamps, most = self._frames.stamps, self.motors.max_age
        if gap >= most and policy.engaged:
            message = f"{gap:.3f} s between two steps; max_age is {most:g}"
            policy.trip(t, Fault("pause", message))
        if t - min(stamps) >= most and policy.engaged:
            policy.trip(t, self._frames.silence(t))
        if accepted is None:
            torques = guard.tick(t)
        else:
            q, positions, velocities, efforts, whole = guard.input.feed(*accepted)
            if whole or guard.input.fresh_for(t) > 0.0:
                states = _states((positions, velocities, int(1e9 * max(accepted[4])), ()))
                torques = guard.answer(states, q, efforts, stamps, t).command
            else:
                torques = guard.tick(t)
        command = self._command(torques)
        if self._log is not None and accepted is not None:
            self._log.write(t, accepted[0], accepted[1:4], frames, command.motors)
        return command

    def _command(self, torques: Sequence[float] | None) -> Command:
        policy, guard = self.policy, self.guard
        grip = policy.grip
        shown = self._shown
        same = shown[0] is policy.state and shown[1] is policy.fault
        if self._frames.remark:
            self._remark, self._frames.remark = self._frames.remark, ""
        if guard.remark or guard.warning:
            self._remark = "; ".join(filter(None, (self._remark, guard.remark, guard.warning)))
            guard.remark = guard.warning = ""
        drives = guard.drives
        if drives.slipped is not self._slipped:
            self._slipped = drives.slipped
            self._remark = drives.slipped or self._remark
        if guard.collisions is not None and guard.collision is not self._collision:
            self._collision = guard.collision
            if self._collision is not None:
                self._remark = f"collision: {self._collision}; the arm floats"
        if not guard.following.idle:
            self._remark = guard.following.remark() or self._remark
        if same:
            event, self._remark = self._remark, ""
        else:
            event = self._event()
        if torques is None:
            torques = policy.latest
            if grip == 0.0 and not policy.engaged and not any(torques):
                return Command("off", (0.0,) * len(self.motors.joint_names), (), event)
        if grip == 0.0:
            commands = self.motors.commands(
                torques,
                self._frames.shown(self._frames.positions),
                reported=self._frames.reported,
            )
            return _command(("torque", torques, commands, event))
        held = [drives.held[k] for k in self.motors.coordinates]
        fault = None if policy.engaged else policy.fault
        if fault is not None and fault.doubt is Doubt.MOTOR:
            for k in fault.joints:  # what its torque would hold, through its position loop
                held[k] += drives.fed_forward(policy)[k] / self.motors.stiffness[k]
        motors = self.motors.commands(torques, self._frames.shown(held), grip, grip)
        if fault is not None and fault.doubt is Doubt.ENCODER:
            names = [self.motors.joint_names[k] for k in fault.joints]
            motors = [
                one._replace(kp=0.0) if row.joint in names else one
                for one, row in zip(motors, self.motors.motors, strict=True)
            ]
        return Command("hold" if grip == 1.0 else "torque", torques, motors, event)

    def _event(self) -> str:
        state, fault = self.policy.state, self.policy.fault
        before, self._shown = self._shown, (state, fault)
        if state is GuardState.FAULT:
            if before[0] is not GuardState.FAULT:
                for other in self._linked:
                    message = f"the arm it is linked with stopped: {fault}"
                    other.policy.trip(self._now, Fault("linked", message))
            return f"fault {fault}"
        return state.value if state is not before[0] else ""


def linked(*arms: GuardedArm) -> None:
    """Let a fault of one of these arms stop all of them."""
    for arm in arms:
        arm._linked += [other for other in arms if other is not arm and other not in arm._linked]
