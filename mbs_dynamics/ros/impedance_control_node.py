# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Lets an arm follow references as on springs; all else is as in gravity_compensation_node."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from mbs_dynamics.control.references import Target
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.compensation.impedance import IMPEDANCE_CONTROL_NODE
from mbs_dynamics.ros.gravity_compensation_node import GravityCompensationNode
from mbs_dynamics.ros.process import run


class ImpedanceControlNode(GravityCompensationNode):
    """The impedance control node; see docs/reference/nodes."""

    interface = IMPEDANCE_CONTROL_NODE
    controls = "impedance control"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.answer("~/pause", self._pause)
        self.answer("~/stop", self._stop)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to the robot's state and to references."""
        done = super().on_activate(state)
        self._activated += [
            self.subscribe("~/target_joint", self._on_target_joint),
            self.subscribe("~/target_pose", self._on_target_pose),
            self.subscribe("~/trajectory", self._on_trajectory),
        ]
        return done

    def _on_target_joint(self, message: JointState) -> None:
        self._aim("target_joint", message, lambda: messages.joint_target_of(message))

    def _on_target_pose(self, message: PoseStamped) -> None:
        prefix = self._settings.frame_prefix
        self._aim("target_pose", message, lambda: messages.pose_target_of(message, prefix))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        self._aim("trajectory", message, lambda: messages.trajectory_of(message))

    def _aim(self, what: str, message: Any, target: Callable[[], Target | None]) -> None:
        stamp, clock = messages.stamp_of(message.header.stamp), self._stamps_now()
        now = time.monotonic()
        self._try(what, lambda: self._core.aim(target(), now, stamp=stamp, clock=clock))

    def _pause(self, request: SetBool.Request) -> str:
        self._core.pace(0.0 if request.data else 1.0)
        return "paused" if request.data else "going on"

    def _stop(self, request: Trigger.Request) -> str:
        self._core.aim(None, time.monotonic())
        return "coming to rest"


main = partial(run, ImpedanceControlNode)

if __name__ == "__main__":
    sys.exit(main())
