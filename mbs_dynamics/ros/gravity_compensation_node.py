# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node that holds an arm up against gravity, and stops when it must not.

Topics, parameters and behaviour: docs/gravity_compensation.md. Nothing is decided here: callbacks
convert, call and publish.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, Vector3Stamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from rclpy.subscription import Subscription
from rclpy.task import Future
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool

from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros import messages, parameters
from mbs_dynamics.ros.compensation.command_policy import ENGAGED, Fault, State
from mbs_dynamics.ros.compensation.controller_manager import ControllerManager
from mbs_dynamics.ros.compensation.diagnostics import diagnostics
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.handover import Handover
from mbs_dynamics.ros.compensation.outputs import CommandOutputs
from mbs_dynamics.ros.compensation.settings import GravityCompensationSettings
from mbs_dynamics.ros.input_statistics import InputStatistics
from mbs_dynamics.ros.node_base import LATCHED, DescribedNode
from mbs_dynamics.ros.process import prefer_udp, run_gracefully

SHORTEST_WAIT = 0.001
"""Seconds; the timer comes no sooner than that."""

GOOD_TIME = 0.05
"""Seconds; a timer that is due later is not set anew for each joint state."""

# rclpy builds its wait set anew for each message: each event handler costs 2 to 3 % of a message
QUIET = SubscriptionEventCallbacks(use_default_callbacks=False)


