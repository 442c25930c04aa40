# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of an arm: those that the period computes, and Python functions that are called before it.

The period computes the references of all laws, and blends torques of called laws with those of its
own. From one called law to another, or to none, torques change linearly over ``switch_time``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws import AnyLaw, CartesianImpedance, JointImpedance, Law, LawState
from mbs_dynamics.control.motion import moving_link
from mbs_dynamics.control.period import laws
from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.following import Traced, period_of
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.records import Request, State
from mbs_dynamics.control.period.sentences import sentence
from mbs_dynamics.control.period.settings import joint_settings, link_settings
from mbs_dynamics.control.references import JointReference, PoseReference
from mbs_dynamics.control.running_period import RunningPeriod
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.lie import se3
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


def settings_of(law: AnyLaw | None, running: RunningPeriod) -> dict[str, Any]:
    """Return the settings that a law states, by name."""
    if isinstance(law, JointImpedance):
        return joint_settings(running.model, running.joints, law)
    return link_settings(law) if isinstance(law, CartesianImpedance) else {}


def check_stiffness(
    law: JointImpedance | CartesianImpedance,
    running: RunningPeriod,
    function: Period,
    request: Request,
) -> None:
    """Raise ArgumentError if a law is too stiff for the arm at rest in its present posture.

    A trial of the period, which ``function`` computes, decides.
    """
    given = running.given._replace(**settings_of(law, running))
    number = laws.JOINT if isinstance(law, JointImpedance) else laws.LINK
    s = running.trial_at_rest(function, given, request._replace(law=number))
    if s.stiffness_share < 1.0:
        k = [check.kind for check in CHECKS].index("stiffness")
        period, share = float(period_of(s, given)), float(s.stiffness_share)
        raise ArgumentError(sentence(k, -1.0, period, share, s, running.model.joint_names))


def try_law(law: Law, running: RunningPeriod, t: float) -> None:
    """Call a law once, with the arm at rest at its latest positions, or else the neutral ones.

    They are its reference as well. Raises ArgumentError for a law that fails.
    """
    s, model, C, link = running.state, running.model, np.eye(4), link_of(law, running.model)
    known = bool(np.isfinite(s.q).all())
    q = np.array(s.q) if known else model.neutral(within_limits=True)
    if link:
        C = mbs.forward_kinematics(model, q, bodies=[link])[0]
    zero = np.zeros_like(q)
    s = s._replace(
        pose=C[:3], twist=np.zeros(6), reference=q, reference_qd=zero, reference_qdd=zero
    )
    state = law_state(running, t, s, q, zero)
    torques_of(law, running.model_in_force(s), state, reference_of(law, s))


def law_state(
    running: RunningPeriod, t: float, s: State, q: FloatArray, qd: FloatArray
) -> LawState:
    """Return the state of the arm as laws receive it, at q, qd (n,)."""
    period = float(period_of(s, running.given))
    return LawState(
        q, qd, np.array(s.effort), t, running.joints,
        running.function.gravity(q, *running.environment(s)), period, max(float(s.gap), period),
    )  # fmt: skip


def name_of(law: Any) -> str:
    """Return the name of a law for messages."""
    return str(getattr(law, "__name__", type(law).__name__))


class CalledLaws:
    """The law that is called, and the one that fades out.

    A law of the period counts as None here: the period fades its torques.
    """

    def __init__(self) -> None:
        self.law: Law | None = None
        self._before: Law | None = None
        self._begun_at = self._time = 0.0
        self._fades = False

    @property
    def idle(self) -> bool:
        """Whether no law is called."""
        return self.law is None and self._before is None

    def switch(self, law: Law | None, now: float, time: float, *, fades: bool) -> None:
        """Let another law take over in ``time`` s; ``fades``: the period fades torques itself.

        Then the law before, if there is one, is called as long as that takes.
        """
        self._before, self._time = self.law or self._before, time
        if fades and law is not None:
            self._before = None
        self.law, self._begun_at, self._fades = law, now, fades

    def blends(self, now: float) -> bool:
        """Whether a law takes over."""
        return now < self._begun_at + self._time

    def restart(self) -> None:
        """Drop the law that fades out."""
        self._before, self._time = None, 0.0

    def drop(self) -> None:
        """Call no law any more."""
        self.law = self._before = None

    def added(
        self, model: Model, state: LawState, s: State, gravity: Sequence[float]
    ) -> FloatArray:
        """Return the torques (m,) in addition to those of gravity compensation (m,).

        ``s`` holds the references. Raises ArgumentError for a law that fails.
        """
        elapsed = max(0.0, state.time - self._begun_at)
        share = min(1.0, elapsed / self._time) if self._time else 1.0
        before = self._before
        if share == 1.0:
            self._before = None
        torques = np.zeros(len(gravity))
        if self.law is not None:
            torques = torques_of(self.law, model, state, reference_of(self.law, s)) - gravity
            torques *= 1.0 if self._fades else share
        if before is not None and share < 1.0:
            fading = torques_of(before, model, state, reference_of(before, s)) - gravity
            torques = torques + (1.0 if self._fades else 1.0 - share) * fading
        return torques


def reference_of(law: Any, s: State) -> JointReference | PoseReference:
    """Return the reference of a law in a state of the period."""
    if getattr(law, "link", None) is None:
        return JointReference(*map(np.array, (s.reference, s.reference_qd, s.reference_qdd)))
    C = np.asarray(s.pose)
    pose = se3.pose(C[:, :3], C[:, 3])
    return PoseReference(pose, *map(np.array, (s.twist, s.reference, s.reference_qd)))


def torques_of(law: Law, model: Model, state: LawState, reference: Any) -> FloatArray:
    """Return the torques (m,) of a law. Raises ArgumentError for one that fails."""
    name = name_of(law)
    try:
        torques = np.asarray(law(model, state, reference), dtype=float)
    except MbsError as error:
        raise ArgumentError(f"law {name!r}: {error}") from error
    except Exception as error:  # the arm must be held after any error
        raise ArgumentError(f"law {name!r} raised {type(error).__name__}: {error}") from error
    if torques.shape == (len(state.joints),) and np.isfinite(torques).all():
        return torques
    raise ArgumentError(
        f"law {name!r} returned {torques.tolist()}; valid: {len(state.joints)} finite torques"
    )
