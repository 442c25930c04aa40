# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm under guard, independent of the source of its states and the sink of its torques.

The period, a function of numbers in ``period/function.py``, makes all decisions. A guard passes
requests to it, and reports changes in words. Every call has the time as an argument, in s of one
steady clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control import called_laws
from mbs_dynamics.control.called_laws import OF_PERIOD
from mbs_dynamics.control.collision import Collision, collision_of, thresholds_of
from mbs_dynamics.control.environment import LinkLoad, link_loads, payload_parameters, with_load
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.joint_states import fixed_coordinates
from mbs_dynamics.control.laws import AnyLaw
from mbs_dynamics.control.motion import Motion
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period import laws, transitions
from mbs_dynamics.control.period.checks import GRAVITY
from mbs_dynamics.control.period.command import release_began
from mbs_dynamics.control.period.following import GRAVITY_ALONE
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.history import Replay, replayed
from mbs_dynamics.control.period.records import NEVER, State, Verdict
from mbs_dynamics.control.period.sentences import FORBIDDING, MODES, fault_of, problems
from mbs_dynamics.control.period.settings import law_settings, period_settings
from mbs_dynamics.control.references import JointReference, PoseReference, Target
from mbs_dynamics.control.remarks import Remarks
from mbs_dynamics.control.running_period import Reported, RunningPeriod
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.control.turns import sliding
from mbs_dynamics.errors import ArgumentError, ModelError, listed
from mbs_dynamics.model.diagnostics import stopping_speed
from mbs_dynamics.model.model import Model, without_payloads
from mbs_dynamics.yaml_files import parsed_yaml

UNVERIFIED = (
    "nothing has shown yet that the torques are right: they grow slowly while the arm stays still"
)

ROUNDING = 1e-9
"""Relative tolerance on sums of masses."""

LARGEST_TURN = math.radians(60.0)
"""Largest rotation of gravity at once while torques are commanded; a wrong sign exceeds it."""

REMARK_PERIOD = 0.1
"""Time in s between two looks at how a law follows its reference: remarks are about longer times.
"""

AT_REST = ("effort_limit", "overload", "no_efforts", "mismatch", "stiffness")
"""Checks that apply only while torques are disabled."""


