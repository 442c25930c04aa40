# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External torques and tool wrench of the robot of dynamics_node. No ROS is needed."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.contact import JUST_STARTED, MomentumObserver, ToolWrench, tool_wrench
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import WRENCH_DAMPING, Results, Robot, momentum_of


class Contact:
    """The momentum observer of the robot in force, and its results."""

    def __init__(self) -> None:
        self._observer: MomentumObserver | None = None
        self._robot: Robot | None = None
        self.why_not = ""
        """Why some or all torques are unknown; empty if none is, or just after the start."""
        self._clear()

    def _clear(self) -> None:
        self.joints: tuple[str, ...] = ()
        """The joints whose external torque is known."""
        self.torques: FloatArray | None = None
        """Their external torques in N m or N; None if none is known."""
        self.wrench: ToolWrench | None = None
        """The wrench on the tool, if it is asked for and known."""

    def restart(self) -> None:
        """Forget all results and the observer."""
        self._observer, self._robot, self.why_not = None, None, ""
        self._clear()

    def update(self, robot: Robot, reading: Reading, results: Results) -> None:
        """Process a state of the robot, and the results that were computed for it.

        The robot is the same as before, except for loads and settings, unless there was a restart.
        """
        settings, observer = robot.settings, self._observer
        if observer is None:
            observer = self._observer = MomentumObserver(
                gain=settings.observer_gain, longest=settings.stale_timeout, friction=robot.friction
            )
        elif robot is not self._robot:
            observer.gain, observer.longest = settings.observer_gain, settings.stale_timeout
            observer.friction = robot.friction
            observer.adopt(robot.momentum)
        self._robot = robot
        observer.update(reading.stamp, reading.q, reading.qd, reading.tau, momentum_of(results))
        why_not = "" if observer.why_not == JUST_STARTED else observer.why_not
        self.why_not = why_not or reading.why_no_effort
        self._clear()
        residual = observer.residual
        if residual is None or not np.isfinite(residual).any():
            return
        known = np.isfinite(residual)
        names = zip(robot.model.joint_names, known, strict=True)
        self.joints = tuple(name for name, there in names if there)
        self.torques = residual[known]
        if "tool_jacobian" in results:
            self.wrench = tool_wrench(results["tool_jacobian"], residual, WRENCH_DAMPING)

    def lacking(self, settings: DynamicsSettings) -> str:
        """Return the topics that lack efforts, and why; empty if none does."""
        topics = settings.observed
        if not (topics and self.why_not):
            return ""
        return f"{' and '.join(topics)} missing or partial: {self.why_not}"
