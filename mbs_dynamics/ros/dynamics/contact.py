# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External torques and tool wrench of the robot of dynamics_node. No ROS is needed."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.contact import JUST_STARTED, MomentumObserver, ToolWrench, tool_wrench
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import WRENCH_DAMPING, Results, Robot


class Contact:
    """The momentum observer of the robot in force, and its results."""

    def __init__(self) -> None:
        self.joints: tuple[str, ...] = ()
        """The joints whose external torque is known."""
        self.torques: FloatArray | None = None
        """Their external torques in N m or N; None if none is known."""
        self.why_not = ""
        """Why some or all torques are unknown; empty if none is, or just after the start."""
        self._observer: MomentumObserver | None = None
        self._robot: Robot | None = None
        self._names: tuple[str, ...] = ()
        self._external: tuple[FloatArray, FloatArray, float] | None = None
        self._wrench: ToolWrench | None = None

    @property
    def wrench(self) -> ToolWrench | None:
        """The wrench on the tool, if it is asked for and known; computed at the first access."""
        if self._wrench is None and self._external is not None:
            self._wrench = tool_wrench(*self._external)
        return self._wrench

    def lacking(self, settings: DynamicsSettings, missing: str) -> str:
        """Return the topics that lack efforts, and why; empty if none does.

        ``missing`` is the reason for those that do not depend on the observer.
        """
        if not (missing or self.why_not):  # mostly
            return ""
        by_reason: dict[str, list[str]] = {}
        rows = (self.why_not, settings.observed), (missing, settings.needing_effort)
        for why, topics in rows:
            if why and topics:
                by_reason.setdefault(why, []).extend(topics)
        return "; ".join(
            f"{' and '.join(topics)} missing or partial: {why}" for why, topics in by_reason.items()
        )

    def restart(self) -> None:
        """Forget all results and the observer."""
        self._clear()
        self.why_not = ""
        self._observer, self._robot = None, None

    def _clear(self) -> None:
        self.joints, self.torques = (), None
        self._external, self._wrench = None, None

    def update(self, robot: Robot, reading: Reading, results: Results) -> None:
        """Process a state of the robot, and the results that were computed for it."""
        efforts = reading.efforts
        observer = self._observer_of(robot)
        observer.update(reading.stamp, reading.q, reading.qd, efforts.tau, results.momentum)
        self._clear()
        self.why_not = observer.why_not or efforts.why_not
        if self.why_not == JUST_STARTED:
            self.why_not = efforts.why_not
        residual = observer.residual
        if residual is None:
            return
        self.joints, self.torques = self._names, residual
        known = np.isfinite(residual)
        if not known.all():
            names = zip(self.joints, known, strict=True)
            self.joints = tuple(name for name, there in names if there)
            self.torques = residual[known]
        if not self.joints:
            self._clear()
        elif results["tool_jacobian"] is not None:
            self._external = results["tool_jacobian"], residual, WRENCH_DAMPING

    def _observer_of(self, robot: Robot) -> MomentumObserver:
        """Return the observer, which continues if only a load or a setting has changed."""
        settings, observer, before = robot.settings, self._observer, self._robot
        if before is robot and observer is not None:
            return observer
        self._names = robot.model.joint_names
        if (
            observer is None
            or before is None
            or before.model.joint_names != robot.model.joint_names
        ):
            observer = self._observer = MomentumObserver(
                gain=settings.observer_gain, longest=settings.stale_timeout, friction=robot.friction
            )
        else:
            observer.gain, observer.longest = settings.observer_gain, settings.stale_timeout
            observer.friction = robot.friction
            observer.adopt(robot.momentum)
        self._robot = robot
        return observer
