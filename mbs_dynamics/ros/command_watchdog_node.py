# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node that ends torques which nobody commands any more, through ros2_control.

Topics, parameters and behaviour: docs/ros.md and docs/gravity_compensation.md. Nothing is decided
here: callbacks convert, call and publish.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.errors import ControllerError, MbsError
from mbs_dynamics.ros import parameters
from mbs_dynamics.ros.compensation.command_watchdog import (
    CommandWatchdog,
    CommandWatchdogSettings,
    Switch,
    Watch,
)
from mbs_dynamics.ros.compensation.controller_manager import NOT_INSTALLED, ControllerManager, pause
from mbs_dynamics.ros.messages import status
from mbs_dynamics.ros.node_base import CarefulNode
from mbs_dynamics.ros.process import run

ZEROS, ZERO_PERIOD = 12, 0.025
"""How many commands of zero are sent, and how often in s: a new publisher is discovered late."""

INSPECTIONS = 5
"""The controllers are listed once in so many seconds, and each second while one is missing."""


class CommandWatchdogNode(CarefulNode):
    """The command watchdog; see docs/ros.md.

    Raises MbsError for settings that cannot be used, and without controller_manager_msgs.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("command_watchdog_node", **options)
        settings = parameters.declare(self, CommandWatchdogSettings)
        self._core = CommandWatchdog(settings, time.monotonic())
        self._manager = ControllerManager(self, settings.controller_manager)
        if not self._manager.installed:
            raise ControllerError(NOT_INSTALLED)
        self._asking = self._ending = False
        self._told = 0
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # reliable: the zero at the end of a ramp must not be lost
        self._commands = self.create_subscription(
            Float64MultiArray, settings.command_topic, self._on_command, 1
        )
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(self._core.period, self._look, clock=self._steady)
        self.create_timer(1.0, self._on_second, clock=self._steady)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)
        holder = settings.position_controller
        self.get_logger().info(
            f"deactivates {settings.controller!r} of {self._manager.name}"
            f"{f', and activates {holder!r},' if holder else ''} {settings.command_timeout:g} s "
            f"after the last command on {self._commands.topic_name}, unless that is zero"
        )

    def _on_command(self, message: Float64MultiArray) -> None:
        if self._ending and not any(message.data):
            return  # our own
        before = self._core.state
        self._core.on_command(message.data, time.monotonic())
        if before is Watch.DEACTIVATING:
            self.get_logger().warning("commands have come again before the controller was inactive")

    def _look(self) -> None:
        before = self._core.state
        publishers = self.count_publishers(self._commands.topic_name)
        due = self._core.look(publishers, time.monotonic())
        if before is not self._core.state:
            self.get_logger().error(f"{self._core.reason}: deactivates the controller")
        if due:
            self._ask(self._deactivate)

    def _ask(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine that asks the manager, unless one is under way."""
        if not self._asking and self.executor is not None:
            self._asking = True
            self.executor.create_task(task)

    async def _deactivate(self) -> None:
        asked: Switch | None = None
        try:
            asked = self._core.plan(await self._manager.list())
            if asked is None:
                self.get_logger().info("nothing to deactivate")
            else:
                await self._end_torques(asked.zeros)
                if self._core.state is not Watch.DEACTIVATING:
                    return  # somebody commands again
                await self._manager.switch(asked.activate, asked.deactivate)
                self._log_switch(asked)
            self._core.succeed()
        except ControllerError as error:
            self._core.fail(str(error), asked, time.monotonic())
            self._warn(str(error), f"cannot deactivate: {error}")
        finally:
            self._asking = self._ending = False

    async def _end_torques(self, length: int) -> None:
        """Command zero for a while, by a publisher that is there for no longer."""
        if not length:
            return
        self._ending = True
        publisher = self.create_publisher(Float64MultiArray, self._commands.topic_name, 1)
        try:
            for _ in range(ZEROS):
                if self._core.state is not Watch.DEACTIVATING:
                    return
                publisher.publish(Float64MultiArray(data=[0.0] * length))
                await pause(self, ZERO_PERIOD)
        finally:
            self.destroy_publisher(publisher)

    def _log_switch(self, asked: Switch) -> None:
        holder = f", activated {asked.activate[0]!r}" if asked.activate else ""
        said = f"deactivated {asked.deactivate[0]!r}{holder}"
        wanted = self._core.settings.position_controller
        if wanted and not asked.activate:
            said += f"; {wanted!r} could not be activated with it: nothing may hold the arm"
        self.get_logger().error(said)

    async def _inspect(self) -> None:
        try:
            self._core.inspect(await self._manager.list())
        except ControllerError as error:
            self._core.misfit = str(error)
        finally:
            self._asking = False
        if self._core.misfit:
            self._warn(self._core.misfit, self._core.misfit)

    def _on_second(self) -> None:
        due = self._told % INSPECTIONS == 0 or self._core.misfit
        if due and self._manager.present():
            self._ask(self._inspect)
        self._told += 1
        self._diagnostics.publish(self._health())

    def _health(self) -> DiagnosticArray:
        core, settings = self._core, self._core.settings
        publishers = self.count_publishers(self._commands.topic_name)
        present = self._manager.present()
        age = core.since_command(time.monotonic())
        values: dict[str, object] = {
            "state": core.state.value,
            "command topic": self._commands.topic_name,
            "publishers": publishers,
            "commands": core.commands,
            "since last command [s]": "none" if age is None else f"{age:.3f}",
            "effort controller": settings.controller,
            "position controller": settings.position_controller or "none",
            "controller manager": self._manager.name,
            "deactivations": core.deactivations,
            "last deactivation": core.reason or "none",
            "failed attempts": core.attempts,
            "last failure": core.failure or "none",
        }
        level, said = DiagnosticStatus.OK, core.state.value
        if core.state is Watch.DEACTIVATING:
            level = DiagnosticStatus.ERROR
            said = f"{core.reason}: torques may still be held; {core.failure or 'asking'}"
        elif not present:
            level = DiagnosticStatus.ERROR
            said = f"there is no controller manager {self._manager.name}: can do nothing"
        elif core.misfit:
            level, said = DiagnosticStatus.ERROR, f"can do nothing: {core.misfit}"
        elif core.state is Watch.DEACTIVATED:
            level, said = DiagnosticStatus.WARN, f"deactivated {settings.controller}: {core.reason}"
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        name = self.get_fully_qualified_name().lstrip("/")
        array.status = [status(f"{name}: watchdog", level, said, values)]
        return array

    # -- parameters --------------------------------------------------------------------------------

    def _check_parameters(self, given: list[Parameter]) -> SetParametersResult:
        try:
            parameters.changed(self._core.settings, given)
        except MbsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply_parameters(self, given: list[Parameter]) -> None:
        self._core.settings = parameters.changed(self._core.settings, given)
        self.destroy_timer(self._timer)
        self._timer = self.create_timer(self._core.period, self._look, clock=self._steady)


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or a shutdown of ROS; return the exit code."""
    return run("command_watchdog_node", CommandWatchdogNode, args)


if __name__ == "__main__":
    sys.exit(main())
