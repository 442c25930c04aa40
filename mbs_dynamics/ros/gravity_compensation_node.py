# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Holds an arm against gravity, and stops at any fault.

Behaviour: docs/reference/nodes. Nothing is decided here: callbacks convert, call and
publish.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.task import Future
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.policy import ENGAGED, Fault, GuardState
from mbs_dynamics.errors import LONGEST_MESSAGE, MbsError, listed, quoted, shortened
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.compensation import outputs
from mbs_dynamics.ros.compensation.controllers import ControllerManager, manager_name
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.handover import Handover
from mbs_dynamics.ros.compensation.interface import (
    GRAVITY_COMPENSATION_NODE,
    GravityCompensationSettings,
)
from mbs_dynamics.ros.described_node import DescribedNode
from mbs_dynamics.ros.process import run

SHORTEST_WAIT = 0.001
"""Shortest period of the timer, in s."""

EARLY = 0.05
"""A timer that is due later than this, in s, is not reset for each joint state."""


LOOK_PERIOD, LOOKS = 0.1, 10
"""Period in s at which controllers are listed while torques are commanded, and number of these
periods at which they are listed otherwise, and diagnostics are published."""


class GravityCompensationNode(DescribedNode):
    """The gravity compensation node; see docs/reference/nodes."""

    interface = GRAVITY_COMPENSATION_NODE
    controls = "gravity compensation"
    """Name of the controlled function in log messages."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings = self._settings
        self._watch_parameters()
        self._core = GravityCompensator(settings)
        self._enter("unconfigured")
        self._enabled_shown: bool | None = None
        self._when_at_rest: list[Callable[[], None]] = []
        """Actions that wait until no torque is commanded or held."""
        self._awaiting_torques: list[Future] = []
        self._simulated_time = False
        self._logged_ready = False
        self._due = 0.0
        self._outputs = outputs.CommandOutputs(
            self,
            settings.command_topic,
            settings.joints,
            collisions=bool(settings.collision_file),
        )
        self._enabled = self.advertise("~/enabled")
        self._handover = Handover(
            settings,
            ControllerManager(self, manager_name(self, settings)),
            self._outputs,
            time.monotonic,
            lambda problem: self.warn("handover", problem),
        )
        # it may wait for the controller manager, and joint_states must not wait for it
        self.serve("~/enable", self._on_enable, callback_group=ReentrantCallbackGroup())
        self.answer("~/clear", self._clear)
        self._looks = 0
        self._steady_timer(LOOK_PERIOD, self._look)
        self._timer = self._steady_timer(settings.stale_timeout, self._on_time)
        self._simulated_time = self.get_clock().ros_time_is_active
        self._settle()

    # -- lifecycle -------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Use the description in the parameters, or subscribe to descriptions."""
        if self._when_at_rest:
            self.get_logger().error("cannot be configured: torques still ramp out")
            return TransitionCallbackReturn.FAILURE
        self._outputs.open()
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to the robot's state. The service enables torques."""
        self._when_at_rest.clear()
        self._unsubscribe()
        self._activated = [self.subscribe("joint_states", self._on_joint_states)]
        if self._settings.use_imu:
            self._activated.append(self.subscribe("imu", self._on_imu))
        self._enter("active")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to ramp out, and return; states of the robot are processed until that is done."""
        self._enter("inactive")
        self._core.disable(time.monotonic())
        self._when_at_rest.append(self._unsubscribe)
        self._settle()
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the model, gravity and loads, once no torque is commanded."""
        self._enter("unconfigured")
        self._when_at_rest.append(self._forget)
        self._settle()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ramp out and end all activity."""
        self.on_deactivate(state)
        self.on_cleanup(state)
        self._enter("finalized")
        return TransitionCallbackReturn.SUCCESS

    @property
    def _has_robot(self) -> bool:
        return self._core.arm is not None

    def _enter(self, state: str) -> None:
        super()._enter(state)
        why = "" if state == "active" else f"the lifecycle state is {state!r}"
        self._core.forbidden = f"{why}; activate the node first" if why else ""
        if self._shutting_down:
            self._core.forbidden = "the node is about to end"

    def _forget(self) -> None:
        super()._forget()
        self._outputs.close()
        self._core = GravityCompensator(self._settings)
        self._enter(self._lifecycle)
        self._settle()

    def begin_shutdown(self) -> None:
        """Begin to ramp out. See :attr:`shutdown_complete`."""
        self._shutting_down = True
        self._enter(self._lifecycle)
        self._core.disable(time.monotonic())
        self._settle()

    @property
    def shutdown_complete(self) -> bool:
        """Whether the node was asked to end and commands no torque."""
        return self._shutting_down and self._core.policy.at_rest and not self._handover.owed

    def flush(self) -> None:
        """Wait until the last command has arrived."""
        self._outputs.flush()

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        self._core.describe(text, time.monotonic())
        self._settle()
        return not self._core.refused

    def _adopt(self) -> None:
        """Use a description that waits, if no torque is commanded or held."""
        try:
            if not self._core.adopt(time.monotonic()):
                return
        except MbsError as error:
            self.warn("description", f"robot_description refused: {error}", error=True)
            return
        arm = self._core.arm
        assert arm is not None
        self._outputs.factors = self._core.command_factors
        self._narrow(self._settings.largest_values(arm.model))
        gc.collect()  # later collections then skip these objects
        gc.freeze()
        self._log_model(
            f"model {quoted(arm.model.name)}: {arm.model.n} joints, back end {arm.backend}, "
            f"commands for {listed(self._settings.joints)}",
            self._core.remarks,
        )

    def _set_gravity(self, gravity: LinkGravity) -> None:
        self._core.set_gravity(gravity, time.monotonic())

    def _set_load(self, load: LinkLoad) -> None:
        self._core.set_load(load, time.monotonic())

    def _on_imu(self, message: Imu) -> None:
        link, measured, stamp = messages.imu_of(message, self._settings.frame_prefix)
        now, clock = time.monotonic(), self._stamps_now()
        self._try(
            "imu", lambda: self._core.accelerate(link, measured, now, stamp=stamp, clock=clock)
        )

    def _stamps_now(self) -> int:
        """Return the time of stamps in ns; 0 if their age is not checked."""
        if not self._settings.max_age:
            return 0
        # the node's clock gives the same, in fifty times the time
        return self.get_clock().now().nanoseconds if self._simulated_time else time.time_ns()

    def _try(self, what: str, action: Callable[[], object]) -> bool:
        worked, begin = time.thread_time(), time.monotonic()
        accepted = super()._try(what, action)
        self._finish(what, begin, worked)
        return accepted

    # -- joint states and time ---------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
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
        self._send(answer.command, stamp)
        if answer.rejected is not None:
            if answer.rejected.kind != "partial":  # else another driver's joints, which were used
                self._statistics.rejected(answer.rejected)
                self.warn(answer.rejected.kind, f"joint_states not used: {answer.rejected.reason}")
        elif self._core.arm is not None:
            self._statistics.answered(begin, time.monotonic())
        self._finish("joint_states", begin, worked, answer.usual)

    def _finish(self, what: str, begin: float, worked: float, usual: bool = False) -> None:
        """End a callback that began at a time, and at a processor time of this thread, in s."""
        now = time.monotonic()
        if now - begin > self._settings.callback_timeout:
            # its own work, without waits for the middleware or other processes
            self._send(self._core.overran(what, time.thread_time() - worked, now))
        elif usual and self._due > now + EARLY and not self._awaiting_torques:
            return
        self._settle()

    def _on_time(self) -> None:
        self._send(self._core.tick(time.monotonic()))
        self._settle()

    def fail(self, error: Exception) -> None:
        """Stop because of an uncaught error. The ramp must still be completed."""
        self.warn("internal error", f"internal error: {error!r}")
        fault = Fault("internal_error", f"internal error: {error!r}")
        self._send(self._core.fail(fault, time.monotonic()))
        self._settle()

    def _send(self, command: Sequence[float] | None, stamp: Time | None = None) -> None:
        self._outputs.send(command, self._core.policy.limited, stamp)

    def _settle(self) -> None:
        """Do what the core asks for."""
        now, core = time.monotonic(), self._core
        effects = core.effects(now)
        if effects.collision is not None and core.arm is not None:
            names, prefix = core.arm.model.joint_names, self._settings.frame_prefix
            self._outputs.collided(effects.collision, names, prefix)
            self.get_logger().warning(f"collision: {effects.collision}")
        if effects.remark:
            self.get_logger().info(effects.remark)
        if effects.warning:
            self.get_logger().warning(effects.warning)
        if effects.entered is not None:
            self._show(effects.entered)
        if self._awaiting_torques and (effects.torques_are_in or not effects.engaged):
            for future in self._awaiting_torques:
                future.set_result(effects.torques_are_in)
            self._awaiting_torques.clear()
        if not effects.engaged and self._handover.owed and not self._handover.busy:
            self._later(self._release)
        if effects.at_rest:
            while self._when_at_rest:
                self._when_at_rest.pop(0)()
            self._adopt()
        # next at the end of damping, the next command of a stop, or when the input is stale
        due = now + max(effects.due_in, SHORTEST_WAIT)
        # a timer that is due early enough is left as it is, even if it comes sooner than needed
        if due < self._due or self._due < now + EARLY:
            self._due = due
            self._timer.timer_period_ns = int(1e9 * (due - now))
            self._timer.reset()

    def _later(self, coroutine: Callable[[], Any]) -> None:
        if self.executor is not None:
            self.executor.create_task(coroutine)

    async def _release(self) -> None:
        try:
            message = await self._handover.release(self._core)
        except MbsError as error:
            self.get_logger().error(str(error))
        else:
            if message:
                self.get_logger().info(message)
        self._on_time()

    def _show(self, state: GuardState) -> None:
        enabled, before = state in ENGAGED, self._enabled_shown
        if before is not enabled:
            self._enabled_shown = enabled
            self._enabled.publish(Bool(data=enabled))
        fault = self._core.policy.fault
        if state is GuardState.FAULT and fault is not None:
            how = self._settings.on_fault
            message = f"stopped by a fault ({how}): {fault.reason}"
            self.get_logger().error(shortened(message, LONGEST_MESSAGE))
        elif before is not None:
            self.get_logger().info(f"{self.controls} is {state.value}")

    async def _on_enable(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        if not request.data:
            self._core.disable(time.monotonic())
            response.success, response.message = True, self._core.policy.state.value
        else:
            done, message = await self._handover.enable(self._core, self._wait_for_torques)
            response.success, response.message = done, message if done else f"refused: {message}"
        self._on_time()
        return response

    def _clear(self, request: Trigger.Request) -> str:
        cleared = self._core.clear(time.monotonic())
        self._on_time()
        return cleared

    async def _wait_for_torques(self) -> bool:
        """Wait for the end of the ramp in; return False if it was stopped."""
        future = Future(executor=self.executor)
        self._awaiting_torques.append(future)
        self._settle()
        return bool(await future)

    def _look(self) -> None:
        self._looks += 1
        self._outputs.look()
        second = self._looks % LOOKS == 0
        if second or self._core.policy.engaged:
            self._stop_beside_rivals()
            self._later(self._watch_controllers)
        if second:
            self._publish_diagnostics()

    def _stop_beside_rivals(self) -> None:
        """Stop if another node has become a publisher of commands: the arm would follow both."""
        if self._core.policy.engaged and self._outputs.other_publishers():
            rivals = ", ".join(self._outputs.rivals()) or "another node"
            message = f"{rivals} publishes commands on {self._outputs.topic} as well"
            self._send(self._core.fail(Fault("second_publisher", message), time.monotonic()))
            self._settle()

    async def _watch_controllers(self) -> None:
        fault = await self._handover.watch(self._core)
        if fault is not None:
            self._send(self._core.fail(fault, time.monotonic()))
            self._settle()

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        self._simulated_time = self.get_clock().ros_time_is_active
        self._remind_of_clock()
        self._remind_of_enabling(now)
        core, traffic = self._core, self._outputs.traffic()
        in_turn = "" if core.arm is None else core.arm.in_turn(now)
        publishers = listed(self._outputs.reporting("joint_states")) if in_turn else ""
        self._remind("sources", f"{in_turn}; published by {publishers}" if in_turn else "")
        report = self._statistics.report(now)
        problems = self._problems(now, traffic.rivals)
        statuses = [
            outputs.model_status(core, self._refusals),
            outputs.input_status(self._lifecycle, core, report, now),
            outputs.command_status(
                core, problems, traffic, self._handover.trouble, alone=self._handover.alone
            ),
        ]
        self._report(statuses, core.arm.model.name if core.arm else "")

    def _problems(self, now: float, rivals: int) -> list[str]:
        """Return all reasons why torques cannot be enabled."""
        trouble = self._handover.trouble
        return self._core.problems(now, rivals) + ([trouble] if trouble else [])

    def _remind_of_enabling(self, now: float) -> None:
        """Log why torques cannot be enabled; once they can, how to enable them."""
        if self._lifecycle != "active" or self._core.policy.state is not GuardState.DISABLED:
            self._remind("enabling", "")
            return
        problems = self._problems(now, self._outputs.other_publishers())
        missing = f"cannot be enabled: {'; '.join(problems)}" if problems else ""
        if self._core.arm is None:
            missing = self._waiting_for_description(self._core.refused)
        self._remind("enabling", missing)
        if not problems and not self._logged_ready:
            service = self.resolve_service_name("~/enable")
            self.get_logger().info(
                f"ready, and disabled; to enable: ros2 service call {service} "
                'std_srvs/srv/SetBool "{data: true}"'
            )
        self._logged_ready = not problems

    # -- parameters --------------------------------------------------------------------------------

    def _check(self, settings: GravityCompensationSettings) -> None:
        self._core.check(settings, time.monotonic())

    def _apply(self, before: GravityCompensationSettings, given: Sequence[str]) -> None:
        self._core.change(self._settings, time.monotonic())
        self._handover.settings = self._settings
        self._on_time()


main = partial(run, GravityCompensationNode)

if __name__ == "__main__":
    sys.exit(main())
