# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of nodes that command an arm: descriptions, gravity, loads, laws and settings. No ROS.

Messages become samples and requests of a :class:`~mbs_dynamics.control.guard.Guard`, whose commands
are published. Every call has the time as an argument, in s of one steady clock, so that equal calls
give equal commands.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.control.collision import Collision
from mbs_dynamics.control.environment import (
    LinkGravity,
    LinkLoad,
    Vector,
    carried_over,
    check_earthly,
    check_load,
    replaced,
    root_gravity,
)
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.joint_states import JointStateReader, Rejection, States
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.measurement import BACKWARDS, JUMP, NOT_FINITE
from mbs_dynamics.control.period.records import REPORTS
from mbs_dynamics.control.period.sentences import problems
from mbs_dynamics.control.references import Target
from mbs_dynamics.control.settings import GRAVITY_TOLERANCE
from mbs_dynamics.errors import (
    LONGEST_MESSAGE,
    ArgumentError,
    MbsError,
    ModelError,
    listed,
    shortened,
)
from mbs_dynamics.model.diagnostics import stopping_effort
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.robot_description import loads_of, model_of, remarks_about
from mbs_dynamics.settings import parameters_of

MOST_JOINTS = 60
"""Joints of the largest robot; the time to compile grows faster than their number."""

LONGEST_COMPARED = 200_000
"""Largest number of characters of a description that is compared without its comments."""

IMU_TIME = 0.1
"""Time constant in s of the low-pass filter on the imu: above vibrations, below a reaction."""

RELEASE = 5.0
"""Time in s after a release in which gravity torques hold the arm while ``position_controller``
cannot be activated: several attempts, and less than a drive takes to overheat."""

RETURNS, RETURNS_WITHIN = 5, 1.0
"""Number of used messages that follow an unused one, and time in s within which so many indicate
two sources that report the robot in turn."""

UNANSWERED = ("no_joints", "too_many_names", "partial", "repeated_stamp")
"""Kinds of rejections without consequences: messages of another robot, or without news."""

LATEST_STATE = 0.1
"""Age in s of the latest state up to which a release is known to hold the arm."""

REFUSALS = {NOT_FINITE: "not_finite", BACKWARDS: "time_backwards", JUMP: "position_jump"}
"""Kinds of rejections by the numbers of the period."""


class Answer(NamedTuple):
    """The command that answers a message."""

    command: list[float] | None
    """Torques in the order of ``joints``; None: no command."""
    rejected: Rejection | None = None
    """Why the message, or a part of it, was not used; None if it was."""


def without_comments(text: str) -> str:
    """Return a description without comments, or as it is if it is very long."""
    if len(text) > LONGEST_COMPARED:
        return text
    begin, *parts = text.split("<!--")  # a pattern would search for each missing "-->" to the end
    return "".join([begin, *(part.partition("-->")[2] for part in parts)]).strip()


