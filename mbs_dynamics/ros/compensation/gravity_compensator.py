# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation as a whole: from received states to commands. No ROS is needed.

Every call has the time as an argument, in s of one steady clock, so that the same calls give the
same commands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import LONGEST_MESSAGE, ArgumentError, MbsError, ModelError, shortened
from mbs_dynamics.ros.compensation.command_policy import CommandPolicy, Fault, Limits, State
from mbs_dynamics.ros.compensation.compensated_arm import CompensatedArm, same_robot
from mbs_dynamics.ros.compensation.input_checks import Freshness
from mbs_dynamics.ros.compensation.interface import (
    AT_REST_ONLY,
    GravityCompensationSettings,
    check_earthly,
)
from mbs_dynamics.ros.joint_input import Rejection
from mbs_dynamics.ros.performance import Cost
from mbs_dynamics.ros.robot_description import (
    Gravity,
    Load,
    Vector,
    carried_over,
    check_load,
    loads_of,
    model_of,
    remarks_about,
    replaced,
    root_gravity,
)

IGNORED = frozenset(
    {"no_joints", "too_many_names", "repeated_stamp", "partial", "incomplete_joints"}
)
"""Kinds of rejections that neither stop nor count: another robot, nothing new, or incomplete."""

IDLE_PERIOD = 0.5
"""Longest time in s between two calls of tick."""

LARGEST_TURN = math.radians(60.0)
"""Largest turn of gravity at once while torques are commanded; an inverted sign exceeds it."""

MOST_JOINTS = 500
"""Joints of the largest robot; the time to compile grows faster than their number."""

LONGEST_COMPARED = 200_000
"""Characters of the longest description that is compared without its comments."""


def plain(text: str) -> str:
    """Return a description without comments, or as it is if it is very long."""
    if len(text) > LONGEST_COMPARED:
        return text
    begin, *parts = text.split("<!--")  # a pattern would search for each missing "-->" to the end
    return "".join([begin, *(part.partition("-->")[2] for part in parts)]).strip()


class Answer(NamedTuple):
    """The command that answers a message."""

    command: list[float] | None
    """Torques in the order of ``joints``; None: no command."""
    rejected: Rejection | None = None
    """Why the message was not used; None if it was."""


