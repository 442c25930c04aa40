# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm under guard, whatever its states come from and its torques go to.

All that decides is the period, a function of numbers in ``period/function.py``. A guard packs
samples, requests and settings for it, calls laws that are not part of it, and puts into words what
has changed. Every call has the time as an argument, in s of one steady clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.collision import Collision, CollisionDetector, Thresholds
from mbs_dynamics.control.collision_reaction import CollisionReaction
from mbs_dynamics.control.environment import (
    LinkLoad,
    in_force,
    link_loads,
    payload_parameters,
    with_load,
)
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.following import Followed, Following
from mbs_dynamics.control.input_checks import JointStates
from mbs_dynamics.control.joint_input import fixed_coordinates
from mbs_dynamics.control.laws.cartesian_impedance import CartesianImpedance
from mbs_dynamics.control.laws.joint_impedance import JointImpedance
from mbs_dynamics.control.laws.law import Law, LawState
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.history import History, Replay, replayed
from mbs_dynamics.control.period.records import Request, Result, Sample, State, Verdict
from mbs_dynamics.control.period.sentences import DOUBTS, fault_of, problems
from mbs_dynamics.control.period.settings import period_settings
from mbs_dynamics.control.references import Target
from mbs_dynamics.control.settings import ArmSettings, MotionSettings
from mbs_dynamics.control.state_period import StatePeriod
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError, ModelError, listed
from mbs_dynamics.model.diagnostics import stopping_speed
from mbs_dynamics.model.model import Model, without_payloads

UNVERIFIED = (
    "nothing has shown yet that the torques are right: they grow slowly while the arm stays still"
)

ROUNDING = 1e-9
"""Relative tolerance on sums of masses."""

LARGEST_TURN = math.radians(60.0)
"""Largest turn of gravity at once while torques are commanded; an inverted sign exceeds it."""

GAP_MEMORY = 0.3
"""Time in s in which a long time between two states is forgotten."""

MODES = {
    transitions.OFF: "disabled",
    transitions.RAMPING_IN: "ramping in",
    transitions.ON: "enabled",
    transitions.RAMPING_OUT: "ramping out",
    transitions.STOPPING: "fault",
    transitions.FAULT: "fault",
}
"""Names of the modes for users."""