class GravityCompensator:
    """Converts messages to samples and requests of the described arm."""

    def __init__(self, settings: GravityCompensationSettings) -> None:
        self.settings = settings
        self.arm: Guard | None = None
        self.forbidden = ""
        """Why torques must not be enabled in any state of the robot; empty if they may."""
        self.refused = ""
        """Why the latest description was refused; empty if it was not."""
        self.remarks: list[str] = []
        """Warnings about the robot in force, and about gravity or loads that were dropped."""
        self.pending: str | None = None
        """A description that waits until no torque is commanded or held."""
        self.gravity = LinkGravity("", settings.gravity)
        self.loads: list[LinkLoad] = []
        self.latest: list[float] = [0.0] * len(settings.joints)
        """(m,) the latest command, which the controller holds."""
        self.holds = False
        """Whether ``position_controller`` holds the arm."""
        self._text: str | None = None
        self._reader = JointStateReader(())
        self._epoch = 0
        """Stamps of states count from here, in ns: a double has 16 digits."""
        self._unused = False
        self._returns: deque[float] = deque(maxlen=RETURNS)
        self._commanded: frozenset[int] = frozenset()
        self._other: list[int] = []
        """Coordinates of the commanded joints, and of other reported joints."""
        self._other_stale = False
        self._forget_imu()

    def _forget_imu(self) -> None:
        self._imu_at, self._imu_stamp, self._imu = -math.inf, 0, np.zeros(3)
        self._imu_trouble = ""

    # -- state -------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state: disabled, ramping in, enabled, ramping out, or fault."""
        return "disabled" if self.arm is None else self.arm.state

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""
        return self.arm is not None and self.arm.engaged

    @property
    def stopping(self) -> bool:
        """Whether torques change towards zero or held values, with or without states."""
        return self.arm is not None and self.arm.moving and not self.arm.engaged

    @property
    def at_rest(self) -> bool:
        """Whether no torque is commanded or held."""
        return self.arm is None or not (self.arm.moving or any(self.latest))

    @property
    def fault(self) -> Fault | None:
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        return None if self.arm is None else self.arm.fault

    @property
    def collision(self) -> Collision | None:
        """The latest collision, by the stamp of its state; None if there is none."""
        found = None if self.arm is None else self.arm.collision
        return None if found is None else found._replace(stamp=found.stamp + self._epoch)

    @property
    def torques_are_in(self) -> bool:
        """Whether torques are enabled and have ramped in."""
        if self.arm is None:
            return False
        s = self.arm.state_record
        return s.mode == transitions.ON and not s.behind

    def holds_arm(self, now: float) -> bool:
        """Return whether commands of a release still hold the arm: whole gravity torques."""
        return self.arm is not None and self.arm.released_for(now) <= LATEST_STATE

    # -- the robot ---------------------------------------------------------------------------------

    def describe(self, text: str, now: float) -> bool:
        """Store a description; False if it is that of the robot in force.

        Another one while engaged is a fault. It waits in :attr:`pending` for :meth:`adopt`, which
        reads it. Comparing texts takes little time for any content.
        """
        if text == (self._text if self.pending is None else self.pending):
            return False
        if self._text is not None and without_comments(text) == without_comments(self._text):
            self._text, self.pending = text, None
            return False
        self.pending = text
        message = "the robot_description of another robot came while enabled"
        self.trip(Fault("new_description", message), now)
        return True

    def adopt(self, now: float) -> bool:
        """Put the pending description in force, if no torque is commanded or held.

        False if there is nothing to adopt yet. Raises MbsError if it is refused: the robot before
        it stays in force for diagnostics, but cannot be enabled.
        """
        if self.pending is None or not self.at_rest:
            return False
        text, self._text, self.pending = self.pending, self.pending, None
        self.refused = "it led to an internal error"  # unless what follows ends otherwise
        try:
            settings = self.settings
            model = model_of(text, loads=loads_of(settings.loads))
            if model.n > MOST_JOINTS:
                raise ModelError(f"it has {model.n} joints; must be at most {MOST_JOINTS}")
            model = model.with_armature(settings.rotors)
            used = settings.laws()
            arm = Guard(model, settings, options=self._options, source="joint_states", used=used)
            arm.prepare(now, *used)
            arm.switch(now, settings.law_of_mode())
            initial = LinkGravity("", settings.gravity)
            gravity, loads, dropped = carried_over(
                model, self.gravity, initial, self.loads, arm.parameters_of
            )
            arm.set_gravity(root_gravity(model, gravity))
            arm.set_loads(loads)
            if self.fault is not None:
                arm.latch(self.fault)
        except MbsError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.arm, self.gravity, self.loads = arm, gravity, loads
        self.remarks = [*remarks_about(model), *dropped]
        fixed = [model.joint_names.index(name) for name in settings.fixed]
        self._reader = JointStateReader(model.joint_names, fixed)
        self._commanded = frozenset(arm.joints)
        self._other = [k for k in range(model.n) if k not in {*arm.joints, *fixed}]
        self._unused, self._epoch = False, 0
        self._returns.clear()
        self._forget_imu()
        return True

    @property
    def _options(self) -> dict[str, Any]:
        """Settings of the period in addition to those of an arm."""
        given, adds = self.settings, self.settings.adds_to_position_control
        options: dict[str, Any] = {
            "release": RELEASE if given.hands_over else 0.0,
            "watches_efforts": adds or bool(given.position_controller),
        }
        if adds:  # the arm is held meanwhile, and must not jerk
            options |= {"ramp_in": max(given.ramp_in_time, given.ramp_time), "settle_time": 0.0}
        return options

    def aim(self, target: Target | None, now: float, *, stamp: int = 0, clock: int = 0) -> None:
        """Let the law follow another reference. Raises MbsError, and changes nothing, if invalid.

        ``stamp`` and ``clock`` as for :meth:`accelerate`.
        """
        aged = self._age_problem(stamp, clock)
        if aged:
            raise ArgumentError(aged)
        self._described.aim(now, target)

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed. Raises ArgumentError if there is none."""
        self._described.pace(rate)

    @property
    def _described(self) -> Guard:
        """The arm. Raises ArgumentError if there is no description yet."""
        if self.arm is None:
            raise ArgumentError("there is no robot_description yet")
        return self.arm

    # -- gravity and loads ------------------------------------------------------------------------

    def set_gravity(self, gravity: LinkGravity) -> None:
        """Change gravity, along a ramp while engaged. Raises MbsError if it is refused."""
        if self.settings.use_imu:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")
        check_earthly("gravity", gravity.vector, GRAVITY_TOLERANCE)
        if self.arm is not None:
            self.arm.set_gravity(root_gravity(self.arm.model, gravity))
        self.gravity = gravity

    def set_load(self, load: LinkLoad) -> None:
        """Change the load of a link. Raises MbsError if it is refused."""
        check_load(load)
        loads = replaced(self.loads, load)
        if self.arm is not None:
            self.arm.set_loads(loads, check=load.mass > 0.0)
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
        if self.arm is None or not self.settings.use_imu:
            return
        if stamp and stamp == self._imu_stamp:
            return
        try:
            if not stamp:
                raise ArgumentError("it has no time stamp")
            silent = now - self._imu_at >= self.settings.stale_timeout
            if stamp < self._imu_stamp and not silent:
                late = 1e-9 * (self._imu_stamp - stamp)
                raise ArgumentError(f"its stamp is {late:.6f} s before that of the message before")
            aged = self._age_problem(stamp, clock)
            if aged:
                raise ArgumentError(aged)
            gravity = LinkGravity(link, tuple(-x for x in acceleration))  # type: ignore[arg-type]
            root_gravity(self.arm.model, gravity)
            elapsed = now - self._imu_at
            share = 1.0 if elapsed >= 20.0 * IMU_TIME else 1.0 - math.exp(-elapsed / IMU_TIME)
            smooth = self._imu + share * (np.array(gravity.vector) - self._imu)
            check_earthly("linear_acceleration", smooth, GRAVITY_TOLERANCE)
            gravity = gravity._replace(vector=tuple(smooth.tolist()))
            goal = root_gravity(self.arm.model, gravity)
        except MbsError as error:
            self._imu_trouble = f"imu refused: {error}"
            self.trip(Fault("imu", self._imu_trouble), now)
            raise
        self.arm.set_gravity(goal, time=0.0, check=False)
        self._imu, self._imu_at, self._imu_stamp, self.gravity = smooth, now, stamp, gravity
        self._imu_trouble = ""

    def _imu_stale(self, now: float) -> str:
        """Return the message that valid imu messages are missing; empty if not, or without imu."""
        age, timeout = now - self._imu_at, self.settings.stale_timeout
        if not self.settings.use_imu or age < timeout:
            return ""
        so_far = "so far" if age == math.inf else f"for {age:.3f} s; stale_timeout is {timeout:g}"
        return f"no valid imu {so_far}"

    # -- settings ---------------------------------------------------------------------------------

    def check(self, settings: GravityCompensationSettings, now: float = 0.0) -> None:
        """Raise ArgumentError, ModelError or BackendError if these settings cannot be applied."""
        changed = [
            one.name
            for one in parameters_of(type(settings))
            if one.at_rest_only and getattr(settings, one.name) != getattr(self.settings, one.name)
        ]
        if changed and not self.at_rest:
            raise ArgumentError(
                f"{', '.join(sorted(changed))} can be changed only while no torque is commanded or "
                f"held: the state is {self.state!r}; disable first"
            )
        if self.arm is not None:
            self.arm.check(settings)
            if settings.law_parameters != self.settings.law_parameters:
                self.arm.prepare(now, settings.law_of_mode())
        if settings.gravity != self.settings.gravity:
            if settings.use_imu:
                raise ArgumentError("use_imu is true: gravity comes from the imu alone")
            if self.arm is not None:
                gravity = LinkGravity("", settings.gravity)
                self.arm.check_gravity(root_gravity(self.arm.model, gravity))

    def change(self, settings: GravityCompensationSettings, now: float) -> None:
        """Apply settings that :meth:`check` accepts."""
        gravity = settings.gravity != self.settings.gravity
        differs = settings.law_parameters != self.settings.law_parameters
        self.settings = settings
        if self.arm is not None:
            self.arm.change(settings, self._options)
            if differs:
                self.arm.switch(now, settings.law_of_mode())
        if gravity:
            self.gravity = LinkGravity("", settings.gravity)
            if self.arm is not None:
                self.arm.set_gravity(root_gravity(self.arm.model, self.gravity))

    # -- periods ----------------------------------------------------------------------------------

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
        """Process a message on joint_states, and return the command that is due.

        ``stamp`` is that of the measurement in ns, 0 if it has none; ``clock`` the time of stamps
        now, 0 if the age of states is not checked. ``velocities`` and ``efforts`` may be empty.
        """
        arm = self.arm
        if arm is None:
            return Answer(None)
        states = self._reader.read(names, positions, velocities, efforts)
        rejection = states if isinstance(states, Rejection) else None
        if isinstance(states, States):
            rejection = self._unusable(arm, states, stamp, clock)
        if rejection is not None or isinstance(states, Rejection):
            self._record(rejection, now)
            return Answer(self.tick(now), rejection)
        self._report(arm, states, stamp, now)
        before = arm.running.stamps()
        torques = self._period(now)
        after = arm.running.stamps()
        new = [k for k in states.joints if after[k] != before[k]]
        rejection = None
        if len(new) < len(states.joints) or not self._commanded.issuperset(new):
            rejection = self._not_used(arm, states, new)
        self._record(rejection, now)
        heard = not self._commanded.isdisjoint(new)
        return Answer(self._due(torques, answers=heard), rejection)

    def _unusable(self, arm: Guard, states: States, stamp: int, clock: int) -> Rejection | None:
        """Return why a message is not used at all; None if it is."""
        if not stamp:
            return Rejection("unstamped", "the message has no time stamp")
        aged = self._age_problem(stamp, clock)
        if aged:
            return Rejection("age", aged)
        if not self.settings.velocity_from_position:
            pairs = zip(states.joints, states.qd, strict=True)
            names = arm.model.joint_names
            without = [names[k] for k, rate in pairs if rate != rate and k in arm.joints]
            if without:
                return Rejection(
                    "no_velocity",
                    f"the message holds no velocities of {listed(without)}; "
                    "velocity_from_position takes differences of positions",
                )
        return None

    def _report(self, arm: Guard, states: States, stamp: int, now: float) -> None:
        """Put the states of a message into the sample."""
        self._epoch = self._epoch or stamp
        joints, *measured = states
        k, measured_at = len(joints), 1e-9 * (stamp - self._epoch)
        one, zero, unknown = [1.0] * k, [0.0] * k, [math.nan] * k
        values = np.array([one, zero, [measured_at] * k, [now] * k, *measured, zero, unknown])
        if self._other and not self.settings.velocity_from_position:
            rates = values[REPORTS.index("qd")]
            rates[np.isin(joints, self._other) & np.isnan(rates)] = 0.0  # not damped
        arm.running.report(now, tuple(joints), values)

    def _not_used(self, arm: Guard, states: States, new: Sequence[int]) -> Rejection | None:
        """Return why a part of a message was not used or answered; ``new`` joints were used."""
        joints = list(states.joints)
        refused = arm.state_record.refused[joints]
        if refused.any():
            kind = REFUSALS.get(float(refused[refused > 0.0][0]), "not_finite")
            names = arm.model.joint_names
            said = problems(arm.verdict, arm.state_record, names, kinds=("refused",))
            return Rejection(kind, said[0] if said else kind)
        if not new:
            return Rejection("repeated_stamp", "the time stamp did not advance")
        if not any(k in arm.joints for k in joints):
            own = listed(arm.model.joint_names[k] for k in joints)
            message = f"the message holds no joint that is commanded, but {own}"
            return Rejection("partial", message)
        return None

    def _record(self, rejection: Rejection | None, now: float) -> None:
        """Record whether a message was used."""
        assert self.arm is not None
        if rejection is None:
            if self._unused:
                self._returns.append(now)
            self._unused, self.arm.events.trouble = False, None
        elif rejection.kind not in UNANSWERED:
            self._unused = True
            reason = f"joint_states rejected: {rejection.reason}"
            self.arm.events.trouble = Fault(rejection.kind, reason)

    def in_turn(self, now: float) -> str:
        """Return the message that two sources alternate; empty if they do not."""
        returns = self._returns
        if len(returns) == RETURNS and now - returns[0] < RETURNS_WITHIN:
            return "joint_states come from two sources in turn: some fit the arm, and others do not"
        return ""

    def _age_problem(self, stamp: int, clock: int) -> str:
        """Return the problem with the age of a measurement; empty if there is none."""
        most = self.settings.max_age
        age = 1e-9 * (clock - stamp)
        if not (stamp and clock and most) or abs(age) <= most:
            return ""
        return (
            f"the stamp is {abs(age):.3f} s {'older' if age > 0.0 else 'newer'} than the clock; "
            f"must be at most {most:g}. Are the clocks synchronised, or is one simulated?"
        )

    def tick(self, now: float) -> list[float] | None:
        """Return the command that is due without a new message; None: no command."""
        if self.arm is None:
            return None
        self.arm.running.clear_sample(now)
        return self._due(self._period(now), answers=False)

    def _period(self, now: float) -> list[float]:
        """Process the sample, and return the torques in the order of ``joints``."""
        assert self.arm is not None
        if self.arm.engaged and (stale := self._imu_stale(now)):
            trouble = f"{self._imu_trouble}; {stale}" if self._imu_trouble else stale
            self.arm.trip(now, Fault("stale", trouble))
        torques: list[float] = self.arm.advance(now)[self.arm.joints].tolist()
        return torques

    def _due(self, command: list[float], *, answers: bool) -> list[float] | None:
        """Return the command of a period if it answers a message, or differs from the latest."""
        assert self.arm is not None
        if command == self.latest and not (answers and self.arm.moving):
            return None
        self.latest = command
        return command

    def trip(self, fault: Fault, now: float) -> None:
        """Stop for an external reason, if torques are enabled."""
        if self.arm is not None:
            self.arm.trip(now, fault)

    def fail(self, fault: Fault, now: float) -> list[float] | None:
        """Stop for an external reason, such as an error; return the command that is due."""
        self.trip(fault, now)
        return self.tick(now)

    def warnings(self, now: float) -> list[str]:
        """Return the warnings since the last call."""
        arm = self.arm
        if arm is None:
            return []
        said = arm.events.warnings()
        if self._other and arm.engaged:
            timeout, s = self.settings.stale_timeout, arm.state_record
            old = [k for k in self._other if now - s.received[k] >= timeout]
            if old and not self._other_stale:
                names = listed(arm.model.joint_names[k] for k in old)
                said.append(
                    f"{names} not reported for {timeout:g} s; torques stop after "
                    f"other_joints_timeout, {self.settings.other_joints_timeout:g} s"
                )
            self._other_stale = bool(old)
        return said

    # -- the service ------------------------------------------------------------------------------

    def problems(self, now: float, rivals: int = 0, trouble: str = "") -> list[str]:
        """Return all reasons why torques must not be enabled now; empty if there are none.

        ``rivals`` is the number of other publishers on the command topic, ``trouble`` a problem
        with the controllers.
        """
        settings, arm = self.settings, self.arm
        problems = [self.forbidden] if self.forbidden else []
        if rivals:
            problems.append(f"{rivals} other publisher(s) on {settings.command_topic}")
        if not settings.joints:
            problems.append(
                "the parameter joints is empty: name the controller's joints in its order"
            )
        if settings.compensates_itself is None:
            problems.append("the parameter compensates_itself is not set")
        elif settings.compensates_itself:
            problems.append("compensates_itself is true: commands would double the compensation")
        if self.pending is not None:
            problems.append(
                "a new robot_description waits until all torques are gone: disable first"
            )
        if self.refused:
            problems.append(f"the latest robot_description was refused: {self.refused}")
        elif arm is None:
            problems.append("there is no robot_description yet")
        if arm is not None:
            problems += arm.problems(now)
            problems += [
                f"{joint.name} {effort}: state a positive one, or none"
                for joint in arm.model.joints
                if joint.nv == 1
                and joint.coordinate in arm.joints
                and (effort := stopping_effort(joint))
            ]
            never = np.flatnonzero(arm.state_record.received == -math.inf)
            if 0 < len(never) < arm.model.n:
                names = listed(arm.model.joint_names[k] for k in never)
                problems.append(
                    f"if no driver reports {names}, state their positions in fixed_positions"
                )
            problems += filter(None, self._troubles(now))
        if self.fault is not None and self.stopping:
            problems.append("the stop after a fault is not over")
        problems += [trouble] if trouble else []
        return [shortened(one, LONGEST_MESSAGE) for one in problems]

    def input_problem(self, now: float) -> str:
        """Return the problem with the input; empty if there is none."""
        if self.arm is None:
            return ""
        return "; ".join(filter(None, (self.arm.input_problem(now), *self._troubles(now))))

    def _troubles(self, now: float) -> tuple[str, ...]:
        """Return the problems with messages, each empty if there is none."""
        trouble = None if self.arm is None else self.arm.events.trouble
        reason = "" if trouble is None else trouble.reason
        return self.in_turn(now), reason, self._imu_stale(now), self._imu_trouble

    def enable(self, now: float, rivals: int = 0, trouble: str = "") -> str:
        """Begin to ramp in; return why not, empty if it does. Arguments as for problems."""
        problems = [] if self.engaged else self.problems(now, rivals, trouble)
        if not problems and self.arm is not None:
            problems = self.arm.enable(now)
        return "; ".join(problems)

    def set_holds(self, holds: bool) -> None:
        """State whether ``position_controller`` holds the arm."""
        self.holds = holds
        if self.arm is not None:
            self.arm.set_holder(exists=self.settings.hands_over, holds=holds)

    def clear(self, now: float) -> str:
        """Clear the fault; return it in words. Raises ArgumentError without one, or too early."""
        fault = self.fault
        if fault is None or self.arm is None:
            raise ArgumentError(f"there is no fault: the state is {self.state!r}")
        if self.stopping:
            raise ArgumentError("the stop after the fault is not over; try again once it is")
        self.arm.clear(now)
        return f"cleared: {fault}"

    def disable(self, now: float) -> None:
        """Begin to ramp out; after a fault with on_fault hold, release the held torques."""
        if self.arm is not None:
            self.arm.disable(now)