class GravityCompensator:
    """Computes commands from the states of a robot.

    After each call, :meth:`due_in` returns when :meth:`tick` must be called, and :attr:`pending`
    tells whether :meth:`adopt` must be called.
    """

    def __init__(self, settings: GravityCompensationSettings) -> None:
        self.settings = settings
        self.policy = CommandPolicy(settings.on_fault)
        self.arm: CompensatedArm | None = None
        self.forbidden = ""
        """Why torques must not be enabled in any state of the robot; empty if they may."""
        self.refused = ""
        """Why the latest description was refused; empty if it was not."""
        self.remarks: list[str] = []
        """Warnings about the robot in force, and about gravity or loads that were dropped."""
        self.pending: str | None = None
        """A description that waits until no torque is commanded or held."""
        self.gravity = Gravity("", settings.gravity)
        self.loads: list[Load] = []
        self.joint_watch = Freshness("joint_states")
        self.imu_watch = Freshness("imu")
        self._text: str | None = None
        self._imu_at = -math.inf
        self._imu_stamp = 0
        self._imu = np.zeros(3)
        self._forget_state()

    def _forget_state(self) -> None:
        self.joint_watch.forget()
        self.imu_watch.forget()
        self._fresh_until = -math.inf
        """No input becomes stale before this time."""
        self._q: Sequence[float] = ()
        """(n,) the latest valid positions; empty before the first."""
        self._efforts: list[float] = []
        """(n,) the latest measured efforts while at rest, NaN where unknown."""
        self._trusted = True
        """Whether the states are consistent, so that torques may follow them."""
        self._damped = True
        """Whether the velocities are plausible."""

    # -- the robot ---------------------------------------------------------------------------------

    def describe(self, text: str, now: float) -> bool:
        """Store a description; False if it is that of the robot in force.

        Another one while engaged is a fault. It waits in :attr:`pending` for :meth:`adopt`, which
        reads it. Here texts are compared, which takes little time whatever they contain.
        """
        if text == (self._text if self.pending is None else self.pending):
            return False
        if self._text is not None and plain(text) == plain(self._text):
            self._text, self.pending = text, None
            return False
        self.pending = text
        said = "the robot_description of another robot came while enabled"
        self.policy.trip(now, Fault("new_description", said))
        return True

    def adopt(self, now: float) -> bool:
        """Put the pending description in force, if no torque is commanded or held.

        False if there is nothing to adopt yet, or it describes the robot in force. Raises MbsError
        if it is refused: the robot before it stays in force for diagnostics, but cannot be enabled.
        """
        if self.pending is None or not self.policy.at_rest:
            return False
        text, self._text, self.pending = self.pending, self.pending, None
        in_force = None if self.arm is None or self.refused else self.arm.model
        self.refused = "it led to an internal error"  # unless what follows ends otherwise
        try:
            settings = self.settings
            model = model_of(text, settings.root, settings.tip, loads_of(settings.loads))
            if in_force is not None and same_robot(in_force, model):
                self.refused = ""
                return False
            if model.n > MOST_JOINTS:
                raise ModelError(f"it has {model.n} joints; valid are at most {MOST_JOINTS}")
            arm = CompensatedArm(model, settings)
            initial = Gravity("", settings.gravity)
            gravity, loads, dropped = carried_over(
                model, self.gravity, initial, self.loads, arm.loads_goal
            )
            arm.law.gravity.aim(root_gravity(model, gravity), now, 0.0)
            arm.law.loads.aim(arm.loads_goal(loads), now, 0.0)
        except MbsError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.arm, self.gravity, self.loads = arm, gravity, loads
        self.remarks = [*remarks_about(model), *dropped]
        self._forget_state()
        return True

    # -- gravity and loads ------------------------------------------------------------------------

    def set_gravity(self, gravity: Gravity, now: float) -> None:
        """Move to another gravity, along a ramp while engaged. Raises MbsError if it is refused."""
        if self.settings.use_imu:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")
        check_earthly("gravity", gravity.vector, self.settings.gravity_tolerance)
        if self.arm is not None:
            goal = root_gravity(self.arm.model, gravity)
            self._check_turn(self.arm, goal)
            self._check_load(self.arm, gravity=goal)
            self.arm.law.gravity.aim(goal, now, self._ramp)
        self.gravity = gravity

    def _check_turn(self, arm: CompensatedArm, goal: FloatArray) -> None:
        before = arm.law.gravity.goal
        lengths = float(np.linalg.norm(before) * np.linalg.norm(goal))
        if self.policy.at_rest or lengths == 0.0:
            return
        angle = math.acos(max(-1.0, min(1.0, float(before @ goal) / lengths)))
        if angle > LARGEST_TURN:
            raise ArgumentError(
                f"gravity {goal.tolist()} is turned by {math.degrees(angle):.0f} degrees from "
                f"{before.tolist()}; valid is at most {math.degrees(LARGEST_TURN):.0f} at once "
                "while torques are commanded. Is its sign that of an imu?"
            )

    def _check_load(
        self,
        arm: CompensatedArm,
        gravity: FloatArray | None = None,
        loads: FloatArray | None = None,
    ) -> None:
        """Raise ModelError if the robot could not be held in its latest posture."""
        over = arm.overload(np.array(self._q), gravity, loads) if self._q else ""
        if over:
            raise ModelError(f"the arm could not be held: {over}")

    def set_load(self, load: Load, now: float) -> None:
        """Move to another load of the link that carries it. Raises MbsError if it is refused."""
        check_load(load)
        loads = replaced(self.loads, load)
        if self.arm is not None:
            goal = self.arm.loads_goal(loads)
            if load.mass > 0.0:
                self._check_load(self.arm, loads=goal)
            self.arm.law.loads.aim(goal, now, self._ramp)
        self.loads = loads

    def accelerate(
        self, link: str, acceleration: Vector, now: float, *, stamp: int, clock: int = 0
    ) -> None:
        """Process the proper acceleration (3,) in m/s^2 that an imu fixed to ``link`` measures.

        Its negative is the free fall as the base sees it: gravity less the acceleration of the
        base. ``stamp`` in ns is that of the measurement, 0 if it has none; ``clock`` the time of
        stamps now, 0 if it is not checked. The same stamp again is no new measurement. A
        bad one is a fault; it raises MbsError as well.
        """
        if self.arm is None or (stamp and stamp == self._imu_stamp):
            return
        try:
            if not stamp:
                raise ArgumentError("it has no time stamp")
            if stamp < self._imu_stamp and not self._imu_silent(now):
                late = 1e-9 * (self._imu_stamp - stamp)
                raise ArgumentError(f"its stamp is {late:.6f} s before that of the message before")
            aged = self._aged(stamp, clock)
            if aged:
                raise ArgumentError(aged)
            gravity = Gravity(link, tuple(-x for x in acceleration))  # type: ignore[arg-type]
            root_gravity(self.arm.model, gravity)
            elapsed, constant = now - self._imu_at, self.settings.imu_time_constant
            share = 1.0 if elapsed >= 20.0 * constant else 1.0 - math.exp(-elapsed / constant)
            smooth = self._imu + share * (np.array(gravity.vector) - self._imu)
            check_earthly("linear_acceleration", smooth, self.settings.gravity_tolerance)
            gravity = gravity._replace(vector=tuple(smooth.tolist()))
            goal = root_gravity(self.arm.model, gravity)
        except MbsError as error:
            trouble = Fault("imu", f"imu refused: {error}")
            self.imu_watch.refuse(trouble)
            self.policy.trip(now, trouble)
            raise
        self.arm.law.gravity.aim(goal, now, 0.0)
        self._imu, self._imu_at, self._imu_stamp, self.gravity = smooth, now, stamp, gravity
        self.imu_watch.feed(now)

    def _imu_silent(self, now: float) -> bool:
        return now - self._imu_at >= self.settings.stale_timeout

    @property
    def _ramp(self) -> float:
        resting = self.policy.at_rest
        return 0.0 if resting else self.policy.limits.ramp_time

    # -- settings ---------------------------------------------------------------------------------

    def check(self, settings: GravityCompensationSettings) -> None:
        """Raise ArgumentError, ModelError or BackendError if these settings cannot be applied."""
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
        if self.arm is not None and settings.algorithm != self.settings.algorithm:
            self.arm.law.compiled(settings.algorithm)
        if settings.gravity != self.settings.gravity:
            if settings.use_imu:
                raise ArgumentError("use_imu is true: gravity comes from the imu alone")
            if self.arm is not None:
                goal = root_gravity(self.arm.model, Gravity("", settings.gravity))
                self._check_turn(self.arm, goal)
                self._check_load(self.arm, gravity=goal)

    def change(self, settings: GravityCompensationSettings, now: float) -> None:
        """Apply settings that :meth:`check` accepts."""
        gravity = settings.gravity != self.settings.gravity
        self.settings = settings
        self._fresh_until = -math.inf
        self.policy.on_fault = settings.on_fault
        if self.arm is not None:
            self.arm.adapt(settings)
            self.arm.law.aim(self.arm.gains(settings), now, self._ramp)
        if gravity:
            self.gravity = Gravity("", settings.gravity)
            if self.arm is not None:
                self.arm.law.gravity.aim(
                    root_gravity(self.arm.model, self.gravity), now, self._ramp
                )

    # -- commands ---------------------------------------------------------------------------------

    def receive(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        efforts: Sequence[float] = (),
        *,
        stamp: int,
        now: float,
        clock: int = 0,
    ) -> Answer:
        """Process a message on joint_states.

        ``stamp`` is the message's in ns, 0 if it has none; ``clock`` the time of stamps now, 0 if
        the age of messages is not checked.
        """
        arm = self.arm
        if arm is None:
            return Answer(None)
        self._watch(now)
        reading = arm.input.read(names, positions, velocities, efforts, stamp=stamp, received=now)
        if isinstance(reading, Rejection):
            return self._reject(now, reading)
        if reading.repeated:
            return self._reject(now, Rejection("repeated_stamp", "the time stamp did not advance"))
        if not stamp:
            return self._reject(now, Rejection("unstamped", "the message has no time stamp"))
        aged = self._aged(stamp, clock)
        if aged:
            return self._reject(now, Rejection("age", aged))
        if reading.qd is None:
            return self._reject(now, Rejection("no_velocity", reading.why_no_velocity))
        positions, rates = reading.q.tolist(), reading.qd.tolist()
        jump = arm.continuity.check(positions, arm.input.stamps)
        if jump is not None:  # else it would count as motion after 50 ms
            arm.speeds.restart()
        fast = arm.speeds.check(positions, rates, reading.stamp)
        damped = arm.damped_rates(rates, reading.stamp, self.settings.velocity_filter)
        received = [arm.input.received[k] for k in arm.joints]
        until = arm.periods.note(received, self.settings.stale_timeout)
        self.joint_watch.feed(now)
        resting = self.policy.at_rest
        if resting:  # a robot may be moved, as simulated ones are
            self._trusted, self._damped = True, True
            self._efforts = reading.efforts.tau.tolist()
        elif jump is not None:
            self._trusted = False
        elif fast is not None and fast.kind == "velocity_reading":
            self._damped = False
        self._q = positions
        trouble = arm.envelope.check(positions) or jump or fast
        rejection = None if trouble is None else Rejection(*trouble)
        if rejection is not None:
            self._doubt(now, rejection)
        torques = None
        if self._trusted and not resting:
            torques = arm.law.torques(reading.q, positions, damped, now)
            if not self._damped:
                torques = torques._replace(damping=[], assist=[])
        command = self.policy.command(now, torques, until)
        self._watch_saturation(now)
        return Answer(command, rejection)

    def _aged(self, stamp: int, clock: int) -> str:
        """Return the problem with the age of a message; empty if there is none."""
        most = self.settings.max_age
        age = 1e-9 * (clock - stamp)
        if not (stamp and clock and most) or abs(age) <= most:
            return ""
        return (
            f"the stamp is {abs(age):.3f} s {'older' if age > 0.0 else 'newer'} than the node's "
            f"clock; max_age is {most:g}. Are the clocks synchronised, and is use_sim_time right? "
            "0 disables the check"
        )

    def _doubt(self, now: float, rejection: Rejection) -> None:
        """Store the problem with the latest message; it is a fault while engaged."""
        trouble = Fault(rejection.kind, f"joint_states rejected: {rejection.reason}")
        self.joint_watch.refuse(trouble)
        self.policy.trip(now, trouble)

    def _reject(self, now: float, rejection: Rejection) -> Answer:
        if rejection.kind not in IGNORED:
            self._doubt(now, rejection)
            if rejection.kind == "time_backwards" and not self.policy.at_rest:
                self._trusted = False  # another publisher, or a simulation that was reset
        return Answer(self.policy.command(now), rejection)

    def tick(self, now: float) -> list[float] | None:
        """Return the command that is due without a new state of the robot; None: no command."""
        self._watch(now)
        return self.policy.command(now)

    def due_in(self, now: float) -> float:
        """Return in how many seconds :meth:`tick` must be called, if nothing else happens."""
        wait = max(0.0, self._fresh_until - now) if self.policy.engaged else IDLE_PERIOD
        return min(self.policy.due_in(now), wait)

    def _watch(self, now: float) -> None:
        """Stop if the input is stale. It is checked only when it may have become so."""
        if not self.policy.engaged or now < self._fresh_until:
            return
        problem = self._stale(now)
        if problem is not None:
            self.policy.trip(now, problem)
        elif self.arm is not None:
            waits = [watch.fresh_for(now, self.settings.stale_timeout) for watch in self._watches()]
            self._fresh_until = now + min(self.arm.input.fresh_for(now), *waits)

    def _stale(self, now: float) -> Fault | None:
        """Return the fault that an input or the state of a joint is too old, or None."""
        stale = self.arm.input.stale(now) if self.arm is not None else []
        for watch in self._watches():
            found = watch.stale(now, self.settings.stale_timeout)
            if found is not None:
                some = self.arm is not None and 0 < len(stale) < self.arm.model.n
                joints = f": {', '.join(stale)}" if some and watch is self.joint_watch else ""
                return found._replace(reason=found.reason + joints)
        return Fault("stale", f"no valid joint_states of {', '.join(stale)}") if stale else None

    def _watches(self) -> tuple[Freshness, ...]:
        return (self.joint_watch, self.imu_watch) if self.settings.use_imu else (self.joint_watch,)

    def _watch_saturation(self, now: float) -> None:
        if not self.policy.engaged or not self.policy.limited.effort:
            return
        found = self.policy.saturation(now)
        if found is not None and found[1] > self.settings.saturation_timeout:
            name, most = self.settings.joints[found[0]], self.policy.limits.effort[found[0]]
            said = (
                f"{name} has been at its effort limit of {most:.4g} for {found[1]:.3f} s; "
                f"saturation_timeout is {self.settings.saturation_timeout:g}"
            )
            self.policy.trip(now, Fault("saturated", said))

    def fail(self, fault: Fault, now: float) -> list[float] | None:
        """Stop for an external reason: a callback that overran, an error."""
        self.policy.trip(now, fault)
        return self.policy.command(now)

    def overran(self, what: str, elapsed: float, now: float) -> list[float] | None:
        """Stop if a callback worked for too long; ``elapsed`` in s."""
        most = self.settings.callback_timeout
        if elapsed <= most:
            return None
        said = f"the callback of {what} took {elapsed:.4f} s; callback_timeout is {most:g}"
        return self.fail(Fault("overrun", said), now)

    # -- the service ------------------------------------------------------------------------------

    def problems(self, now: float, rivals: int = 0) -> list[str]:
        """Return all reasons why torques must not be enabled now; empty if there are none.

        ``rivals`` is the number of other publishers on the command topic.
        """
        settings = self.settings
        found = [self.forbidden] if self.forbidden else []
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
        return [shortened(one, LONGEST_MESSAGE) for one in found]

    def _problems_of(self, arm: CompensatedArm, now: float) -> list[str]:
        found = [
            f"{name} has no effort limit: set effort_limits.{name}, or <limit effort> in the URDF"
            for name, most in zip(self.settings.joints, arm.efforts, strict=True)
            if not 0.0 < most < math.inf
        ]
        limited = not found and bool(self.settings.joints)
        if limited:
            try:
                self.limits.check()
            except ArgumentError as error:
                found.append(str(error))
        if arm.model.total_mass == 0.0:
            found.append("the robot_description states no mass: all gravity torques are zero")
        trouble = self.input_problem(now)
        if trouble:
            found.append(trouble)
        elif limited and self._q and self.policy.at_rest:
            q = np.array(self._q)
            found += [said for said in (arm.overload(q), self._mismatch(arm, q)) if said]
        return found

    def _mismatch(self, arm: CompensatedArm, q: FloatArray) -> str:
        """Return how measured efforts contradict the gravity torques; empty if they do not."""
        settings, efforts = self.settings, self._efforts
        measured = [efforts[k] for k in arm.joints]
        known = bool(measured) and all(map(math.isfinite, measured))
        surely = settings.start_from == "effort" or settings.effort_check == "always"
        if not known:
            wanted = (
                "start_from is 'effort'"
                if settings.start_from == "effort"
                else ("effort_check is 'always'")
            )
            return f"{wanted}, but joint_states hold no efforts of all joints" if surely else ""
        held = surely or bool(settings.position_controller)
        if settings.effort_check == "off" or (not held and arm.bears_nothing(efforts)):
            return ""
        said = arm.effort_mismatch(q, efforts, settings.effort_tolerance)
        if not said:
            return ""
        return (
            f"the measured efforts do not agree with gravity: {said}, see effort_tolerance. Does "
            "the driver compensate gravity itself, is the arm mounted otherwise, is a mass wrong?"
        )

    def supported(self) -> bool:
        """Return whether measured efforts show that motors hold the arm."""
        if self.arm is None or not self._efforts:
            return False
        efforts = [self._efforts[k] for k in self.arm.joints]
        return all(map(math.isfinite, efforts)) and not self.arm.bears_nothing(self._efforts)

    def input_problem(self, now: float) -> str:
        """Return the problem with the input; empty if there is none."""
        stale = self._stale(now)
        troubles = [watch.trouble for watch in self._watches()]
        return "; ".join(one.reason for one in (stale, *troubles) if one is not None)

    def cost(self) -> Cost | None:
        """Return the cost of the gravity torques at the latest positions; None before the first."""
        if self.arm is None or not self._q:
            return None
        return self.arm.law.cost(np.array(self._q))

    @property
    def limits(self) -> Limits:
        """The limits that would be in force if torques were enabled now."""
        efforts, rates = ((), ()) if self.arm is None else (self.arm.efforts, self.arm.rates)
        settings = self.settings
        waits = settings.release_timeout if settings.position_controller else 0.0
        return Limits(efforts, rates, settings.ramp_time, settings.ramp_in_time, waits)

    def enable(self, now: float, rivals: int = 0) -> str:
        """Begin to ramp in; return why not, empty if it does. ``rivals`` as for problems."""
        if self.policy.engaged:
            return ""
        problems = self.problems(now, rivals)
        if not problems and self.arm is not None:
            start = None
            if self.settings.start_from == "effort" and self.policy.at_rest:
                start = [self._efforts[k] for k in self.arm.joints]
            try:
                self.policy.enable(now, self.limits, start)
            except ArgumentError as error:
                problems.append(str(error))
            else:
                self._trusted = self._damped = True
                self._fresh_until = -math.inf
                if self._q:
                    self.arm.law.springs.begin(self._q)
                self.arm.law.settle(now, self.settings.settle_time, self.arm.periods.longest)
        return "; ".join(problems)

    def disable(self, now: float) -> None:
        """Begin to ramp out; after a fault with on_fault hold, release the held torques."""
        self.policy.disable(now)
