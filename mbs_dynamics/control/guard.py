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
from mbs_dynamics.control.collision import Collision, thresholds_of
from mbs_dynamics.control.environment import (
    LinkLoad,
    link_loads,
    payload_parameters,
    with_load,
)
from mbs_dynamics.control.events import Events
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.joint_states import fixed_coordinates
from mbs_dynamics.control.law_in_force import LawInForce, traced_for
from mbs_dynamics.control.laws import AnyLaw
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.checks import GRAVITY
from mbs_dynamics.control.period.command import release_began
from mbs_dynamics.control.period.following import GRAVITY_ALONE
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.history import Replay, replayed
from mbs_dynamics.control.period.records import State, Verdict
from mbs_dynamics.control.period.sentences import FORBIDDING, MODES, problems
from mbs_dynamics.control.period.settings import law_settings, period_settings
from mbs_dynamics.control.references import JointReference, PoseReference, Target
from mbs_dynamics.control.running_period import RunningPeriod
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError, ModelError
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

AT_REST = ("effort_limit", "overload", "no_efforts", "mismatch", "stiffness")
"""Checks that apply only while torques are disabled."""


class Guard:
    """An arm under guard.

    Parameters: ``settings`` name the commanded joints; ``gravity`` (3,) in m/s^2 is in the axes of
    the root, by default that of the model; ``options`` are further arguments of
    :func:`~mbs_dynamics.control.period.settings.period_settings`, such as those about drives;
    ``source`` names the source of states in messages; ``used`` are laws for which the period is
    compiled at the start. Loads are those of the model.

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
        function = Period(model, settings.algorithm, traced_for(traced, used, model))
        self.running = RunningPeriod(model, joints, function, given, fixed)
        self._laws = LawInForce(self.running)
        self.events = Events(self.running, self._laws, source)
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

    @property
    def fault(self) -> Fault | None:
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        return self.events.fault

    @property
    def collision(self) -> Collision | None:
        """The latest collision since torques were enabled, or since :meth:`switch`; else None."""
        return self.events.collision

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
        state, verdict = self.running.trial(t, self._laws.motion.request(transitions.ENABLE))
        kinds = [kind for kind in FORBIDDING if not (self.engaged and kind in AT_REST)]
        reasons += problems(verdict, state, self.model.joint_names, kinds)
        if not reasons:
            try:
                self._laws.check(t)
            except ArgumentError as error:
                reasons.append(str(error))
        return reasons

    def input_problem(self, t: float) -> str:
        """Return why the states of the joints cannot be used; empty if they can."""
        state, verdict = self.running.trial(t, self._laws.motion.request(transitions.NONE))
        return "; ".join(
            problems(verdict, state, self.model.joint_names, kinds=("stale", "encoder_jump"))
        )

    def enable(self, t: float) -> list[str]:
        """Request torques; return the reasons against them, empty if they begin to ramp in.

        Drives or controllers that hold the arm release it once the torques have ramped in.
        """
        if self.engaged:
            return []
        reasons = self.problems(t)
        if not reasons:
            self.events.restart()
            self._laws.restart(t)
            self._request(t, transitions.ENABLE)
            self._laws.update_request()
            if not self.state_record.verified:
                self.events.remark(UNVERIFIED)
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
            self.events.external = fault
            self._request(t, transitions.TRIP, doubt=fault.doubt.value)

    def set_holder(self, *, exists: bool, holds: bool) -> None:
        """State whether another controller will hold the arm after a release, and holds it now."""
        self._laws.motion.holder = exists, holds
        self._laws.update_request()

    def released_for(self, t: float) -> float:
        """Return the time in s since gravity torques of a release began to ramp out.

        It is zero or negative before, and infinite if no gravity torques hold the arm.
        """
        s, request = self.state_record, self._laws.motion.request(transitions.NONE)
        falls = self.fault is not None and self.settings.on_fault != "ramp_down"
        if self.engaged or not self.moving or falls or s.doubted or s.doubt == GRAVITY:
            return math.inf
        return t - float(release_began(s, request, self.running.given))

    def latch(self, fault: Fault) -> None:
        """Start with a fault of the arm that another guard has latched; the arm must be at rest."""
        self.running.latch_fault()
        self.events.adopt(fault)

    def _request(
        self, t: float, action: float, *, settle: bool = False, doubt: float = 0.0
    ) -> None:
        """Apply a request at once; the command stays until the next period."""
        request = self._laws.motion.request(action, settle=settle, doubt=doubt)
        self.running.apply(t, request)
        self._report(t)

    # -- laws and references -----------------------------------------------------------------------

    @property
    def law(self) -> AnyLaw | None:
        """The law in force, or about to be; None where the arm floats."""
        return self._laws.law

    def prepare(self, t: float, *every: AnyLaw | None) -> None:
        """Compile what laws need, and call each once. Raises what :meth:`switch` raises."""
        self._laws.prepare(t, *every)

    def switch(self, t: float, law: AnyLaw | None) -> None:
        """Let another law take over from time ``t`` on, without a jump; None: the arm floats.

        Another law of the same kind, such as one of another stiffness, continues with the
        reference; otherwise the present state becomes the reference. The first call of a law may
        compile for a second: switch to it once before torques are enabled. Raises MbsError, and
        changes nothing, for a law that fails or is too stiff for the period of the loop.
        """
        self._laws.switch(t, law)
        self._report(t)

    def aim(self, t: float, reference: Target | None) -> None:
        """Let the law follow another reference from time ``t`` on; None: come to rest.

        It is approached within the ``reference_velocity`` and ``reference_acceleration`` of the
        settings, and a trajectory is played from its first point on, at the time of that point or
        later. Raises MbsError, and changes nothing, while torques are disabled and for a reference
        that is invalid or out of reach.
        """
        if not self.engaged:
            raise ArgumentError(f"the state is {self.state!r}; references need enabled torques")
        if self.running.floats_since_collision:
            raise ArgumentError("the arm floats since a collision, until torques are enabled again")
        self._laws.aim(t, reference)
        self._report(t)

    @property
    def reference(self) -> JointReference | PoseReference:
        """The reference of the law in force."""
        return self._laws.reference

    @property
    def trajectory(self) -> Trajectory | None:
        """The trajectory that is approached or played; None if there is none."""
        return self._laws.motion.trajectory

    @property
    def elapsed(self) -> float | None:
        """Its time in s since its first point; None while that is approached, or without one."""
        played = float(self.state_record.played)
        return None if math.isnan(played) or self.trajectory is None else played

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed along the same path; 0: pause, 1: continue.

        Raises ArgumentError unless it is from 0 to 1, and without a trajectory.
        """
        self._laws.pace(rate)

    # -- settings ----------------------------------------------------------------------------------

    def check(self, settings: ArmSettings) -> None:
        """Compile the period for other settings. Raises BackendError if compiled code is wrong."""
        if settings.algorithm != self.settings.algorithm:
            running = self.running
            function = Period(self.model, settings.algorithm, running.function.traced)
            function.verify(function.settings.packed(running.given))

    def change(self, settings: ArmSettings, options: Mapping[str, Any]) -> None:
        """Apply other settings for the same joints; ``options`` as for the class.

        Gravity and loads stay. Raises what :meth:`check` raises.
        """
        if settings.algorithm != self.settings.algorithm:
            traced = self.running.function.traced
            self.running.retrace(Period(self.model, settings.algorithm, traced))
        self.settings = settings
        before = self.running.given
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
        if self.engaged:
            self._request(float(self.state_record.now), transitions.NONE, settle=True)

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
        problem = self._laws.prepare_period(t)
        if problem:
            self.trip(t, Fault("law", problem))
        output = self.running.run()
        self._report(t)
        self.events.update_law(t)
        return output

    def _report(self, t: float) -> None:
        """Report changes in words, and stop linked arms at a new fault."""
        before = self.fault
        if self.events.update() and self.fault is not None and before is None:
            message = f"the arm it is linked with stopped: {self.fault}"
            for other in self._linked:
                other.trip(t, Fault("linked", message))


def linked(*arms: Guard) -> None:
    """Let a fault of one of these arms stop all of them."""
    for arm in arms:
        arm._linked += [other for other in arms if other is not arm and other not in arm._linked]
