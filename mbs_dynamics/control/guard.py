# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm under guard, whatever its states come from and its torques go to.

All that decides is the period, a function of numbers in ``period/function.py``. A guard packs
samples, requests and settings for it, calls laws that are not part of it, and puts into words what
has changed. Every call has the time as an argument, in s of one steady clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.called_laws import CalledLaws, called, name_of, reference_of
from mbs_dynamics.control.collision import Collision, Thresholds, collision_of
from mbs_dynamics.control.environment import (
    LinkLoad,
    in_force,
    link_loads,
    payload_parameters,
    with_load,
)
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.joint_states import fixed_coordinates
from mbs_dynamics.control.laws import (
    AnyLaw,
    CartesianImpedance,
    JointImpedance,
    Law,
    LawState,
)
from mbs_dynamics.control.motion import Motion, Remarks
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period import laws, transitions
from mbs_dynamics.control.period.checks import GRAVITY
from mbs_dynamics.control.period.collisions import Bounds
from mbs_dynamics.control.period.command import release_began
from mbs_dynamics.control.period.evidence import EFFORT_FLOOR
from mbs_dynamics.control.period.following import GRAVITY_ALONE, Traced, period_of
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.history import History, Replay, replayed
from mbs_dynamics.control.period.records import NEVER, Result, Sample, Settings, State, Verdict
from mbs_dynamics.control.period.sentences import DOUBTS, FORBIDDING, fault_of, problems
from mbs_dynamics.control.period.settings import NO_JOINT_LAW, NO_LINK_LAW, period_settings
from mbs_dynamics.control.references import JointReference, PoseReference, Target
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.control.turns import sliding
from mbs_dynamics.errors import ArgumentError, ModelError, listed
from mbs_dynamics.model.diagnostics import stopping_speed
from mbs_dynamics.model.model import Model, without_payloads
from mbs_dynamics.model.orders import tools

UNVERIFIED = (
    "nothing has shown yet that the torques are right: they grow slowly while the arm stays still"
)

ROUNDING = 1e-9
"""Relative tolerance on sums of masses."""

LARGEST_TURN = math.radians(60.0)
"""Largest turn of gravity at once while torques are commanded; an inverted sign exceeds it."""

OF_PERIOD = (JointImpedance, CartesianImpedance)
"""Laws that the period computes."""

TOLD = ("mode", "fault", "hold", "slipped", "opposed", "collided")
"""Fields of the state whose changes are put into words."""

