# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Remarks about an arm that does not follow its reference, or is softer than set."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.control.called_laws import name_of
from mbs_dynamics.control.laws import AnyLaw
from mbs_dynamics.control.motion import Motion
from mbs_dynamics.control.period import laws, references
from mbs_dynamics.control.period.following import period_of
from mbs_dynamics.control.period.records import Settings, State
from mbs_dynamics.errors import listed

REPORTED_AFTER = 1.0
"""Time in s for which an arm must lag behind until that is reported."""

AT_LIMIT = 0.05
"""Distance from a position limit in rad or m within which a joint is at it."""

HELD_OFF = 0.05, 0.01
"""Errors in rad and m beyond which a target that a limit keeps out of reach is reported."""


class Lag:
    """Reports once that an arm has lagged behind for some time."""

    def __init__(self) -> None:
        self._since = math.inf
        self._reported = False

    def due(self, lags: bool, now: float) -> bool:
        """Return whether a lag is to be reported now."""
        if not lags:
            self._since, self._reported = math.inf, False
            return False
        self._since = min(self._since, now)
        due = not self._reported and now - self._since >= REPORTED_AFTER
        self._reported = self._reported or due
        return due


class Remarks:
    """Remarks about an arm and its reference.

    ``units`` are those of the commanded joints.
    """

    def __init__(self, motion: Motion, units: Sequence[str]) -> None:
        self._motion, self._units = motion, units
        self._joints, self._link, self._target = Lag(), Lag(), Lag()
        self._softened = False
        self._old = 0.0
        """The latest motion whose target was reported as old."""

    def restart(self) -> None:
        """Enable again the remarks that are made once after torques are enabled."""
        self._softened = False

    def new(self, s: State, p: Settings, law: AnyLaw) -> list[str]:
        """Return the remarks that are due after a period in which a law moves the arm."""
        said, motion, now = [], self._motion, float(s.now)
        if self._joints.due(s.waits_since < math.inf, now):
            said.append(self._of_joints(s))
        if self._link.due(s.link_waits_since < math.inf, now):
            said.append(self._of_link("its reference, which waits", s, p))
        follows = motion.follows == references.TARGET and s.obeys
        rests = follows and motion.law in laws.OF_LINKS and not s.twist.any()
        rests = rests and bool((s.pose == motion.target_pose).all())
        if self._target.due(rests and self._is_off(s, p), now):
            said.append(self._of_link("its target", s, p))
        old = now - float(s.motion_at) > p.reference_timeout
        if follows and old and motion.target_qd.any() and self._old != motion.motion:
            self._old = motion.motion
            said.append(f"the reference is {float(p.reference_timeout):g} s old, and is held")
        if s.stiffness_share < 1.0 and not self._softened:
            self._softened = True
            gap = max(float(s.gap), float(period_of(s, p)))
            said.append(
                f"law {name_of(law)!r} is softer than set for some time: with up to "
                f"{1e3 * gap:.3g} ms between two states its stiffness would be unstable at this "
                "posture; this is reported once"
            )
        return said

    def _of_joints(self, s: State) -> str:
        motion, columns = self._motion, self._motion.columns
        off = np.asarray(s.reference - s.trusted)[columns].tolist()
        rows = zip(motion.names, np.asarray(s.waits)[columns], off, self._units, strict=True)
        away = listed([f"{name} is {abs(x):.3g} {unit} away" for name, w, x, unit in rows if w])
        if motion.trajectory is not None and s.played >= motion.duration:
            return f"the trajectory is at its last point, and the arm is not: {away}"
        return f"the reference waits for the arm: {away}"

    def _is_off(self, s: State, p: Settings) -> bool:
        return bool(self._at_limits(s, p)) and any(np.greater(self._off(s), HELD_OFF))

    def _of_link(self, what: str, s: State, p: Settings) -> str:
        (angle, distance), at = self._off(s), self._at_limits(s, p)
        why = f"; {', '.join(at)} at a position limit" if at else ""
        return (
            f"{self._motion.link!r} is {distance:.3g} m and {angle:.3g} rad away from {what}{why}"
        )

    def _off(self, s: State) -> tuple[float, float]:
        C, _ = self._motion.kinematics(np.array(s.trusted))
        angle, distance = np.linalg.norm(references.pose_error(C[:3], np.asarray(s.pose)), axis=1)
        return float(angle), float(distance)

    def _at_limits(self, s: State, p: Settings) -> list[str]:
        room = np.minimum(s.trusted - p.spring_low, p.spring_high - s.trusted)[self._motion.columns]
        return [name for name, x in zip(self._motion.names, room, strict=True) if x < AT_LIMIT]
