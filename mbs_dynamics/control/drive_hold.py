# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Drives that hold an arm by their own position loops, with gravity torques fed forward."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.control.input_checks import JointStates
from mbs_dynamics.control.laws.gravity import GravityLaw
from mbs_dynamics.control.policy import CommandPolicy, Doubt, Torques

SWITCHING = 0.03
"""Time in s in which drives that start or stop to control positions may exert no torque."""


class DriveHold:
    """Positions and torques that drives are given while they hold an arm, or let go of it.

    Parameters: ``names`` (m,) and ``joints`` (m,) are names and coordinates of the commanded
    joints; ``stiffness`` in N m/rad or N/m and ``damping`` in N m s/rad or N s/m are those of
    their position loops; positions to be held are at most ``slip`` (m,) from the measured ones.
    """

    def __init__(
        self,
        names: Sequence[str],
        joints: Sequence[int],
        stiffness: Sequence[float] = (),
        damping: Sequence[float] = (),
        slip: Sequence[float] = (),
    ) -> None:
        self._names, self._joints = names, joints
        self._stiffness, self._damping, self._slip = stiffness, damping, slip
        self.held: list[float] = []
        """(n,) positions that the drives hold, where they do."""
        self.slipped = ""
        """Which drive did not hold the arm; empty if all do."""
        self._since = -math.inf
        self._gripped = False
        self._switched_at = -math.inf
        """When the drives started or stopped to control positions the last time, in s."""
        self._torques: Torques | None = None

    def torques(
        self, policy: CommandPolicy, q: Sequence[float], law: GravityLaw, now: float
    ) -> Torques | None:
        """Return the torques of drives that hold an arm at q (n,); None if they do not."""
        if policy.grip == 0.0:
            return None
        if self._since != policy.since or not self.held:
            fault = None if policy.engaged else policy.fault
            if not self.held or fault is None or fault.doubt is not Doubt.GRAVITY:
                self.held = list(q)
            self._since, self._torques, self.slipped = policy.since, None, ""
        if policy.engaged or not self.held:
            return None
        if not policy.nudge:
            self._follow_slip(policy, q)
        self._torques = Torques(law.holding_torques(np.array(self.held), now), [], [])
        return self._torques

    def _follow_slip(self, policy: CommandPolicy, q: Sequence[float]) -> None:
        """Let the positions that drives are to hold follow an arm that they do not hold.

        They may be without power, or overcome; they would throw the arm back if they went on with
        positions far away. A doubted encoder is not followed.
        """
        fault = policy.fault
        doubted = fault.joints if fault is not None and fault.doubt is Doubt.ENCODER else ()
        for place, (k, most) in enumerate(zip(self._joints, self._slip, strict=True)):
            ahead = self.held[k] - q[k]
            if not -most <= ahead <= most and place not in doubted:
                self.held[k] = q[k] + math.copysign(most, ahead)
                self.slipped = self.slipped or (
                    f"the drive of {self._names[place]} does not hold it: it is {most:.3g} "
                    "from where it is to be"
                )

    def fed_forward(self, policy: CommandPolicy) -> Sequence[float]:
        """Return the gravity torques of the commanded joints where drives hold the arm."""
        return policy.latest if self._torques is None else self._torques.gravity

    def switched(self, policy: CommandPolicy, now: float) -> None:
        """Note whether the drives control positions since the latest command."""
        if self._gripped != (policy.grip > 0.0):
            self._gripped, self._switched_at = not self._gripped, now

    def switching(self, now: float) -> bool:
        """Return whether the drives may exert no torque, since they have just switched."""
        return now - self._switched_at < SWITCHING

    def expected(
        self, policy: CommandPolicy, command: list[float], state: JointStates
    ) -> list[float]:
        """Return the efforts that follow from a command, with the position loops of the drives."""
        grip = policy.grip
        if grip == 0.0 or not self.held:
            return command
        positions, rates, held = state.positions, state.rates, self.held
        rows = zip(command, self._joints, self._stiffness, self._damping, strict=True)
        return [x + grip * (K * (held[k] - positions[k]) - D * rates[k]) for x, k, K, D in rows]
