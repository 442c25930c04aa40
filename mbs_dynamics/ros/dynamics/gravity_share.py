# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks in poses at rest whether measured efforts balance gravity. No ROS is needed.

Some drivers subtract gravity from the efforts that they report, and some report zeros. The external
torques of a robot at rest are then gravity torques, which look like a contact.
"""

from __future__ import annotations

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.model import Model

REST = 0.02
"""Speed in rad/s or m/s up to which a joint rests."""

SETTLED = 0.5
"""Time in s at rest after which a pose counts."""

APART = 0.2
"""Least distance of gravity torques of two poses, as a share of the larger ones."""

MOST_POSES = 20

IDLE = 0.02
"""Share of the gravity torques up to which efforts in a single pose are idle."""

EXPLAINED = 0.2
"""Largest unexplained part of external torques whose cause is gravity."""

HELD = 0.2
"""Largest deviation of the share of gravity that efforts hold from 1."""


class GravityShare:
    """Compares efforts with gravity torques in poses at rest. Times are steady, in s."""

    def __init__(self) -> None:
        self._model: Model | None = None
        self._resting_since: float | None = None
        self._latest: tuple[FloatArray, FloatArray] | None = None
        self._poses: list[tuple[FloatArray, FloatArray]] = []
        """Gravity torques and efforts (n,) of each pose, the latter NaN where unknown."""

    def store(self, now: float, q: FloatArray, qd: FloatArray | None, tau: FloatArray) -> None:
        """Store a state of the joints."""
        if qd is None or not np.abs(qd).max() < REST:
            self._resting_since = self._latest = None
            return
        if self._resting_since is None:
            self._resting_since = now
        self._latest = (q.copy(), tau.copy()) if now - self._resting_since > SETTLED else None

    def problem(self, model: Model) -> str:
        """Return the message that efforts do not balance gravity; empty if they may do so.

        A single pose only shows whether all efforts are idle. Several poses distinguish a share of
        gravity other than 1 from contacts, which do not follow gravity.
        """
        if model is not self._model:
            self._model, self._poses = model, []
        if self._latest is not None:
            self._add(mbs.gravity_torques(model, self._latest[0]), self._latest[1])
        if not self._poses:
            return ""
        g = np.concatenate([pose[0] for pose in self._poses])
        tau = np.concatenate([pose[1] for pose in self._poses])
        known = np.isfinite(tau)
        g, tau = g[known], tau[known]
        size = np.linalg.norm(g)
        if not size > 0.0:
            return ""
        share = float(g @ tau / size**2)
        if np.linalg.norm(tau) > IDLE * size:
            left = np.linalg.norm(tau - share * g)
            cause = abs(1.0 - share) * size
            if len(self._poses) < 2 or abs(1.0 - share) <= HELD or left > EXPLAINED * cause:
                return ""
        causes = (
            "Does the driver subtract gravity, does it not measure efforts, or do brakes hold the "
            "robot?"
        )
        if share < -HELD:
            causes = "Do efforts count against the axes of the joints, or is gravity reversed?"
        elif share > 1.0:
            causes = "Are the efforts in N m, or are masses of the description wrong?"
        return (
            f"at rest the efforts hold {100.0 * share:.0f} % of gravity in {len(self._poses)} "
            "pose(s): the external torques are an error of gravity torques, and no contact. "
            f"{causes}"
        )

    def _add(self, g: FloatArray, tau: FloatArray) -> None:
        """Store a pose, in place of one with nearly the same gravity torques."""
        for k, (other, _) in enumerate(self._poses):
            apart = np.linalg.norm(g - other)
            if apart <= APART * max(np.linalg.norm(g), np.linalg.norm(other)):
                self._poses[k] = g, tau
                return
        self._poses = [*self._poses[1 - MOST_POSES :], (g, tau)]
