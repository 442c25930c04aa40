# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Ends torques whose commands have stopped, through ros2_control.

Behaviour: docs/reference/nodes. :class:`CommandWatchdog` decides and uses no ROS.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Any

from std_msgs.msg import Float64MultiArray

from mbs_dynamics.errors import ControllerError
from mbs_dynamics.ros.compensation.controller_list import Controller, ControllerList, Switch
from mbs_dynamics.ros.compensation.controllers import NOT_INSTALLED, ControllerManager, manager_name
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

INSPECTIONS = 5
"""Period in s at which the controllers are listed; 1 s while one is missing."""


class Watch(Enum):
    """State of the watchdog."""

    IDLE = "idle"
    WATCHING = "watching"
    DEACTIVATING = "deactivating"
    DEACTIVATED = "deactivated"


class CommandWatchdog:
    """Decides whether commands have stopped under torque. Times are of one steady clock, in s."""

    def __init__(self, settings: CommandWatchdogSettings, now: float) -> None:
        self.settings, self.state = settings, Watch.IDLE
        self.controller = controller_of(settings.command_topic)
        self.commands = self.deactivations = self.attempts = 0
        """Received commands, silences with a switch, and failed calls in the latest of them."""
        self.reason = ""
        """Reason of the latest deactivation."""
        self.failure = ""
        """Reason of the latest failure of a deactivation."""
        self.misfit = ""
        """Why a controller cannot be used."""
        self._leaps = ""
        """Why the position controller would leap."""
        self._silence, self._looked, self._next, self._begun = 0.0, now, 0.0, 0.0
        self._alarmed = False

    @property
    def period(self) -> float:
        """Seconds from one :meth:`look` to the next."""
        return self.settings.command_timeout / TICKS

    def on_command(self, efforts: Iterable[float], now: float) -> None:
        """Process a command: efforts in N m or N."""
        self.commands, self._silence = self.commands + 1, 0.0
        self.state = Watch.WATCHING if any(efforts) else Watch.IDLE

    def look(self, publishers: int, now: float) -> bool:
        """Return whether to deactivate now; ``publishers`` counts those of the topic."""
        # after a pause of this process, commands that arrived meanwhile are yet to be read
        self._silence += min(now - self._looked, 2.0 * self.period)
        self._looked = now
        timeout, reason = self.settings.command_timeout, ""
        if self._silence > timeout:
            reason = f"no command for {timeout:g} s, the last one was not zero"
        elif not publishers and self._silence > 3.0 * self.period:
            reason = "the command topic has lost its publisher under torque"
        if self.state is Watch.WATCHING and reason:
            self.state, self.reason, self.failure = Watch.DEACTIVATING, reason, ""
            self.attempts, self._next, self._begun, self._alarmed = 0, now, now, False
        return self.state is Watch.DEACTIVATING and now >= self._next

    def list(self, controllers: Sequence[Controller], manager: str) -> ControllerList:
        """Return the controllers that the manager of that full name lists."""
        position = self.settings.position_controller
        return ControllerList(controllers, self.controller, position, manager)

    def plan(self, seen: ControllerList, now: float) -> Switch:
        """Return the next request, or none. Raises ControllerError without effort controller."""
        if self.state is not Watch.DEACTIVATING:
            return Switch()
        in_time = now < self._begun + SUCCESSOR_TIMEOUT
        if self.settings.position_controller and in_time and not (self._leaps or seen.unusable):
            return seen.to_position()
        seen.find(self.controller)
        return Switch((), seen.without_torques)

    def alarm(self) -> bool:
        """Record that a request is needed; return whether it is the first of this silence."""
        first, self._alarmed = not self._alarmed, True
        self.deactivations += first
        return first

    def succeed(self, needed: bool) -> None:
        """Record that the controller is inactive; ``needed``: by requests of the watchdog."""
        if self.state is Watch.DEACTIVATING:
            self.state, self.failure = Watch.DEACTIVATED if needed else Watch.IDLE, ""

    def fail(self, reason: str, now: float) -> None:
        """Record that a request has failed or was refused."""
        self.attempts, self.failure, self._next = self.attempts + 1, reason, now + RETRY_PERIOD

    def inspect(self, seen: ControllerList, starts_from_command: bool | None) -> None:
        """Record whether the controllers can be used, before they are needed."""
        self._leaps = self.misfit = ""
        try:
            seen.find(self.controller)
            if self.settings.position_controller:
                seen.chain()
                self.misfit = self._leaps = seen.leap(starts_from_command)
        except ControllerError as error:
            self.misfit = str(error)


