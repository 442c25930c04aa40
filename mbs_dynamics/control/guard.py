# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm under guard, whatever its states come from and its torques go to.

All that decides is the period, a function of numbers in ``period/function.py``. A guard states what
is requested of it, and puts into words what has changed. Every call has the time as an argument, in
s of one steady clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.collision import Collision, Thresholds, collision_of
from mbs_dynamics.control.environment import (
    LinkLoad,
    link_loads,
    payload_parameters,
    with_load,
)
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.joint_states import fixed_coordinates
from mbs_dynamics.control.laws import AnyLaw
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.checks import GRAVITY
from mbs_dynamics.control.period.command import release_began
from mbs_dynamics.control.period.following import GRAVITY_ALONE
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.history import History
from mbs_dynamics.control.period.records import NEVER
from mbs_dynamics.control.period.sentences import DOUBTS, FORBIDDING, fault_of, problems
from mbs_dynamics.control.period.settings import law_settings, period_settings
from mbs_dynamics.control.period_with_laws import PeriodWithLaws, traced_for
from mbs_dynamics.control.remarks import Remarks
from mbs_dynamics.control.running_period import Reported
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.control.turns import sliding
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

REMARKED = ("ended", "stiffness_share", "waits_since", "link_waits_since", "obeys")
"""Fields of the state that remarks about a reference depend on."""

AT_REST = ("effort_limit", "overload", "no_efforts", "mismatch", "stiffness")
"""Checks of an arm of which torques are not enabled."""


