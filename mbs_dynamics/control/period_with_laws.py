# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The laws of a running period: how they are tried, take over and follow references.

Impedances are laws of the period: their gains are settings. Other laws are called before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.called_laws import CalledLaws, called, reference_of
from mbs_dynamics.control.laws import AnyLaw, CartesianImpedance, JointImpedance, Law, LawState
from mbs_dynamics.control.motion import Motion, moving_link
from mbs_dynamics.control.period import laws, transitions
from mbs_dynamics.control.period.following import Traced
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.records import Settings, State
from mbs_dynamics.control.period.sentences import problems
from mbs_dynamics.control.period.settings import law_settings
from mbs_dynamics.control.references import JointReference, PoseReference, Target
from mbs_dynamics.control.running_period import RunningPeriod
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

OF_PERIOD = (JointImpedance, CartesianImpedance)
"""Laws that the period computes."""


def link_of(law: Any, model: Model) -> str:
    """Return the link that a law moves, by default the tool; empty for a law of joints.

    Raises UnknownBodyError for a link that no joint moves.
    """
    link = getattr(law, "link", None)
    return "" if link is None else moving_link(model, link or tools(model)[0])


def traced_for(before: Traced, every: Iterable[AnyLaw | None], model: Model) -> Traced:
    """Return what a period computes in which these laws can be in force as well."""
    for law in every:
        if law is not None and (isinstance(law, OF_PERIOD) or callable(law)):
            link = link_of(law, model)
            before = before._replace(joints=before.joints or not link, link=link or before.link)
    return before


