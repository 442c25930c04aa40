# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates a grasped load from still poses and publishes it, without applying it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import InertiaStamped

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Robot

if TYPE_CHECKING:
    from mbs_dynamics.identification.still_payload import StillPayload, StillPoses

TOPIC = "~/payload_estimate"

STILL = 0.5
"""Time in s for which an arm must stand still; its torques are averaged over it."""

SLOW = 0.01
"""An arm stands still while no joint is faster than this, in rad/s or m/s."""


class PayloadEstimation:
    """The services that take still poses, and the topic of the estimated load.

    ``in_force`` returns the present robot.
    """

    def __init__(self, node: Any, in_force: Callable[[], Robot | None]) -> None:
        self._node, self._in_force = node, in_force
        self._services: list[Any] = []
        self._publisher: Any = None
        self._latest: deque[tuple[float, FloatArray, FloatArray]] = deque()
        self._poses: StillPoses | None = None

    @property
    def listens(self) -> bool:
        """Whether states are used."""
        return self._publisher is not None

    def listen(self, settings: DynamicsSettings, active: bool) -> None:
        """Create the services and the topic if the settings ask for them in an active node."""
        wanted = active and settings.estimate_payload
        if wanted == self.listens:
            return
        if wanted:
            self._publisher = self._node.advertise(TOPIC)
            self._services = [
                self._node.answer(f"{TOPIC}/take", lambda _: self._take()),
                self._node.answer(f"{TOPIC}/restart", lambda _: self._restart()),
            ]
            return
        while self._services:
            self._node.destroy_service(self._services.pop())
        self._node.destroy_publisher(self._publisher)
        self._publisher, self._poses = None, None
        self._latest.clear()

    def note(self, now: float, reading: Reading) -> None:
        """Store a state that was received at a time in s."""
        if reading.qd is None or np.abs(reading.qd).max() > SLOW:
            self._latest.clear()
            return
        # Velocities do not show a motion during which states were lost.
        if self._latest and np.abs(reading.q - self._latest[-1][1]).max() > SLOW * STILL:
            self._latest.clear()
        self._latest.append((now, reading.q.copy(), reading.efforts.tau.copy()))  # of buffers
        # A busy machine loses states for longer than STILL: the last one before is kept.
        while len(self._latest) > 1 and now - self._latest[1][0] >= STILL:
            self._latest.popleft()

    def _restart(self) -> str:
        self._poses = None
        return "all poses are forgotten"

    def _take(self) -> str:
        """Take the present pose and return the estimate in words. Raises MbsError if it fails."""
        from mbs_dynamics.identification.still_payload import StillPoses

        robot = self._in_force()
        if robot is None:
            raise ModelError("there is no robot_description yet")
        if len(self._latest) < 2 or self._latest[-1][0] - self._latest[0][0] < 0.8 * STILL:
            raise ArgumentError(f"the arm must stand still for {STILL:g} s, with joint_states")
        _, positions, torques = zip(*self._latest, strict=True)
        q, tau = np.mean(positions, axis=0), np.mean(torques, axis=0)
        same = self._poses is not None and self._poses.model is robot.model
        if self._poses is None or not same:  # another robot, gravity or load
            self._poses = StillPoses(robot.model, robot.tool_body)
        self._poses.take(q, tau)
        count = f"{len(self._poses)} pose(s) taken"
        try:
            load = self._poses.estimate()
        except MbsError as error:
            return f"{count}; no load yet: {error}"
        self._publisher.publish(self._message(robot, load))
        x, y, z = load.com
        return (
            f"{count}: {load.mass:.3f} +- {load.mass_deviation:.3f} kg at {robot.tool_body!r}, "
            f"centre of mass {x:.3f}, {y:.3f}, {z:.3f} +- {load.com_deviation.max():.3f} m; "
            f"offered on {TOPIC}, to be announced on ~/payload"
        )

    def _message(self, robot: Robot, load: StillPayload) -> InertiaStamped:
        message = InertiaStamped()
        message.header.stamp = self._node.stamp_now()
        message.header.frame_id = robot.settings.frame_prefix + robot.tool_body
        message.inertia.m = load.mass
        com = message.inertia.com
        com.x, com.y, com.z = load.com.tolist()
        return message
