# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which controller has the arm: is it the right one, and how it passes to another. Knows no ROS.

ros2_control's controllers take commands at any time, and act on them while they are active. Where
``position_controller`` is named, torques come in while it still holds the arm; then one call
activates the effort controller and deactivates the other one, and whenever torques are let go,
another call gives the arm back. So the arm is held all the time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros.compensation.command_policy import Fault, State
from mbs_dynamics.ros.compensation.controllers import (
    Controller,
    controller_of,
    not_loaded,
    problem,
)
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.settings import GravityCompensationSettings

BOTH = ("active", "inactive")

UNSUPPORTED = (
    "nothing is known to hold the arm: it must be supported until the torques have come in "
    "({:g} s), as by its brakes, or name position_controller"
)


class Manager(Protocol):
    """What a controller manager offers."""

    def present(self) -> bool:
        """Return whether there is one."""

    async def list(self) -> Sequence[Controller]:
        """Return the controllers that are loaded; raise MbsError if that fails."""

    async def switch(self, activate: Sequence[str], deactivate: Sequence[str]) -> None:
        """Activate and deactivate controllers in one call, or raise MbsError."""


class Handover:
    """Enables a compensator where the controller behind its topic is the right one."""

    def __init__(self, settings: GravityCompensationSettings, manager: Manager) -> None:
        self.settings = settings
        self.trouble = ""
        """What was wrong with the controller when it was looked at last."""
        self.switched = False
        """Whether the effort controller has taken the arm from ``position_controller``."""
        self._busy = False
        self._manager = manager
        self._effort = settings.effort_controller or controller_of(settings.command_topic)
        self._position = settings.position_controller

    async def enable(
        self,
        core: GravityCompensator,
        now: Callable[[], float],
        rivals: int,
        torques_are_in: Callable[[], Awaitable[bool]],
    ) -> tuple[bool, str]:
        """Enable, and switch the controllers if they are named; return whether, and what to say.

        ``torques_are_in`` waits until the torques have come in, and returns False if they never do.
        """
        if core.policy.engaged:
            return True, core.policy.state.value
        if self._busy:
            return False, "another call is about to enable it"
        self._busy = True
        try:
            return await self._enable(core, now, rivals, torques_are_in)
        finally:
            self._busy = False

    async def _enable(
        self,
        core: GravityCompensator,
        now: Callable[[], float],
        rivals: int,
        torques_are_in: Callable[[], Awaitable[bool]],
    ) -> tuple[bool, str]:
        problems = core.problems(now(), rivals)
        takes_over = False
        try:
            takes_over, self.trouble = await self._look()
        except MbsError as error:
            self.trouble = f"{error}; check_controller false does without"
        problems += [self.trouble] if self.trouble else []
        reason = "; ".join(problems) or core.enable(now(), rivals)
        if reason:
            return False, reason
        if takes_over:
            return await self._take_over(core, now, torques_are_in)
        said = core.policy.state.value
        if not core.supported():
            said += f"; {UNSUPPORTED.format(self.settings.ramp_in_time)}"
        return True, said

    async def _look(self) -> tuple[bool, str]:
        """Return whether the arm is to be taken over, and what is wrong with the controllers.

        Raises MbsError if the manager does not list them.
        """
        wanted = bool(self._position)
        if not self._manager.present():
            absent = (
                f"position_controller is {self._position!r}, but there is no controller manager "
                f"{self.settings.controller_manager!r}"
            )
            return False, absent if wanted else ""
        if not (wanted or self.settings.check_controller):
            return False, ""
        controllers = await self._manager.list()
        states = {one.name: one.state for one in controllers}
        if wanted and self._position not in states:
            return False, f"position_{not_loaded(controllers, self._position)}"
        takes_over = wanted and states[self._position] == "active"
        trouble = problem(
            controllers, self._effort, self.settings.joints, BOTH if takes_over else BOTH[:1]
        )
        return takes_over and states.get(self._effort) != "active", trouble

    async def _take_over(
        self,
        core: GravityCompensator,
        now: Callable[[], float],
        torques_are_in: Callable[[], Awaitable[bool]],
    ) -> tuple[bool, str]:
        if not await torques_are_in():
            return False, f"the torques did not come in: {_state(core)}"
        self.switched = True  # a call that is not answered may have done it
        try:
            await self._manager.switch([self._effort], [self._position])
        except MbsError as error:
            core.disable(now())
            return False, f"the controllers were not switched: {error}"
        if not core.policy.engaged:
            return False, f"{self._effort} has taken over, but by then: {_state(core)}"
        return True, f"{core.policy.state.value}; {self._effort} has taken over"

    async def give_back(self, core: GravityCompensator) -> str:
        """Let ``position_controller`` hold the arm again, if it did; return what to say of it.

        The torques ramp out meanwhile; they end at once when the controllers are switched. Raises
        MbsError if they are not, and the ramp goes on.
        """
        if not self.switched:
            return ""
        self.switched = False
        states = {one.name: one.state for one in await self._manager.list()}
        if states.get(self._position) != "active":
            await self._manager.switch([self._position], [self._effort])
        if not core.policy.engaged:
            core.policy.dismiss()
        return f"{self._position} holds the arm again"

    async def watch(self, core: GravityCompensator) -> Fault | None:
        """Look at the controllers; return the fault that the one commanded is not the right one."""
        if self._busy:
            return None
        try:
            _, self.trouble = await self._look()
        except (
            MbsError
        ) as error:  # a manager that is busy stops no arm; without one, no states come
            self.trouble = str(error)
            return None
        if self._busy or not (self.trouble and core.policy.engaged and self._manager.present()):
            return None
        return Fault("controller", self.trouble)


def _state(core: GravityCompensator) -> str:
    fault = core.policy.fault
    stopped = core.policy.state is State.FAULT and fault is not None
    return fault.reason if stopped and fault is not None else core.policy.state.value
