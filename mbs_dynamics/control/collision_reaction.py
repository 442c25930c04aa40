# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reactions of an arm under guard to collisions: it stops, floats or yields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.collision import CollisionDetector
from mbs_dynamics.control.following import FLOATING, Followed
from mbs_dynamics.control.input_checks import JointStates
from mbs_dynamics.control.policy import Fault
from mbs_dynamics.control.settings import YIELDING

if TYPE_CHECKING:
    from mbs_dynamics.control.guard import Guard

YIELDING_SHARE = 0.25
"""Share of the velocity limits up to which an arm that yields goes along with a contact."""


class CollisionReaction:
    """Watches for collisions while torques are enabled, and reacts as the settings state."""

    def __init__(self, detector: CollisionDetector) -> None:
        self.detector = detector
        self.interrupted: Followed | None = None
        """The law in place of which the arm floats since a collision."""
        self._yields_until = -math.inf

    def restart(self) -> None:
        """Forget a collision."""
        self.interrupted, self._yields_until = None, -math.inf
        self.detector.restart()

    def update(
        self, guard: Guard, state: JointStates, q: FloatArray, efforts: list[float], now: float
    ) -> None:
        """React to a collision that begins with this state, if torques are enabled."""
        if guard.law.loads.moving:  # a load is taken up or put off
            self.detector.restart()
        model, rates = guard.model_in_force(now), np.array(state.rates)
        self.detector.update(state.stamp, q, rates, np.array(efforts), model)
        if not guard.policy.engaged:
            return
        collision = self.detector.detect(state.stamp, q, rates)
        if collision is None:
            return
        reaction = guard.settings.on_collision
        if reaction == "stop":
            guard.policy.trip(now, Fault("collision", str(collision)))
            return
        self.interrupted = Followed(guard.following.law, guard.following.follower)
        guard.following.switch(FLOATING, now, engaged=False)
        guard.settle(now)
        if reaction == "yield":
            self._yields_until = now + YIELDING

    def yields(self, now: float) -> bool:
        """Return whether the arm goes along with a contact."""
        return now < self._yields_until

    def along(self, rates: Sequence[float], fastest: Sequence[float]) -> list[float]:
        """Return the torques (n,) of an arm that yields, less the faster it moves already."""
        left = np.clip(1.0 - np.abs(rates) / np.multiply(YIELDING_SHARE, fastest), 0.0, 1.0)
        torques: list[float] = (left * self.detector.beyond).tolist()
        return torques
