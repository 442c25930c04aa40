# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishes torques, twists, Jacobians and contact forces of a robot as it moves.

Behaviour: docs/reference/nodes. Nothing is decided here: callbacks convert, call and publish.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.errors import MbsError, listed, quoted
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.described_node import DescribedNode
from mbs_dynamics.ros.dynamics import publishers
from mbs_dynamics.ros.dynamics.base import BaseInput
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.feed_forward import FeedForward
from mbs_dynamics.ros.dynamics.gravity_share import GravityShare
from mbs_dynamics.ros.dynamics.interface import DYNAMICS_NODE, DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import ModelManager, Robot
from mbs_dynamics.ros.performance import RateLimit
from mbs_dynamics.ros.process import run


class DynamicsNode(DescribedNode):
    """The dynamics node; see docs/reference/nodes."""

    interface = DYNAMICS_NODE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._manager = ModelManager(self._settings)
        self._outputs = publishers.Outputs(self)
        self._base: BaseInput | None = None
        self._contact = Contact()
        self._gravity_share = GravityShare()
        self._missing = self._no_velocity = ""
        """Which topics lack efforts, and which lack velocities, and why; empty if none does."""
        self._feed_forward = FeedForward(self, lambda: self._manager.robot, self._fresh_positions)
        self._measured: Any = None
        self._limit = RateLimit(self._settings.max_rate)
        self._stale = False

    # -- lifecycle -------------------------------------------------------------------------------

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to joint states."""
        self._activated = [self.subscribe("joint_states", self._on_joint_states)]
        if self._settings.floating_base:
            self._activated += [
                self.subscribe("odom", self._on_odometry),
                self.subscribe("imu", self._on_imu),
            ]
        self._enter("active")
        return TransitionCallbackReturn.SUCCESS

    def _forget(self) -> None:
        super()._forget()
        self._outputs.clear()
        self._contact.restart()
        self._input, self._base, self._measured = None, None, None
        self._missing = self._no_velocity = ""
        self._feed_forward.restart()
        self._manager = ModelManager(self._settings)
        self._enter("unconfigured")

    @property
    def _has_robot(self) -> bool:
        return self._manager.robot is not None

    def _enter(self, state: str) -> None:
        super()._enter(state)
        self._stale = False
        self._listen()

    def _listen(self) -> None:
        """Offer the topics on request that state and settings ask for."""
        self._feed_forward.listen(self._settings, self._lifecycle == "active")

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        try:
            if self._manager.describe(text):
                self._adopt()
        except MbsError as error:
            self.warn("description", f"robot_description refused: {error}", error=True)
            return False
        return True

    def _adopt(self) -> None:
        robot = self._manager.robot
        assert robot is not None
        self._input = JointInput.of_model(
            robot.model,
            stale_timeout=self._settings.stale_timeout,
            velocity_from_position=self._settings.velocity_from_position,
            fixed=self._settings.fixed,
        )
        if self._settings.floating_base:
            settings = robot.settings
            self._base = BaseInput(robot.model, settings.odom_frame, settings.frame_prefix)
        self._contact.restart()
        self._gravity_share = GravityShare()
        self._feed_forward.restart()
        self._measured = None
        self._arrange(robot)
        self._enter(self._lifecycle)
        self._log_model(
            f"model {quoted(robot.model.name)}: {len(robot.joint_names)} joints, "
            f"back end {robot.backend}, bodies {listed(robot.bodies)}",
            self._manager.remarks,
        )

    def _arrange(self, robot: Robot) -> None:
        self._outputs.arrange(robot)
        if not robot.settings.observed:
            self._contact.restart()

    def _set_gravity(self, gravity: LinkGravity) -> None:
        self._manager.set_gravity(gravity)

    def _set_load(self, load: LinkLoad) -> None:
        self._manager.set_load(load)

    # -- joint states ------------------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        begin, robot = self.steady_time(), self._manager.robot
        reading = self._read(message, begin)
        if robot is None or reading is None:
            return
        self._measured = reading.q.copy()
        base = None
        if self._base is not None:
            base = self._base.state(begin, self._settings.stale_timeout)
            if base is None:
                text = "neither odom nor imu state it, or not within stale_timeout"
                self.warn("no base", f"the state of the floating base is unknown: {text}")
                return
        observes = bool(robot.settings.observed)
        answering = self._limit.passes(begin)
        if answering or observes:
            results = robot.evaluate(reading.q, reading.qd, base)
            if observes:
                self._contact.update(robot, reading, results)
                self._gravity_share.store(begin, reading.q, reading.qd, reading.tau)
        if not answering:
            self._statistics.skipped(begin)
            return
        stamp = messages.time_of(reading.stamp) if reading.stamp else self.stamp_now()
        self._outputs.publish(stamp, results, self._contact)
        self._statistics.answered(begin, self.steady_time())
        needing, why_not = robot.settings.needing_velocity, reading.why_no_velocity
        lacks = needing and why_not
        self._no_velocity = f"no {' and '.join(needing)}: {why_not}" if lacks else ""
        self._missing = self._contact.lacking(robot.settings)
        if self._no_velocity:
            self.warn("no velocity", self._no_velocity)
        elif self._missing:
            self.warn("no effort", self._missing)

    def _on_odometry(self, message: Any) -> None:
        if self._base is None:
            return
        pose, twist = message.pose.pose, message.twist.twist
        refused = self._base.odometry(
            message.header.frame_id,
            message.child_frame_id,
            messages.components(pose.position),
            messages.components(pose.orientation),
            messages.components(twist.angular) + messages.components(twist.linear),
            self.steady_time(),
        )
        if refused:
            self.warn("odometry", f"odom rejected: {refused}")

    def _on_imu(self, message: Any) -> None:
        if self._base is None:
            return
        refused = self._base.imu(
            message.header.frame_id,
            messages.components(message.orientation),
            messages.components(message.angular_velocity),
            self.steady_time(),
            self._settings.stale_timeout,
        )
        if refused:
            self.warn("imu", f"imu rejected: {refused}")

    def _fresh_positions(self) -> FloatArray | None:
        """Return the latest positions (n,), None if they are stale."""
        received, now = self._statistics.last_valid, self.steady_time()
        fresh = received is not None and now - received <= self._settings.stale_timeout
        return self._measured if fresh else None

    # -- diagnostics -------------------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        now = self.steady_time()
        settings, statistics = self._settings, self._statistics
        stale_for = statistics.stale_for(now, settings.stale_timeout)
        self._remind("waiting", self._waiting_for(self._manager.refused))
        self._remind_of_clock()
        if stale_for is not None and not self._stale and statistics.last_valid is not None:
            self.get_logger().warning(f"stale: no valid joint_states for {stale_for:.1f} s")
        elif stale_for is None and self._stale and statistics.last_valid is not None:
            self.get_logger().info("valid joint_states arrive again")
        self._stale = stale_for is not None
        stale_joints = self._input.stale(now) if self._input is not None else []
        status = messages.input_status(
            self._lifecycle,
            statistics.report(now),
            stale_for,
            stale_joints,
            missing=self._no_velocity,
        )
        robot = self._manager.robot
        statuses = [publishers.model_status(self._manager, self._refusals), status]
        if settings.observed and self._lifecycle == "active":
            problem = self._missing
            if robot is not None:  # which has a fixed base
                unheld = self._gravity_share.problem(robot.model)
                self._remind("gravity in efforts", unheld)
                problem = problem or unheld
            answered = statistics.last_valid is not None
            statuses.append(publishers.effort_status(self._contact, problem, answered))
        if robot is not None and settings.answers_desired:
            desired = self._feed_forward.statistics.report(now)
            statuses.append(publishers.desired_status(desired))
        self._report(statuses, robot.model.name if robot is not None else "")

    # -- parameters --------------------------------------------------------------------------------

    def _check(self, settings: DynamicsSettings) -> None:
        self._manager.check(settings)

    def _apply(self, before: DynamicsSettings, given: Sequence[str]) -> None:
        settings = self._settings
        self._limit.rate = settings.max_rate
        self._manager.configure(settings)
        if "gravity" in given:  # also if its value is the same
            self._manager.set_gravity(LinkGravity("", settings.gravity))
        if self._input is not None:
            self._input.stale_timeout = settings.stale_timeout
            self._input.velocity_from_position = settings.velocity_from_position
        self._listen()
        if self._manager.robot is not None:
            self._arrange(self._manager.robot)
        try:
            if self._manager.retry():
                self._adopt()
        except MbsError as error:
            self.warn("description", f"robot_description still refused: {error}", error=True)


main = partial(run, DynamicsNode)

if __name__ == "__main__":
    sys.exit(main())
