# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Gravity compensation as a whole: from what is heard to what is commanded. Knows no ROS.

Every call says the time, in s of one steady clock, so that the same calls give the same commands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.ros.compensation.command_policy import CommandPolicy, Fault, Limits, State
from mbs_dynamics.ros.compensation.compensated_arm import CompensatedArm, parsed
from mbs_dynamics.ros.compensation.settings import (
    AT_REST_ONLY,
    GravityCompensationSettings,
)
from mbs_dynamics.ros.compensation.watchdog import Watchdog
from mbs_dynamics.ros.joint_input import Rejection
from mbs_dynamics.ros.robot import Gravity, Load, Vector, check_load
from mbs_dynamics.ros.settings import check_gravity

IGNORED = frozenset({"no_joints", "repeated_stamp"})
"""Messages that are not about this robot, or not new. They neither feed nor stop anything."""


class Answer(NamedTuple):
    """What became of a message."""

    command: list[float] | None
    """What to command, in the order of ``joints``; None for silence."""
    rejected: Rejection | None = None
    """Why the message was not used; None if it was."""


class Compensator:
    """Hears a robot and says what to command.

    After each call, :attr:`CommandPolicy.stopping` of :attr:`policy` says whether :meth:`tick` must
    be called again and again, and :attr:`pending` whether :meth:`adopt` has something to do.
    """

    def __init__(self, settings: GravityCompensationSettings) -> None:
        self.settings = settings
        self.policy = CommandPolicy(settings.on_fault)
        self.arm: CompensatedArm | None = None
        self.refused = ""
        """Why the latest description was refused; empty if it was not."""
        self.remarks: list[str] = []
        """What is doubtful about the robot in force, and what could not be carried over to it."""
        self.pending: str | None = None
        """A description that waits until no torque is commanded or held."""
        self.gravity = Gravity("", settings.gravity)
        self.loads: list[Load] = []
        self.joint_watch = Watchdog("joint_states")
        self.imu_watch = Watchdog("imu")
        self._text: str | None = None
        self._imu_at = -math.inf
        self._imu = np.zeros(3)

    # -- the robot ---------------------------------------------------------------------------------

    def describe(self, text: str, now: float) -> bool:
        """Take a description; False if it is the one of before. A new one while engaged is a fault.

        It waits in :attr:`pending` for :meth:`adopt`, which compiles.
        """
        if text == (self._text if self.pending is None else self.pending):
            return False
        if text == self._text:
            self.pending = None
            return False
        self.pending = text
        said = "a new robot_description came while enabled"
        self.policy.trip(now, Fault("new_description", said))
        return True

    def adopt(self, now: float) -> bool:
        """Put the pending description in force, if no torque is commanded or held.

        False if there is nothing to adopt yet. Raises MbsError if it is refused: the robot before
        it stays in force for those who look, but cannot be enabled.
        """
        if self.pending is None or not self.policy.at_rest:
            return False
        text, self._text, self.pending = self.pending, self.pending, None
        try:
            model = parsed(text, self.settings)
            arm = CompensatedArm(model, self.settings)
            remarks = [str(doubt) for doubt in model.doubts if doubt.severity == "warning"]
            gravity, loads = self._carried_over(arm, now, remarks)
        except MbsError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.arm, self.remarks, self.gravity, self.loads = arm, remarks, gravity, loads
        self.joint_watch.forget()
        self.imu_watch.forget()
        return True

    def _carried_over(
        self, arm: CompensatedArm, now: float, remarks: list[str]
    ) -> tuple[Gravity, list[Load]]:
        """Return gravity and loads of before, as far as another robot can have them."""
        gravity, loads = self.gravity, []
        try:
            arm.aim_gravity(gravity, now, 0.0)
        except MbsError as error:
            remarks.append(f"the gravity in force before is dropped: {error}")
            gravity = Gravity("", self.settings.gravity)
            arm.aim_gravity(gravity, now, 0.0)
        for load in self.loads:
            try:
                arm.body(load)
                loads.append(load)
            except MbsError as error:
                remarks.append(f"the payload at {load.link!r} is dropped: {error}")
        arm.aim_loads(loads, now, 0.0)
        return gravity, loads

    # -- gravity and loads ------------------------------------------------------------------------

    def set_gravity(self, gravity: Gravity, now: float) -> None:
        """Move to another gravity, along a ramp while engaged. Raises MbsError if it cannot be."""
        if self.settings.use_imu:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")
        check_gravity("gravity", gravity.vector)
        if self.arm is not None:
            self.arm.aim_gravity(gravity, now, self._ramp)
        self.gravity = gravity

    def set_load(self, load: Load, now: float) -> None:
        """Move to another load of the body that carries it. Raises MbsError if it cannot be."""
        check_load(load)
        others = [other for other in self.loads if other.link != load.link]
        if self.arm is not None:
            body = self.arm.body(load)
            others = [other for other in others if self.arm.body(other) != body]
        loads = [*others, load] if load.mass > 0.0 else others
        if self.arm is not None:
            self.arm.aim_loads(loads, now, self._ramp)
        self.loads = loads

    def feel(self, link: str, acceleration: Vector, now: float) -> None:
        """Take the proper acceleration (3,) in m/s^2 that an imu fixed to ``link`` measures.

        Its negative is the free fall as the base sees it: gravity less the acceleration of the
        base. A bad measurement is a fault; it raises MbsError as well.
        """
        if self.arm is None:
            return
        try:
            gravity = Gravity(link, tuple(-x for x in acceleration))  # type: ignore[arg-type]
            check_gravity("linear_acceleration", gravity.vector)
            elapsed, constant = now - self._imu_at, self.settings.imu_time_constant
            share = 1.0 if elapsed >= 20.0 * constant else 1.0 - math.exp(-elapsed / constant)
            smooth = self._imu + share * (np.array(gravity.vector) - self._imu)
            gravity = gravity._replace(vector=tuple(smooth.tolist()))
            self.arm.aim_gravity(gravity, now, 0.0)
        except MbsError as error:
            trouble = Fault("imu", f"imu refused: {error}")
            self.imu_watch.refuse(trouble)
            self.policy.trip(now, trouble)
            raise
        self._imu, self._imu_at, self.gravity = smooth, now, gravity
        self.imu_watch.feed(now)

    @property
    def _ramp(self) -> float:
        resting = self.policy.at_rest
        return 0.0 if resting else self.policy.limits.ramp_time

    # -- settings ---------------------------------------------------------------------------------

    def check(self, settings: GravityCompensationSettings) -> None:
        """Raise ArgumentError if these settings cannot be taken now."""
        changed = [
            name
            for name in sorted(AT_REST_ONLY)
            if getattr(settings, name) != getattr(self.settings, name)
        ]
        if changed and not self.policy.at_rest:
            raise ArgumentError(
                f"{', '.join(changed)} can be changed only while no torque is commanded or held: "
                f"the state is {self.policy.state.value!r}; disable first"
            )
        if settings.use_imu and settings.gravity != self.settings.gravity:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")

    def change(self, settings: GravityCompensationSettings, now: float) -> None:
        """Put settings in force that :meth:`check` lets pass."""
        gravity = settings.gravity != self.settings.gravity
        self.settings = settings
        self.policy.on_fault = settings.on_fault
        if self.arm is not None:
            self.arm.adapt(settings)
            self.arm.law.aim(self.arm.gains(settings), now, self._ramp)
        if gravity:
            self.set_gravity(Gravity("", settings.gravity), now)

    # -- what is commanded ------------------------------------------------------------------------

    def hear(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        *,
        stamp: int,
        now: float,
    ) -> Answer:
        """Take a state of the robot; ``stamp`` is the message's in ns, 0 if it has none."""
        if self.arm is None:
            return Answer(None)
        self._watch(now)
        reading = self.arm.input.read(names, positions, velocities, stamp=stamp, received=now)
        if isinstance(reading, Rejection):
            return self._reject(now, reading)
        if not reading.stamp:
            return self._reject(now, Rejection("unstamped", "the message has no time stamp"))
        if reading.repeated:
            return self._reject(now, Rejection("repeated_stamp", "the time stamp did not advance"))
        if reading.qd is None:
            return self._reject(now, Rejection("no_velocity", reading.why_no_velocity))
        positions, rates = reading.q.tolist(), reading.qd.tolist()
        beyond = self.arm.envelope.check(positions, rates)
        jump = self.arm.continuity.check(positions, reading.stamp)
        if self.policy.engaged:  # else a robot may be put elsewhere, as simulated ones are
            beyond = beyond or jump
        if beyond is not None:
            self.joint_watch.feed(now)
            return self._reject(now, Rejection(*beyond))
        self.joint_watch.feed(now)
        return Answer(self.policy.command(now, self.arm.law.torques(reading.q, rates, now)))

    def _reject(self, now: float, rejection: Rejection) -> Answer:
        if rejection.kind not in IGNORED:
            trouble = Fault(rejection.kind, f"joint_states rejected: {rejection.reason}")
            self.joint_watch.refuse(trouble)
            self.policy.trip(now, trouble)
        return Answer(self.policy.command(now), rejection)

    def tick(self, now: float) -> list[float] | None:
        """Look at the time; return what a stop commands, if there is one."""
        self._watch(now)
        return self.policy.command(now)

    def _watch(self, now: float) -> None:
        if not self.policy.engaged:
            return
        for watch in self._watches():
            stale = watch.stale(now, self.settings.stale_timeout)
            if stale is not None:
                self.policy.trip(now, stale)

    def _watches(self) -> tuple[Watchdog, ...]:
        return (self.joint_watch, self.imu_watch) if self.settings.use_imu else (self.joint_watch,)

    def fail(self, fault: Fault, now: float) -> list[float] | None:
        """Stop for a reason that lies outside: a callback that overran, an error."""
        self.policy.trip(now, fault)
        return self.policy.command(now)

    def overran(self, what: str, elapsed: float, now: float) -> list[float] | None:
        """Take how long a callback took, in s; stop if that was too long."""
        most = self.settings.callback_timeout
        if elapsed <= most:
            return None
        said = f"the callback of {what} took {elapsed:.4f} s; callback_timeout is {most:g}"
        return self.fail(Fault("overrun", said), now)

    # -- the service ------------------------------------------------------------------------------

    def problems(self, now: float, rivals: int = 0) -> list[str]:
        """Return all reasons why torques must not be enabled now; empty if there are none.

        ``rivals`` is how many others publish on the topic of the commands.
        """
        settings = self.settings
        found = []
        if rivals:
            found.append(f"{rivals} other publisher(s) on {settings.command_topic}")
        if not settings.joints:
            found.append("the parameter joints is empty: name the controller's joints in its order")
        if settings.compensates_itself is None:
            found.append("the parameter compensates_itself is not set")
        elif settings.compensates_itself:
            found.append("compensates_itself is true: commands would double the compensation")
        if self.pending is not None:
            found.append("a new robot_description waits until all torques are gone: disable first")
        if self.refused:
            found.append(f"the latest robot_description was refused: {self.refused}")
        elif self.arm is None:
            found.append("there is no robot_description yet")
        if self.arm is not None:
            found += self._problems_of(self.arm, now)
        if self.policy.state is State.FAULT and self.policy.stopping:
            found.append("the stop after a fault is not over")
        return found

    def _problems_of(self, arm: CompensatedArm, now: float) -> list[str]:
        found = [
            f"{name} has no effort limit: set effort_limits.{name}, or <limit effort> in the URDF"
            for name, most in zip(self.settings.joints, arm.efforts, strict=True)
            if not 0.0 < most < math.inf
        ]
        if not found and self.settings.joints:
            try:
                self.limits.check()
            except ArgumentError as error:
                found.append(str(error))
        trouble = self.input_problem(now)
        return [*found, trouble] if trouble else found

    def input_problem(self, now: float) -> str:
        """Return what is wrong with the input now; empty if nothing is."""
        timeout = self.settings.stale_timeout
        problems = [watch.problem(now, timeout) for watch in self._watches()]
        return "; ".join(said for said in problems if said)

    @property
    def limits(self) -> Limits:
        """The limits that would be in force if torques were enabled now."""
        efforts = self.arm.efforts if self.arm is not None else ()
        return Limits(efforts, self.settings.effort_rate_limit, self.settings.ramp_time)

    def enable(self, now: float, rivals: int = 0) -> str:
        """Begin to ramp in; return why not, empty if it does. ``rivals`` as for problems."""
        if self.policy.engaged:
            return ""
        problems = self.problems(now, rivals)
        if not problems:
            try:
                self.policy.enable(now, self.limits)
            except ArgumentError as error:
                problems.append(str(error))
        return "; ".join(problems)

    def disable(self, now: float) -> None:
        """Begin to ramp out; after a fault with on_fault hold, let the held torques go."""
        self.policy.disable(now)