class Guard(PeriodWithLaws):
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
        joints = [coordinate_of(model, name) for name in settings.joints]
        fixed = fixed_coordinates(model.joint_names, settings.fixed)
        self.settings, self._options, self.source = settings, options, source
        file = settings.collision_file
        self._thresholds = Thresholds.read(file, model).table if file else None
        self._loads = link_loads(model)
        traced = GRAVITY_ALONE._replace(collisions=bool(file))
        given = period_settings(
            model,
            joints,
            settings,
            np.asarray(model.gravity if gravity is None else gravity, dtype=float),
            payload_parameters(model),
            thresholds=self._thresholds,
            **options,
        )
        period = Period(model, settings.algorithm, traced_for(traced, used, model))
        super().__init__(model, joints, period, given)
        self._fix(fixed)
        slides = sliding(model)
        self._lags = Remarks(self._motion, ["m" if slides[k] else "rad" for k in joints])
        self._remarked_at = np.array([self._places[name].start for name in REMARKED])
        self.collision: Collision | None = None
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        self.fault: Fault | None = None
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        self.trouble: Fault | None = None
        """Why the latest message about the arm was not used; None if it was."""
        self._external: Fault | None = None
        """The latest external reason to stop."""
        self._efforts_end = False
        """Whether checks that need efforts became inactive since torques were enabled."""
        self._remarks: list[str] = []
        self._warnings: list[str] = []
        self._linked: list[Guard] = []

    def _fix(self, fixed: Mapping[int, float]) -> None:
        """Set the positions of joints of which no state comes."""
        record = self.state_record
        for k, position in fixed.items():
            for row in (record.q, record.trusted, record.held, record.slow_q):
                row[k] = position
            record.qd[k] = record.stamp[k] = record.received[k] = 0.0

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
        if self.fault is not None:
            reasons.append(f"a fault is latched: {self.fault}; clear it first")
        state, verdict = self._tried(t, self._request_vector(transitions.ENABLE))
        kinds = [kind for kind in FORBIDDING if not (self.engaged and kind in AT_REST)]
        reasons += problems(verdict, state, self.model.joint_names, kinds)
        if not reasons:
            try:
                self._check_law(t)
            except ArgumentError as error:
                reasons.append(str(error))
        return reasons

    def input_problem(self, t: float) -> str:
        """Return why the states of the joints cannot be used; empty if they can."""
        state, verdict = self._tried(t, self._request_vector(transitions.NONE))
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
            self._efforts_end = False
            self._lags.restart()
            self._called.restart()
            if self._next is not None:
                self._begin(t)
            self._motion.stop()
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

    def set_holder(self, *, exists: bool, holds: bool) -> None:
        """Say whether another controller is to hold the arm after a release, and holds it now."""
        self._holder = exists, holds
        self._renew()

    def released_for(self, t: float) -> float:
        """Return the time in s since gravity torques of a release began to ramp out.

        It is zero or negative before, and infinite if no gravity torques hold the arm.
        """
        s, request = self.state_record, self._period.request.unpacked(self._quiet)
        falls = self.fault is not None and self.settings.on_fault != "ramp_down"
        if self.engaged or not self.moving or falls or s.doubted or s.doubt == GRAVITY:
            return math.inf
        return t - float(release_began(s, request, self._given))

    def latch(self, fault: Fault) -> None:
        """Begin with a fault that another guard has latched, of an arm at rest."""
        state = self._state.copy()
        state[self._places["mode"]], state[self._places["fault"]] = transitions.FAULT, -1.0
        self._state, self._record = state, None
        self._history = History(self._period, state)
        self._reported = self._reported_of(state)
        self.fault = fault

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
            self._retrace(Period(self.model, settings.algorithm, self._period.traced))
        self.settings, self._options = settings, options
        before = self._given
        given = period_settings(
            self.model,
            self.joints,
            settings,
            before.gravity,
            before.loads,
            thresholds=self._thresholds,
            **options,
        )
        kept = ("gravity_time", "loads_time", *law_settings(self.model, self.joints))
        self._use(given._replace(**{name: getattr(before, name) for name in kept}))
        if not self.engaged:  # before torques are enabled, whether a law is too stiff is judged
            self._request(float(self.state_record.now), transitions.NONE)

    # -- gravity and loads -------------------------------------------------------------------------

    @property
    def gravity(self) -> FloatArray:
        """(3,) the gravity in m/s^2 that is in force, or moved to, in the axes of the root."""
        return np.array(self._given.gravity)

    def set_gravity(
        self, gravity: FloatArray, *, time: float | None = None, check: bool = True
    ) -> None:
        """Move to another gravity (3,) in m/s^2, in the axes of the root.

        It takes effect in ``time`` s, None: ``ramp_time``. With ``check`` raises what
        :meth:`check_gravity` raises, and changes nothing then.
        """
        if check:
            self.check_gravity(gravity)
        seconds = self.settings.ramp_time if time is None else time
        self._change(gravity=np.array(gravity, dtype=float), gravity_time=seconds)

    def check_gravity(self, gravity: FloatArray) -> None:
        """Raise ArgumentError or ModelError for a gravity (3,) that must not be moved to now.

        While torques are commanded it may turn by LARGEST_TURN at once.
        """
        before = self.gravity
        lengths = float(np.linalg.norm(before) * np.linalg.norm(gravity))
        if not self.at_rest and lengths > 0.0:
            angle = math.acos(max(-1.0, min(1.0, float(before @ gravity) / lengths)))
            if angle > LARGEST_TURN:
                raise ArgumentError(
                    f"gravity {np.asarray(gravity).tolist()} is turned by "
                    f"{math.degrees(angle):.0f} degrees from {before.tolist()}; must be at most "
                    f"{math.degrees(LARGEST_TURN):.0f} at once while torques are commanded. Is its "
                    "sign that of an imu?"
                )
        self._check_hold(gravity, self._given.loads)

    def set_loads(
        self, loads: Sequence[LinkLoad], *, time: float | None = None, check: bool = True
    ) -> None:
        """Carry other loads, one a link, in place of the present ones.

        They take effect in ``time`` s, None: ``ramp_time``. Raises what :meth:`parameters_of`
        raises, with ``check`` ModelError if the arm could not be held, and changes nothing then.
        """
        parameters = self.parameters_of(loads)
        if check:
            self._check_hold(self.gravity, parameters)
        seconds = self.settings.ramp_time if time is None else time
        self._loads = list(loads)
        self._change(loads=parameters, loads_time=seconds)
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
        carried = float(self._given.loads[:, 0].sum())
        if mass > max(heaviest, carried * (1.0 + ROUNDING)):
            links = " and ".join(repr(load.link) for load in loads)
            bound = "max_payload" if self.settings.max_payload else "the mass of the moving links"
            raise ModelError(
                f"the payload at {links} has a mass of {mass:g} kg; must be at most "
                f"{heaviest:.4g}, {bound}. Are these grams?"
            )
        carrying = bare
        for load in loads:
            carrying = with_load(carrying, load)
        return payload_parameters(carrying)

    def _check_hold(self, gravity: FloatArray, loads: FloatArray) -> None:
        """Raise ModelError if the arm could not be held where it is."""
        q, p = np.array(self.state_record.q), self._given
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

    # -- periods -----------------------------------------------------------------------------------

    def advance(self, t: float) -> list[float]:
        """Process :attr:`sample`, and return the output of the period at time ``t`` as a row.

        Its fields are those of ``Output`` in ``period/records.py``.
        """
        if self._next is not None and not self._called.blends(t):
            self._begin(t)
        if not self._called.idle:
            try:
                self._call_law(t)
            except ArgumentError as error:
                self.trip(t, Fault("law", str(error)))
        if self._motion.trajectory is not None:
            self._feed(t)
        self._step(t, self._sample, self._quiet)
        if self._law is not None and self.engaged:
            self._remark(self._law)
        assert self._result is not None
        row: list[float] = self._result.output.tolist()
        return row

    def _step(self, t: float, sample: FloatArray, request: FloatArray) -> None:
        """Run a period, and put into words what has changed with it."""
        before = self._run(sample, request)
        if self._reported != before:
            self._tell(before, t)
        if self.engaged and not self._efforts_end:
            since = self._state[self._places["unknown_since"].start]
            self._efforts_end = bool(since < math.inf)
            if self._efforts_end:
                self._warnings += self.inactive_checks()

    # -- words -------------------------------------------------------------------------------------

    def warnings(self) -> list[str]:
        """Return what is to be looked after since the last call, in words."""
        said, self._warnings = self._warnings, []
        return said

    def remarks(self) -> list[str]:
        """Return what else has happened since the last call, in words."""
        said, self._remarks = self._remarks, []
        return said

    def _remark(self, law: AnyLaw) -> None:
        """Put into words how a law follows its reference."""
        ended, *numbers = self._state[self._remarked_at].tolist()
        if self._motion.trajectory is not None and ended:
            self._motion.end()
            self._renew()
            self._remarks.append("the trajectory has ended, and its last point is held")
        if self._lags.due(*numbers):
            self._remarks += self._lags.of(self.state_record, self._given, law)

    def _tell(self, before: Reported, t: float) -> None:
        """Put into words what has changed."""
        names, now = self.model.joint_names, self._reported
        if (now.mode, now.fault) != (before.mode, before.fault):
            self._tell_fault(t)
        if now.slipped != before.slipped and now.slipped >= 0.0:
            k = int(now.slipped)
            self._remarks.append(
                f"the drive of {names[k]} does not hold it: it is {self._given.slip[k]:.3g} from "
                "where it is to be"
            )
        if now.collided != before.collided:
            self._tell_collision(now.collided)
        if now.opposed and not before.opposed and not self.engaged and now.fault == 0.0:
            self._remarks += problems(self.verdict, self.state_record, names, kinds=("support",))

    def _tell_fault(self, t: float) -> None:
        """Put the latched fault into words, and stop the arms that are linked with this one."""
        if self._mode not in (transitions.STOPPING, transitions.FAULT):
            self.fault = None
            return
        if self.fault is not None:
            return
        found = fault_of(self.state_record, self.model.joint_names, self.joints)
        if found is not None and found.kind in ("stale", "encoder_jump") and self.trouble:
            trouble = self.trouble  # messages come, and cannot be used
            found = found._replace(kind=trouble.kind, reason=f"{trouble.reason}; {found.reason}")
        self.fault = found or self._external
        for other in self._linked:
            message = f"the arm it is linked with stopped: {self.fault}"
            other.trip(t, Fault("linked", message))

    def _tell_collision(self, joint: float) -> None:
        """Store a collision that has begun, or forget one."""
        self.collision = None
        if joint < 0.0:
            return
        s, names = self.state_record, self.model.joint_names
        self.collision = collision_of(s, self._given, self._model_in_force())
        said = problems(self.verdict, s, names, kinds=("contact",))
        if said:
            self._remarks.append(f"collision: {said[0]}; the arm floats")
            self._motion.stop()
            self._renew()

    def inactive_checks(self) -> list[str]:
        """Return which checks are inactive without the efforts that are unknown."""
        names, watched = self.model.joint_names, self._given.impact_threshold < NEVER
        unknown = np.isnan(self.state_record.effort)
        reasons = []
        if self.settings.largest_deviation and unknown[self.joints].any():
            asked = "tracking_tolerance" if self.settings.tracking_tolerance else "effort_check"
            reasons.append(f"they are not compared with commands ({asked})")
        if (unknown & watched).any():
            reasons.append("no collision is detected (collision_file)")
        lacking = listed([name for name, lacks in zip(names, unknown, strict=True) if lacks])
        return [f"{self.source} hold no efforts of {lacking}: {reason}" for reason in reasons]


def linked(*arms: Guard) -> None:
    """Let a fault of one of these arms stop all of them."""
    for arm in arms:
        arm._linked += [other for other in arms if other is not arm and other not in arm._linked]
