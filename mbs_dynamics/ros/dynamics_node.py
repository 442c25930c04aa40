# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node that publishes torques, twists, Jacobians and contact forces of a robot as it moves.

Topics, parameters and behaviour: docs/ros.md. Nothing is decided here: callbacks convert, call and
publish.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, Vector3Stamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros import messages, parameters
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.diagnostics import desired_status, diagnostics, effort_status
from mbs_dynamics.ros.dynamics.feed_forward import FeedForward, check_feed_forward
from mbs_dynamics.ros.dynamics.model_manager import ModelManager
from mbs_dynamics.ros.dynamics.outputs import Outputs
from mbs_dynamics.ros.dynamics.payload_estimation import PayloadEstimation
from mbs_dynamics.ros.dynamics.robot import Results, Robot
from mbs_dynamics.ros.dynamics.settings import DynamicsSettings
from mbs_dynamics.ros.evaluation_cost import Cost
from mbs_dynamics.ros.input_statistics import InputStatistics, RateLimit
from mbs_dynamics.ros.joint_input import JointInput, Rejection
from mbs_dynamics.ros.node_base import LATCHED, DescribedNode
from mbs_dynamics.ros.process import run
from mbs_dynamics.ros.robot_description import Gravity

DRAWING_RATE = 30.0
"""Markers per second at most."""


