# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Ends torques whose commands have stopped, through ros2_control.

Behaviour: docs/reference/nodes. :class:`CommandWatchdog` decides and uses no ROS.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from rclpy.task import Task
from std_msgs.msg import Float64MultiArray

from mbs_dynamics.errors import ControllerError
from mbs_dynamics.ros.compensation.controller_list import ControllerList, Switch
from mbs_dynamics.ros.compensation.controllers import ControllerManager
from mbs_dynamics.ros.compensation.interface import (
    COMMAND_WATCHDOG_NODE,
    CommandWatchdogSettings,
    controller_of,
)
from mbs_dynamics.ros.messages import status
from mbs_dynamics.ros.node_base import BaseNode
from mbs_dynamics.ros.process import run

TICKS = 10
"""Number of checks for silence within ``command_timeout``."""

RETRY_PERIOD = 0.1
"""Time in s from a failure to the next attempt."""

SUCCESSOR_TIMEOUT = 2.0
"""Time in s for the position controller to be activated. Later, torques no longer fit the arm."""

ZEROS, ZERO_PERIOD = 12, 0.025
"""Number of commands of zero, and their period in s: a new publisher is discovered late."""

IDLE, WATCHING, DEACTIVATING, DEACTIVATED = "idle", "watching", "deactivating", "deactivated"
"""States of the watchdog."""


class CommandWatchdog:
    """Decides whether commands have stopped under torque. Times are of one steady clock, in s."""

    def __init__(self, settings: CommandWatchdogSettings, now: float) -> None:
        self.settings, self.state, self.commands = settings, IDLE, 0
        self.reason, self.alarmed = "", False
        """Why the controller is deactivated, and whether this silence has led to a request."""
        self.effort = controller_of(settings.command_topic)
        """The controller that is deactivated."""
        self._leaps = False
        self._silence, self._looked, self._begun = 0.0, now, 0.0

    def on_command(self, efforts: Iterable[float]) -> None:
        """Process a command: efforts in N m or N."""
        self.commands, self._silence = self.commands + 1, 0.0
        self.state = WATCHING if any(efforts) else IDLE

    def look(self, publishers: int, now: float) -> bool:
        """Return whether to deactivate; ``publishers`` counts those of the topic."""
        timeout, reason = self.settings.command_timeout, ""
        # after a pause of this process, commands that arrived meanwhile are yet to be read
        self._silence += min(now - self._looked, 2.0 * timeout / TICKS)
        self._looked = now
        if self._silence > timeout:
            reason = f"no command for {timeout:g} s, the last one was not zero"
        elif not publishers and self._silence > 3.0 * timeout / TICKS:
            reason = "the command topic has lost its publisher under torque"
        if self.state == WATCHING and reason:
            self.state, self.reason, self.alarmed, self._begun = DEACTIVATING, reason, False, now
        return self.state == DEACTIVATING

    def plan(self, seen: ControllerList, now: float) -> Switch:
        """Return the remaining request; empty once the controller is inactive.

        Raises ControllerError without effort controller.
        """
        if self.state != DEACTIVATING:
            return Switch()
        in_time = now < self._begun + SUCCESSOR_TIMEOUT
        if self.settings.position_controller and in_time and not (self._leaps or seen.unusable):
            step = seen.to_position()
        else:
            seen.find(self.effort)
            step = Switch((), seen.without_torques)
        if not any(step):
            self.state = DEACTIVATED if self.alarmed else IDLE
        self.alarmed = self.alarmed or any(step)
        return step

    def inspect(self, seen: ControllerList, starts_from_command: bool | None) -> None:
        """Raise ControllerError if the controllers cannot be used, before they are needed."""
        seen.find(self.effort)
        leap = seen.leap(starts_from_command) if self.settings.position_controller else ""
        self._leaps = bool(leap)  # kept while the controllers are not found
        if leap:
            raise ControllerError(leap)


class CommandWatchdogNode(BaseNode):
    """The command watchdog. Raises ControllerError without controller_manager_msgs."""

    interface = COMMAND_WATCHDOG_NODE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings: CommandWatchdogSettings = self._settings
        self._core = CommandWatchdog(settings, time.monotonic())
        self._manager = ControllerManager(self, settings)
        self._manager.check_installed()
        self._problem = ""
        """Why a controller cannot be used, or the latest attempt to deactivate it has failed."""
        self._deactivation: Task | None = None
        self._ending, self._length = False, 0
        self._commands = self.subscribe("<command_topic>", self._on_command, settings.command_topic)
        self._steady_timer(settings.command_timeout / TICKS, self._look)

    def _on_command(self, message: Float64MultiArray) -> None:
        if not self._ending or any(message.data):  # else it is of this node
            self._length = len(message.data)
            self._core.on_command(message.data)

    def _look(self) -> None:
        publishers = self.count_publishers(self._commands.topic_name)
        idle = self._deactivation is None or self._deactivation.done()
        if self._core.look(publishers, time.monotonic()) and idle:
            self._deactivation = self._later(self._deactivate)

    async def _seen(self) -> ControllerList:
        controllers, position = await self._manager.list(), self._settings.position_controller
        return ControllerList(controllers, self._core.effort, position, self._manager.name)

    async def _deactivate(self) -> None:
        """Send remaining requests until none is left or commands resume."""
        core, log = self._core, self.get_logger()
        while core.state == DEACTIVATING:
            try:
                seen, alarmed = await self._seen(), core.alarmed
                step = core.plan(seen, time.monotonic())
                if core.alarmed and not alarmed:
                    log.error(f"{core.reason}: deactivates the controller")
                if any(step) and not (step.activate or core.settings.brakes):
                    await self._end_torques()
                if not any(step) or core.state != DEACTIVATING:
                    return
                await self._manager.switch(step.activate, step.deactivate)
                log.error(str(step))
            except ControllerError as error:
                core.alarmed, self._problem = True, str(error)
                self.warn(self._problem, f"cannot deactivate: {error}")
                await self._manager.pause(RETRY_PERIOD)

    async def _end_torques(self) -> None:
        """Command zero for a while, by a publisher that exists for no longer."""
        self._ending = True
        publisher = self.advertise("<command_topic>", self._commands.topic_name)
        try:
            for _ in range(ZEROS):
                if self._core.state == DEACTIVATING:
                    publisher.publish(Float64MultiArray(data=[0.0] * self._length))
                    await self._manager.pause(ZERO_PERIOD)
        finally:
            self.destroy_publisher(publisher)
            self._ending = False

    async def _inspect(self) -> None:
        try:
            seen, position = await self._seen(), self._settings.position_controller
            starts = await self._manager.starts_from_command(position) if position else None
            self._core.inspect(seen, starts)
            self._problem = ""
        except ControllerError as error:
            self._problem = str(error)

    def _publish_diagnostics(self) -> None:
        core = self._core
        error = f"cannot hand the arm over: {self._problem}" if self._problem else ""
        if self._manager.present():
            self._later(self._inspect)
        else:
            error = f"there is no controller manager {self._manager.name}: can do nothing"
        self._remind("misfit", error)
        values: dict[str, object] = {
            "state": core.state,
            "commands": core.commands,
            "controller manager": self._manager.name,
            "last deactivation": core.reason or "none",
        }
        warning = f"deactivated {core.effort}: {core.reason}" if core.state == DEACTIVATED else ""
        if core.state == DEACTIVATING:
            error = f"{core.reason}: torques may still be held; {error or 'asking'}"
        self._report([status("watchdog", core.state, values, warning=warning, error=error)])


main = partial(run, CommandWatchdogNode)

if __name__ == "__main__":
    sys.exit(main())
