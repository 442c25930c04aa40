# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One arm under guard: checks of its states, a law, the policy. The one way to a command.

States of joints come in SI units, by name. Every call has the time as an argument, in s of one
steady clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import default_backend
from mbs_dynamics.control.collision import Collision, CollisionDetector, Thresholds
from mbs_dynamics.control.collision_reaction import CollisionReaction
from mbs_dynamics.control.environment import in_force
from mbs_dynamics.control.evidence import UNVERIFIED, Evidence, shown
from mbs_dynamics.control.fast_path import FastStates, maker
from mbs_dynamics.control.following import Followed, Following
from mbs_dynamics.control.input_checks import (
    Check,
    Continuity,
    Envelope,
    Freshness,
    Frozen,
    JointStates,
    Periods,
    Sources,
    Speeds,
    Tracking,
)
from mbs_dynamics.control.joint_input import JointInput, Rejection
from mbs_dynamics.control.laws.cartesian_impedance import CartesianImpedance
from mbs_dynamics.control.laws.gravity import GravityLaw
from mbs_dynamics.control.laws.joint_impedance import JointImpedance
from mbs_dynamics.control.laws.law import Law, LawState
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period.evidence import EFFORT_FLOOR
from mbs_dynamics.control.policy import (
    CommandLimits,
    CommandPolicy,
    Doubt,
    Fault,
    GuardState,
    Torques,
)
from mbs_dynamics.control.references import Target
from mbs_dynamics.control.settings import RATE_SHARE, ArmSettings, MotionSettings
from mbs_dynamics.control.state_period import StatePeriod
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model

IGNORED = frozenset(
    {"no_joints", "too_many_names", "repeated_stamp", "partial", "incomplete_joints"}
)
"""Kinds of rejections that neither stop nor count: another robot, nothing new, or incomplete."""

DOUBTS = {"time_backwards": Doubt.STATE}
"""Doubts that other kinds raise: another publisher, or a simulation that was reset."""

IN_TURN = "{} come from two sources in turn: some fit the arm, and others do not"

IDLE_PERIOD = 0.5
"""Longest time in s between two calls of tick."""

GAP_MEMORY = 0.3
"""Time in s in which a long time between two states is forgotten."""


class Answer(NamedTuple):
    """The command that answers a message."""

    command: list[float] | None
    """Torques in the order of ``joints``; None: no command."""
    rejected: Rejection | None = None
    """Why the message was not used; None if it was."""
    usual: bool = False
    """Whether nothing but the command has changed, and nothing is due sooner than before."""


_answer, _states, _torques = maker(Answer), maker(JointStates), maker(Torques)


