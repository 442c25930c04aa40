# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Remarks about an arm that does not follow its reference, or is softer than set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbs_dynamics.control.called_laws import name_of
from mbs_dynamics.control.laws import AnyLaw
from mbs_dynamics.control.motion import Motion
from mbs_dynamics.control.period import references
from mbs_dynamics.control.period.following import period_of
from mbs_dynamics.control.period.records import Settings, State
from mbs_dynamics.errors import listed

REPORTED_AFTER = 1.0
"""Time in s for which a reference must wait for the arm until that is reported."""

AT_LIMIT = 0.05
"""Distance from a position limit in rad or m within which a joint is at it."""


class Remarks:
    """Remarks about an arm and its reference.

    ``units`` are those of the commanded joints.
    """

    def __init__(self, motion: Motion, units: Sequence[str]) -> None:
        self._motion, self._units = motion, units
        self._waited = self._softened = False
        """Whether a reference that waits, and a softer law, have been reported."""
        self._old = 0.0
        """The latest motion whose target was reported as old."""

    def restart(self) -> None:
        """Enable again the remarks that are made once after torques are enabled."""
        self._softened = False

    def new(self, s: State, p: Settings, law: AnyLaw) -> list[str]:
        """Return the remarks that are due after a period in which a law moves the arm."""
        said, motion, now = [], self._motion, float(s.now)
        waits = now - min(float(s.waits_since), float(s.link_waits_since)) >= REPORTED_AFTER
        if waits and not self._waited:
            said.append(self._of_waiting(s, p))
        self._waited = waits
        follows = motion.follows == references.TARGET and s.obeys
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

    def _of_waiting(self, s: State, p: Settings) -> str:
        motion, columns = self._motion, self._motion.columns
        off = np.abs(np.asarray(s.reference - s.trusted)[columns])
        rows = zip(motion.names, np.asarray(s.waits)[columns], off, self._units, strict=True)
        away = [f"{name} is {x:.3g} {unit} away" for name, w, x, unit in rows if w]
        room = np.minimum(s.trusted - p.spring_low, p.spring_high - s.trusted)[columns]
        stopped = [name for name, x in zip(motion.names, room, strict=True) if x < AT_LIMIT]
        if stopped:
            away.append(f"at a position limit: {listed(stopped)}")
        what = f"the reference of {motion.link!r}" if motion.link else "the reference"
        return f"{what} waits for the arm" + (f": {'; '.join(away)}" if away else "")
