# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""When torques that nobody commands any more are to be ended, and by what. No ROS here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from mbs_dynamics.errors import ArgumentError, ControllerError
from mbs_dynamics.ros.compensation.controllers import Controller, controller_of, find, not_loaded
from mbs_dynamics.ros.settings import NodeSettings, setting

TICKS = 10
"""The silence is looked at this many times in ``command_timeout``."""

RETRY_PERIOD = 0.5
"""Seconds from a failure to the next attempt."""


@dataclass(frozen=True)
class CommandWatchdogSettings(NodeSettings):
    """The parameters of the command watchdog, each checked; ArgumentError says what is wrong."""

    command_topic: str = setting(
        "/forward_effort_controller/commands",
        "Topic of the commands to watch, std_msgs/Float64MultiArray.",
        read_only=True,
    )
    command_timeout: float = setting(
        1.0,
        "After a command that is not zero, silence of this length in s deactivates the controller. "
        "To be longer than the stale_timeout of gravity_compensation_node by 0.4 s or more.",
        range=(0.1, 60.0),
    )
    effort_controller: str = setting(
        "",
        "Controller that is deactivated. Empty: the one that command_topic names.",
        read_only=True,
    )
    position_controller: str = setting(
        "",
        "Controller that is activated in the same call, to hold the arm. Empty: none, and the arm "
        "falls unless it has brakes.",
        read_only=True,
    )
    controller_manager: str = setting(
        "controller_manager",
        "Name of the controller manager, relative to the node's namespace.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.controller:
            raise ArgumentError(
                f"effort_controller is empty, and command_topic {self.command_topic!r} does not "
                "name a controller; valid is a name, or a topic <controller>/commands"
            )
        if self.controller == self.position_controller:
            raise ArgumentError(
                f"position_controller is {self.controller!r}, the controller that is deactivated; "
                "valid is another one"
            )

    @property
    def controller(self) -> str:
        """The controller that is deactivated."""
        return self.effort_controller or controller_of(self.command_topic)


class Watch(Enum):
    """What the watchdog does."""

    IDLE = "idle"
    """No torque was commanded so far, or the last command was zero."""
    WATCHING = "watching"
    """Torques are commanded."""
    DEACTIVATING = "deactivating"
    """Commands have stopped, and the controller is to be deactivated."""
    DEACTIVATED = "deactivated"
    """It has been; until the next command."""


class Switch(NamedTuple):
    """What to ask the controller manager for."""

    activate: tuple[str, ...]
    deactivate: tuple[str, ...]
    zeros: int
    """The length of a command of zero to send before; 0 for none.

    A forward_command_controller leaves its last command in the hardware's interface, and some
    hardware goes on with it unless another controller takes over."""


class CommandWatchdog:
    """Decides whether commands have stopped under torque. Times are of one steady clock, in s."""

    def __init__(self, settings: CommandWatchdogSettings, now: float) -> None:
        self.settings = settings
        self.state = Watch.IDLE
        self.commands = 0
        """How many commands have come."""
        self.deactivations = 0
        """How many times the controller was to be deactivated."""
        self.attempts = 0
        """How many calls of the controller manager have failed since the last deactivation."""
        self.reason = ""
        """Why the controller is to be deactivated, or was."""
        self.failure = ""
        """Why the latest attempt has failed."""
        self.misfit = ""
        """Which of the two controllers does not exist, as far as the manager has been asked."""
        self._silence = 0.0
        self._looked = now
        self._heard: float | None = None
        self._next = 0.0
        self._alone = False

    @property
    def period(self) -> float:
        """Seconds from one :meth:`look` to the next."""
        return self.settings.command_timeout / TICKS

    def since_command(self, now: float) -> float | None:
        """Return the age of the last command in s; None if there was none."""
        return None if self._heard is None else now - self._heard

    def on_command(self, efforts: Iterable[float], now: float) -> None:
        """Take a command: efforts in N m or N."""
        self.commands += 1
        self._heard, self._silence = now, 0.0
        self.state = Watch.WATCHING if any(efforts) else Watch.IDLE

    def look(self, publishers: int, now: float) -> bool:
        """Return whether to deactivate now; ``publishers`` is how many the command topic has.

        To be called every :attr:`period`. A pause of this process itself counts as two periods,
        as the commands that have come in it are yet to be read.
        """
        self._silence += min(now - self._looked, 2.0 * self.period)
        self._looked = now
        timeout = self.settings.command_timeout
        if self.state is Watch.WATCHING:
            if self._silence > timeout:
                self._begin(f"no command for {timeout:g} s, the last one was not zero", now)
            elif not publishers and self._silence > 3.0 * self.period:
                self._begin("the command topic has lost its publisher under torque", now)
        return self.state is Watch.DEACTIVATING and now >= self._next

    def _begin(self, reason: str, now: float) -> None:
        self.state, self.reason, self.failure = Watch.DEACTIVATING, reason, ""
        self.deactivations += 1
        self.attempts, self._next, self._alone = 0, now, False

    def plan(self, controllers: Sequence[Controller]) -> Switch | None:
        """Return what to ask for, given all loaded controllers; None if nothing is to be done.

        Raises ControllerError if the controller is not loaded.
        """
        effort, position = self.settings.controller, self.settings.position_controller
        controller = find(controllers, effort)
        if controller is None:
            raise ControllerError(not_loaded(controllers, effort))
        if self.state is not Watch.DEACTIVATING or controller.state != "active":
            return None
        holder = find(controllers, position)
        takes_over = holder is not None and holder.state == "inactive" and not self._alone
        if takes_over:
            return Switch((position,), (effort,), 0)
        return Switch((), (effort,), len(controller.command_interfaces))

    def succeed(self) -> None:
        """Note that the controller is not active any more."""
        if self.state is Watch.DEACTIVATING:
            self.state, self.failure = Watch.DEACTIVATED, ""

    def fail(self, reason: str, asked: Switch | None, now: float) -> None:
        """Note that the manager could not be asked, or has refused what it was asked for.

        The next attempt does without the position controller if this one was with it: that must
        not keep torques from being ended.
        """
        self.attempts, self.failure = self.attempts + 1, reason
        self._next = now + RETRY_PERIOD
        self._alone = asked is not None and bool(asked.activate)

    def inspect(self, controllers: Sequence[Controller]) -> None:
        """Note whether the controllers exist, before they are needed."""
        named = (self.settings.controller, self.settings.position_controller)
        missing = [name for name in named if name and find(controllers, name) is None]
        self.misfit = not_loaded(controllers, missing[0]) if missing else ""