class CommandWatchdogNode(BaseNode):
    """The command watchdog. Raises ControllerError without controller_manager_msgs."""

    interface = COMMAND_WATCHDOG_NODE

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings: CommandWatchdogSettings = self._settings
        self._core = CommandWatchdog(settings, time.monotonic())
        self._manager = ControllerManager(self, manager_name(self, settings))
        if not self._manager.installed:
            raise ControllerError(NOT_INSTALLED)
        self._asking = self._ending = False
        self._length = self._seconds = 0
        topic = settings.command_topic
        self._commands = self.subscribe("<command_topic>", self._on_command, topic)
        self._timer = self._steady_timer(self._core.period, self._look)
        self._steady_timer(1.0, self._publish_diagnostics)
        self._watch_parameters()

    def _on_command(self, message: Float64MultiArray) -> None:
        if not self._ending or any(message.data):  # else it is of this node
            self._length = len(message.data)
            self._core.on_command(message.data, time.monotonic())

    def _look(self) -> None:
        publishers = self.count_publishers(self._commands.topic_name)
        if self._core.look(publishers, time.monotonic()):
            self._ask(self._deactivate)

    def _ask(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine that calls the manager, unless one is running."""
        if not self._asking and self.executor is not None:
            self._asking = True
            self.executor.create_task(task)

    async def _seen(self) -> ControllerList:
        return self._core.list(await self._manager.list(), self._manager.name)

    async def _deactivate(self) -> None:
        core, log, needed = self._core, self.get_logger(), False
        try:
            while any(step := core.plan(seen := await self._seen(), time.monotonic())):
                if core.alarm():
                    log.error(f"{core.reason}: deactivates the controller")
                needed = True
                if not (step.activate or core.settings.brakes):
                    await self._end_torques()
                if core.state is not Watch.DEACTIVATING:
                    return  # commands have resumed
                await self._manager.switch(step.activate, step.deactivate)
                done = [f"deactivated {name!r}" for name in step.deactivate]
                done += [f"activated {name!r}" for name in step.activate]
                if not (step.activate or seen.position_acts):
                    done.append("the arm has no support but brakes")
                log.error(", ".join(done))
            core.succeed(needed or core.attempts > 0)
        except ControllerError as error:
            core.alarm()
            core.fail(str(error), time.monotonic())
            self.warn(str(error), f"cannot deactivate: {error}")
        finally:
            self._asking = self._ending = False

    async def _end_torques(self) -> None:
        """Command zero for a while, by a publisher that exists for no longer."""
        self._ending = True
        publisher = self.advertise("<command_topic>", self._commands.topic_name)
        try:
            for _ in range(ZEROS):
                if self._core.state is not Watch.DEACTIVATING:
                    return
                publisher.publish(Float64MultiArray(data=[0.0] * self._length))
                await self._manager.pause(ZERO_PERIOD)
        finally:
            self.destroy_publisher(publisher)

    async def _inspect(self) -> None:
        core, position = self._core, self._core.settings.position_controller
        try:
            seen = await self._seen()
            starts = await self._manager.starts_from_command(position) if position else None
            core.inspect(seen, starts)
        except ControllerError as error:
            core.misfit = str(error)
        finally:
            self._asking = False

    def _publish_diagnostics(self) -> None:
        core, name = self._core, self._manager.name
        present = self._manager.present()
        if present and (self._seconds % INSPECTIONS == 0 or core.misfit):
            self._ask(self._inspect)
        self._seconds += 1
        values: dict[str, object] = {
            "state": core.state.value,
            "command topic": self._commands.topic_name,
            "commands": core.commands,
            "effort controller": core.controller,
            "position controller": core.settings.position_controller or "none",
            "controller manager": name,
            "deactivations": core.deactivations,
            "last deactivation": core.reason or "none",
            "failed attempts": core.attempts,
        }
        error = f"cannot hand the arm over: {core.misfit}" if core.misfit else ""
        error = error if present else f"there is no controller manager {name}: can do nothing"
        self._remind("misfit", error)
        warning = ""
        if core.state is Watch.DEACTIVATING:
            error = f"{core.reason}: torques may still be held; {core.failure or 'asking'}"
        elif core.state is Watch.DEACTIVATED:
            warning = f"deactivated {core.controller}: {core.reason}"
        self._report([status("watchdog", core.state.value, values, warning=warning, error=error)])

    def _apply(self, before: CommandWatchdogSettings, given: Sequence[str]) -> None:
        self._core.settings = self._settings
        self.destroy_timer(self._timer)
        self._timer = self._steady_timer(self._core.period, self._look)


main = partial(run, CommandWatchdogNode)

if __name__ == "__main__":
    sys.exit(main())