class PeriodWithLaws(RunningPeriod):
    """A running period, and the law that is in force in it.

    Parameters as for :class:`~mbs_dynamics.control.running_period.RunningPeriod`.
    """

    def __init__(
        self, model: Model, joints: Sequence[int], period: Period, given: Settings
    ) -> None:
        super().__init__(model, joints, period, given)
        self._motion = Motion(model, self.joints, [model.joint_names[k] for k in self.joints])
        self._law: AnyLaw | None = None
        self._next: tuple[AnyLaw | None] | None = None
        """A law that takes over once the one in force has done so."""
        self._called = CalledLaws()
        self._holder = (False, False)
        """Whether another controller is to hold the arm once torques are released, and does so."""
        self._renew()

    # -- requests ----------------------------------------------------------------------------------

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
        self._step(t, self._silence(t), request)

    def _step(self, t: float, sample: FloatArray, request: FloatArray) -> None:
        """Run a period at time ``t``."""
        self._run(sample, request)

    # -- laws --------------------------------------------------------------------------------------

    @property
    def law(self) -> AnyLaw | None:
        """The law in force, or about to be; None where the arm floats."""
        if self.floats_since_collision:
            return None
        return self._law if self._next is None else self._next[0]

    @property
    def floats_since_collision(self) -> bool:
        """Whether a collision has interrupted the law, until torques are enabled again."""
        return self.engaged and self._reported.collided >= 0.0

    def switch(self, t: float, law: AnyLaw | None) -> None:
        """Let another law take over from time ``t`` on, without a jump; None: the arm floats.

        Another law of the same kind, as one of another stiffness, goes on with the reference; else
        the present state is the reference. The first call of a law may compile for a second: switch
        to it once before torques are enabled. Raises MbsError, and changes nothing, for a law that
        fails, or that is too stiff for the period of the loop.
        """
        self.prepare(t, law)
        self._next = (law,)
        if not self.engaged or self.floats_since_collision or not self._called.blends(t):
            self._begin(t)

    def prepare(self, t: float, *every: AnyLaw | None) -> None:
        """Compile what laws need, and call each once. Raises what :meth:`switch` raises."""
        for law in every:
            if not (law is None or isinstance(law, OF_PERIOD) or callable(law)):
                raise ArgumentError(
                    f"the law is a {type(law).__name__}; must be a function of model, state and "
                    "reference"
                )
        before = self._period.traced
        traced = traced_for(before, every, self.model)
        if before.link not in ("", traced.link) and self._moves_link:
            raise ArgumentError(
                f"the law moves link {traced.link!r} while torques hold {before.link!r}; must be "
                "to let the arm float before"
            )
        period = self._period.tracing(traced)
        for law in every:
            if isinstance(law, OF_PERIOD):
                self._check_stiffness(law, period)
            elif law is not None:
                self._try(law, t)
        self._retrace(period)

    @property
    def _moves_link(self) -> bool:
        """Whether torques of a law move a link."""
        s = self.state_record
        blends = s.now - s.law_at < self._given.switch_time
        return self.engaged and bool(
            s.law in laws.OF_LINKS or (s.law_before in laws.OF_LINKS and blends)
        )

    def _check_stiffness(self, law: JointImpedance | CartesianImpedance, period: Period) -> None:
        """Raise ArgumentError if a law is too stiff for an arm at rest where it is now.

        The period decides: two of an arm at rest, of which the second judges what the first has
        computed.
        """
        given = self._given._replace(**self._settings_of(law))
        number = laws.JOINT if isinstance(law, JointImpedance) else laws.LINK
        request = self._motion.request(transitions.NONE, holder=self._holder)._replace(law=number)
        state = period.state.packed(self.state_record._replace(mode=transitions.OFF))
        inputs = [
            np.asarray(vector, dtype=float)
            for vector in (
                self._silence(math.nan),
                period.request.packed(request),
                period.settings.packed(given),
            )
        ]
        first = period(np.asarray(state, dtype=float), *inputs)
        second = period(first.state, *inputs)
        s, found = period.state.unpacked(second.state), period.verdict.unpacked(second.verdict)
        for reason in problems(found, s, self.model.joint_names, kinds=("stiffness",)):
            raise ArgumentError(reason)

    def _settings_of(self, law: AnyLaw | None) -> dict[str, Any]:
        """Return the settings that a law states, by name."""
        if isinstance(law, JointImpedance):
            stated = law_settings(self.model, self.joints, joint_law=law)
            names = [name for name in stated if name.startswith("joint_")]
        elif isinstance(law, CartesianImpedance):
            stated = law_settings(self.model, self.joints, link_law=law)
            names = [name for name in stated if name.startswith(("link_", "posture_"))]
        else:
            lead = getattr(law, "lead", None)
            stated = law_settings(self.model, self.joints, own_lead=lead)
            names = ["own_lead", "own_link_lead"]
        return {name: stated[name] for name in names}

    def _check_law(self, t: float) -> None:
        """Raise ArgumentError if a law of a user cannot be in force at the present state."""
        check = getattr(self.law, "check", None)
        if check is not None:
            check(self._model_in_force(), self._resting(t))

    def _try(self, law: Law, t: float) -> None:
        """Call a law once, at rest and with the reference there."""
        state, C, link = self._resting(t), np.eye(4), link_of(law, self.model)
        if link:
            C = mbs.forward_kinematics(self.model, state.q, bodies=[link])[0]
        s = self.state_record._replace(
            pose=C[:3], twist=np.zeros(6),
            reference=state.q, reference_qd=state.qd, reference_qdd=state.qd,
        )  # fmt: skip
        check = getattr(law, "check", None)
        if check is not None:
            check(self._model_in_force(), state)
        called(law, self._model_in_force(), state, reference_of(law, s))

    def _law_state(self, t: float, s: State, q: FloatArray, qd: FloatArray) -> LawState:
        period = self.period
        return LawState(
            q, qd, np.array(s.effort), t, self.joints, self._gravity_at(q), period,
            max(float(s.gap), period),
        )  # fmt: skip

    def _resting(self, t: float) -> LawState:
        """Return the state of an arm at rest at the latest positions, or within its limits."""
        s = self.state_record
        known = bool(np.isfinite(s.q).all())
        q = np.array(s.q) if known else self.model.neutral(within_limits=True)
        return self._law_state(t, s, q, np.zeros_like(q))

    def _begin(self, t: float) -> None:
        """Let the next law take over now."""
        assert self._next is not None
        (law,), self._next = self._next, None
        action = transitions.NONE
        if self.floats_since_collision:
            action, self._law = transitions.CLEAR, None
            self._called.drop()
        of_period = isinstance(law, OF_PERIOD)
        own: Any = None if of_period else law
        fades = isinstance(self._law, OF_PERIOD) or of_period
        if own is not self._called.law or fades:
            time = self._given.switch_time if self.engaged else 0.0
            self._called.switch(own, t, time, fades=fades)
        self._law = law
        link = link_of(law, self.model)
        if law is None:
            self._motion.use(laws.FLOAT)
        elif link:
            self._motion.use(laws.LINK if of_period else laws.OWN_LINK, link)
        else:
            self._motion.use(laws.JOINT if of_period else laws.OWN_JOINT)
        self._change(**self._settings_of(law))
        self._request(t, action)
        self._renew()

    def _call_law(self, t: float) -> None:
        """Put the torques of a law that is called into the sample, beside those of gravity.

        The period is tried first, so that the law is called with the state that it trusts. Raises
        ArgumentError for a law that fails.
        """
        self._sample[self._period.sample.places["floats"]] = 0.0
        if not self.engaged:
            return
        tried = self._period(self._state, self._sample, self._quiet, self._settings)
        s = self._period.state.unpacked(tried.state)
        if float(s.mode) not in transitions.ENGAGED or s.doubted or s.rates_doubted:
            return
        if s.collided >= 0.0:
            return
        state = self._law_state(t, s, np.array(s.trusted), np.array(s.smooth))
        scaled = (state.gravity * s.scale)[self.joints].tolist()
        added = self._called.added(self._model_in_force(), state, s, scaled)
        self.sample.law[self.joints] = added

    # -- references --------------------------------------------------------------------------------

    def aim(self, t: float, reference: Target | None) -> None:
        """Let the law follow another reference from time ``t`` on; None: come to rest.

        It is approached within the ``reference_velocity`` and ``reference_acceleration`` of the
        settings, and a trajectory is played from its first point on, at the time of that point or
        later. Raises MbsError, and changes nothing, while torques are disabled and for a reference
        that is invalid or out of reach.
        """
        if not self.engaged:
            raise ArgumentError(f"the state is {self.state!r}; references need enabled torques")
        if self.floats_since_collision:
            raise ArgumentError("the arm floats since a collision, until torques are enabled again")
        self._motion.aim(reference, self.state_record, self._given)
        self._request(t, transitions.NONE)
        self._renew()

    @property
    def reference(self) -> JointReference | PoseReference:
        """The reference of the law in force."""
        return reference_of(self._law, self.state_record)

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
            raise ArgumentError(f"the pace is {rate:g}; must be 0 to 1")
        if self.trajectory is None:
            raise ArgumentError("no trajectory is approached or played")
        self._motion.pace = rate
        self._renew()

    def _feed(self, t: float) -> None:
        """Provide the segment of the trajectory that is played at time ``t``."""
        played = float(self._state[self._places["played"].start])
        if math.isfinite(played):
            s = self.state_record
            self._motion.feed(played + float(s.pace) * max(0.0, t - float(s.now)))
            self._renew()
