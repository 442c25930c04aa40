# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws that are called before the period: Python functions of users.

The period computes their references, and blends their torques with those of its own laws. From one
called law to another, or to none, torques change linearly over ``switch_time``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.law import Law, LawState
from mbs_dynamics.control.period.records import State
from mbs_dynamics.control.references import JointReference, PoseReference
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.lie import se3
from mbs_dynamics.model.model import Model


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
