# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reactions of an arm under guard to collisions: it stops, floats or yields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.collision import CollisionDetector
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.following import FLOATING, Followed, Following
from mbs_dynamics.control.input_checks import JointStates
from mbs_dynamics.control.settings import YIELDING
from mbs_dynamics.model.model import Model

YIELDING_SHARE = 0.25
"""Share of the velocity limits up to which an arm that yields goes along with a contact."""


class Stoppable(Protocol):
    """What a collision stops."""

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""

    def trip(self, now: float, fault: Fault) -> None:
        """Stop for a fault."""


class CollisionReaction:
    """Watches for collisions while torques are enabled, and stops or floats."""

    def __init__(
        self, detector: CollisionDetector, policy: Stoppable, following: Following
    ) -> None:
        self.detector = detector
        self._policy, self._following = policy, following
        self._interrupted: Followed | None = None
        """The law in place of which the arm floats since a collision."""
        self._yields_until = -math.inf

    def restart(self) -> None:
        """Forget a collision."""
        self._interrupted, self._yields_until = None, -math.inf
        self.detector.restart()

    def resume(self, now: float) -> None:
        """Forget a collision, and follow the law again that it interrupted."""
        if self._interrupted is not None:
            self._following.switch(self._interrupted, now, engaged=False)
        self.restart()

    def update(
        self,
        model: Model,
        state: JointStates,
        q: FloatArray,
        efforts: list[float],
        reaction: str,
        now: float,
    ) -> bool:
        """React to a collision that begins with this state; return whether the arm floats now.

        ``model`` is the one with the gravity and loads in force, ``reaction`` stop, float or yield.
        """
        rates = np.array(state.rates)
        self.detector.update(state.stamp, q, rates, np.array(efforts), model)
        if not self._policy.engaged:
            return False
        collision = self.detector.detect(state.stamp, q, rates)
        if collision is None:
            return False
        if reaction == "stop":
            self._policy.trip(now, Fault("collision", str(collision)))
            return False
        self._interrupted = Followed(self._following.law, self._following.follower)
        self._following.switch(FLOATING, now, engaged=False)
        if reaction == "yield":
            self._yields_until = now + YIELDING
        return True

    def yields(self, now: float) -> bool:
        """Return whether the arm goes along with a contact."""
        return now < self._yields_until

    def along(self, rates: Sequence[float], fastest: Sequence[float]) -> list[float]:
        """Return the torques (n,) of an arm that yields, less the faster it moves already."""
        left = np.clip(1.0 - np.abs(rates) / np.multiply(YIELDING_SHARE, fastest), 0.0, 1.0)
        torques: list[float] = (left * self.detector.beyond).tolist()
        return torques
