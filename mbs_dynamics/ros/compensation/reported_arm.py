# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm under guard that messages report and commands answer. No ROS is needed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.collision import Collision
from mbs_dynamics.control.environment import LinkGravity, Vector, check_earthly, root_gravity
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.joint_states import JointStateReader, Rejection, States, fixed_coordinates
from mbs_dynamics.control.laws import AnyLaw
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.measurement import BACKWARDS, JUMP, NOT_FINITE
from mbs_dynamics.control.period.records import REPORTS, reports_of
from mbs_dynamics.control.period.sentences import problems as sentences
from mbs_dynamics.control.references import Target
from mbs_dynamics.control.settings import GRAVITY_TOLERANCE, ArmSettings
from mbs_dynamics.errors import ArgumentError, MbsError, listed
from mbs_dynamics.model.diagnostics import stopping_effort
from mbs_dynamics.model.model import Model

RETURNS, RETURNS_WITHIN = 5, 1.0
"""Number of used messages that follow an unused one, and time in s within which so many indicate
two sources that report the robot in turn."""

UNANSWERED = ("no_joints", "too_many_names", "partial", "repeated_stamp")
"""Kinds of rejections without consequences: messages of another robot, or without news."""

LATEST_STATE = 0.1
"""Age in s of the latest state up to which a release is known to hold the arm."""

FILTER_TIME = 0.1
"""Time constant in s of the low-pass filter on the imu: above vibrations, below a reaction."""

REFUSALS = {NOT_FINITE: "not_finite", BACKWARDS: "time_backwards", JUMP: "position_jump"}
"""Kinds of rejections by the numbers of the period."""


class Answer(NamedTuple):
    """The command that answers a message."""

    command: list[float] | None
    """Torques in the order of ``joints``; None: no command."""
    rejected: Rejection | None = None
    """Why the message, or a part of it, was not used; None if it was."""