class GravityCompensationNode(DescribedNode):
    """The gravity compensation node; see docs/gravity_compensation.md."""

    def __init__(self, **options: Any) -> None:
        super().__init__("gravity_compensation_node", **options)
        for end in (*self.publishers, *self.subscriptions):  # those of /parameter_events
            while end.event_handlers:
                self.remove_waitable(end.event_handlers.pop())
        self._settings = parameters.declare(self, GravityCompensationSettings)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
        self._core = GravityCompensator(self._settings)
        self._statistics = InputStatistics(time.monotonic())
        self._shutting_down = False
        self._enter("unconfigured")
        self._shown: State | None = None
        self._configured: list[Any] = []
        self._activated: list[Any] = []
        self._at_rest: list[Callable[[], None]] = []
        """What is put off until no torque is commanded or held."""
        self._torques_in: list[Future] = []
        self._simulated_time = False
        self._told_ready = False
        self._due = 0.0
        self._outputs = CommandOutputs(self, self._settings.command_topic, self._settings.joints)
        quiet = PublisherEventCallbacks(use_default_callbacks=False)
        self._enabled = self.create_publisher(Bool, "~/enabled", LATCHED, event_callbacks=quiet)
        self._diagnostics = self.create_publisher(
            DiagnosticArray, "/diagnostics", 10, event_callbacks=quiet
        )
        self._handover = Handover(
            self._settings, ControllerManager(self, self._settings.controller_manager)
        )
        # it may wait for the controller manager, and joint_states must not wait for it
        self.create_service(
            SetBool, "~/enable", self._on_enable, callback_group=ReentrantCallbackGroup()
        )
        # a simulation that stands still must not stop these
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0, self._publish_diagnostics, clock=steady)
        self._timer = self.create_timer(self._settings.stale_timeout, self._on_time, clock=steady)
        self._simulated_time = self.get_clock().ros_time_is_active
        self._settle()

    def _subscribe(
        self, kind: type, topic: str, callback: Callable[[Any], object], qos: QoSProfile | int
    ) -> Subscription:
        return self.create_subscription(kind, topic, callback, qos, event_callbacks=QUIET)

    # -- lifecycle -------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take the description that the parameters give, or subscribe to descriptions."""
        if self._at_rest:
            self.get_logger().error("cannot be configured: torques still ramp out")
            return TransitionCallbackReturn.FAILURE
        self._configured = [
            self._subscribe(InertiaStamped, "~/payload", self._on_payload, 10),
            self._subscribe(Vector3Stamped, "~/gravity", self._on_gravity, 10),
        ]
        self._outputs.open()
        described = self._describe_by_parameters()
        if described is None:
            heard = self._subscribe(
                String, "robot_description", lambda message: self._describe(message.data), LATCHED
            )
            self._configured.append(heard)
        elif not described:
            self._forget()
            return TransitionCallbackReturn.FAILURE
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to the robot's state. Torques wait for the service."""
        self._at_rest.clear()
        self._unsubscribe()
        self._activated = [
            self._subscribe(
                JointState, "joint_states", self._on_joint_states, qos_profile_sensor_data
            )
        ]
        if self._settings.use_imu:
            felt = self._subscribe(Imu, "imu", self._on_imu, qos_profile_sensor_data)
            self._activated.append(felt)
        self._enter("active")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to ramp out, and return; states of the robot are followed until that is done."""
        self._enter("inactive")
        self._core.disable(time.monotonic())
        self._at_rest.append(self._unsubscribe)
        self._settle()
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the model, gravity and loads, once no torque is commanded any more."""
        self._enter("unconfigured")
        self._at_rest.append(self._forget)
        self._settle()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop for good."""
        self.on_deactivate(state)
        self.on_cleanup(state)
        self._enter("finalized")
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ramp out and begin anew."""
        self.get_logger().error(f"an internal error in a transition from {state.label!r}")
        self.on_deactivate(state)
        return self.on_cleanup(state)

    def _enter(self, lifecycle: str) -> None:
        """Note the state of the lifecycle, which may forbid torques."""
        self._lifecycle = lifecycle
        why = "" if lifecycle == "active" else f"the lifecycle state is {lifecycle!r}"
        self._core.forbidden = f"{why}; activate the node first" if why else ""
        if self._shutting_down:
            self._core.forbidden = "the node is about to end"

    def _unsubscribe(self) -> None:
        while self._activated:
            self.destroy_subscription(self._activated.pop())

    def _forget(self) -> None:
        while self._configured:
            self.destroy_subscription(self._configured.pop())
        self._outputs.close()
        self._core = GravityCompensator(self._settings)
        self._enter(self._lifecycle)
        self._settle()

    def begin_shutdown(self) -> None:
        """Begin to ramp out. :attr:`shutdown_complete` says when that is done."""
        self._shutting_down = True
        self._enter(self._lifecycle)
        self._core.disable(time.monotonic())
        self._settle()

    @property
    def shutdown_complete(self) -> bool:
        """Whether the node has been asked to end and commands no torque any more."""
        return self._shutting_down and self._core.policy.at_rest and not self._handover.switched

    def flush(self) -> None:
        """Wait until what was commanded last has arrived."""
        self._outputs.flush()

    # -- what describes the robot ------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        self._core.describe(text, time.monotonic())
        self._settle()
        return not self._core.refused

    def _adopt(self) -> None:
        """Take up a description that waits, if it need not wait any longer."""
        try:
            if not self._core.adopt(time.monotonic()):
                return
        except MbsError as error:
            self.get_logger().error(f"robot_description refused: {error}")
            return
        arm = self._core.arm
        assert arm is not None
        gc.collect()  # then let later collections pass over what was made once
        gc.freeze()
        for remark in self._core.remarks:
            self.get_logger().warning(remark)
        self.get_logger().info(
            f"model {arm.model.name!r}: {arm.model.n} joints, back end {arm.backend}, commands for "
            f"{', '.join(self._settings.joints) or 'no joints'}"
        )

    def _on_gravity(self, message: Vector3Stamped) -> None:
        gravity = messages.gravity_of(message, self._settings.frame_prefix)
        if self._try("gravity", lambda now: self._core.set_gravity(gravity, now)):
            self._inform("gravity accepted", messages.said_of_gravity(gravity))

    def _on_payload(self, message: InertiaStamped) -> None:
        load = messages.load_of(message, self._settings.frame_prefix)
        if self._try("payload", lambda now: self._core.set_load(load, now)):
            self._inform("payload accepted", messages.said_of_payload(load))

    def _on_imu(self, message: Imu) -> None:
        measured = message.linear_acceleration
        acceleration = (measured.x, measured.y, measured.z)
        if message.linear_acceleration_covariance[0] == -1.0:  # says that it measures none
            acceleration = (float("nan"),) * 3
        link = messages.link_of(message.header.frame_id, self._settings.frame_prefix)
        stamp = messages.stamp_of(message.header.stamp)
        clock = self._stamps_now()
        self._try(
            "imu",
            lambda now: self._core.accelerate(link, acceleration, now, stamp=stamp, clock=clock),
        )

    def _stamps_now(self) -> int:
        """Return the time of stamps in ns; 0 if their age is not watched."""
        if not self._settings.max_age:
            return 0
        # the node's clock says the same, in fifty times the time
        return self.get_clock().now().nanoseconds if self._simulated_time else time.time_ns()

    def _try(self, what: str, action: Callable[[float], None]) -> bool:
        """Take what a message asks for; False, and a log line, if it is refused."""
        begin, accepted = time.thread_time(), True
        try:
            action(time.monotonic())
        except MbsError as error:
            self._warn(what, f"{what} refused: {error}")
            accepted = False
        self._finish(what, time.thread_time() - begin)
        return accepted

    # -- what it does ------------------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        # a thread's time counts its work alone, not what the middleware or the machine make it wait
        worked, begin = time.thread_time(), time.monotonic()
        stamp = message.header.stamp
        answer = self._core.receive(
            message.name,
            message.position,
            message.velocity,
            message.effort,
            stamp=messages.stamp_of(stamp),
            now=begin,
            clock=self._stamps_now(),
        )
        computed, worked = time.monotonic(), time.thread_time() - worked
        self._send(answer.command, stamp)
        if answer.rejected is not None:
            if answer.rejected.kind != "partial":  # else another driver's joints, which were used
                self._statistics.rejected(answer.rejected)
                self._warn(answer.rejected.kind, f"joint_states not used: {answer.rejected.reason}")
        elif self._core.arm is not None:
            self._statistics.answered(begin, computed, time.monotonic(), "")
        self._finish("joint_states", worked)

    def _finish(self, what: str, worked: float) -> None:
        """End a callback that has worked for so many seconds."""
        self._send(self._core.overran(what, worked, time.monotonic()))
        self._settle()

    def _on_time(self) -> None:
        self._send(self._core.tick(time.monotonic()))
        self._settle()

    def fail(self, error: Exception) -> None:
        """Take an error that nothing else has caught for a fault: the stop must still go on."""
        self._warn("internal error", f"internal error: {error!r}")
        fault = Fault("internal_error", f"internal error: {error!r}")
        self._send(self._core.fail(fault, time.monotonic()))
        self._settle()

    def _send(self, command: Sequence[float] | None, stamp: Time | None = None) -> None:
        self._outputs.send(command, self._core.policy.limited, stamp)

    def _settle(self) -> None:
        """Do what follows from the state that the core has come to."""
        policy = self._core.policy
        if policy.state is not self._shown:
            self._show(policy.state)
        come_in = policy.state is State.ENABLED and not policy.limited.rate
        if self._torques_in and (come_in or not policy.engaged):
            for future in self._torques_in:
                future.set_result(come_in)
            self._torques_in.clear()
        if self._handover.switched and not policy.engaged:
            self._later(self._give_back)
        if policy.at_rest:
            while self._at_rest:
                self._at_rest.pop(0)()
        if self._core.pending is not None:
            self._adopt()
        # look again when damping must end, a stop goes on, or what was received last is stale
        now = time.monotonic()
        wait = max(self._core.due_in(now), SHORTEST_WAIT)
        # a timer that is due in good time, though sooner than need be, is left as it is
        if now + wait < self._due or self._due < now + GOOD_TIME:
            self._due = now + wait
            self._timer.timer_period_ns = int(1e9 * wait)
            self._timer.reset()

    def _later(self, coroutine: Callable[[], Any]) -> None:
        if self.executor is not None:
            self.executor.create_task(coroutine)

    async def _give_back(self) -> None:
        try:
            said = await self._handover.give_back(self._core)
        except MbsError as error:
            self.get_logger().error(f"torques ramp out, and nothing else holds the arm: {error}")
        else:
            if said:
                self.get_logger().info(said)
        self._settle()

    def _show(self, state: State) -> None:
        before, self._shown = self._shown, state
        enabled = state in ENGAGED
        if before is None or (before in ENGAGED) != enabled:
            self._enabled.publish(Bool(data=enabled))
        fault = self._core.policy.fault
        if state is State.FAULT and fault is not None:
            how = self._settings.on_fault
            self.get_logger().error(f"stopped by a fault ({how}): {fault.reason}")
        elif before is not None:
            self.get_logger().info(f"gravity compensation is {state.value}")

    async def _on_enable(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        if not request.data:
            self._core.disable(time.monotonic())
            response.success, response.message = True, self._core.policy.state.value
        else:
            done, said = await self._handover.enable(
                self._core, time.monotonic, self._outputs.rivals(), self._wait_for_torques
            )
            response.success, response.message = done, said if done else f"refused: {said}"
        self._settle()
        return response

    async def _wait_for_torques(self) -> bool:
        """Wait until the torques have come in; return whether they have."""
        future = Future(executor=self.executor)
        self._torques_in.append(future)
        self._settle()
        return bool(await future)

    async def _watch_controller(self) -> None:
        fault = await self._handover.watch(self._core)
        if fault is not None:
            self._send(self._core.fail(fault, time.monotonic()))
            self._settle()

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        self._simulated_time = self.get_clock().ros_time_is_active
        self._remind_of_clock()
        self._remind_of_enabling(now)
        self._later(self._watch_controller)
        self._diagnostics.publish(
            diagnostics(
                self.get_fully_qualified_name().lstrip("/"),
                self.get_clock().now().to_msg(),
                self._lifecycle,
                self._core,
                self._handover.trouble,
                self._statistics.report(now),
                self._outputs.traffic(),
                now,
            )
        )

    def _remind_of_enabling(self, now: float) -> None:
        """Log why torques cannot be enabled, or once how they are."""
        if self._lifecycle != "active" or self._core.policy.state is not State.DISABLED:
            self._remind("enabling", "")
            return
        problems = self._core.problems(now, self._outputs.rivals())
        if self._handover.trouble:
            problems.append(self._handover.trouble)
        said = f"cannot be enabled: {'; '.join(problems)}" if problems else ""
        if self._core.arm is None:
            said = self._waiting_for_description(self._core.refused)
        self._remind("enabling", said)
        if not problems and not self._told_ready:
            service = self.resolve_service_name("~/enable")
            self.get_logger().info(
                f"ready, and disabled; to enable: ros2 service call {service} "
                'std_srvs/srv/SetBool "{data: true}"'
            )
        self._told_ready = not problems

    # -- parameters --------------------------------------------------------------------------------

    def _check_parameters(self, given: list[Parameter]) -> SetParametersResult:
        try:
            self._core.check(parameters.changed(self._settings, given))
        except MbsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply_parameters(self, given: list[Parameter]) -> None:
        settings = parameters.changed(self._settings, given)
        if settings is self._settings:
            return
        self._settings = settings
        self._core.change(settings, time.monotonic())
        self._handover.settings = settings
        self._on_time()


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM, ramp out, and return the exit code."""
    prefer_udp(os.environ)
    return run_gracefully("gravity_compensation_node", GravityCompensationNode, args)


if __name__ == "__main__":
    sys.exit(main())
