# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Contact with the surroundings, as the dynamics node publishes it. Knows no ROS."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.ros.dynamics.momentum_observer import JUST_STARTED, MomentumObserver
from mbs_dynamics.ros.dynamics.tool_wrench import ToolWrench, tool_wrench
from mbs_dynamics.ros.joint_input import Reading
from mbs_dynamics.ros.robot import Results, Robot


class Contact:
    """The momentum observer of the robot in force, whatever robot that is, and what it sees."""

    def __init__(self) -> None:
        self.joints: tuple[str, ...] = ()
        """The joints whose external torque is known."""
        self.torques: FloatArray | None = None
        """Their external torques in N m or N; None if none is known."""
        self.why_not = ""
        """Why some or all torques are not known; empty if all are, or will be with next message."""
        self._observer: MomentumObserver | None = None
        self._robot: Robot | None = None
        self._names: tuple[str, ...] = ()
        self._felt: tuple[FloatArray, FloatArray, float] | None = None
        self._wrench: ToolWrench | None = None

    @property
    def wrench(self) -> ToolWrench | None:
        """What acts on the tool, if that is asked for and known; computed for those who look."""
        if self._wrench is None and self._felt is not None:
            self._wrench = tool_wrench(*self._felt)
        return self._wrench

    def restart(self) -> None:
        """Forget what was seen."""
        self._see_nothing()
        self.why_not = ""
        self._observer, self._robot = None, None

    def _see_nothing(self) -> None:
        self.joints, self.torques = (), None
        self._felt, self._wrench = None, None

    def hear(self, robot: Robot, reading: Reading, results: Results) -> None:
        """Take in a state of the robot, and what was computed for it."""
        efforts = reading.efforts
        observer = self._observer_of(robot)
        observer.hear(reading.stamp, reading.q, reading.qd, efforts.tau, results.momentum)
        self._see_nothing()
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
            self._see_nothing()
        elif results.tool_jacobian is not None:
            self._felt = results.tool_jacobian, residual, robot.settings.wrench_damping

    def _observer_of(self, robot: Robot) -> MomentumObserver:
        """Return the observer, which goes on as it is when only a load or a setting has changed."""
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