class DynamicsNode(DescribedNode):
    """The dynamics node; see docs/ros.md."""

    def steady_time(self) -> float:
        """Return the time in s of a clock that is never set."""
        return time.perf_counter()

    def stamp_now(self) -> Time:
        """Return the time of stamps."""
        now: Time = self.get_clock().now().to_msg()
        return now

    def __init__(self, **options: Any) -> None:
        super().__init__("dynamics_node", **options)
        self._settings = parameters.declare(self, DynamicsSettings)
        check_feed_forward(self._settings)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
        self._manager = ModelManager(self._settings)
        self._outputs = Outputs(self)
        self._input: JointInput | None = None
        self._contact = Contact()
        self._why_less = ""
        self._feed_forward = FeedForward(
            self, lambda: self._manager.robot, self._fresh_positions, self._warn
        )
        self._measured: Any = None
        self._payload = PayloadEstimation(self, lambda: self._manager.robot)
        self._limit = RateLimit(self._settings.max_rate)
        self._drawing = RateLimit(DRAWING_RATE)
        self._statistics = InputStatistics(self.steady_time())
        self._state = "unconfigured"
        self._stale = False
        self._configured: list[Any] = []
        self._activated: list[Any] = []
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # a simulation that stands still must not stop it
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0, self.publish_diagnostics, clock=steady)

    # -- lifecycle -------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take the description that the parameters give, or subscribe to descriptions."""
        self._configured = [
            self.create_subscription(Vector3Stamped, "~/gravity", self._on_gravity, 10),
            self.create_subscription(InertiaStamped, "~/payload", self._on_payload, 10),
        ]
        described = self._describe_by_parameters()
        if described is None:
            self._configured.append(
                self.create_subscription(String, "robot_description", self._on_description, LATCHED)
            )
        elif not described:
            self._forget()
            return TransitionCallbackReturn.FAILURE
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to joint states, and so begin to answer them."""
        self._activated = [
            self.create_subscription(
                JointState, "joint_states", self._on_joint_states, qos_profile_sensor_data
            )
        ]
        self._enter("active")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hear no more joint states; the model stays."""
        while self._activated:
            self.destroy_subscription(self._activated.pop())
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop for good."""
        self.on_deactivate(state)
        self._forget()
        self._enter("finalized")
        return TransitionCallbackReturn.SUCCESS

    def _forget(self) -> None:
        while self._configured:
            self.destroy_subscription(self._configured.pop())
        self._outputs.clear()
        self._contact.restart()
        self._input, self._measured, self._why_less = None, None, ""
        self._feed_forward.adopt(None)
        self._manager = ModelManager(self._settings)
        self._enter("unconfigured")

    def _enter(self, state: str) -> None:
        """Note the state of the lifecycle, and whether joint states are to be expected in it."""
        self._state = state
        waiting = state == "active" and self._manager.robot is not None
        self._statistics.wait(self.steady_time() if waiting else None)
        self._stale = False
        self._feed_forward.listen(self._settings, state == "active")
        self._payload.listen(self._settings, state == "active")

    # -- what describes the robot ------------------------------------------------------------------

    def _on_description(self, message: String) -> None:
        self._describe(message.data)

    def _describe(self, text: str) -> bool:
        try:
            if self._manager.describe(text):
                self._adopt()
        except MbsError as error:
            self.get_logger().error(f"robot_description refused: {error}")
            return False
        return True

    def _adopt(self) -> None:
        """Take up the robot that has come into force."""
        robot = self._manager.robot
        assert robot is not None
        self._input = JointInput.of_model(
            robot.model,
            stale_timeout=self._settings.stale_timeout,
            velocity_from_position=self._settings.velocity_from_position,
            fixed=self._settings.fixed,
        )
        self._contact.restart()
        self._measured = None
        self._arrange(robot)
        self._enter(self._state)
        for remark in self._manager.remarks:
            self.get_logger().warning(remark)
        self.get_logger().info(
            f"model {robot.model.name!r}: {robot.model.n} joints, back end {robot.backend}, "
            f"bodies {', '.join(robot.bodies)}"
        )

    def _arrange(self, robot: Robot) -> None:
        self._outputs.arrange(robot)
        self._feed_forward.adopt(robot)
        if not robot.settings.observes:
            self._contact.restart()

    def _on_gravity(self, message: Vector3Stamped) -> None:
        try:
            gravity = messages.gravity_of(message, self._settings.frame_prefix)
            self._manager.set_gravity(gravity)
        except MbsError as error:
            self._warn("gravity", f"gravity refused: {error}")
        else:
            self._inform("gravity accepted", messages.said_of_gravity(gravity))

    def _on_payload(self, message: InertiaStamped) -> None:
        try:
            load = messages.load_of(message, self._settings.frame_prefix)
            self._manager.set_load(load)
        except MbsError as error:
            self._warn("payload", f"payload refused: {error}")
        else:
            self._inform("payload accepted", messages.said_of_payload(load))

    # -- what it does ------------------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        begin = self.steady_time()
        robot = self._manager.robot
        if robot is None or self._input is None:
            return
        stamp = message.header.stamp
        stamp_ns = messages.stamp_of(stamp)
        reading = self._input.read(
            message.name,
            message.position,
            message.velocity,
            message.effort,
            stamp=stamp_ns,
            received=begin,
        )
        if isinstance(reading, Rejection):
            self._reject(reading)
            return
        if reading.repeated:
            self._statistics.repeated()
            return
        self._measured = reading.q.copy()
        if self._payload.listens:
            self._payload.note(begin, reading)
        answering = self._limit.passes(begin)
        if answering or robot.settings.observes:
            results = robot.evaluate(reading)
            if robot.settings.observes:
                self._contact.update(robot, reading, results)
        if not answering:
            self._statistics.skipped(begin)
            return
        if not reading.stamp:
            stamp = self.stamp_now()
        elif reading.stamp != stamp_ns:
            stamp = messages.time_of(reading.stamp)
        ready = self._outputs.filled(stamp, results)
        if robot.settings.observes:
            ready += self._outputs.filled_contact(stamp, self._contact)
        computed = self.steady_time()
        for publisher, filled in ready:
            publisher.publish(filled)
        if robot.settings.publish_markers and self._drawing.passes(begin):
            self._outputs.draw(stamp, reading, self._contact)
        needing = robot.settings.needing_velocity
        why_not = reading.why_no_velocity if needing else ""
        self._statistics.answered(begin, computed, self.steady_time(), why_not)
        if why_not:
            self._warn("no velocity", f"no {' and '.join(needing)}: {why_not}")
        elif robot.settings.needs_effort:
            self._judge_efforts(robot, results)

    def _judge_efforts(self, robot: Robot, results: Results) -> None:
        self._why_less = results.why_less
        why_less = results.why_less or self._contact.why_not
        if why_less:
            self._warn("no effort", f"not all that takes efforts is published: {why_less}")

    def _fresh_positions(self) -> FloatArray | None:
        """Return the latest positions (n,), None if they are stale."""
        heard, now = self._statistics.last_valid, self.steady_time()
        fresh = heard is not None and now - heard <= self._settings.stale_timeout
        return self._measured if fresh else None

    def _reject(self, rejection: Rejection) -> None:
        if rejection.kind == "partial":  # joints that are fixed
            return
        self._statistics.rejected(rejection)
        self._warn(rejection.kind, f"joint_states rejected: {rejection.reason}")

    def publish_diagnostics(self) -> None:
        """Publish the state of health."""
        now = self.steady_time()
        stale_for = self._statistics.stale_for(now, self._settings.stale_timeout)
        self._remind("waiting", self._waiting_for())
        self._remind_of_clock()
        if stale_for is not None and not self._stale and self._statistics.last_valid is not None:
            self.get_logger().warning(f"stale: no valid joint_states for {stale_for:.1f} s")
        elif stale_for is None and self._stale and self._statistics.last_valid is not None:
            self.get_logger().info("valid joint_states arrive again")
        self._stale = stale_for is not None
        more = []
        if self._settings.needs_effort and self._state == "active":
            answered = self._statistics.total_answered
            status = effort_status(self._settings, self._contact, self._why_less, answered)
            more.append(status)
        if self._feed_forward.torques is not None:
            more.append(desired_status(self._feed_forward.torques))
        self._diagnostics.publish(
            diagnostics(
                self.get_fully_qualified_name().lstrip("/"),
                self.stamp_now(),
                self._state,
                self._manager,
                self._statistics.report(now),
                stale_for,
                self._input.stale(now) if self._input is not None else [],
                more,
                self._cost(),
            )
        )

    def _cost(self) -> Cost | None:
        """Return what an answer costs where the robot was last; None before it was anywhere."""
        robot = self._manager.robot
        if robot is None or self._measured is None or self._state != "active":
            return None
        return robot.cost(self._measured)

    def _waiting_for(self) -> str:
        """Return what must come before the node can publish anything; empty if nothing must."""
        if self._state != "active":
            return f"waiting for a lifecycle transition: the state is {self._state!r}"
        if self._manager.robot is None:
            return self._waiting_for_description(self._manager.refused)
        if self._statistics.last_valid is None:
            topic = self.resolve_topic_name("joint_states")
            rejected = self._statistics.last_rejection
            return f"waiting for joint_states on {topic}" + (
                f"; the latest was rejected: {rejected}" if rejected else ""
            )
        return ""

    # -- parameters --------------------------------------------------------------------------------

    def _check_parameters(self, given: list[Parameter]) -> SetParametersResult:
        try:
            settings = parameters.changed(self._settings, given)
            if settings is not self._settings:  # else it is a parameter of rclpy
                check_feed_forward(settings)
                self._manager.check(settings)
        except MbsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply_parameters(self, given: list[Parameter]) -> None:
        settings = parameters.changed(self._settings, given)
        if settings is self._settings:
            return
        self._settings = settings
        self._limit.rate = self._settings.max_rate
        self._manager.configure(self._settings)
        if any(parameter.name == "gravity" for parameter in given):  # the same again counts too
            self._manager.set_gravity(Gravity("", self._settings.gravity))
        if self._input is not None:
            self._input.stale_timeout = self._settings.stale_timeout
            self._input.velocity_from_position = self._settings.velocity_from_position
        self._feed_forward.listen(settings, self._state == "active")
        self._payload.listen(settings, self._state == "active")
        if self._manager.robot is not None:
            self._arrange(self._manager.robot)
        try:
            if self._manager.retry():
                self._adopt()
        except MbsError as error:
            self.get_logger().error(f"robot_description still refused: {error}")


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or a shutdown of ROS; return the exit code."""
    return run("dynamics_node", DynamicsNode, args)


if __name__ == "__main__":
    sys.exit(main())