class Guard:
    """An arm under guard.

    Parameters: ``settings`` name the commanded joints; ``gravity`` (3,) in m/s^2 is in the axes of
    the root, by default that of the model; ``options`` are further fields of Settings in
    ``period/records.py``, such as those of drives; ``source`` names the source of states in
    messages; ``used`` are laws for which the period is compiled at the start. Loads are those of
    the model.

    Report states to :attr:`running` and call :meth:`advance` for each period. Results are in
    :attr:`state_record` and :attr:`verdict`. Raises UnknownJointError if a commanded or fixed joint
    is not in the model, ArgumentError if a commanded joint mimics another one, ModelError if no
    joint moves, BackendError if compiled code differs from the equations.
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
        self.model, self.joints = model, joints
        self.settings = settings
        file = settings.collision_file
        self._thresholds = parsed_yaml(file, partial(thresholds_of, model)) if file else None
        self.loads = link_loads(model)
        """The loads in force, or towards which the present ones change."""
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
        function = Period(model, settings.algorithm, called_laws.traced_for(traced, used, model))
        self.running = RunningPeriod(model, joints, function, given, fixed)
        self._motion = Motion(model, joints, list(settings.joints))
        """The law and the motion that the next period is asked for."""
        self._law: AnyLaw | None = None
        self._next: tuple[AnyLaw | None] | None = None
        """A law that waits until the law in force has taken over."""
        self._called = called_laws.CalledLaws()
        self._update_request()
        self._source = source
        self._reported = self.running.reported
        slides = sliding(model)
        units = ["m" if slides[k] else "rad" for k in joints]
        self._lags, self._looked_at = Remarks(self._motion, units), -math.inf
        self.fault: Fault | None = None
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        self.collision: Collision | None = None
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        self.trouble: Fault | None = None
        """Why the latest message about the arm was not used; None if it was."""
        self._external: Fault | None = None
        """The latest external reason to stop."""
        self._efforts_end = False
        """Whether checks that need efforts became inactive since torques were enabled."""
        self._remarks: list[str] = []
        self._warnings: list[str] = []
        self._linked: list[Guard] = []

    # -- state -------------------------------------------------------------------------------------

    @property
    def state_record(self) -> State:
        """All numbers of the state of the period. Its arrays are never changed later."""
        return self.running.state

    @property
    def verdict(self) -> Verdict:
        """The findings of the latest period; NaN before the first."""
        return self.running.verdict

    @property
    def state(self) -> str:
        """The state: disabled, ramping in, enabled, ramping out, or fault."""
        now = self.running.reported
        if now.mode == transitions.RAMPING_OUT and now.hold == 1.0:
            return MODES[transitions.OFF]  # nothing ramps: the drives hold the arm already
        return MODES[now.mode]

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""
        return self.running.engaged

    @property
    def moving(self) -> bool:
        """Whether torques follow the arm, or change after a stop or release."""
        return self.running.reported.mode not in transitions.RELEASED

    @property
    def at_rest(self) -> bool:
        """Whether drives hold the arm, or nothing is commanded."""
        return bool(transitions.is_at_rest(self.state_record))

    def write_history(self, path: str | Path) -> None:
        """Write the latest periods, 5000 at least, as an .npz file for :meth:`replay`.

        Raises OSError if it cannot be written.
        """
        self.running.write_history(path)

    def replay(self, path: str | Path) -> Replay:
        """Return every command and verdict of the periods in a file; the arm is not affected.

        They are the same as then, number by number, laws included. Raises ArgumentError for a file
        that is not a history, or that of another robot.
        """
        return replayed(self.model, path)

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
        state, verdict = self.running.trial(t, self._motion.request(transitions.ENABLE))
        kinds = [kind for kind in FORBIDDING if not (self.engaged and kind in AT_REST)]
        return reasons + problems(verdict, state, self.model.joint_names, kinds)

    def input_problem(self, t: float) -> str:
        """Return why the states of the joints cannot be used; empty if they can."""
        state, verdict = self.running.trial(t, self._motion.request(transitions.NONE))
        return "; ".join(
            problems(verdict, state, self.model.joint_names, kinds=("stale", "encoder_jump"))
        )

    def enable(self, t: float) -> list[str]:
        """Request torques; return the reasons against them, empty if they begin to ramp in.

        Drives or controllers that hold the arm release it once the torques have ramped in.
        """
        if self.engaged:
            return []
        reasons, law = self.problems(t), self.law
        if not (reasons or law is None or isinstance(law, OF_PERIOD)):
            try:
                called_laws.try_law(law, self.running, t)
            except ArgumentError as error:
                reasons.append(str(error))
        if not reasons:
            self._efforts_end = False
            self._lags.restart()
            self._called.restart()
            if self._next is not None:
                self._begin(t)
            self._motion.stop()
            self._request(t, transitions.ENABLE)
            self._update_request()
            if not self.state_record.verified:
                self.remark(UNVERIFIED)
        return reasons

    def disable(self, t: float) -> None:
        """Let the drives hold the arm where it is, or ramp torques down if they cannot."""
        self._request(t, transitions.DISABLE)

    def clear(self, t: float) -> None:
        """Clear the fault after it has stopped the torques. The arm remains held as before."""
        self._request(t, transitions.CLEAR)

    def trip(self, t: float, fault: Fault) -> None:
        """Stop for an external reason, such as an emergency button."""
        if self.engaged:
            self._external = fault
            self._request(t, transitions.TRIP, doubt=fault.doubt.value)

    def set_holder(self, *, exists: bool, holds: bool) -> None:
        """State whether another controller will hold the arm after a release, and holds it now."""
        self._motion.holder = exists, holds
        self._update_request()

    def released_for(self, t: float) -> float:
        """Return the time in s since gravity torques of a release began to ramp out.

        It is zero or negative before, and infinite if no gravity torques hold the arm.
        """
        s, request = self.state_record, self._motion.request(transitions.NONE)
        falls = self.fault is not None and self.settings.on_fault != "ramp_down"
        if self.engaged or not self.moving or falls or s.doubted or s.doubt == GRAVITY:
            return math.inf
        return t - float(release_began(s, request, self.running.given))

    def latch(self, fault: Fault) -> None:
        """Start with a fault of the arm that another guard has latched; the arm must be at rest."""
        self.running.latch_fault()
        self._reported, self.fault = self.running.reported, fault

    def _request(self, t: float, action: float, *, doubt: float = 0.0) -> None:
        """Apply a request at once; the command stays until the next period."""
        request = self._motion.request(action, doubt=doubt)
        self.running.apply(t, request)
        self._report(t)

    def _update_request(self) -> None:
        """Use the present request in the next periods."""
        self.running.set_request(self._motion.request(transitions.NONE, sends=True))

    # -- laws and references -----------------------------------------------------------------------

    @property
    def law(self) -> AnyLaw | None:
        """The law in force, or about to be; None where the arm floats."""
        if self.running.floats_since_collision:
            return None
        return self._law if self._next is None else self._next[0]

    def prepare(self, t: float, *every: AnyLaw | None) -> None:
        """Compile what laws need, and call each once. Raises what :meth:`switch` raises."""
        for law in every:
            if not (law is None or isinstance(law, OF_PERIOD) or callable(law)):
                raise ArgumentError(
                    f"the law is a {type(law).__name__}; must be a function of model, state and "
                    "reference"
                )
        running, s = self.running, self.running.state
        before = running.function.traced
        traced = called_laws.traced_for(before, every, self.model)
        moves_link = s.law in laws.OF_LINKS or s.law_before in laws.OF_LINKS
        if before.link not in ("", traced.link) and self.engaged and moves_link:
            raise ArgumentError(
                f"the law moves link {traced.link!r} while torques hold {before.link!r}; let "
                "the arm float first"
            )
        function = running.function.tracing(traced)
        request = self._motion.request(transitions.NONE)
        for law in every:
            if isinstance(law, OF_PERIOD):
                called_laws.check_stiffness(law, running, function, request)
            elif law is not None:
                called_laws.try_law(law, running, t)
        running.retrace(function)

    def switch(self, t: float, law: AnyLaw | None) -> None:
        """Let another law take over from time ``t`` on, without a jump; None: the arm floats.

        Another law of the same kind, such as one of another stiffness, continues with the
        reference; otherwise the present state becomes the reference. The first call of a law may
        compile for a second: switch to it once before torques are enabled. Raises MbsError, and
        changes nothing, for a law that fails or is too stiff for the period of the loop.
        """
        self.prepare(t, law)
        self._next = (law,)
        running = self.running
        if not running.engaged or running.floats_since_collision or not self._called.blends(t):
            self._begin(t)
        self._report(t)

    def _begin(self, t: float) -> None:
        """Let the next law take over now."""
        assert self._next is not None
        (law,), self._next = self._next, None
        running, action = self.running, transitions.NONE
        if running.floats_since_collision:
            action, self._law = transitions.CLEAR, None
            self._called.drop()
        of_period = isinstance(law, OF_PERIOD)
        own: Any = None if of_period else law
        fades = isinstance(self._law, OF_PERIOD) or of_period
        if own is not self._called.law or fades:
            time = running.given.switch_time if running.engaged else 0.0
            self._called.switch(own, t, time, fades=fades)
        self._law = law
        link = called_laws.link_of(law, self.model)
        if law is None:
            self._motion.use(laws.FLOAT)
        elif link:
            self._motion.use(laws.LINK if of_period else laws.OWN_LINK, link)
        else:
            self._motion.use(laws.JOINT if of_period else laws.OWN_JOINT)
        running.change(**called_laws.settings_of(law, running))
        running.apply(t, self._motion.request(action))
        self._update_request()

    def _prepare_period(self, t: float) -> None:
        """Prepare the next period: change of laws, torques of a called law, trajectory segment."""
        if self._next is not None and not self._called.blends(t):
            self._begin(t)
        if not self._called.idle:
            try:
                self._call(t)
            except ArgumentError as error:
                self.trip(t, Fault("law", str(error)))
        if self._motion.trajectory is not None and self.elapsed is not None:
            s = self.state_record
            self._motion.feed(self.elapsed + float(s.pace) * max(0.0, t - float(s.now)))
            self._update_request()

    def _call(self, t: float) -> None:
        """Put the torques of a called law, less those of gravity, into the sample.

        A trial of the period provides the trusted state that the law is called with. Raises
        ArgumentError for a law that fails.
        """
        running = self.running
        running.put("floats", 0.0)
        if not running.engaged:
            return
        s = running.trial_of_sample()
        doubted = s.doubted or s.rates_doubted or s.collided >= 0.0
        if float(s.mode) not in transitions.ENGAGED or doubted:
            return
        state = called_laws.law_state(running, t, s, np.array(s.trusted), np.array(s.smooth))
        own = np.asarray(s.g)[self.joints].tolist()
        added = self._called.added(running.model_in_force(s), state, s, own)
        running.put("law", added, self.joints)

    def aim(self, t: float, reference: Target | None) -> None:
        """Let the law follow another reference from time ``t`` on; None: come to rest.

        It is approached within the ``reference_velocity`` and ``reference_acceleration`` of the
        settings, and a trajectory is played from its first point on, at the time of that point or
        later. Raises MbsError, and changes nothing, while torques are disabled and for a reference
        that is invalid.
        """
        if not self.engaged:
            raise ArgumentError(f"the state is {self.state!r}; references need enabled torques")
        if self.running.floats_since_collision:
            raise ArgumentError("the arm floats since a collision, until torques are enabled again")
        self._motion.aim(reference, self.state_record, self.running.given)
        self._request(t, transitions.NONE)
        self._update_request()

    @property
    def reference(self) -> JointReference | PoseReference:
        """The reference of the law in force."""
        return called_laws.reference_of(self._law, self.state_record)

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
        """Play the trajectory at a share of its speed along the same path; 0: pause, 1: continue.

        Raises ArgumentError unless it is from 0 to 1, and without a trajectory.
        """
        if not 0.0 <= rate <= 1.0:
            raise ArgumentError(f"the pace is {rate:g}; must be 0 to 1")
        if self._motion.trajectory is None:
            raise ArgumentError("no trajectory is approached or played")
        self._motion.pace = rate
        self._update_request()

    # -- settings ----------------------------------------------------------------------------------

    def change(self, settings: ArmSettings, options: Mapping[str, Any]) -> None:
        """Apply other settings for the same joints; ``options`` as for the class.

        Gravity and loads stay. Raises BackendError if code that is compiled for another
        ``algorithm`` is wrong, and then changes nothing.
        """
        before = self.running.given
        if settings.algorithm != self.settings.algorithm:
            traced = self.running.function.traced
            function = Period(self.model, settings.algorithm, traced)
            function.verify(function.settings.packed(before))
            self.running.retrace(function)
        self.settings = settings
        given = period_settings(
            self.model,
            self.joints,
            settings,
            before.gravity,
            before.loads,
            thresholds=self._thresholds,
            **options,
        )
        unchanged = ("gravity_time", "loads_time", *law_settings(self.model, self.joints))
        self.running.use(given._replace(**{name: getattr(before, name) for name in unchanged}))
        if not self.engaged:  # before torques are enabled, whether a law is too stiff is judged
            self._request(float(self.state_record.now), transitions.NONE)

    # -- gravity and loads -------------------------------------------------------------------------

    @property
    def gravity(self) -> FloatArray:
        """(3,) the gravity in m/s^2 in force, or the goal of its ramp, in the axes of the root."""
        return np.array(self.running.given.gravity)

    def set_gravity(
        self, gravity: FloatArray, *, time: float | None = None, check: bool = True
    ) -> None:
        """Ramp to another gravity (3,) in m/s^2, in the axes of the root.

        The ramp takes ``time`` s, None: ``ramp_time``. With ``check`` raises what
        :meth:`check_gravity` raises, and then changes nothing.
        """
        if check:
            self.check_gravity(gravity)
        seconds = self.settings.ramp_time if time is None else time
        self.running.change(gravity=np.array(gravity, dtype=float), gravity_time=seconds)

    def check_gravity(self, gravity: FloatArray) -> None:
        """Raise ArgumentError or ModelError for a gravity (3,) that must not be set now.

        While torques are commanded it may turn by at most LARGEST_TURN.
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
        self._check_hold(gravity, self.running.given.loads)

    def set_loads(
        self, loads: Sequence[LinkLoad], *, time: float | None = None, check: bool = True
    ) -> None:
        """Replace all loads, at most one per link.

        The ramp takes ``time`` s, None: ``ramp_time``. Raises what :meth:`parameters_of` raises,
        with ``check`` ModelError if the arm could not be held, and then changes nothing.
        """
        parameters = self.parameters_of(loads)
        if check:
            self._check_hold(self.gravity, parameters)
        seconds = self.settings.ramp_time if time is None else time
        self.loads = list(loads)
        self.running.change(loads=parameters, loads_time=seconds)

    def parameters_of(self, loads: Sequence[LinkLoad]) -> FloatArray:
        """Return the inertial parameters (nb, 10) of loads, added up for each body.

        Raises UnknownBodyError, ArgumentError or ModelError for impossible loads, and ModelError if
        they are too heavy together. A total mass up to the present one is never too heavy.
        """
        mass = sum(load.mass for load in loads)
        bare = without_payloads(self.model)
        heaviest = self.settings.max_payload or bare.total_mass
        carried = float(self.running.given.loads[:, 0].sum())
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
        q, p = np.array(self.state_record.q), self.running.given
        if not np.isfinite(q).all():
            return
        torques = p.scale * self.running.function.gravity(
            q, np.asarray(gravity, dtype=float), loads
        )
        over = "; ".join(
            f"{self.model.joint_names[k]} needs {torques[k]:.4g} against gravity, and its effort "
            f"limit is {p.effort[k]:.4g}"
            for k in self.joints
            if not abs(torques[k]) <= p.effort[k]
        )
        if over:
            raise ModelError(f"the arm could not be held: {over}")

    # -- periods -----------------------------------------------------------------------------------

    def advance(self, t: float) -> FloatArray:
        """Process the sample, and return the output of the period at time ``t``.

        It is a vector of the fields of ``Output`` in ``period/records.py``.
        """
        self._prepare_period(t)
        output = self.running.run()
        self._report(t)
        self._report_law(t)
        return output

    # -- words -------------------------------------------------------------------------------------

    def remark(self, *said: str) -> None:
        """Add to the next :meth:`new_remarks`."""
        self._remarks += said

    def new_remarks(self) -> list[str]:
        """Return the remarks since the last call."""
        said, self._remarks = self._remarks, []
        return said

    def new_warnings(self) -> list[str]:
        """Return the warnings since the last call."""
        said, self._warnings = self._warnings, []
        return said

    def _report(self, t: float) -> None:
        """Report changes since the last call in words, and stop linked arms at a new fault."""
        before, now = self._reported, self.running.reported
        if now is before:
            return
        self._reported, earlier = now, self.fault
        self._report_changes(before, now)
        if self.engaged and not self._efforts_end:
            self._efforts_end = now.unknown_since < math.inf
            if self._efforts_end:
                self._warnings += self.inactive_checks()
        if self.fault is not None and earlier is None:
            message = f"the arm it is linked with stopped: {self.fault}"
            for other in self._linked:
                other.trip(t, Fault("linked", message))

    def _report_changes(self, before: Reported, now: Reported) -> None:
        running, names = self.running, self.model.joint_names
        if (now.mode, now.fault) != (before.mode, before.fault):
            self._report_fault(now.mode)
        if now.slipped != before.slipped and now.slipped >= 0.0:
            k = int(now.slipped)
            self.remark(
                f"the drive of {names[k]} does not hold it: it is {running.given.slip[k]:.3g} from "
                "where it is to be"
            )
        if now.collided != before.collided:
            self._report_collision(now.collided)
        if now.opposed and not before.opposed and not self.engaged and now.fault == 0.0:
            self.remark(*problems(running.verdict, running.state, names, kinds=("support",)))

    def _report_fault(self, mode: float) -> None:
        """Store a fault that has been latched, or forget one."""
        if mode not in (transitions.STOPPING, transitions.FAULT):
            self.fault = None
        elif self.fault is None:
            found = fault_of(self.running.state, self.model.joint_names, self.joints)
            if found is not None and found.kind in ("stale", "encoder_jump") and self.trouble:
                kind, reason, *_ = self.trouble  # messages come, and cannot be used
                found = found._replace(kind=kind, reason=f"{reason}; {found.reason}")
            self.fault = found or self._external

    def _report_collision(self, joint: float) -> None:
        """Store a collision that has begun, or forget one."""
        self.collision = None
        if joint < 0.0:
            return
        running = self.running
        self.collision = collision_of(
            running.state, running.given, running.model_in_force(running.state)
        )
        names = self.model.joint_names
        said = problems(running.verdict, running.state, names, kinds=("contact",))
        if said:
            self.remark(f"collision: {said[0]}; the arm floats")
            self._motion.stop()
            self._update_request()

    def _report_law(self, t: float) -> None:
        """Report at time ``t`` how the law in force follows its reference."""
        law, running = self._law, self.running
        if law is None or not running.engaged:
            return
        if self._motion.trajectory is not None and running.number("ended"):
            self._motion.end()
            self._update_request()
            self.remark("the trajectory has ended, and its last point is held")
        if not 0.0 <= t - self._looked_at < REMARK_PERIOD:
            self._looked_at = t
            self.remark(*self._lags.new(running.state, running.given, law))

    def inactive_checks(self) -> list[str]:
        """Return which checks are inactive without the efforts that are unknown."""
        given, unknown = self.running.given, np.isnan(self.running.state.effort)
        reasons = []
        if given.tolerance > 0.0 and unknown[self.joints].any():
            settings = "effort_check tracking, or tracking_tolerance"
            reasons.append(f"they are not compared with commands ({settings})")
        if (unknown & (given.impact_threshold < NEVER)).any():
            reasons.append("no collision is detected (collision_file)")
        names = zip(self.model.joint_names, unknown, strict=True)
        lacking = listed([name for name, lacks in names if lacks])
        return [f"{self._source} hold no efforts of {lacking}: {reason}" for reason in reasons]


def linked(*arms: Guard) -> None:
    """Let a fault of one of these arms stop all of them."""
    for arm in arms:
        arm._linked += [other for other in arms if other is not arm and other not in arm._linked]
