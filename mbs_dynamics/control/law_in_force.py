# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The law of a running period: trials of laws, changes between them, and their references.

The period itself computes impedances, whose gains are settings. Other laws are called before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.called_laws import CalledLaws, reference_of, torques_of
from mbs_dynamics.control.laws import AnyLaw, CartesianImpedance, JointImpedance, Law, LawState
from mbs_dynamics.control.motion import Motion, moving_link
from mbs_dynamics.control.period import laws, transitions
from mbs_dynamics.control.period.following import Traced, period_of
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.records import State
from mbs_dynamics.control.period.sentences import problems
from mbs_dynamics.control.period.settings import joint_settings, link_settings
from mbs_dynamics.control.references import JointReference, PoseReference, Target
from mbs_dynamics.control.running_period import RunningPeriod
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
    """Return the traced laws of a period in which these laws can be in force as well."""
    for law in every:
        if law is not None and (isinstance(law, OF_PERIOD) or callable(law)):
            link = link_of(law, model)
            before = before._replace(joints=before.joints or not link, link=link or before.link)
    return before


class LawInForce:
    """The law that moves an arm, and the motion that it follows.

    Requests of an arm contain both; :attr:`motion` builds them.
    """

    def __init__(self, running: RunningPeriod) -> None:
        model, joints = running.model, running.joints
        self._running = running
        self.motion = Motion(model, joints, [model.joint_names[k] for k in joints])
        self.in_force: AnyLaw | None = None
        self._next: tuple[AnyLaw | None] | None = None
        """A law that waits until the law in force has taken over."""
        self._called = CalledLaws()
        self.update_request()

    def update_request(self) -> None:
        """Use the present request in the next periods."""
        self._running.set_request(self.motion.request(transitions.NONE, sends=True))

    def stop(self) -> None:
        """Let the arm come to rest."""
        self.motion.stop()
        self.update_request()

    # -- laws --------------------------------------------------------------------------------------

    @property
    def law(self) -> AnyLaw | None:
        """The law in force, or about to be; None where the arm floats."""
        if self._running.floats_since_collision:
            return None
        return self.in_force if self._next is None else self._next[0]

    def switch(self, t: float, law: AnyLaw | None) -> None:
        """Let another law take over; see :meth:`Guard.switch`."""
        self.prepare(t, law)
        self._next = (law,)
        running = self._running
        if not running.engaged or running.floats_since_collision or not self._called.blends(t):
            self._begin(t)

    def restart(self, t: float) -> None:
        """Let a waiting law take over at once, and end all motions, as torques are enabled."""
        self._called.restart()
        if self._next is not None:
            self._begin(t)
        self.motion.stop()

    def prepare(self, t: float, *every: AnyLaw | None) -> None:
        """Compile what laws need, and call each once. Raises what :meth:`switch` raises."""
        for law in every:
            if not (law is None or isinstance(law, OF_PERIOD) or callable(law)):
                raise ArgumentError(
                    f"the law is a {type(law).__name__}; must be a function of model, state and "
                    "reference"
                )
        running = self._running
        before = running.function.traced
        traced = traced_for(before, every, running.model)
        if before.link not in ("", traced.link) and self._moves_link:
            raise ArgumentError(
                f"the law moves link {traced.link!r} while torques hold {before.link!r}; let "
                "the arm float first"
            )
        function = running.function.tracing(traced)
        for law in every:
            if isinstance(law, OF_PERIOD):
                self._check_stiffness(law, function)
            elif law is not None:
                self._try(law, t)
        running.retrace(function)

    @property
    def _moves_link(self) -> bool:
        """Whether torques of a law move a link."""
        s = self._running.state
        return self._running.engaged and (s.law in laws.OF_LINKS or s.law_before in laws.OF_LINKS)

    def _check_stiffness(self, law: JointImpedance | CartesianImpedance, function: Period) -> None:
        """Raise ArgumentError if a law is too stiff for the arm at rest in its present posture.

        A trial of the period decides.
        """
        running = self._running
        given = running.given._replace(**self._settings_of(law))
        number = laws.JOINT if isinstance(law, JointImpedance) else laws.LINK
        request = self.motion.request(transitions.NONE)._replace(law=number)
        s, found = running.trial_at_rest(function, given, request)
        for reason in problems(found, s, running.model.joint_names, kinds=("stiffness",)):
            raise ArgumentError(reason)

    def _settings_of(self, law: AnyLaw | None) -> dict[str, Any]:
        """Return the settings that a law states, by name."""
        model, joints = self._running.model, self._running.joints
        if isinstance(law, JointImpedance):
            return joint_settings(model, joints, law)
        return link_settings(law) if isinstance(law, CartesianImpedance) else {}

    def check(self, t: float) -> None:
        """Raise ArgumentError if the law, one of a user, fails in the present state."""
        law = self.law
        if law is not None and not isinstance(law, OF_PERIOD):
            self._try(law, t)

    def _try(self, law: Law, t: float) -> None:
        """Call a law once, at rest and with the present state as reference."""
        state, C, link = self._resting(t), np.eye(4), link_of(law, self._running.model)
        if link:
            C = mbs.forward_kinematics(self._running.model, state.q, bodies=[link])[0]
        s = self._running.state._replace(
            pose=C[:3], twist=np.zeros(6),
            reference=state.q, reference_qd=state.qd, reference_qdd=state.qd,
        )  # fmt: skip
        torques_of(law, self._running.model_in_force(s), state, reference_of(law, s))

    def _law_state(self, t: float, s: State, q: FloatArray, qd: FloatArray) -> LawState:
        running = self._running
        period = float(period_of(s, running.given))
        return LawState(
            q, qd, np.array(s.effort), t, running.joints,
            running.function.gravity(q, *running.environment(s)), period, max(float(s.gap), period),
        )  # fmt: skip

    def _resting(self, t: float) -> LawState:
        """Return the state of the arm at rest at its latest positions, or else the neutral ones."""
        s = self._running.state
        known = bool(np.isfinite(s.q).all())
        q = np.array(s.q) if known else self._running.model.neutral(within_limits=True)
        return self._law_state(t, s, q, np.zeros_like(q))

    def _begin(self, t: float) -> None:
        """Let the next law take over now."""
        assert self._next is not None
        (law,), self._next = self._next, None
        running, action = self._running, transitions.NONE
        if running.floats_since_collision:
            action, self.in_force = transitions.CLEAR, None
            self._called.drop()
        of_period = isinstance(law, OF_PERIOD)
        own: Any = None if of_period else law
        fades = isinstance(self.in_force, OF_PERIOD) or of_period
        if own is not self._called.law or fades:
            time = running.given.switch_time if running.engaged else 0.0
            self._called.switch(own, t, time, fades=fades)
        self.in_force = law
        link = link_of(law, running.model)
        if law is None:
            self.motion.use(laws.FLOAT)
        elif link:
            self.motion.use(laws.LINK if of_period else laws.OWN_LINK, link)
        else:
            self.motion.use(laws.JOINT if of_period else laws.OWN_JOINT)
        running.change(**self._settings_of(law))
        running.apply(t, self.motion.request(action))
        self.update_request()

    def prepare_period(self, t: float) -> str:
        """Prepare the next period: change of laws, torques of a called law, trajectory segment.

        Return why a law failed; empty if none did.
        """
        problem = ""
        if self._next is not None and not self._called.blends(t):
            self._begin(t)
        if not self._called.idle:
            try:
                self._call(t)
            except ArgumentError as error:
                problem = str(error)
        if self.motion.trajectory is not None:
            self._feed(t)
        return problem

    def _call(self, t: float) -> None:
        """Put the torques of a called law, less those of gravity, into the sample.

        A trial of the period provides the trusted state that the law is called with. Raises
        ArgumentError for a law that fails.
        """
        running = self._running
        running.put("floats", 0.0)
        if not running.engaged:
            return
        s = running.trial_of_sample()
        if float(s.mode) not in transitions.ENGAGED or s.doubted or s.rates_doubted:
            return
        if s.collided >= 0.0:
            return
        state = self._law_state(t, s, np.array(s.trusted), np.array(s.smooth))
        model, own = running.model_in_force(s), np.asarray(s.g)[running.joints]
        added = self._called.added(model, state, s, own.tolist())
        running.put("law", added, running.joints)

    # -- references --------------------------------------------------------------------------------

    def aim(self, t: float, reference: Target | None) -> None:
        """Let the law follow another reference; see :meth:`Guard.aim`."""
        self.motion.aim(reference, self._running.state, self._running.given)
        self._running.apply(t, self.motion.request(transitions.NONE))
        self.update_request()

    @property
    def reference(self) -> JointReference | PoseReference:
        """The reference of the law in force."""
        return reference_of(self.in_force, self._running.state)

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed; see :meth:`Guard.pace`."""
        if not 0.0 <= rate <= 1.0:
            raise ArgumentError(f"the pace is {rate:g}; must be 0 to 1")
        if self.motion.trajectory is None:
            raise ArgumentError("no trajectory is approached or played")
        self.motion.pace = rate
        self.update_request()

    def _feed(self, t: float) -> None:
        """Provide the segment of the trajectory that is played at time ``t``."""
        played = self._running.number("played")
        if math.isfinite(played):
            s = self._running.state
            self.motion.feed(played + float(s.pace) * max(0.0, t - float(s.now)))
            self.update_request()
