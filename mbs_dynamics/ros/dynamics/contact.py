# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External torques and tool wrench of the robot of dynamics_node. No ROS is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.control.contact import JUST_STARTED, MomentumObserver, tool_wrench
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.ros.dynamics.robot import Results, Robot, momentum_of

WRENCH_DAMPING = 0.05
"""Smaller singular values of the Jacobian (lengths in m) are damped in the tool wrench, so that it
stays finite where the arm is singular."""

REST = 0.02
"""Speed in rad/s or m/s up to which a joint rests."""

IDLE = 0.05
"""Share of the gravity torques up to which the efforts of a resting robot hold no gravity."""

NO_GRAVITY = (
    "at rest the efforts hold no gravity: the external torques are gravity torques, and no "
    "contact. Does the driver subtract gravity, does it not measure efforts, or do brakes hold the "
    "robot?"
)


class Contact:
    """The momentum observer of a robot, whose loads and settings may change."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._observer = MomentumObserver(gain=1.0, longest=1.0)  # update() sets both
        self.joints: tuple[str, ...] = ()
        """The joints whose external torque is known."""
        self.missing = ""
        """Which topics are missing or partial, and why; empty if none is, or just after start."""
        self.partial = ""
        """Why results are published that tell less than they seem to; empty if none is."""
        self.directions = ""
        """How many directions of the tool wrench the torques show; empty if it is unknown."""

    def update(self, robot: Robot, reading: Reading, results: Results) -> dict[str, Any]:
        """Process a state of the robot, and the results that were computed for it.

        Return the external torques, with the names of their joints, and the tool wrench (6,), by
        the names of their outputs, as far as they are known.
        """
        settings, observer = robot.settings, self._observer
        observer.gain, observer.longest = settings.observer_gain, settings.stale_timeout
        observer.friction = robot.friction
        if robot is not self._robot:
            observer.adopt(robot.momentum)
            self._robot = robot
        observer.update(reading.stamp, reading.q, reading.qd, reading.tau, momentum_of(results))
        why_not = "" if observer.why_not == JUST_STARTED else observer.why_not
        why_not = why_not or reading.why_no_effort
        topics = " and ".join(settings.observed)
        self.missing = f"{topics} missing or partial: {why_not}" if why_not else ""
        self.joints, self.partial, self.directions = (), "", ""
        residual = observer.residual
        if residual is None or not np.isfinite(residual).any():
            return {}
        known = np.isfinite(residual)
        names = zip(robot.model.joint_names, known, strict=True)
        self.joints = tuple(name for name, there in names if there)
        found: dict[str, Any] = {"external_torques": (self.joints, residual[known])}
        if "tool_jacobian" in results:
            wrench = tool_wrench(results["tool_jacobian"], residual, WRENCH_DAMPING)
            found["tool_wrench"], self.directions = wrench.W, f"{wrench.observed} of 6"
            if wrench.observed < 6:
                self.partial = (
                    f"the joint torques show {self.directions} directions of the tool wrench: it "
                    "is partial"
                )
        if self._idle(reading, results):
            self.partial = NO_GRAVITY
        return found

    @staticmethod
    def _idle(reading: Reading, results: Results) -> bool:
        """Return whether the robot rests, and measured efforts do not hold its gravity."""
        if reading.qd is None or not np.abs(reading.qd).max() < REST:
            return False
        known = np.isfinite(reading.tau)
        tau, g = reading.tau[known], results["gravity_torques"][known]
        return bool(np.linalg.norm(tau) < IDLE * np.linalg.norm(g))