AT_REST = ("effort_limit", "overload", "no_efforts", "mismatch")
"""Checks of an arm of which torques are not enabled."""

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
    axes of the root, by default that of the model; ``options`` are further arguments of
    :func:`~mbs_dynamics.control.period.settings.period_settings`, as about drives; ``source`` is
    what the states come from, for messages; ``used`` are laws that will be in force, for which the
    period is compiled at once. Loads are those of the model.

    Fill :attr:`sample` and call :meth:`advance` for each period. Raises UnknownJointError if a
    joint to be commanded or a fixed one is not in the model, ArgumentError if a joint to be
    commanded mimics another one, ModelError if no joint moves, BackendError if compiled code
    differs from the equations.
    """

    def __init__(
        self,
        model: Model,
        settings: ArmSettings,
        *,
        gravity: FloatArray | None = None,
        options: Mapping[str, Any] = {},
        source: str = "frames",
        used: Iterable[AnyLaw | None] = (),
    ) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        self.model, self.settings, self.source = model, settings, source
        self.joints = [coordinate_of(model, name) for name in settings.joints]
        fixed = fixed_coordinates(model.joint_names, settings.fixed)
        self._options = options
        self._gravity = np.asarray(model.gravity if gravity is None else gravity)
        self._gravity_time: float | None = None
        self._loads = link_loads(model)
        self._load_parameters = payload_parameters(model)
        self._loads_time: float | None = None
        self._motion = Motion(model, self.joints, settings.joints)
        self._thresholds: Bounds | None = None
        if settings.collision_file:
            self._thresholds = Thresholds.read(settings.collision_file, model).table
        traced = GRAVITY_ALONE._replace(collisions=bool(settings.collision_file))
        self._period = Period(model, settings.algorithm, self._traced(traced, used))
        self._joint_law, self._link_law = NO_JOINT_LAW, NO_LINK_LAW
        self._law: AnyLaw | None = None
        self._next: tuple[AnyLaw | None] | None = None
        """A law that takes over once the one in force has done so."""
        self._taken_over = -math.inf
        """When the law in force has taken over."""
        self._called = CalledLaws()
        self._apply()
        self._period.verify(self._settings)
        start = initial(self._period, self._set)
        self._state = self._period.state.packed(start).astype(float)
        self._record: State | None = None
        """The fields of the state, once they are read."""
        self._fix(fixed)
        places = self._period.state.places
        self._changes = np.array([places[name].start for name in TOLD])
        self._stamps = places["stamp"]
        self._behind, self._saturated = places["behind"].start, places["saturated_since"]
        self._refused = places["refused"]
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
        self._zeros, self._nan = [0.0] * model.n, [math.nan] * model.n
        self._floats = self._period.sample.places["floats"].start
        numbers = ("ended", "played", "stiffness_share", "waits_since", "link_waits_since", "obeys")
        self._numbers = np.array([places[name].start for name in numbers])
        slides = sliding(model)
        units = ["m" if slides[k] else "rad" for k in self.joints]
        self._lags, self._softened = Remarks(self._motion, units), False
        self.collision: Collision | None = None
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        self._history = History(self._period, self._state)
        self._result: Result | None = None
        self._before = self._state
        self._inactive = False
        self._external: Fault | None = None
        self._fault: Fault | None = None
        self._remarks: list[str] = []
        self._warnings: list[str] = []
        self.trouble: Fault | None = None
        """Why the latest message about the arm was not used; None if it was."""
        self._linked: list[Guard] = []
        self._in_force: tuple[Any, ...] = ()

    def _apply(self) -> None:
        """Put settings, gravity and loads in force, with the ramps of the period."""
        self._set = self._settings_with(self._joint_law, self._link_law)
        self._settings = self._period.settings.packed(self._set).astype(float)

    def _settings_with(self, joint_law: JointImpedance, link_law: CartesianImpedance) -> Settings:
        return period_settings(
            self.model,
            self.joints,
            self.settings,
            self._gravity,
            self._load_parameters,
            gravity_time=self._gravity_time,
            loads_time=self._loads_time,
            joint_law=joint_law,
            link_law=link_law,
            thresholds=self._thresholds,
            own_lead=getattr(self._called.law, "lead", None),
            **self._options,
        )

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
    def moving(self) -> bool:
        """Whether torques follow the arm, or change towards those that a stop leads to."""
        return self._mode not in transitions.RELEASED

    @property
    def at_rest(self) -> bool:
        """Whether drives hold the arm, or nothing is commanded."""
        return bool(transitions.is_at_rest(self.state_record))

    @property
    def torques_are_in(self) -> bool:
        """Whether torques are enabled and have ramped in."""
        return self._mode == transitions.ON and not self.behind

    @property
    def behind(self) -> bool:
        """Whether the rate limit keeps the command from the torques that are wanted."""
        return bool(self._state[self._behind])

    @property
    def saturated(self) -> list[int]:
        """Coordinates of the joints whose command is at its effort limit."""
        since = self._state[self._saturated]
        return np.flatnonzero(since < math.inf).tolist()  # type: ignore[no-any-return]

    @property
    def fault(self) -> Fault | None:
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        return self._fault

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
    def gravity(self) -> FloatArray:
        """(3,) the gravity in m/s^2 that is in force, or moved to, in the axes of the root."""
        return self._gravity

    @property
    def effort_limits(self) -> list[float]:
        """(m,) largest torques in N m or N."""
        return [float(self._set.effort[k]) for k in self.joints]

    @property
    def without_speed_limit(self) -> list[str]:
        """Names of the commanded joints whose speed is not watched."""
        fastest, names = self.model.velocity_limits, self.model.joint_names
        return [names[k] for k in self.joints if fastest[k] == math.inf]

    @property
    def motors_hold(self) -> bool:
        """Whether measured efforts show that motors hold the arm."""
        efforts, limits = self.efforts, self._set.effort[self.joints]
        known = bool(np.isfinite(efforts).all())
        return known and bool((abs(efforts) > EFFORT_FLOOR * limits).any())

    def released_for(self, t: float) -> float:
        """Return the time in s for which gravity torques have ramped out; infinite if none hold."""
        s, request = self.state_record, self._period.request.unpacked(self._quiet)
        falls = self._fault is not None and self.settings.on_fault != "ramp_down"
        if self.engaged or not self.moving or falls or s.doubted or s.doubt == GRAVITY:
            return math.inf
        return t - float(release_began(s, request, self._set))

    @property
    def stamps(self) -> list[float]:
        """(n,) the stamps in s of the latest accepted states, NaN before the first."""
        return self._state[self._stamps].tolist()  # type: ignore[no-any-return]

    @property
    def refused(self) -> FloatArray:
        """(n,) why the latest report of each joint was not used; 0: it was."""
        return np.asarray(self._state[self._refused])

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
        kinds = [kind for kind in FORBIDDING if not (self.engaged and kind in AT_REST)]
        reasons += problems(verdict, state, self.model.joint_names, kinds)
        if not reasons:
            try:
                self._check(t)
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
            self._inactive = self._softened = False
            self._called.restart()
            if self._next is not None:
                self._begin(t, *self._next)
            self._motion.stop()
            self._apply()
            self._request(t, transitions.ENABLE)
            self._renew()
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
            bound = "max_payload" if self.settings.max_payload else "the mass of the moving links"
            raise ModelError(
                f"the payload at {links} has a mass of {mass:g} kg; valid is at most "
                f"{heaviest:.4g}, {bound}. Are these grams?"
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

    # -- settings ----------------------------------------------------------------------------------

    def check(self, settings: ArmSettings) -> None:
        """Compile what other settings need. Raises BackendError if that cannot be relied on."""
        if settings.algorithm != self.settings.algorithm:
            Period(self.model, settings.algorithm, self._period.traced).verify(self._settings)

    def change(self, settings: ArmSettings, options: Mapping[str, Any]) -> None:
        """Apply other settings for the same joints; ``options`` as for the class.

        Gravity and loads stay. Raises what :meth:`check` raises.
        """
        if settings.algorithm != self.settings.algorithm:
            self._period = Period(self.model, settings.algorithm, self._period.traced)
        self.settings, self._options = settings, options
        self._apply()
        self._request(float(self.state_record.now), transitions.NONE)

    def set_holder(self, *, exists: bool, holds: bool) -> None:
        """Say whether another controller is to hold the arm after a release, and holds it now."""
        self._holder = exists, holds
        self._quiet = self._request_vector(transitions.NONE, sends=True)

    def latch(self, fault: Fault) -> None:
        """Begin with a fault that another guard has latched, of an arm at rest."""
        places, state = self._period.state.places, self._state.copy()
        state[places["mode"]], state[places["fault"]] = transitions.FAULT, -1.0
        self._state, self._record, self._external = state, None, fault
        self._changed = state[self._changes].tolist()
        self._fault = fault

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

    def switch(self, t: float, law: AnyLaw | None) -> None:
        """Let another law take over from time ``t`` on, without a jump; None: the arm floats.

        Another law of the same kind, as one of another stiffness, goes on with the reference; else
        the present state is the reference. The first call of a law may compile for a second: switch
        to it once before torques are enabled. Raises MbsError, and changes nothing, for a law that
        fails, or that is too stiff for the period of the loop.
        """
        self.prepare(t, law)
        if self.floats_since_collision:
            self._request(t, transitions.CLEAR)
        self._next = (law,)
        if not self.engaged or t >= self._taken_over:
            self._begin(t, law)

    def prepare(self, t: float, *every: AnyLaw | None) -> None:
        """Compile what laws need, and call each once. Raises what :meth:`switch` raises."""
        for law in every:
            if not (law is None or isinstance(law, OF_PERIOD) or callable(law)):
                raise ArgumentError(
                    f"the law is a {type(law).__name__}; valid is a function of model, state and "
                    "reference"
                )
        before = self._period.traced
        traced = self._traced(before, every)
        if before.link not in ("", traced.link) and self._moves_link:
            raise ArgumentError(
                f"the law moves link {traced.link!r} while torques hold {before.link!r}; valid is "
                "to let the arm float before"
            )
        state, period = self._resting(t), self._period
        if traced != before:
            period = Period(self.model, self.settings.algorithm, traced)
        for law in every:
            if isinstance(law, OF_PERIOD):
                self._check_stiffness(law, period)
            elif law is not None:
                check = getattr(law, "check", None)
                if check is not None:
                    check(self._model_in_force(), state)
                self._try(law, state)
        if period is not self._period:
            self._period, self._history = period, History(period, self._state)

    def _check_stiffness(self, law: JointImpedance | CartesianImpedance, period: Period) -> None:
        """Raise ArgumentError if a law is too stiff for an arm at rest where it is now."""
        joint = law if isinstance(law, JointImpedance) else self._joint_law
        link = law if isinstance(law, CartesianImpedance) else self._link_law
        settings = period.settings.packed(self._settings_with(joint, link)).astype(float)
        number = laws.JOINT if isinstance(law, JointImpedance) else laws.LINK
        request = self._motion.request(transitions.NONE, holder=self._holder)._replace(law=number)
        row = period.request.packed(request).astype(float)
        state, silence = self._state.copy(), self._silence(math.nan)
        state[period.state.places["mode"]] = transitions.OFF
        for _ in range(2):  # the second one judges what the first has computed
            result = period(state, silence, row, settings)
            state = result.state
        s, found = period.state.unpacked(state), period.verdict.unpacked(result.verdict)
        for reason in problems(found, s, self.model.joint_names, kinds=("stiffness",)):
            raise ArgumentError(reason)

    def _try(self, law: Law, state: LawState) -> None:
        """Call a law once at a state, with the reference there."""
        C, link = np.eye(4), self._link_of(law)
        if link:
            C = mbs.forward_kinematics(self.model, state.q, bodies=[link])[0]
        s = self.state_record._replace(
            pose=C[:3], twist=np.zeros(6),
            reference=state.q, reference_qd=state.qd, reference_qdd=state.qd,
        )  # fmt: skip
        called(law, self._model_in_force(), state, reference_of(law, s))

    def _traced(self, before: Traced, every: Iterable[AnyLaw | None]) -> Traced:
        """Return what a period computes in which these laws can be in force as well."""
        joints, link, collisions = before
        for law in every:
            if law is not None and (isinstance(law, OF_PERIOD) or callable(law)):
                moved = self._link_of(law)
                joints, link = joints or not moved, moved or link
        return Traced(joints, link, collisions)

    def _check(self, t: float) -> None:
        """Raise ArgumentError if a law of a user cannot be in force at the present state."""
        check = getattr(self.law, "check", None)
        if check is not None:
            check(self._model_in_force(), self._resting(t))

    def _link_of(self, law: Any) -> str:
        """Return the link that a law moves, by default the tool; empty for a law of joints."""
        link = getattr(law, "link", None)
        return "" if link is None else self._motion.link_of(link or tools(self.model)[0])

    @property
    def _moves_link(self) -> bool:
        """Whether torques of a law move a link."""
        s = self.state_record
        blends = s.now - s.law_at < self._set.switch_time
        return self.engaged and bool(
            s.law in laws.OF_LINKS or (s.law_before in laws.OF_LINKS and blends)
        )

    def _begin(self, t: float, law: AnyLaw | None) -> None:
        """Let a law take over now."""
        own: Law | None = None
        if isinstance(law, JointImpedance):
            self._joint_law = law
        elif isinstance(law, CartesianImpedance):
            self._link_law = law
        else:
            own = law
        of_period = isinstance(law, OF_PERIOD)
        fades = isinstance(self._law, OF_PERIOD) or of_period
        time = self._set.switch_time if self.engaged else 0.0
        if own is not self._called.law or fades:
            self._called.switch(own, t, time, fades=fades)
        self._law, self._next = law, None
        link = self._link_of(law)
        if law is None:
            self._motion.use(laws.FLOAT)
        elif link:
            self._motion.use(laws.LINK if of_period else laws.OWN_LINK, link)
        else:
            self._motion.use(laws.JOINT if of_period else laws.OWN_JOINT)
        self._taken_over = t + time
        self._apply()
        self._request(t, transitions.NONE)
        self._renew()

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
        self._motion.aim(reference, self.state_record, self._set)
        self._request(t, transitions.NONE)
        self._renew()

    @property
    def reference(self) -> JointReference | PoseReference:
        """The reference of the law in force."""
        return reference_of(self._law, self.state_record)

    @property
    def law(self) -> AnyLaw | None:
        """The law in force, or about to be; None where the arm floats."""
        if self.floats_since_collision:
            return None
        return self._law if self._next is None else self._next[0]

    @property
    def floats_since_collision(self) -> bool:
        """Whether a collision has interrupted the law, until torques are enabled again."""
        return self.engaged and self._changed[5] >= 0.0

    @property
    def trajectory(self) -> Trajectory | None:
        """The trajectory that is approached or played; None if there is none."""
        return self._motion.trajectory

    @property
    def elapsed(self) -> float | None:
        """Its time in s since its first point; None while that is approached, or without one."""
        played = float(self.state_record.played)
        return None if math.isnan(played) or self.trajectory is None else played

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed along the same path; 0: pause, 1: go on.

        Raises ArgumentError unless it is from 0 to 1, and without a trajectory.
        """
        if not 0.0 <= rate <= 1.0:
            raise ArgumentError(f"the pace is {rate:g}; valid is 0 to 1")
        if self.trajectory is None:
            raise ArgumentError("no trajectory is approached or played")
        self._motion.pace = rate
        self._renew()

    @property
    def period(self) -> float:
        """Time in s between two states, by which a stiffness is accepted; 0: not known yet."""
        return float(period_of(self.state_record, self._set))

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
            max(float(s.gap), period),
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
        return self._law_state(t, s, q, np.zeros_like(q))

    # -- periods -----------------------------------------------------------------------------------

    def clear_sample(self, t: float) -> None:
        """Begin the sample of a period at time ``t``: nothing is reported so far."""
        self._pack(self._sample, 0, t, *self._unreported, *self._rest)

    def report(
        self,
        t: float,
        joints: Sequence[int],
        stamp: float,
        q: Sequence[float],
        qd: Sequence[float],
        efforts: Sequence[float],
    ) -> None:
        """Begin the sample of a period at time ``t`` with the states of some joints, each (k,).

        ``joints`` are their coordinates, ascending; ``stamp`` in s is that of their measurement.
        """
        n = self.model.n
        if len(joints) == n:
            zeros, unknown = self._zeros, self._nan
            self._pack(
                self._sample, 0, t, *[stamp] * n, *[t] * n, *[1.0] * n, *q, *qd, *efforts, *zeros,
                *unknown, *self._rest,
            )  # fmt: skip
            return
        self.clear_sample(t)
        x, k = self.sample, list(joints)
        x.stamp[k], x.received[k], x.reported[k] = stamp, t, 1.0
        x.q[k], x.qd[k], x.effort[k] = q, qd, efforts

    def advance(self, t: float) -> list[float]:
        """Process :attr:`sample`, and return the output of the period at time ``t`` as a row.

        Its fields are those of ``Output`` in ``period/records.py``.
        """
        if self._next is not None and t >= self._taken_over:
            self._begin(t, *self._next)
        if not self._called.idle:
            self._call_law(t)
        if self._motion.trajectory is not None:
            self._feed(t)
        self._history.note(self._state, self._sample, self._quiet, self._settings)
        self._take(self._period(self._state, self._sample, self._quiet, self._settings), t)
        if self._law is not None and self.engaged:
            self._remarks += self._followed(self._law)
        assert self._result is not None
        row: list[float] = self._result.output.tolist()
        return row

    def warnings(self) -> list[str]:
        """Return what is to be looked after since the last call, in words."""
        said, self._warnings = self._warnings, []
        return said

    def remarks(self) -> list[str]:
        """Return what else has happened since the last call, in words."""
        said, self._remarks = self._remarks, []
        return said

    def _feed(self, t: float) -> None:
        """Provide the segment of the trajectory that is played at time ``t``."""
        played = self._state[self._numbers].tolist()[1]
        s = self.state_record
        if math.isfinite(played):
            self._motion.feed(played + float(s.pace) * max(0.0, t - float(s.now)))
            self._renew()

    def _followed(self, law: AnyLaw) -> list[str]:
        """Return what has happened to the reference of a law with this period, in words."""
        ended, _, share, *waits, obeys = self._state[self._numbers].tolist()
        said = []
        if min(waits) < math.inf or self._lags.waited or (obeys and self._motion.may_be_off):
            said = self._lags.of(self.state_record, self._set)
        if self._motion.trajectory is not None and ended:
            self._motion.end()
            self._renew()
            said.append("the trajectory has ended, and its last point is held")
        if share < 1.0 and not self._softened:
            self._softened = True
            gap = max(float(self.state_record.gap), self.period)
            said.append(
                f"law {name_of(law)!r} is softer than set for some time: with up to "
                f"{1e3 * gap:.3g} ms between two states its stiffness would be unstable at this "
                "posture; this is reported once"
            )
        return said

    def _call_law(self, t: float) -> None:
        """Put the torques of a law that is called into the sample, beside those of gravity.

        The period is tried first, so that the law is called with the state that it trusts.
        """
        self._sample[self._floats] = 0.0
        if not self.engaged:
            return
        s = self._period.state.unpacked(
            self._period(self._state, self._sample, self._quiet, self._settings).state
        )
        if float(s.mode) not in transitions.ENGAGED or s.doubted or s.rates_doubted:
            return
        if s.collided >= 0.0:
            return
        q, qd = np.array(s.trusted), np.array(s.smooth)
        state = self._law_state(t, s, q, qd)
        scaled = (state.gravity * s.scale)[self.joints].tolist()
        try:
            added = self._called.added(self._model_in_force(), state, s, scaled)
        except ArgumentError as error:
            self.trip(t, Fault("law", str(error)))
            return
        self.sample.law[self.joints] = added

    def _request_vector(
        self, action: float, *, sends: bool = False, settle: bool = False, doubt: int = 0
    ) -> FloatArray:
        request = self._motion.request(
            action, sends=sends, settle=settle, doubt=doubt, holder=self._holder
        )
        return np.asarray(self._period.request.packed(request), dtype=float)

    def _renew(self) -> None:
        """Let the next periods follow what is requested now."""
        self._quiet = self._request_vector(transitions.NONE, sends=True)

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
        if not self._inactive and self.engaged and state[self._unknown_since] < math.inf:
            self._inactive = True
            self._warnings += self.inactive_checks()

    @property
    def new(self) -> Any:
        """(n,) whether the latest period has used a report of a joint."""
        stamp, before = self._state[self._stamps], self._before[self._stamps]
        return (stamp > before) | (np.isnan(before) & np.isfinite(stamp))

    def _tell(self, before: list[float], t: float) -> None:
        """Put into words what has changed."""
        names = self.model.joint_names
        mode, fault, _, slipped, opposed, collided = self._changed
        if [mode, fault] != before[:2]:
            self._find_fault(t)
        if slipped != before[3] and slipped >= 0.0:
            k = int(slipped)
            self._remarks.append(
                f"the drive of {names[k]} does not hold it: it is {self._set.slip[k]:.3g} from "
                "where it is to be"
            )
        if collided != before[5]:
            self._tell_collision(collided)
        if opposed and not before[4] and not self.engaged and fault == 0.0:
            self._remarks += problems(self.verdict, self.state_record, names, kinds=("support",))

    def _tell_collision(self, joint: float) -> None:
        """Store a collision that has begun, or forget one."""
        self.collision = None
        if joint < 0.0:
            return
        s, names = self.state_record, self.model.joint_names
        self.collision = collision_of(s, self._set, self._model_in_force())
        said = problems(self.verdict, s, names, kinds=("contact",))
        if said:
            self._remarks.append(f"collision: {said[0]}; the arm floats")
            self._motion.stop()
            self._renew()

    def inactive_checks(self) -> list[str]:
        """Return which checks are inactive without the efforts that are unknown."""
        names = self.model.joint_names
        effort = self.state_record.effort
        unknown = {k for k in range(self.model.n) if math.isnan(effort[k])}
        reasons = []
        if self.settings.largest_deviation and unknown.intersection(self.joints):
            reasons.append("they are not compared with commands (tracking_tolerance)")
        watched = np.flatnonzero(self._set.impact_threshold < NEVER)
        if unknown.intersection(watched.tolist()):
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
        if found is not None and found.kind in ("stale", "encoder_jump") and self.trouble:
            trouble = self.trouble  # messages come, and cannot be used
            found = found._replace(kind=trouble.kind, reason=f"{trouble.reason}; {found.reason}")
        self._fault = found or self._external
        for other in self._linked:
            message = f"the arm it is linked with stopped: {self._fault}"
            other.trip(t, Fault("linked", message))


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