class ReportedArm(Guard):
    """An arm under guard that messages on joint_states, and with ``imu`` on imu, report.

    ``model``, ``settings``, ``options`` and ``used`` are those of
    :class:`~mbs_dynamics.control.guard.Guard`, whose errors it raises.
    """

    def __init__(
        self,
        model: Model,
        settings: ArmSettings,
        options: Mapping[str, Any],
        used: Iterable[AnyLaw | None],
        *,
        imu: bool,
    ) -> None:
        super().__init__(model, settings, options=options, source="joint_states", used=used)
        self.latest: list[float] = [0.0] * len(self.joints)
        """(m,) the latest command, which the controller holds."""
        self._uses_imu = imu
        self._imu_trouble = ""
        """Why the latest message of the imu was refused; empty if it was not."""
        self._free_fall = np.zeros(3)
        """Gravity in m/s^2 by the imu after its filter, in the axes of the root link."""
        self._imu_time, self._imu_stamp = -math.inf, 0
        """Time in s and stamp in ns of the latest measurement of the imu."""
        fixed = fixed_coordinates(model.joint_names, settings.fixed)
        self._reader = JointStateReader(model.joint_names, list(fixed))
        self._epoch = 0
        """Stamps of states count from here, in ns: a double has 16 digits."""
        self._commanded = frozenset(self.joints)
        self._other = [k for k in range(model.n) if k not in {*self.joints, *fixed}]
        """Coordinates of the commanded joints, and of other reported joints."""
        self._other_stale = False
        self._unused = False
        self._returns: deque[float] = deque(maxlen=RETURNS)

    # -- state -------------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        """Whether torques change towards zero or held values, with or without states."""
        return self.moving and not self.engaged

    @property
    def torques_are_in(self) -> bool:
        """Whether torques are enabled and have ramped in."""
        return self.state_record.mode == transitions.ON and not self.state_record.behind

    @property
    def stamped_collision(self) -> Collision | None:
        """The latest collision, by the stamp of its state; None if there is none."""
        found = self.collision
        return None if found is None else found._replace(stamp=found.stamp + self._epoch)

    # -- joint states ------------------------------------------------------------------------------

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
        states = self._reader.read(names, positions, velocities, efforts)
        rejection = states if isinstance(states, Rejection) else None
        if isinstance(states, States):
            rejection = self._unusable(states, stamp, clock)
        if rejection is not None or isinstance(states, Rejection):
            self._record(rejection, now)
            return Answer(self.tick(now), rejection)
        self._report_states(states, stamp, now)
        before = self.running.stamps()
        torques = self._period(now)
        after = self.running.stamps()
        new = [k for k in states.joints if after[k] != before[k]]
        if len(new) < len(states.joints) or not self._commanded.issuperset(new):
            rejection = self._not_used(states, new)
        self._record(rejection, now)
        return Answer(self._due(torques, answers=not self._commanded.isdisjoint(new)), rejection)

    def _unusable(self, states: States, stamp: int, clock: int) -> Rejection | None:
        """Return why a message is not used at all; None if it is."""
        if not stamp:
            return Rejection("unstamped", "the message has no time stamp")
        aged = self.age_problem(stamp, clock)
        if aged:
            return Rejection("age", aged)
        if not self.settings.velocity_from_position:
            pairs = zip(states.joints, states.qd, strict=True)
            names = self.model.joint_names
            without = [names[k] for k, rate in pairs if rate != rate and k in self._commanded]
            if without:
                return Rejection(
                    "no_velocity",
                    f"the message holds no velocities of {listed(without)}; "
                    "velocity_from_position takes differences of positions",
                )
        return None

    def age_problem(self, stamp: int, clock: int) -> str:
        """Return the problem with the age of a measurement; empty if there is none."""
        most = self.settings.max_age
        age = 1e-9 * (clock - stamp)
        if not (stamp and clock and most) or abs(age) <= most:
            return ""
        return (
            f"the stamp is {abs(age):.3f} s {'older' if age > 0.0 else 'newer'} than the clock; "
            f"must be at most {most:g}. Are the clocks synchronised, or is one simulated?"
        )

    def _report_states(self, states: States, stamp: int, now: float) -> None:
        """Put the states of a message into the sample."""
        self._epoch = self._epoch or stamp
        joints, *measured = states
        values = reports_of(1e-9 * (stamp - self._epoch), now, *measured)
        if self._other and not self.settings.velocity_from_position:
            rates = values[REPORTS.index("qd")]
            rates[np.isin(joints, self._other) & np.isnan(rates)] = 0.0  # not damped
        self.running.report(now, tuple(joints), values)

    def _not_used(self, states: States, new: Sequence[int]) -> Rejection | None:
        """Return why a part of a message was not used or answered; ``new`` joints were used."""
        joints, names = list(states.joints), self.model.joint_names
        refused = self.state_record.refused[joints]
        if refused.any():
            kind = REFUSALS.get(float(refused[refused > 0.0][0]), "not_finite")
            said = sentences(self.verdict, self.state_record, names, kinds=("refused",))
            return Rejection(kind, said[0] if said else kind)
        if not new:
            return Rejection("repeated_stamp", "the time stamp did not advance")
        if self._commanded.isdisjoint(joints):
            own = listed(names[k] for k in joints)
            message = f"the message holds no joint that is commanded, but {own}"
            return Rejection("partial", message)
        return None

    def _record(self, rejection: Rejection | None, now: float) -> None:
        """Record whether a message was used."""
        if rejection is None:
            if self._unused:
                self._returns.append(now)
            self._unused, self.trouble = False, None
        elif rejection.kind not in UNANSWERED:
            self._unused = True
            reason = f"joint_states rejected: {rejection.reason}"
            self.trouble = Fault(rejection.kind, reason)

    def in_turn(self, now: float) -> str:
        """Return the message that two sources alternate; empty if they do not."""
        returns = self._returns
        if len(returns) == RETURNS and now - returns[0] < RETURNS_WITHIN:
            return "joint_states come from two sources in turn: some fit the arm, and others do not"
        return ""

    def input_problem(self, t: float) -> str:
        """Return the problem with states, messages and imu; empty if there is none."""
        return "; ".join(filter(None, (super().input_problem(t), *self._troubles(t))))

    def _troubles(self, now: float) -> list[str]:
        """Return the problems with the latest messages."""
        reason = self.trouble.reason if self.trouble is not None else ""
        return [one for one in (self.in_turn(now), reason, self._imu_problem(now)) if one]

    def problems(self, t: float) -> list[str]:
        """Return all reasons why torques must not be enabled at time ``t``; empty if none."""
        reasons = super().problems(t)
        reasons += [
            f"{joint.name} {effort}: state a positive one, or none"
            for joint in self.model.joints
            if joint.nv == 1
            and joint.coordinate in self.joints
            and (effort := stopping_effort(joint))
        ]
        never = np.flatnonzero(self.state_record.received == -math.inf)
        if 0 < len(never) < self.model.n:
            names = listed(self.model.joint_names[k] for k in never)
            reasons.append(
                f"if no driver reports {names}, state their positions in fixed_positions"
            )
        reasons += self._troubles(t)
        if self.fault is not None and self.stopping:
            reasons.append("the stop after a fault is not over")
        return reasons

    def warnings(self, now: float) -> list[str]:
        """Return the warnings since the last call."""
        said = self.new_warnings()
        if self._other and self.engaged:
            timeout, received = self.settings.stale_timeout, self.state_record.received
            old = [k for k in self._other if now - received[k] >= timeout]
            if old and not self._other_stale:
                names = listed(self.model.joint_names[k] for k in old)
                said.append(
                    f"{names} not reported for {timeout:g} s; torques stop after "
                    f"other_joints_timeout, {self.settings.other_joints_timeout:g} s"
                )
            self._other_stale = bool(old)
        return said

    # -- requests and periods ----------------------------------------------------------------------

    def follow(self, target: Target | None, now: float, *, stamp: int = 0, clock: int = 0) -> None:
        """Let the law follow another reference, see :meth:`aim`.

        ``stamp`` and ``clock`` as for :meth:`receive`. Raises MbsError, and changes nothing, if the
        reference is too old or invalid.
        """
        aged = self.age_problem(stamp, clock)
        if aged:
            raise ArgumentError(aged)
        self.aim(now, target)

    def fail(self, fault: Fault, now: float) -> list[float] | None:
        """Stop for an external reason, if torques are enabled; return the command that is due."""
        self.trip(now, fault)
        return self.tick(now)

    def holds_arm(self, now: float) -> bool:
        """Return whether commands of a release still hold the arm: whole gravity torques."""
        return self.released_for(now) <= LATEST_STATE

    def tick(self, now: float) -> list[float] | None:
        """Return the command that is due without a new message; None: no command."""
        self.running.clear_sample(now)
        return self._due(self._period(now), answers=False)

    def _period(self, now: float) -> list[float]:
        """Process the sample, and return the torques in the order of ``joints``."""
        if self.engaged and now - self._imu_time >= self.settings.stale_timeout and self._uses_imu:
            self.trip(now, Fault("stale", self._imu_problem(now)))
        torques: list[float] = self.advance(now)[self.joints].tolist()
        return torques

    def _due(self, command: list[float], *, answers: bool) -> list[float] | None:
        """Return the command of a period if it answers a message, or differs from the latest."""
        if command == self.latest and not (answers and self.moving):
            return None
        self.latest = command
        return command

    # -- gravity -----------------------------------------------------------------------------------

    def accelerate(
        self, link: str, acceleration: Vector, now: float, *, stamp: int, clock: int = 0
    ) -> None:
        """Put gravity in force by a measurement of the imu; a bad one is a fault.

        ``acceleration`` (3,) in m/s^2 is the proper acceleration of the fixed ``link``. Its
        negative is the free fall as the base sees it: gravity less the acceleration of the base.
        ``stamp`` and ``clock`` as for :meth:`receive`; a stamp that comes again is ignored. Raises
        MbsError for a measurement that is refused.
        """
        if stamp and stamp == self._imu_stamp:
            return
        try:
            gravity = self._filtered(link, acceleration, now, stamp, clock)
        except MbsError as error:
            self._imu_trouble = f"imu refused: {error}"
            self.trip(now, Fault("imu", self._imu_trouble))
            raise
        self._free_fall, self._imu_trouble = gravity, ""
        self._imu_time, self._imu_stamp = now, stamp
        self.set_gravity(gravity, time=0.0, check=False)

    def _filtered(
        self, link: str, acceleration: Vector, now: float, stamp: int, clock: int
    ) -> FloatArray:
        """Return gravity (3,) after the low-pass filter. Raises as :meth:`accelerate`."""
        elapsed = now - self._imu_time
        if not stamp:
            raise ArgumentError("it has no time stamp")
        if stamp < self._imu_stamp and elapsed < self.settings.stale_timeout:
            late = 1e-9 * (self._imu_stamp - stamp)
            raise ArgumentError(f"its stamp is {late:.6f} s before that of the message before")
        if aged := self.age_problem(stamp, clock):
            raise ArgumentError(aged)
        x, y, z = acceleration
        measured = root_gravity(self.model, LinkGravity(link, (-x, -y, -z)))
        share = 1.0 - math.exp(-elapsed / FILTER_TIME)
        gravity: FloatArray = self._free_fall + share * (measured - self._free_fall)
        check_earthly("linear_acceleration", gravity, GRAVITY_TOLERANCE)
        return gravity

    def _imu_problem(self, now: float) -> str:
        """Return the problem with the imu; empty if there is none, or no imu is used."""
        if not self._uses_imu:
            return ""
        age, timeout = now - self._imu_time, self.settings.stale_timeout
        missing = "no valid imu so far"
        if age < math.inf:
            missing = f"no valid imu for {age:.3f} s; stale_timeout is {timeout:g}"
        return "; ".join(filter(None, (self._imu_trouble, missing if age >= timeout else "")))