class Guard:
    """An arm under guard.

    Parameters: ``settings`` name the commanded joints; ``gravity`` (3,) in m/s^2 is that in the
    axes of the root, by default that of the model; ``drives`` are arguments of
    :func:`~mbs_dynamics.control.period.settings.period_settings` about drives; ``source`` is what
    the states come from, for messages. Loads are those of the model.

    Fill :attr:`sample` and call :meth:`advance` for each period. Raises UnknownJointError if a
    joint to be commanded or a fixed one is not in the model, ArgumentError if a joint to be
    commanded mimics another one, ModelError if no joint moves.
    """

    def __init__(
        self,
        model: Model,
        settings: ArmSettings,
        *,
        gravity: FloatArray | None = None,
        drives: Mapping[str, Any] = {},
        source: str = "frames",
    ) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        self.model, self.settings, self.source = model, settings, source
        self.joints = [coordinate_of(model, name) for name in settings.joints]
        fixed = fixed_coordinates(model.joint_names, settings.fixed)
        self._drives = drives
        self._gravity = np.asarray(model.gravity if gravity is None else gravity)
        self._gravity_time: float | None = None
        self._loads = link_loads(model)
        self._load_parameters = payload_parameters(model)
        self._loads_time: float | None = None
        self._period = Period(model, settings.algorithm)
        self._apply()
        start = initial(self._period, self._set)
        self._state = self._period.state.packed(start).astype(float)
        self._record: State | None = None
        """The fields of the state, once they are read."""
        self._fix(fixed)
        places = self._period.state.places
        self._changes = np.array(
            [places[name].start for name in ("mode", "fault", "hold", "slipped", "opposed")]
        )
        self._stamps = places["stamp"]
        self._unknown_since = places["unknown_since"].start
        self._changed: list[float] = self._state[self._changes].tolist()
        """The latest values of what is reported when it changes."""
        self._holder = (False, False)
        """Whether another controller is to hold the arm once torques are released, and does so."""
        self._quiet = self._request_vector(transitions.NONE, sends=True)
        self._sample = self._period.sample.packed(_nothing(model.n)).astype(float)
        self.sample: Sample = self._period.sample.unpacked(self._sample)
        """The sample of the next period: numbers, and arrays to be filled."""
        self._pack = Struct(f"{len(self._sample)}d").pack_into
        row = self._sample.tolist()
        self._unreported, self._rest = row[1 : 1 + 8 * model.n], row[1 + 8 * model.n :]
        self._floats = self._period.sample.places["floats"].start
        self._following = Following(model, self.joints, _motion(settings))
        self._collisions: CollisionReaction | None = None
        if settings.collision_file:
            thresholds = Thresholds.read(settings.collision_file, model)
            detector = CollisionDetector(model, thresholds)
            self._collisions = CollisionReaction(detector, self, self._following)
        self._history = History(self._period, self._state)
        self._result: Result | None = None
        self._before = self._state
        self._state_period = StatePeriod()
        self._gap, self._evaluated_at = 0.0, -math.inf
        self._aimed = self._inactive = False
        self._external: Fault | None = None
        self._fault: Fault | None = None
        self._remarks: list[str] = []
        self._collision: Collision | None = None
        self._linked: list[Guard] = []
        self._in_force: tuple[Any, ...] = ()

    def _apply(self) -> None:
        """Put settings, gravity and loads in force, with the ramps of the period."""
        self._set = period_settings(
            self.model,
            self.joints,
            self.settings,
            self._gravity,
            self._load_parameters,
            gravity_time=self._gravity_time,
            loads_time=self._loads_time,
            **self._drives,
        )
        self._settings = self._period.settings.packed(self._set).astype(float)

    def _fix(self, fixed: Mapping[int, float]) -> None:
        """Set the positions of joints of which no state comes."""
        record = self.state_record
        for k, position in fixed.items():
            for row in (record.q, record.trusted, record.held, record.slow_q):
                row[k] = position
            record.qd[k] = record.stamp[k] = record.received[k] = 0.0

    # -- state -------------------------------------------------------------------------------------

    @property
    def state_record(self) -> State:
        """The state of the period: arrays that are not changed later."""
        if self._record is None:
            self._record = self._period.state.unpacked(self._state)
        return self._record

    @property
    def verdict(self) -> Verdict:
        """What the latest period has found; NaN before the first."""
        if self._result is None:
            return self._period.verdict.unpacked(np.full(self._period.verdict.size, math.nan))
        return self._period.verdict.unpacked(self._result.verdict)

    @property
    def _mode(self) -> float:
        return self._changed[0]

    @property
    def state(self) -> str:
        """The state: disabled, ramping in, enabled, ramping out, or fault."""
        mode, _, hold, *_ = self._changed
        if mode == transitions.RAMPING_OUT and hold == 1.0:
            return MODES[transitions.OFF]  # nothing ramps: the drives hold the arm already
        return MODES[mode]

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""
        return self._mode in transitions.ENGAGED

    @property
    def fault(self) -> Fault | None:
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        return self._fault

    @property
    def collision(self) -> Collision | None:
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        return None if self._collisions is None else self._collisions.detector.latest

    @property
    def positions(self) -> FloatArray:
        """(m,) the latest positions in rad or m that were used, unwrapped; NaN before the first."""
        return np.asarray(self.state_record.q[self.joints])

    @property
    def efforts(self) -> FloatArray:
        """(m,) the latest measured efforts in N m or N, NaN where unknown."""
        return np.asarray(self.state_record.effort[self.joints])

    @property
    def held(self) -> FloatArray:
        """(m,) the positions in rad or m that the drives hold, where they do."""
        return np.asarray(self.state_record.held[self.joints])

    @property
    def fed_forward(self) -> list[float]:
        """(m,) gravity torques in N m or N of the positions that the drives hold."""
        s = self.state_record
        torques = self._gravity_at(np.array(s.held)) * s.scale
        return [float(torques[k]) for k in self.joints]

    @property
    def weighing(self) -> bool:
        """Whether the arm is watched for evidence that its torques are right."""
        return bool(self.state_record.weighing)

    # -- requests ----------------------------------------------------------------------------------

    def problems(self, t: float) -> list[str]:
        """Return all reasons why torques must not be enabled at time ``t``; empty if none."""
        reasons = [
            f"{joint.name} {speed}: state a positive one in the URDF"
            for joint in self.model.joints
            if joint.nv == 1
            and joint.coordinate in self.joints
            and (speed := stopping_speed(joint))
        ]
        if self.model.total_mass == 0.0:
            reasons.append(
                "the description of the robot states no mass: all gravity torques are zero"
            )
        if self._fault is not None:
            reasons.append(f"a fault is latched: {self._fault}; clear it first")
        state, verdict = self._tried(t, transitions.ENABLE)
        reasons += problems(verdict, state, self.model.joint_names)
        if not reasons:
            try:
                self._following.check(self._model_in_force(), self._resting(t))
            except ArgumentError as error:
                reasons.append(str(error))
        return reasons

    def input_problem(self, t: float) -> str:
        """Return why the states of the joints cannot be used; empty if they can."""
        state, verdict = self._tried(t, transitions.NONE)
        return "; ".join(
            problems(verdict, state, self.model.joint_names, kinds=("stale", "encoder_jump"))
        )

    def enable(self, t: float) -> list[str]:
        """Ask for torques; return what forbids them, empty if they begin to ramp in.

        What holds the arm until the torques have ramped in lets go of it then.
        """
        if self.engaged:
            return []
        reasons = self.problems(t)
        if not reasons:
            self._aimed = self._inactive = False
            if self._collisions is not None:
                self._collisions.resume(t)
            self._following.restart()
            self._request(t, transitions.ENABLE)
            if not self.state_record.verified:
                self._remarks.append(UNVERIFIED)
        return reasons

    def disable(self, t: float) -> None:
        """Let the drives hold the arm where it is, or ramp torques down if they cannot."""
        self._request(t, transitions.DISABLE)

    def clear(self, t: float) -> None:
        """Forget the fault, once it has stopped the torques. Whoever holds the arm goes on."""
        self._request(t, transitions.CLEAR)

    def trip(self, t: float, fault: Fault) -> None:
        """Stop for an external reason, as an emergency button."""
        if self.engaged:
            self._external = fault
            self._request(t, transitions.TRIP, doubt=DOUBTS.index(fault.doubt))

    # -- gravity and loads -------------------------------------------------------------------------

    def set_gravity(
        self, gravity: FloatArray, *, time: float | None = None, check: bool = True
    ) -> None:
        """Move to another gravity (3,) in m/s^2, in the axes of the root.

        It takes effect in ``time`` s, None: ``ramp_time``. With ``check`` raises what
        :meth:`check_gravity` raises, and changes nothing then.
        """
        if check:
            self.check_gravity(gravity)
        self._gravity, self._gravity_time = np.asarray(gravity, dtype=float), time
        if check:
            self._apply()
            return
        # often, as by an imu: the rest stays
        p, places = self._set, self._period.settings.places
        self._set = p._replace(gravity=self._gravity, gravity_time=time)
        self._settings = self._settings.copy()  # the one before may be in the history
        self._settings[places["gravity"]] = self._gravity
        self._settings[places["gravity_time"]] = self.settings.ramp_time if time is None else time

    def check_gravity(self, gravity: FloatArray) -> None:
        """Raise ArgumentError or ModelError for a gravity (3,) that must not be moved to now.

        While torques are commanded it may turn by LARGEST_TURN at once.
        """
        before = self._gravity
        lengths = float(np.linalg.norm(before) * np.linalg.norm(gravity))
        if not self.at_rest and lengths > 0.0:
            angle = math.acos(max(-1.0, min(1.0, float(before @ gravity) / lengths)))
            if angle > LARGEST_TURN:
                raise ArgumentError(
                    f"gravity {np.asarray(gravity).tolist()} is turned by "
                    f"{math.degrees(angle):.0f} degrees from {before.tolist()}; valid is at most "
                    f"{math.degrees(LARGEST_TURN):.0f} at once while torques are commanded. Is its "
                    "sign that of an imu?"
                )
        self._check_hold(gravity, self._load_parameters)

    def set_loads(
        self, loads: Sequence[LinkLoad], *, time: float | None = None, check: bool = True
    ) -> None:
        """Carry other loads, one a link, in place of the present ones.

        They take effect in ``time`` s, None: ``ramp_time``. Raises what :meth:`parameters_of`
        raises, with ``check`` ModelError if the arm could not be held, and changes nothing then.
        """
        parameters = self.parameters_of(loads)
        if check:
            self._check_hold(self._gravity, parameters)
        self._loads, self._load_parameters, self._loads_time = list(loads), parameters, time
        self._apply()
        if self._collisions is not None:
            self._collisions.detector.restart()
        if self.engaged:
            self._request(float(self.state_record.now), transitions.NONE, settle=True)

    def parameters_of(self, loads: Sequence[LinkLoad]) -> FloatArray:
        """Return the inertial parameters (nb, 10) of loads, one a link, added up for each body.

        Raises UnknownBodyError, ArgumentError or ModelError for loads that cannot be, and
        ModelError if they are too heavy together. Less than is carried now is never too heavy.
        """
        mass = sum(load.mass for load in loads)
        bare = without_payloads(self.model)
        heaviest = self.settings.max_payload or bare.total_mass
        carried = float(self._load_parameters[:, 0].sum())
        if mass > max(heaviest, carried * (1.0 + ROUNDING)):
            links = " and ".join(repr(load.link) for load in loads)
            raise ModelError(
                f"the payload at {links} has a mass of {mass:g} kg; valid is at most "
                f"{heaviest:.4g}, see max_payload. Are these grams?"
            )
        carrying = bare
        for load in loads:
            carrying = with_load(carrying, load)
        return payload_parameters(carrying)

    def _check_hold(self, gravity: FloatArray, loads: FloatArray) -> None:
        """Raise ModelError if the arm could not be held where it is."""
        q, p = np.array(self.state_record.q), self._set
        if not np.isfinite(q).all():
            return
        torques = p.scale * self._period.gravity(q, np.asarray(gravity, dtype=float), loads)
        over = "; ".join(
            f"{self.model.joint_names[k]} needs {torques[k]:.4g} against gravity, and its effort "
            f"limit is {p.effort[k]:.4g}"
            for k in self.joints
            if not abs(torques[k]) <= p.effort[k]
        )
        if over:
            raise ModelError(f"the arm could not be held: {over}")

    @property
    def at_rest(self) -> bool:
        """Whether drives hold the arm, or nothing is commanded."""
        return bool(transitions.is_at_rest(self.state_record))

    # -- the history -------------------------------------------------------------------------------

    def write_history(self, path: str | Path) -> None:
        """Write the latest periods, 5000 at least, as an .npz file for :meth:`replay`.

        Raises OSError if it cannot be written.
        """
        self._history.write(path)

    def replay(self, path: str | Path) -> Replay:
        """Return every command and verdict of the periods in a file; the arm is not affected.

        They are the same as then, number by number, laws included. Raises ArgumentError for a file
        that is no history, or that of another robot.
        """
        return replayed(self._period, path)

    # -- laws and references -----------------------------------------------------------------------

    def switch(self, t: float, law: Law | None) -> None:
        """Let another law take over from time ``t`` on, without a jump; None: the arm floats.

        Another law of the same kind, as one of another stiffness, goes on with the reference; else
        the present state is the reference. The first call of a law may compile for a second: switch
        to it once before torques are enabled. Raises MbsError, and changes nothing, for a law that
        fails, or of a stiffness that the period of the loop cannot bear.
        """
        to = self.prepared(t, law)
        if self._collisions is not None:
            self._collisions.restart()
        self._following.switch(to, t, self.engaged)
        self._evaluated_at = -math.inf  # the time without a law is no gap

    def prepared(self, t: float, law: Law | None) -> Followed:
        """Compile what a law needs, and call it once. Raises what :meth:`switch` raises."""
        return self._following.prepared(law, self._model_in_force(), self._resting(t))

    def aim(self, t: float, reference: Target | None) -> None:
        """Let the law follow another reference from time ``t`` on; None: come to rest.

        It is approached within the ``reference_velocity`` and ``reference_acceleration`` of the
        settings, and a trajectory is played from its first point on, at the time of that point or
        later. Raises MbsError, and changes nothing, while torques are disabled and for a reference
        that is invalid or out of reach.
        """
        if not self.engaged:
            raise ArgumentError(
                f"the state is {self.state!r}; valid are references while torques are enabled"
            )
        self._following.aim(reference, np.array(self.state_record.trusted), t)
        self._aimed = True

    @property
    def follower(self) -> Any:
        """The reference of the law in force; None where the arm floats."""
        return self._following.follower

    @property
    def law(self) -> Law | None:
        """The law in force, or about to be; None where the arm floats."""
        return self._following.law

    @property
    def trajectory(self) -> Trajectory | None:
        """The trajectory that is approached or played; None if there is none."""
        joints = self._following.joints
        return None if joints is None else joints.trajectory

    @property
    def elapsed(self) -> float | None:
        """Its time in s since its first point; None while that is approached, or without one."""
        joints = self._following.joints
        return None if joints is None else joints.elapsed

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed along the same path; 0: pause, 1: go on.

        Raises ArgumentError unless it is from 0 to 1, and without a trajectory.
        """
        self._following.pace(rate)

    @property
    def period(self) -> float:
        """Time in s between two states, by which a stiffness is accepted; 0: not known yet."""
        return self._following.settings.period or self._state_period.median

    def _model_in_force(self) -> Model:
        """Return the model under the gravity and with the loads of the latest period."""
        s, kept = self.state_record, self._in_force
        if not kept or (kept[0] != s.gravity).any() or (kept[1] != s.loads).any():
            model = in_force(self.model, np.array(s.gravity), np.array(s.loads))
            self._in_force = kept = np.array(s.gravity), np.array(s.loads), model
        model_in_force: Model = kept[2]
        return model_in_force

    def _law_state(self, t: float, s: State, q: FloatArray, qd: FloatArray) -> LawState:
        period = self.period
        return LawState(
            q, qd, np.array(s.effort), t, self.joints, self._gravity_at(q), period,
            max(self._gap, period),
        )  # fmt: skip

    def _gravity_at(self, q: FloatArray) -> FloatArray:
        """Return the gravity torques (n,) at q (n,), not scaled, as the period computes them."""
        s = self.state_record
        return self._period.gravity(q, s.gravity, s.loads)

    def _resting(self, t: float) -> LawState:
        """Return the state of an arm at rest at the latest positions, or within its limits."""
        s = self.state_record
        known = bool(np.isfinite(s.q).all())
        q = np.array(s.q) if known else self.model.neutral(within_limits=True)
        state = self._law_state(t, s, q, np.zeros_like(q))
        return state if known else state._replace(period=0.0)  # nothing is decided elsewhere

    # -- periods -----------------------------------------------------------------------------------

    def clear_sample(self, t: float) -> None:
        """Begin the sample of a period at time ``t``: nothing is reported so far."""
        self._pack(self._sample, 0, t, *self._unreported, *self._rest)

    def advance(self, t: float) -> list[float]:
        """Process :attr:`sample`, and return the output of the period at time ``t`` as a row.

        Its fields are those of :class:`~mbs_dynamics.control.period.records.Output`.
        """
        following = self._following
        if following.law is not None or self._collisions is not None or not following.idle:
            self._call_law(t)
        self._history.note(self._state, self._sample, self._quiet, self._settings)
        self._take(self._period(self._state, self._sample, self._quiet, self._settings), t)
        if self._collisions is not None:
            self._watch_collisions(t)
        assert self._result is not None
        row: list[float] = self._result.output.tolist()
        return row

    def remarks(self) -> list[str]:
        """Return what has happened since the last call, in words."""
        said, self._remarks = self._remarks, []
        if not self._following.idle and (remark := self._following.remark()):
            said.append(remark)
        return said

    @property
    def _stays(self) -> bool:
        """Whether springs hold the arm where it was enabled, so that its motion is evidence."""
        law = self._following.law
        return isinstance(law, (JointImpedance, CartesianImpedance)) and not self._aimed

    def _call_law(self, t: float) -> None:
        """Put the torques of the law into the sample, in addition to those of gravity.

        The period is tried first, so that the law is called with the state that it trusts.
        """
        self._sample[self._floats] = self._following.idle or self._stays
        if not self.engaged:
            return
        s = self._period.state.unpacked(
            self._period(self._state, self._sample, self._quiet, self._settings).state
        )
        if float(s.mode) not in transitions.ENGAGED or s.doubted or s.rates_doubted:
            return
        q, qd = np.array(s.trusted), np.array(s.smooth)
        added = np.zeros(len(self.joints))
        stamp = float(np.max(s.stamp[self.joints]))
        if not self._following.idle:
            gap = stamp - self._evaluated_at
            self._evaluated_at = stamp
            if 0.0 < gap < self.settings.stale_timeout:
                self._gap = max(gap, self._gap * math.exp(-gap / GAP_MEMORY))
            state = self._law_state(t, s, q, qd)
            scaled = (state.gravity * s.scale)[self.joints].tolist()
            try:
                added += self._following.added(self._model_in_force(), state, scaled)
            except ArgumentError as error:
                self.trip(t, Fault("law", str(error)))
                return
        if self._collisions is not None and self._collisions.yields(t):
            along = self._collisions.along(qd.tolist(), self.model.velocity_limits.tolist())
            added += np.array(along)[self.joints]
        self.sample.law[self.joints] = added

    def _watch_collisions(self, t: float) -> None:
        """React to a collision that begins with this state."""
        assert self._collisions is not None
        s = self.state_record
        if not self.new.any():
            return
        stamp = int(1e9 * float(np.max(s.stamp[self.joints])))
        states = JointStates(s.trusted.tolist(), s.smooth.tolist(), stamp, ())
        floats = self._collisions.update(
            self._model_in_force(),
            states,
            np.array(s.trusted),
            s.effort.tolist(),
            self.settings.on_collision,
            t,
        )
        if floats:
            self._request(t, transitions.NONE, settle=True)
        if self.collision is not self._collision:
            self._collision = self.collision
            if self._collision is not None:
                self._remarks.append(f"collision: {self._collision}; the arm floats")

    def _request_vector(
        self, action: float, *, sends: bool = False, settle: bool = False, doubt: int = 0
    ) -> FloatArray:
        request = Request(
            action, float(sends), float(settle), float(doubt), *map(float, self._holder)
        )
        return np.asarray(self._period.request.packed(request), dtype=float)

    def _request(self, t: float, action: float, *, settle: bool = False, doubt: int = 0) -> None:
        """Apply a request at once; the command stays until the next period."""
        request = self._request_vector(action, settle=settle, doubt=doubt)
        silence = self._silence(t)
        self._history.note(self._state, silence, request, self._settings)
        self._take(self._period(self._state, silence, request, self._settings), t)

    def _tried(self, t: float, action: float) -> tuple[State, Verdict]:
        """Return state and verdict of a request, which is not applied."""
        request = self._request_vector(action)
        result = self._period(self._state, self._silence(t), request, self._settings)
        return self._period.state.unpacked(result.state), self._period.verdict.unpacked(
            result.verdict
        )

    def _silence(self, t: float) -> FloatArray:
        """Return a sample in which nothing is reported."""
        return np.asarray(self._period.sample.packed(_nothing(self.model.n, t)), dtype=float)

    def _take(self, result: Result, t: float) -> None:
        """Store the result of a period, and tell what has changed."""
        self._before, self._state, self._record = self._state, result.state, None
        self._result = result
        state = result.state
        changed = state[self._changes].tolist()
        if changed != self._changed:
            before, self._changed = self._changed, changed
            self._tell(before, t)
        if not self._state_period.known or not self.engaged:
            stamps = (1e9 * self.state_record.stamp[self.joints]).tolist()
            if all(map(math.isfinite, stamps)) and self.new.any():
                self._state_period.note([int(x) for x in stamps])
        if not self._inactive and self.engaged and state[self._unknown_since] < math.inf:
            self._inactive = True
            self._remarks += self._inactive_checks()

    @property
    def new(self) -> Any:
        """(n,) whether the latest period has used a report of a joint."""
        stamp, before = self._state[self._stamps], self._before[self._stamps]
        return (stamp > before) | (np.isnan(before) & np.isfinite(stamp))

    def _tell(self, before: list[float], t: float) -> None:
        """Put into words what has changed."""
        names = self.model.joint_names
        mode, fault, _, slipped, opposed = self._changed
        if [mode, fault] != before[:2]:
            self._find_fault(t)
        if slipped != before[3] and slipped >= 0.0:
            k = int(slipped)
            self._remarks.append(
                f"the drive of {names[k]} does not hold it: it is {self._set.slip[k]:.3g} from "
                "where it is to be"
            )
        if opposed and not before[4] and not self.engaged and fault == 0.0:
            self._remarks += problems(self.verdict, self.state_record, names, kinds=("support",))

    def _inactive_checks(self) -> list[str]:
        """Return which checks are inactive without the efforts that are unknown."""
        names = self.model.joint_names
        unknown = {k for k in self.joints if math.isnan(self.state_record.effort[k])}
        reasons = []
        if self.settings.tracking_tolerance and unknown:
            reasons.append("they are not compared with commands (tracking_tolerance)")
        places = [] if self._collisions is None else self._collisions.detector.thresholds.places
        if unknown.intersection(places):
            reasons.append("no collision is detected (collision_file)")
        without = f"{self.source} hold no efforts of {listed([names[k] for k in sorted(unknown)])}"
        return [f"{without}: {reason}" for reason in reasons]

    def _find_fault(self, t: float) -> None:
        """Put the latched fault into words, and stop the arms that are linked with this one."""
        if self._mode not in (transitions.STOPPING, transitions.FAULT):
            self._fault = None
            return
        if self._fault is not None:
            return
        found = fault_of(self.state_record, self.model.joint_names, self.joints)
        self._fault = found or self._external
        for other in self._linked:
            message = f"the arm it is linked with stopped: {self._fault}"
            other.trip(t, Fault("linked", message))


def _motion(settings: ArmSettings) -> MotionSettings:
    """Return the settings of references; the defaults for an arm that follows none."""
    return (
        settings if isinstance(settings, MotionSettings) else MotionSettings(joints=settings.joints)
    )


def _nothing(n: int, t: float = math.nan) -> Sample:
    """Return a sample of n joints in which nothing is reported."""
    zero, unknown = np.zeros(n), np.full(n, math.nan)
    return Sample(
        t, unknown, unknown, zero, unknown, unknown, unknown, zero, unknown, zero, zero, 1.0, zero
    )


def linked(*arms: Guard) -> None:
    """Let a fault of one of these arms stop all of them."""
    for arm in arms:
        arm._linked += [other for other in arms if other is not arm and other not in arm._linked]