class Guard:
    """Computes the commands of an arm from its states.

    Parameters: ``settings`` name the commanded joints, ``source`` is what the states come from, for
    messages. Torques are those of gravity compensation until :meth:`switch`.
    After each call, :meth:`due_in` returns when :meth:`tick` must be called.

    Raises UnknownJointError if a joint to be commanded or a fixed one is not in the model,
    ArgumentError if a joint to be commanded mimics another one, ModelError if no joint moves.
    """

    def __init__(
        self,
        model: Model,
        settings: ArmSettings,
        policy: CommandPolicy,
        *,
        source: str = "states",
    ) -> None:
        self.model, self.settings, self.source = model, settings, source
        self.policy = policy
        self.joints = [coordinate_of(model, name) for name in settings.joints]
        self._all = self.joints == list(range(model.n))
        self.law = GravityLaw(model, self.joints, settings)
        self.following = Following(model, self.joints, _motion(settings))
        """The law that acts beside gravity compensation."""
        self.collisions: CollisionReaction | None = None
        """None without a file of thresholds."""
        if settings.collision_file:
            thresholds = Thresholds.read(settings.collision_file, model)
            detector = CollisionDetector(model, thresholds)
            self.collisions = CollisionReaction(detector, policy, self.following)
        self._state_period = StatePeriod()
        self._gap, self._evaluated_at = 0.0, 0
        """The longest of the latest times in s between two states of a law, and the stamp in ns of
        the latest of these; 0: none."""
        self._model_in_force: tuple[Any, ...] = (None, None, model)
        self._loads_watched = self.law.loads.goal
        """The loads of the latest state, as collisions were detected with."""
        self.input = JointInput.of_model(
            model,
            stale_timeout=settings.stale_timeout,
            velocity_from_position=settings.velocity_from_position,
            answering=self.joints or None,
            others_timeout=settings.other_joints_timeout,
            fixed=settings.fixed,
        )
        self.speeds = Speeds(model, self.joints)
        self.frozen_timeout = 0.0
        self.frozen = Frozen(model, self.joints, 0.0)
        self._continuity = Continuity(model)
        self.sources = Sources()
        self.periods = Periods(len(self.joints))
        self._valid_until = -math.inf
        """When the first state of a joint is too old for damping."""
        self.backend = default_backend()
        self.watch = Freshness(source)
        self.watches = [self.watch]
        """The inputs that must be fresh."""
        self._fresh_until = -math.inf
        """No input becomes stale before this time."""
        self.q: Sequence[float] = ()
        """(n,) the latest trusted positions; empty before the first."""
        self.measured: list[float] = []
        """(n,) the latest measured efforts while at rest, NaN where unknown."""
        self.evidence = Evidence(settings.joints)
        self._aimed = False
        """Whether a reference was set since torques were enabled."""
        self._unverified = False
        """Whether nothing had shown that torques are right when they were enabled."""
        self.inactive = ""
        """Which checks are inactive since efforts are unknown; empty if none is."""
        self.warning = ""
        """Warning for the log, to be cleared by its reader; empty if there is none."""
        self._unknown: tuple[int, ...]
        """Coordinates of joints of which the latest efforts are unknown."""
        self._unknown_since = math.inf
        self._inactive_reported = False
        self.remark = ""
        """Remark for the log, to be cleared by its reader; empty if there is none."""
        self.doubts: set[Doubt] = set()
        """Doubts that states have raised since the arm was at rest."""
        self._fast = FastStates(self.joints, policy, self.law, self.speeds, self.input.buffers)
        self._fastest = model.velocity_limits.tolist()
        self._least = min(self._fastest)
        self._smooth: Sequence[float] = ()
        self._smoothed_at = 0
        self._adapt(settings)

    # -- settings ----------------------------------------------------------------------------------

    def _adapt(self, settings: ArmSettings) -> None:
        """Apply the settings that take effect at once: timeouts, margins, limits, the algorithm."""
        self.settings = settings
        self._fresh_until = -math.inf
        self.policy.on_fault = settings.on_fault
        self.law.apply(settings)
        self.input.stale_timeout = settings.stale_timeout
        self.input.others_timeout = settings.other_joints_timeout
        self.input.velocity_from_position = settings.velocity_from_position
        self.envelope = Envelope(self.model, self.joints, settings.position_margin)
        self.checks: list[Check] = [self.envelope, self.speeds]
        if settings.frozen_timeout != self.frozen_timeout:
            self.frozen_timeout = settings.frozen_timeout
            self.frozen = Frozen(self.model, self.joints, self.frozen_timeout)
        if settings.frozen_timeout:
            self.checks.append(self.frozen)
        self._notes = [check.note for check in self.checks if check is not self.envelope]
        stated = self.model.effort_limits.tolist()
        self.efforts = tuple(
            settings.effort_scale * (own or (stated[k] if math.isfinite(stated[k]) else 0.0))
            for own, k in zip(settings.effort_limits, self.joints, strict=True)
        )
        self.rates = tuple(settings.effort_rate_limit or RATE_SHARE * x for x in self.efforts)
        self._unknown = ()  # which checks are inactive is found anew
        self.tracking = None
        if settings.tracking_tolerance:
            self.tracking = Tracking(settings.joints, self.efforts, settings.tracking_tolerance)
        fastest = self.model.velocity_limits
        frozen = self.frozen if settings.frozen_timeout else None
        self._fast.apply(self.envelope, fastest, frozen, self.tracking)

    def check(self, settings: ArmSettings) -> None:
        """Raise ArgumentError, ModelError or BackendError if these settings cannot be applied."""
        if settings.algorithm != self.settings.algorithm:
            self.law.compiled(settings.algorithm)

    def change(self, settings: ArmSettings, now: float) -> None:
        """Apply settings that :meth:`check` accepts."""
        self._adapt(settings)
        self.following.apply(_motion(settings))
        self.law.aim(settings, now, self.ramp)

    @property
    def ramp(self) -> float:
        """Time in s in which changes take effect."""
        return 0.0 if self.policy.at_rest else self.policy.limits.ramp_time

    @property
    def limits(self) -> CommandLimits:
        """The limits that would be in force if torques were enabled now."""
        settings = self.settings
        return CommandLimits(self.efforts, self.rates, settings.ramp_time, settings.ramp_in_time)

    @property
    def collision(self) -> Collision | None:
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        return None if self.collisions is None else self.collisions.detector.latest

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
        """Process the states of some joints.

        ``stamp`` is that of the measurement in ns, 0 if it has none; ``clock`` the time of stamps
        now, 0 if the age of states is not checked.
        """
        self._watch(now)
        reading = self.input.read(names, positions, velocities, efforts, stamp=stamp, received=now)
        if self.input.merged and not stamp:
            rejection = Rejection("unstamped", "the message has no time stamp")
        elif self.input.merged and (aged := self.aged(stamp, clock)):
            rejection = Rejection("age", aged)
        elif isinstance(reading, Rejection):
            rejection = reading
        elif reading.repeated:
            rejection = Rejection("repeated_stamp", "the time stamp did not advance")
        elif reading.qd is None:
            rejection = Rejection("no_velocity", reading.why_no_velocity)
        else:
            received = self.commanded(self.input.received)
            state = _states(
                (reading.q.tolist(), reading.qd.tolist(), reading.stamp, self.input.stamps)
            )
            return self.answer(state, reading.q, reading.efforts.tau.tolist(), received, now)
        if rejection.kind not in IGNORED:
            self._miss(Fault(*rejection, DOUBTS.get(rejection.kind, Doubt.NOTHING)), now)
        return Answer(self.policy.command(now), rejection)

    def answer(
        self,
        state: JointStates,
        q: FloatArray,
        efforts: list[float],
        received: Sequence[float],
        now: float,
    ) -> Answer:
        """Check merged states of all joints, and return the command that follows.

        ``q`` (n,) are the positions of ``state`` as an array, ``efforts`` (n,) the measured ones,
        NaN where unknown; ``received`` when the state of each commanded joint was received.
        """
        policy = self.policy
        jump = self._continuity.check(state)
        if jump is not None and not policy.at_rest:
            self._miss(jump, now)
            return Answer(policy.command(now), Rejection(jump.kind, jump.reason))
        if jump is not None:  # a robot at rest may be moved, as simulated ones are
            self._continuity.note(state)
        self.watch.feed(now)
        self._watch_efforts(efforts, now)
        collisions = self.collisions
        if collisions is not None:
            loads = self.law.loads.at(now)
            if loads is not self._loads_watched:  # a load is taken up or put off
                self._loads_watched = loads
                collisions.detector.restart()
            model, reaction = self.model_in_force(now), self.settings.on_collision
            if collisions.update(model, state, q, efforts, reaction, now):
                self.settle(now)
        settled = policy.settled
        engaged, resting = settled or policy.engaged, not settled and policy.at_rest
        if resting:  # a robot may be moved, as simulated ones are
            self.doubts.clear()
            self.measured = efforts
        until = self.periods.note(received, self.settings.stale_timeout)
        valid_until = min(until, default=math.inf)
        if resting or not self._state_period.known:
            stamps = [state.stamps[k] for k in self.joints] if state.stamps else [state.stamp]
            self._state_period.note(stamps)
        later = valid_until >= self._valid_until
        self._valid_until = valid_until
        alone = (
            settled
            and self.following.idle
            and not self.doubts
            and not self.evidence.active
            and not self.settings.velocity_filter
            and not (collisions is not None and collisions.yields(now))
        )
        commanded = self.commanded(efforts)
        passes, usual, gravity, damping, command = self._fast.evaluate(state, commanded, alone, now)
        passes = passes and jump is None
        if passes:
            if self.sources.refused:
                self.sources.note(now, used=True)
            for note in self._notes:
                note(state)
            if engaged and self.tracking is not None:
                self.tracking.note()
            if usual and now < valid_until:
                if 0.0 in command:
                    command = [x + 0.0 for x in command]  # without any -0.0
                self.q = state.positions
                self._smooth, self._smoothed_at = state.rates, state.stamp
                policy.follow(now, _torques((gravity, damping, [])), command, until)
                if self.tracking is not None:
                    self.tracking.commanded(command)
                quiet = collisions is None and (later or not damping)
                return _answer((command, None, quiet))
        trouble = None if passes else self._trouble(state, jump, efforts, resting, now)
        damped = self.damped_rates(state.rates, state.stamp, self.settings.velocity_filter)
        rejection = None
        if trouble is not None:
            rejection = Rejection(trouble.kind, trouble.reason)
            self.refuse(trouble, now)
        else:
            self.sources.note(now, used=True)
        if self.evidence.active and not self.doubts:
            self._weigh(state, q, now)
        torques = None
        if Doubt.STATE not in self.doubts:
            self.q = state.positions
            if not resting:
                torques = self._torques(q, state.positions, damped, efforts, now)
        asked = policy.command(now, torques, until)
        if self.tracking is not None and asked is not None:
            self.tracking.commanded(asked)
        self._watch_saturation(now)
        return Answer(asked, rejection)

    def _trouble(
        self,
        state: JointStates,
        jump: Fault | None,
        efforts: list[float],
        resting: bool,
        now: float,
    ) -> Fault | None:
        """Return the first fault that a state shows, and note what all of them make doubtful.

        ``jump`` is that of the positions of a robot at rest.
        """
        trouble = self.envelope.check(state) or jump
        if jump is not None:  # else it would count as motion
            self.speeds.restart()
        for check in self.checks:
            fault = check.check(state)
            if fault is not None:
                trouble = trouble or fault
                if not resting:
                    self.doubts.add(fault.doubt)
                if fault.doubt is Doubt.STATE:
                    self.speeds.restart()
                    if not resting and self.q:
                        self.input.keep_turns(self.q)
        if trouble is None and self.tracking is not None and self.policy.engaged:
            trouble = self.tracking.check(self.commanded(efforts))
        return trouble

    def _watch_efforts(self, efforts: list[float], now: float) -> None:
        """Note which checks are inactive since efforts are unknown; stop if one is demanded."""
        if math.isfinite(sum(efforts)):  # mostly
            self._unknown, self.inactive, self._unknown_since = (), "", math.inf
            return
        unknown = tuple(k for k, effort in enumerate(efforts) if not math.isfinite(effort))
        if unknown != self._unknown:
            self._unknown, self.inactive = unknown, self._inactive_checks(unknown)
            self._inactive_reported = False
        if not self.policy.engaged:
            return
        if self.inactive and not self._inactive_reported:
            self.warning, self._inactive_reported = self.inactive, True
        self._unknown_since = min(self._unknown_since, now)
        commanded = [k for k in self.joints if k in unknown]
        demanded = self.settings.effort_check == "always" and commanded
        if demanded and now - self._unknown_since >= self.settings.stale_timeout:
            reason = f"{self._without_efforts(commanded)}; effort_check is 'always'"
            self.policy.trip(now, Fault("no_effort", reason))

    def _without_efforts(self, coordinates: Sequence[int]) -> str:
        names = [self.model.joint_names[k] for k in coordinates]
        return f"{self.source} hold no efforts of {listed(names)}"

    def _inactive_checks(self, unknown: Sequence[int]) -> str:
        """Return which checks are inactive without these efforts; empty if none is."""
        reasons = []
        commanded = [k for k in self.joints if k in unknown]
        if self.tracking is not None and commanded:
            without = self._without_efforts(commanded)
            reasons.append(f"{without}: they are not compared with commands (tracking_tolerance)")
        places = [] if self.collisions is None else self.collisions.detector.thresholds.places
        watched = [k for k in places if k in unknown]
        if watched:
            without = self._without_efforts(watched)
            reasons.append(f"{without}: no collision is detected (collision_file)")
        return "; ".join(reasons)

    def _weigh(self, state: JointStates, q: FloatArray, now: float) -> None:
        """Let unverified torques grow by what a state shows, or stop them."""
        policy, evidence = self.policy, self.evidence
        if not policy.engaged:  # they were released
            evidence.end()
        else:
            needed = self.law.holding_torques(q, now)
            positions, rates = list(state.positions), list(state.rates)
            fault = evidence.update(
                now,
                self.commanded(positions),
                self.commanded(rates),
                needed,
                self.efforts,
                self._stays,
            )
            if fault is not None:
                policy.trip(now, fault)
                self.law.settle(now, self.settings.ramp_time, self.periods.longest)
            else:
                evidence.watch(now, policy.state is GuardState.ENABLED)
        policy.most_share = evidence.share

    @property
    def _stays(self) -> bool:
        """Whether no law moves the arm: it floats, or springs hold it where it was enabled."""
        springs = isinstance(self.following.law, (JointImpedance, CartesianImpedance))
        return self.following.idle or (springs and not self._aimed)

    def commanded(self, values: list[float]) -> list[float]:
        """Return those of values (n,) that belong to commanded joints."""
        return values if self._all else [values[k] for k in self.joints]

    def _torques(
        self,
        q: FloatArray,
        positions: Sequence[float],
        rates: Sequence[float],
        efforts: Sequence[float],
        now: float,
    ) -> Torques:
        torques = self.law.torques(q, positions, rates, now, efforts)
        if Doubt.VELOCITY in self.doubts:
            return torques._replace(damping=[], assist=[])
        if not self.following.idle and self.policy.engaged:
            stamp = self._smoothed_at
            gap = 1e-9 * (stamp - self._evaluated_at)
            self._evaluated_at = stamp
            if 0.0 < gap < self.settings.stale_timeout:
                self._gap = max(gap, self._gap * math.exp(-gap / GAP_MEMORY))
            state = self._law_state(q, np.array(rates), np.array(efforts), now)
            try:
                added = self.following.added(self.model_in_force(now), state, torques.gravity)
            except ArgumentError as error:
                self.policy.trip(now, Fault("law", str(error)))
            else:
                torques = torques.assisted(added)
        if self.collisions is not None and self.collisions.yields(now):
            along = self.collisions.along(rates, self._fastest)
            torques = torques.assisted(self.commanded(along))
        return torques

    @property
    def period(self) -> float:
        """Time in s between two states, by which a stiffness is accepted; 0: not known yet.

        It is that of the settings, or else measured while torques are disabled.
        """
        return self.following.settings.period or self._state_period.median

    # -- laws and references -----------------------------------------------------------------------

    def _law_state(
        self, q: FloatArray, qd: FloatArray, efforts: FloatArray, now: float
    ) -> LawState:
        g = self.law.gravity_torques(q, now)
        return LawState(
            q, qd, efforts, now, self.joints, g, self.period, max(self._gap, self.period)
        )

    def resting(self, now: float) -> LawState:
        """Return the state of an arm at rest at the latest positions, or within its limits."""
        q = np.array(self.q) if self.q else self.model.neutral(within_limits=True)
        state = self._law_state(q, np.zeros_like(q), np.full(len(q), math.nan), now)
        return state if self.q else state._replace(period=0.0)  # nothing is decided elsewhere

    def model_in_force(self, now: float) -> Model:
        """Return the model under the gravity and with the loads at a time."""
        gravity, loads = self.law.gravity.at(now), self.law.loads.at(now)
        before = self._model_in_force
        if gravity is not before[0] or loads is not before[1]:
            self._model_in_force = gravity, loads, in_force(self.model, gravity, loads)
        model: Model = self._model_in_force[2]
        return model

    def prepare(self, law: Law | None, now: float) -> Followed:
        """Compile what a law needs, call it once, and return what :meth:`switch` takes.

        Raises MbsError for a law that fails, or that the arm cannot bear.
        """
        return self.following.prepared(law, self.model_in_force(now), self.resting(now))

    def switch(self, law: Law | Followed | None, now: float) -> None:
        """Let a law take over, in ``switch_time`` while torques are enabled; None: the arm floats.

        Raises what :meth:`prepare` raises; the law before then stays in force.
        """
        to = law if isinstance(law, Followed) else self.prepare(law, now)
        if self.collisions is not None:
            self.collisions.restart()
        self.following.switch(to, now, self.policy.engaged)
        self._evaluated_at = 0  # the time without a law is no gap

    def aim(self, target: Target | None, now: float) -> None:
        """Let the law follow another reference, while torques are enabled; None: come to rest.

        Raises MbsError for one that is invalid; the reference before then stays in force.
        """
        if not self.policy.engaged:
            raise ArgumentError(
                f"the state is {self.policy.state.value!r}; valid are references while torques "
                "are enabled"
            )
        self.following.aim(target, np.array(self.q), now)
        self._aimed = True

    # -- faults, and time without states -----------------------------------------------------------

    def refuse(self, fault: Fault, now: float) -> None:
        """Store the problem with the latest states; it is a fault while engaged."""
        trouble = self._store(fault, now)
        self.policy.trip(now, trouble)
        if not self.policy.at_rest:
            self.doubts.add(fault.doubt)

    def _miss(self, fault: Fault, now: float) -> None:
        """Count a message that cannot be that of the arm as missing.

        It leaves no trace in the merged states. It is a fault where no valid one comes in time.
        """
        self.input.withdraw()
        self._store(fault, now)
        self._valid_until = math.inf  # damping may end before the next state, which is not usual

    def _store(self, fault: Fault, now: float) -> Fault:
        trouble = fault._replace(reason=f"{self.source} rejected: {fault.reason}")
        self.watch.refuse(trouble)
        self.sources.note(now, used=False)
        return trouble

    def aged(self, stamp: int, clock: int) -> str:
        """Return the problem with the age of a measurement; empty if there is none."""
        most = self.settings.max_age
        age = 1e-9 * (clock - stamp)
        if not (stamp and clock and most) or abs(age) <= most:
            return ""
        return (
            f"the stamp is {abs(age):.3f} s {'older' if age > 0.0 else 'newer'} than the clock; "
            f"max_age is {most:g}. Are the clocks synchronised, or is one that of a simulation? "
            "0 disables the check"
        )

    def tick(self, now: float) -> list[float] | None:
        """Return the command that is due without a new state of the robot; None: no command."""
        self._watch(now)
        self._valid_until = math.inf
        return self.policy.command(now)

    def due_in(self, now: float) -> float:
        """Return in how many seconds :meth:`tick` must be called, if nothing else happens."""
        wait = max(0.0, self._fresh_until - now) if self.policy.engaged else IDLE_PERIOD
        return min(self.policy.due_in(now), wait)

    def _watch(self, now: float) -> None:
        """Stop if the input is stale. It is checked only when it may have become so."""
        if not self.policy.engaged or now < self._fresh_until:
            return
        problem, trouble = self._stale(now), self.watch.trouble
        if problem is not None:
            if trouble is not None:  # messages come, and cannot be used
                problem = trouble._replace(reason=f"{trouble.reason}; {problem.reason}")
            self.policy.trip(now, problem)
            self.doubts.add(problem.doubt)
        else:
            waits = [watch.fresh_for(now, self.settings.stale_timeout) for watch in self.watches]
            self._fresh_until = now + min(self.input.fresh_for(now), *waits)

    def _stale(self, now: float) -> Fault | None:
        """Return the fault that an input or the state of a joint is too old, or None."""
        stale = self.input.stale(now)
        for watch in self.watches:
            fault = watch.stale(now, self.settings.stale_timeout)
            if fault is not None:
                some = 0 < len(stale) < self.model.n and watch is self.watch
                joints = f": {', '.join(stale)}" if some else ""
                return fault._replace(reason=fault.reason + joints)
        return Fault("stale", f"no valid {self.source} of {', '.join(stale)}") if stale else None

    def _watch_saturation(self, now: float) -> None:
        if not self.policy.engaged or not self.policy.limited.effort:
            return
        saturation = self.policy.saturation(now)
        if saturation is not None and saturation[1] > self.settings.saturation_timeout:
            k, seconds = saturation
            message = (
                f"{self.settings.joints[k]} has been at its effort limit of "
                f"{self.policy.limits.effort[k]:.4g} for {seconds:.3f} s; saturation_timeout is "
                f"{self.settings.saturation_timeout:g}"
            )
            self.policy.trip(now, Fault("saturated", message))

    def damped_rates(self, rates: Sequence[float], stamp: int, constant: float) -> Sequence[float]:
        """Return the velocities (n,) for damping: within the limits, and low-pass filtered.

        An impossible velocity of a sensor must not cause a large torque.
        ``stamp`` in ns is that of the measurement, ``constant`` the time constant in s.
        """
        within = rates
        if max(rates) > self._least or -min(rates) > self._least:
            pairs = zip(rates, self._fastest, strict=True)
            within = [min(fastest, max(-fastest, rate)) for rate, fastest in pairs]
        elapsed = 1e-9 * (stamp - self._smoothed_at)
        self._smoothed_at = stamp
        if constant > 0.0 and self._smooth and 0.0 < elapsed < 20.0 * constant:
            share = 1.0 - math.exp(-elapsed / constant)
            within = [x + share * (y - x) for x, y in zip(self._smooth, within, strict=True)]
        self._smooth = within
        return within

    # -- enabling ---------------------------------------------------------------------------------

    def in_turn(self, now: float) -> str:
        """Return the message that two sources report the arm in turn; empty if none do."""
        return IN_TURN.format(self.source) if self.sources.in_turn(now) else ""

    def input_problem(self, now: float) -> str:
        """Return the problem with the input; empty if there is none."""
        stale = self._stale(now)
        troubles = [watch.trouble for watch in self.watches]
        in_turn = [said] if (said := self.in_turn(now)) else []
        return "; ".join([*in_turn, *(one.reason for one in (stale, *troubles) if one is not None)])

    def enable(self, now: float, limits: CommandLimits) -> None:
        """Begin to ramp in, where nothing forbids it. Raises ArgumentError for invalid limits.

        Where measured efforts have not shown that the torques are right, these grow slowly, as
        :mod:`~mbs_dynamics.control.evidence` describes.
        """
        start, verified = None, self._verified
        if self.settings.start_from == "effort" and self.policy.at_rest:
            start = [self.measured[k] for k in self.joints]
        self.policy.enable(now, limits, start)
        self._unverified, self._aimed = not verified, False
        self._unknown_since, self._inactive_reported = math.inf, False
        if verified:
            self.evidence.end()
        else:
            self._gather_evidence(now, limits.ramp_in_time)
            self.remark = UNVERIFIED
        self.policy.most_share = self.evidence.share
        if self.collisions is not None:
            self.collisions.resume(now)
        self.following.restart()
        self.doubts.clear()
        self._fresh_until = -math.inf
        if self.tracking is not None:
            self.tracking.restart()
        if self.q:
            self.law.springs.begin(self.q)
        self.settle(now)

    def taken_over(self, now: float) -> None:
        """Watch the arm again, if nothing has shown that torques are right: they hold it now."""
        if self._unverified and self.policy.engaged:
            positions = self.commanded(list(self.q))
            self.evidence.watch_again(now, positions, [0.0] * len(positions))

    def clear(self) -> None:
        """Forget the fault, once it has stopped the torques, and what contradicted the torques."""
        self.policy.clear()
        self.evidence.trouble = None

    def known_efforts(self) -> list[float]:
        """Return the efforts (m,) that were measured at rest; empty unless all are known."""
        efforts = self.commanded(self.measured) if self.measured else []
        return efforts if all(map(math.isfinite, efforts)) else []

    def idle(self, efforts: Sequence[float]) -> bool:
        """Return whether efforts (m,) are next to nothing, or not known."""
        pairs = zip(efforts, self.efforts, strict=False)
        return all(abs(x) <= EFFORT_FLOOR * most for x, most in pairs)

    @property
    def _verified(self) -> bool:
        """Whether the torques of an arm that can be enabled are known to be right."""
        if not self.policy.at_rest:
            return True  # they act already
        efforts = self.known_efforts()
        if self.settings.effort_check == "off" or not shown(efforts):
            return False
        return not self.idle(efforts)

    def _gather_evidence(self, now: float, ramp_in_time: float) -> None:
        """Watch the arm from now on while torques grow."""
        positions = self.commanded(list(self.q))
        self.evidence.begin(now, positions, ramp_in_time)

    def settle(self, now: float) -> None:
        """Damp the momentum of the arm for ``settle_time``, with a coefficient that falls."""
        self.law.settle(now, self.settings.settle_time, self.periods.longest)


def _motion(settings: ArmSettings) -> MotionSettings:
    return (
        settings if isinstance(settings, MotionSettings) else MotionSettings(joints=settings.joints)
    )
