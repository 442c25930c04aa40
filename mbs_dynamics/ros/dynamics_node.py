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

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.errors import listed, quoted
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.described_node import DescribedNode
from mbs_dynamics.ros.dynamics.base import BaseInput
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.feed_forward import FeedForward
from mbs_dynamics.ros.dynamics.interface import DYNAMICS_NODE, DynamicsSettings
from mbs_dynamics.ros.dynamics.publishers import Outputs
from mbs_dynamics.ros.dynamics.robot import ModelManager, Robot
from mbs_dynamics.ros.performance import RateLimit
from mbs_dynamics.ros.process import run


class DynamicsNode(DescribedNode):
    """The dynamics node; see docs/reference/nodes."""

    interface = DYNAMICS_NODE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._manager = ModelManager(self._settings)
        self._outputs = Outputs(self)
        self._base: BaseInput | None = None
        self._contact: Contact | None = None
        """The observer of external torques, if they are asked for."""
        self._no_velocity = ""
        """Which topics lack velocities, and why; empty if none does."""
        self._feed_forward = FeedForward(
            self, self._try, lambda: self._manager.robot, self._fresh_positions
        )
        self._measured: Any = None
        self._limit = RateLimit(self._settings.max_rate)

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
        self._contact, self._input, self._base, self._measured = None, None, None, None
        self._no_velocity = ""
        self._feed_forward.restart()
        self._manager = ModelManager(self._settings)
        self._enter("unconfigured")

    @property
    def _has_robot(self) -> bool:
        return self._manager.robot is not None

    def _enter(self, state: str) -> None:
        super()._enter(state)
        self._feed_forward.listen(self._settings, state == "active")

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        return self._try("robot_description", lambda: self._use(text))

    def _use(self, text: str) -> None:
        """Use the robot of a URDF. Raises MbsError if it is refused."""
        remarks, robot = self._manager.describe(text), self._manager.robot
        if remarks is None or robot is None:
            return
        self._input = JointInput.of_model(
            robot.model,
            stale_timeout=self._settings.stale_timeout,
            velocity_from_position=self._settings.velocity_from_position,
            fixed=self._settings.fixed,
        )
        if self._settings.floating_base:
            settings = robot.settings
            self._base = BaseInput(robot.model, settings.odom_frame, settings.frame_prefix)
        self._contact, self._measured = None, None
        self._feed_forward.restart()
        self._arrange(robot)
        self._enter(self._lifecycle)
        self._log_model(
            f"model {quoted(robot.model.name)}: {len(robot.joint_names)} joints, "
            f"back end {robot.backend}, bodies {listed(robot.bodies)}",
            remarks,
        )

    def _arrange(self, robot: Robot) -> None:
        self._outputs.arrange(robot)
        if not robot.settings.observed:
            self._contact = None
        elif self._contact is None:
            self._contact = Contact(robot)

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
        answering = self._limit.passes(begin)
        if answering or self._contact is not None:
            results = {**robot.evaluate(reading.q, reading.qd, base)}
            if self._contact is not None:
                results |= self._contact.update(robot, reading, results)
        if not answering:
            self._statistics.skipped(begin)
            return
        stamp = messages.time_of(reading.stamp) if reading.stamp else self.stamp_now()
        self._outputs.publish(stamp, results)
        self._statistics.answered(begin, self.steady_time())
        needing, why_not = robot.settings.needing_velocity, reading.why_no_velocity
        lacks = needing and why_not
        self._no_velocity = f"no {' and '.join(needing)}: {why_not}" if lacks else ""
        if self._no_velocity:
            self.warn("no velocity", self._no_velocity)
        elif self._contact is not None and self._contact.missing:
            self.warn("no effort", self._contact.missing)

    def _on_odometry(self, message: Any) -> None:
        base, now = self._base, self.steady_time()
        pose, twist = message.pose.pose, message.twist.twist
        q = messages.components(pose.position) + messages.components(pose.orientation)
        V = messages.components(twist.angular) + messages.components(twist.linear)
        frames = message.header.frame_id, message.child_frame_id
        if base is not None:
            self._try("odom", lambda: base.odometry(*frames, q, V, now))

    def _on_imu(self, message: Any) -> None:
        base, now, timeout = self._base, self.steady_time(), self._settings.stale_timeout
        x = messages.components(message.orientation)
        omega = messages.components(message.angular_velocity)
        if base is not None:
            self._try("imu", lambda: base.imu(message.header.frame_id, x, omega, now, timeout))

    def _fresh_positions(self) -> FloatArray | None:
        """Return the latest positions (n,), None if they are stale."""
        received, now = self._statistics.last_valid, self.steady_time()
        fresh = received is not None and now - received <= self._settings.stale_timeout
        return self._measured if fresh else None

    # -- diagnostics -------------------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        now, manager = self.steady_time(), self._manager
        stale_for = self._statistics.stale_for(now, self._settings.stale_timeout)
        waiting = self._waiting_for(self._refusals.get("robot_description", ""))
        if stale_for is not None and not waiting:
            waiting = f"stale: no valid joint_states for {stale_for:.1f} s"
        self._remind("waiting", waiting)
        self._remind_of_clock()
        statuses = [
            self._model_status(),
            messages.input_status(
                self._lifecycle,
                self._statistics.report(now),
                stale_for,
                self._input.stale(now) if self._input is not None else [],
                missing=self._no_velocity,
            ),
        ]
        if self._contact is not None and self._lifecycle == "active":
            statuses.append(self._effort_status(self._contact))
        self._report(statuses, manager.robot.model.name if manager.robot is not None else "")

    def _model_status(self) -> DiagnosticStatus:
        """Return the state of the model, and why the latest payload or the like was refused."""
        manager, values = self._manager, dict[str, object]()
        robot = manager.robot
        if robot is not None:
            values = {
                "joints": len(robot.joint_names),
                "joint names": ", ".join(robot.joint_names),
                "bodies": ", ".join(robot.bodies),
                "representation": robot.settings.representation,
                "algorithm": robot.settings.algorithm,
            }
        return messages.model_status(
            None if robot is None else robot.model,
            values,
            manager.environment.loads,
            refused=self._refusals.get("robot_description", ""),
            refusals=self._refusals,
        )

    def _effort_status(self, contact: Contact) -> DiagnosticStatus:
        """Return the state of what depends on efforts."""
        received = self._statistics.last_valid is not None
        summary = "efforts of all joints" if received else "nothing received yet"
        values: dict[str, object] = {"external torques of": ", ".join(contact.joints) or "none"}
        if contact.directions:
            values["wrench directions observed"] = contact.directions
        warning = contact.missing or contact.partial
        return messages.status("effort", summary, values, warning=warning)

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
        self._feed_forward.listen(settings, self._lifecycle == "active")
        if self._manager.robot is not None:
            self._arrange(self._manager.robot)


main = partial(run, DynamicsNode)

if __name__ == "__main__":
    sys.exit(main())
