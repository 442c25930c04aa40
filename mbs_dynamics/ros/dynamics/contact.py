# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Contact with the surroundings, as the dynamics node publishes it. Knows no ROS."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.ros.dynamics.momentum_observer import JUST_STARTED, MomentumObserver
from mbs_dynamics.ros.dynamics.tool_wrench import ToolWrench, tool_wrench
from mbs_dynamics.ros.effort_input import Efforts
from mbs_dynamics.ros.joint_input import Reading
from mbs_dynamics.ros.robot import Results, Robot


class Contact:
    """The momentum observer of the robot in force, whatever robot that is, and what it sees."""

    def __init__(self) -> None:
        self.joints: tuple[str, ...] = ()
        """The joints whose external torque is known."""
        self.torques: FloatArray | None = None
        """Their external torques in N m or N; None if none is known."""
        self.wrench: ToolWrench | None = None
        """What acts on the tool, if that is asked for and known."""
        self.why_not = ""
        """Why some or all torques are not known; empty if all are, or will be with next message."""
        self._observer: MomentumObserver | None = None
        self._robot: Robot | None = None

    def restart(self) -> None:
        """Forget what was seen."""
        self.joints, self.torques, self.wrench, self.why_not = (), None, None, ""
        self._observer, self._robot = None, None

    def hear(
        self, robot: Robot, stamp: int, reading: Reading, efforts: Efforts, results: Results
    ) -> None:
        """Take in a message, and what was computed for it; ``stamp`` in ns, 0 if it has none."""
        observer = self._observer_of(robot)
        observer.hear(stamp, reading.q, reading.qd, efforts.tau, results.momentum)
        self.joints, self.torques, self.wrench = (), None, None
        self.why_not = observer.why_not or efforts.why_not
        if self.why_not == JUST_STARTED:
            self.why_not = efforts.why_not
        residual = observer.residual
        if residual is None:
            return
        known = np.isfinite(residual)
        names = robot.model.joint_names
        if not known.any():
            return
        self.joints = tuple(name for name, there in zip(names, known, strict=True) if there)
        self.torques = residual[known]
        if results.tool_jacobian is not None:
            damping = robot.settings.wrench_damping
            self.wrench = tool_wrench(results.tool_jacobian, residual, damping)

    def _observer_of(self, robot: Robot) -> MomentumObserver:
        """Return the observer, which goes on as it is when only a load or a setting has changed."""
        settings, observer, before = robot.settings, self._observer, self._robot
        if (
            observer is None
            or before is None
            or before.model.joint_names != robot.model.joint_names
        ):
            observer = self._observer = MomentumObserver(
                gain=settings.observer_gain, longest=settings.stale_timeout, friction=robot.friction
            )
        elif before is not robot:
            observer.gain, observer.longest = settings.observer_gain, settings.stale_timeout
            observer.friction = robot.friction
            observer.adopt(robot.momentum)
        self._robot = robot
        return observer
