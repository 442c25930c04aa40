# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Lets an arm follow references as on springs; all else is as in gravity_compensation_node."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.subscription import Subscription
from std_srvs.srv import SetBool, Trigger

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

    def _inputs(self) -> list[Subscription]:
        """Subscribe to the robot's state and to references."""
        prefix = self._settings.frame_prefix
        return [
            *super()._inputs(),
            self._follow("target_joint", messages.joint_target_of),
            self._follow("target_pose", partial(messages.pose_target_of, prefix=prefix)),
            self._follow("trajectory", messages.trajectory_of),
        ]

    def _follow(self, what: str, target_of: Callable[[Any], Target | None]) -> Subscription:
        """Subscribe to a topic of references, which ``target_of`` converts."""

        def follow(message: Any) -> None:
            now, clock = time.monotonic(), self._stamps_now()
            stamp = messages.stamp_of(message.header.stamp)
            self._core.described.follow(target_of(message), now, stamp=stamp, clock=clock)

        return self.subscribe(f"~/{what}", lambda message: self._try(what, lambda: follow(message)))

    def _pause(self, request: SetBool.Request) -> str:
        self._core.described.pace(0.0 if request.data else 1.0)
        return "paused" if request.data else "going on"

    def _stop(self, request: Trigger.Request) -> str:
        self._core.described.aim(time.monotonic(), None)
        return "coming to rest"


main = partial(run, ImpedanceControlNode)

if __name__ == "__main__":
    sys.exit(main())
