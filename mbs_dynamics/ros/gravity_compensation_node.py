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
from collections.abc import Sequence
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.compiler import default_backend
from mbs_dynamics.control.collision import Collision
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.errors import LONGEST_MESSAGE, MbsError, listed, quoted, shortened
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.compensation import outputs
from mbs_dynamics.ros.compensation.controllers import ControllerManager
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.handover import Handover
from mbs_dynamics.ros.compensation.interface import (
    GRAVITY_COMPENSATION_NODE,
    GravityCompensationSettings,
)
from mbs_dynamics.ros.described_node import DescribedNode
from mbs_dynamics.ros.process import run

PERIOD = 0.01
"""Period in s of commands while torques act, in addition to those that answer joint_states."""

LOOK_PERIOD = 0.1
"""Period in s at which controllers and publishers are checked while torques are commanded."""

ENABLED = ("ramping in", "enabled")
"""States in which torques follow the robot."""


class GravityCompensationNode(DescribedNode):
    """The gravity compensation node; see docs/reference/nodes."""

    interface = GRAVITY_COMPENSATION_NODE
    listening = ("inactive", "active")
    controls = "gravity compensation"
    """Name of the controlled function in log messages."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings = self._settings
        self._core = GravityCompensator(settings)
        self._enter("unconfigured")
        self._state_shown = ""
        self._collision_shown: Collision | None = None
        self._begins = False
        """Whether the transition ``activate`` has succeeded, and :meth:`_begin` has yet to run."""
        self._outputs = outputs.CommandOutputs(
            self,
            settings.command_topic,
            settings.joints,
            collisions=bool(settings.collision_file),
        )
        self._enabled = self.advertise("~/enabled")
        self._handover = Handover(
            self._core,
            ControllerManager(self, settings),
            self._outputs,
            time.monotonic,
            lambda problem: self.warn("handover", problem),
        )
        # it may wait for the controller manager, and joint_states must not wait for it
        self.serve("~/enable", self._on_enable, callback_group=ReentrantCallbackGroup())
        self.answer("~/clear", self._clear)
        self._steady_timer(LOOK_PERIOD, self._look)
        self._timer = self._steady_timer(PERIOD, self._on_time)
        self._timer.cancel()
        self._update()

    # -- lifecycle -------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to the robot: its description, unless a parameter states it, and its state."""
        done = super().on_configure(state)
        if done == TransitionCallbackReturn.SUCCESS:
            self._outputs.open()
            self._configured += self._inputs()
        return done

    def _inputs(self) -> list[Subscription]:
        """Subscribe to the state of the robot."""
        inputs = [self.subscribe("joint_states", self._on_joint_states)]
        if self._settings.use_imu:
            inputs.append(self.subscribe("imu", self._on_imu))
        return inputs

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Enable torques as ``~/enable`` does; fail where that would be refused."""
        if not (self._core.engaged or self._handover.busy):
            problems = self._problems(time.monotonic())
            if problems:
                self.get_logger().error(f"not activated: {'; '.join(problems)}")
                return TransitionCallbackReturn.FAILURE
            self._begins = True
            self._later(self._begin)
        self._enter("active")
        return TransitionCallbackReturn.SUCCESS

    async def _begin(self) -> None:
        """Enable torques after the transition ``activate``; without success it is undone."""
        self._begins = False
        done, message = await self._enable()
        if done:
            self.get_logger().info(message)
        else:
            self.get_logger().error(f"deactivated: {message}")
        self._update()

    async def _enable(self) -> tuple[bool, str]:
        """Enable torques, and be active as long as they act; return success and a message."""
        done, message = await self._handover.enable()
        if done and self._lifecycle == "inactive":
            self.trigger_activate()
        return done, message

    async def _leave(self) -> None:
        """Become inactive, once torques are out by a fault or ``~/enable``."""
        waits = self._begins or self._handover.busy
        if self._lifecycle == "active" and not (self._torques_act or waits):
            self.trigger_deactivate()

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Fail, and begin to ramp out, while torques act. Once they are out it is inactive."""
        if self._begin_release():
            self.get_logger().warning("torques ramp out; the node is inactive once they are out")
            return TransitionCallbackReturn.FAILURE
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    @property
    def _torques_act(self) -> bool:
        """Whether torques act, or a controller must take them over."""
        return not self._core.at_rest or self._handover.gives_back

    def _begin_release(self) -> bool:
        """Begin to ramp out; return whether torques act, or a controller must take them over."""
        self._core.disable(time.monotonic())
        self._update()
        return self._torques_act

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the model, gravity and loads; fail, and begin to ramp out, while torques act."""
        if self._begin_release():
            self.get_logger().warning("torques ramp out; clean up once they are out")
            return TransitionCallbackReturn.FAILURE
        self._core = self._handover.core = GravityCompensator(self._settings)
        self._enter("unconfigured")  # even if the rest fails
        self._forget()
        self._outputs.close()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ramp out; states of the robot are processed until that is done."""
        self._enter("finalized")
        self._begin_release()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to the state before it was configured; end, and ramp out, while torques act."""
        self.get_logger().error(f"an internal error in a transition from {state.label!r}")
        if not self._begin_release():
            return self.on_cleanup(state)
        self._enter("finalized")
        return TransitionCallbackReturn.FAILURE

    @property
    def _has_robot(self) -> bool:
        return self._core.arm is not None

    def _enter(self, state: str) -> None:
        super()._enter(state)
        why = "" if state in self.listening else f"the lifecycle state is {state!r}"
        self._core.forbidden = f"{why}; configure the node first" if why else ""
        if self._shutting_down:
            self._core.forbidden = "the node is about to end"

    def begin_shutdown(self) -> None:
        """Begin to ramp out. See :attr:`shutdown_complete`."""
        self._shutting_down = True
        self._enter(self._lifecycle)
        self._begin_release()

    @property
    def shutdown_complete(self) -> bool:
        """Whether the node was asked to end and commands no torque."""
        return self._shutting_down and self._core.at_rest and not self._handover.gives_back

    def flush(self) -> None:
        """Wait until the last command has arrived."""
        self._outputs.flush()

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        self._core.describe(text, time.monotonic())
        self._update()
        return not self._core.refused

    def _adopt(self) -> None:
        """Use a pending description, if no torque is commanded or held."""
        try:
            if not self._core.adopt(time.monotonic()):
                return
        except MbsError as error:
            self.warn("description", f"robot_description refused: {error}", error=True)
            return
        arm = self._core.arm
        assert arm is not None
        gc.collect()  # later collections then skip these objects
        gc.freeze()
        self._log_model(
            f"model {quoted(arm.model.name)}: {arm.model.n} joints, back end {default_backend()}, "
            f"commands for {listed(self._settings.joints)}",
            self._core.remarks,
        )

    def _set_gravity(self, gravity: LinkGravity) -> None:
        self._core.set_gravity(gravity)

    def _set_load(self, load: LinkLoad) -> None:
        self._core.set_load(load)

    def _on_imu(self, message: Imu) -> None:
        arm, now, clock = self._core.arm, time.monotonic(), self._stamps_now()
        if arm is not None:
            link, measured, stamp = messages.imu_of(message, self._settings.frame_prefix)
            self._try("imu", lambda: arm.accelerate(link, measured, now, stamp=stamp, clock=clock))

    def _stamps_now(self) -> int:
        """Return the time of stamps in ns; 0 if their age is not checked."""
        return self.get_clock().now().nanoseconds if self._settings.max_age else 0

    # -- joint states and time ---------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        begin, arm, stamp = time.monotonic(), self._core.arm, message.header.stamp
        if arm is None:
            return
        answer = arm.receive(
            message.name,
            message.position,
            message.velocity,
            message.effort,
            stamp=messages.stamp_of(stamp),
            now=begin,
            clock=self._stamps_now(),
        )
        self._outputs.send(answer.command, stamp)
        if answer.rejected is not None:
            if answer.rejected.kind != "partial":  # else another driver's joints, which were used
                self._statistics.rejected(answer.rejected)
                self.warn(answer.rejected.kind, f"joint_states not used: {answer.rejected.reason}")
        else:
            self._statistics.answered(begin, time.monotonic())
        self._update()

    def _on_time(self) -> None:
        if self._core.arm is not None:
            self._outputs.send(self._core.arm.tick(time.monotonic()))
        self._update()

    def fail(self, error: Exception) -> None:
        """Stop because of an uncaught error. The ramp must still be completed."""
        self.warn("internal error", f"internal error: {error!r}")
        self._trip(Fault("internal_error", f"internal error: {error!r}"))

    def _trip(self, fault: Fault) -> None:
        """Stop for an external reason."""
        if self._core.arm is not None:
            self._outputs.send(self._core.arm.fail(fault, time.monotonic()))
        self._update()

    def _update(self) -> None:
        """Report changes, and start actions that waited for them."""
        core, arm = self._core, self._core.arm
        if core.state != self._state_shown:
            self._show(core.state)
        if arm is not None:
            for warning in arm.warnings(time.monotonic()):
                self.get_logger().warning(warning)
            for remark in arm.new_remarks():
                self.get_logger().info(remark)
            if (collision := arm.stamped_collision) != self._collision_shown:
                self._collision_shown = collision
                if collision is not None:
                    names, prefix = arm.model.joint_names, self._settings.frame_prefix
                    self._outputs.collided(collision, names, prefix)
        if not core.engaged and self._handover.gives_back and not self._handover.busy:
            self._later(self._release)
        if core.at_rest:
            self._adopt()
            if self._lifecycle == "finalized":
                self._forget()
                self._outputs.close()
            elif self._lifecycle == "active":
                self._later(self._leave)
        if core.at_rest == self._timer.is_canceled():
            return
        if core.at_rest:
            self._timer.cancel()  # at rest it would take some percent of a processor
        else:
            self._timer.reset()

    async def _release(self) -> None:
        try:
            message = await self._handover.release()
        except MbsError as error:
            self.get_logger().error(str(error))
        else:
            if message:
                self.get_logger().info(message)
        self._on_time()

    def _show(self, state: str) -> None:
        """Report a new state."""
        before, self._state_shown = self._state_shown, state
        enabled = state in ENABLED
        if not before or enabled != (before in ENABLED):
            self._enabled.publish(Bool(data=enabled))
        fault = self._core.fault
        if fault is not None:
            how = self._settings.on_fault
            message = f"stopped by a fault ({how}): {fault.reason}"
            self.get_logger().error(shortened(message, LONGEST_MESSAGE))
        elif before:
            self.get_logger().info(f"{self.controls} is {state}")

    async def _on_enable(
        self, request: SetBool.Request, response: SetBool.Response
    ) -> SetBool.Response:
        if not request.data:
            self._core.disable(time.monotonic())
            response.success, response.message = True, self._core.state
        else:
            done, message = await self._enable()
            response.success, response.message = done, message if done else f"refused: {message}"
        self._on_time()
        return response

    def _clear(self, request: Trigger.Request) -> str:
        cleared = self._core.clear(time.monotonic())
        self._on_time()
        return cleared

    def _look(self) -> None:
        """Check controllers and publishers while torques are commanded."""
        if self._timer.is_canceled():
            self._on_time()
        if not self._core.engaged:
            return
        if self._outputs.other_publishers():  # the arm would follow both
            topic = self._outputs.topic
            rivals = ", ".join(self._outputs.publishers_of(topic)) or "another node"
            message = f"{rivals} publishes commands on {topic} as well"
            self._trip(Fault("second_publisher", message))
        self._later(self._watch_controllers)

    async def _watch_controllers(self) -> None:
        fault = await self._handover.watch()
        if fault is not None:
            self._trip(fault)

    def _publish_diagnostics(self) -> None:
        now, core, traffic = time.monotonic(), self._core, self._outputs.traffic()
        if not core.engaged:
            self._later(self._watch_controllers)
        problems = self._problems(now)
        self._remind_of_clock()
        self._remind("enabling", self._missing(problems))
        in_turn = core.arm.in_turn(now) if core.arm is not None else ""
        publishers = listed(self._outputs.publishers_of("joint_states")) if in_turn else ""
        self._remind("sources", f"{in_turn}; published by {publishers}" if in_turn else "")
        statuses = [
            outputs.model_status(core, self._refusals),
            outputs.input_status(self._lifecycle, core, self._statistics.report(now), now),
            outputs.command_status(core, problems, traffic, self._handover.trouble),
        ]
        self._report(statuses, core.arm.model.name if core.arm else "")

    def _problems(self, now: float) -> list[str]:
        """Return all reasons why torques cannot be enabled."""
        return self._core.problems(now, self._outputs.other_publishers(), self._handover.trouble)

    def _missing(self, problems: Sequence[str]) -> str:
        """Return why torques cannot be enabled while disabled; empty if nothing is missing."""
        if self._lifecycle not in self.listening or self._core.state != "disabled":
            return ""
        if self._core.arm is None:
            return self._waiting_for_description(self._core.refused)
        return f"cannot be enabled: {'; '.join(problems)}" if problems else ""

    # -- parameters --------------------------------------------------------------------------------

    def _check(self, settings: GravityCompensationSettings) -> None:
        self._core.check(settings, time.monotonic())

    def _apply(self, before: GravityCompensationSettings, given: Sequence[str]) -> None:
        self._core.change(self._settings, time.monotonic())
        self._on_time()


main = partial(run, GravityCompensationNode)

if __name__ == "__main__":
    sys.exit(main())
