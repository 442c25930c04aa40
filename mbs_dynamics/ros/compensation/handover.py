# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Decides who holds the arm: from the listed controllers to the next request. No ROS is needed.

ros2_control's controllers take commands at any time, and act on them while they are active. Where
``position_controller`` is named, torques ramp in while it holds the arm; then one request activates
the effort controller and deactivates the position controller. Whenever torques are released, and
whenever the effort controller is lost, the arm is handed back. With ``adds_to_position_control``
both are always active, and none is switched.

Requests are not remembered. Other programs switch controllers as well, controllers stop by errors,
and a request for several controllers may succeed in part, even if it is STRICT. After each request
the list shows what remains to be done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.period.evidence import GROWTH
from mbs_dynamics.errors import ControllerError, MbsError, NoAnswerError, listed
from mbs_dynamics.ros.compensation.controller_list import ControllerList, Switch
from mbs_dynamics.ros.compensation.gravity_compensator import RELEASE, GravityCompensator
from mbs_dynamics.ros.compensation.interface import controller_of

if TYPE_CHECKING:
    from mbs_dynamics.ros.compensation.controllers import ControllerManager
    from mbs_dynamics.ros.compensation.outputs import CommandOutputs

RETRY = 1.0
"""Time in s from a failure to give the arm back to the next attempt, while torques can hold it: an
attempt that fails may drop the arm for a moment."""

LOOK = 0.02
"""Time in s between looks at the controllers or the ramp while the arm changes hands."""

LATE_ANSWER = 2.0
"""Time in s after which a request without an answer no longer takes effect."""

UNKNOWN_NODE = "_NODE_NAME_UNKNOWN_"
"""Name that the middleware gives to nodes whose name it has not received."""

DISCOVERY = 5.0
"""Time in s in which a node discovers the services of others."""

UNSUPPORTED = (
    "nothing is known to hold the arm: it must be supported until the torques have ramped in "
    f"({GROWTH:g} s), as by its brakes, or name position_controller"
)


class Handover:
    """Enables a compensator if its controllers are suitable, and hands the arm back.

    Parameters: ``core`` is the compensator, ``now`` a steady clock in s; ``warn`` logs a problem
    that may pass.
    """

    def __init__(
        self,
        core: GravityCompensator,
        manager: ControllerManager,
        commands: CommandOutputs,
        now: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        self.core = core
        self.trouble = ""
        """The problem with the controllers at the latest check; empty if there was none."""
        self.gives_back = False
        """Whether ``position_controller`` must hold the arm after torques are released."""
        self._manager, self._commands, self._now, self._warn = manager, commands, now, warn
        self._begun = now()
        self.busy = False
        """Whether controllers are being switched."""
        self._looking = False
        self._effort = controller_of(commands.topic)
        self._position = core.settings.position_controller
        self._adds = core.settings.adds_to_position_control
        self._unanswered_until = -math.inf
        """Until then a request without an answer may still take effect."""

    # -- before torques ----------------------------------------------------------------------------

    async def enable(self) -> tuple[bool, str]:
        """Enable, and switch the controllers if they are named; return success and a message."""
        if self.busy:
            return False, "controllers are being switched: wait until that has ended"
        if self.core.engaged:
            return True, "; ".join(filter(None, [self.core.state, self.trouble]))
        self.busy = True
        try:
            takes_over = await self._look()
            self.core.set_holds(takes_over)
            others = self._commands.other_publishers()
            reason = self.core.enable(self._now(), others, self.trouble)
            if reason:
                return False, reason
            self.gives_back = self.core.settings.hands_over
            if takes_over:
                return await self._take_over()
        finally:
            self.busy = False
        if self._adds:
            holder = "no position_controller is named, and none is checked: the drives must hold"
            if self._position:
                holder = f"{self._position} is checked, and must continue to hold"
            return True, f"{self.core.state}; {holder} the arm; nothing is switched off"
        messages = [self.core.state]
        if not self.core.described.state_record.verified:
            messages.append(UNSUPPORTED)
        if self._position:
            messages.append(f"{self._position} will hold the arm at release")
        return True, "; ".join(messages)

    async def _list(self) -> ControllerList:
        controllers = await self._manager.list()
        names = self._effort, self._position, self._manager.name
        return ControllerList(controllers, *names, adds=self._adds)

    async def _look(self) -> bool:
        """Find the problem with the controllers; return whether the arm is to be taken over."""
        try:
            takes_over, self.trouble = await self._found()
        except MbsError as error:
            takes_over, self.trouble = False, str(error)
            if not self._position:
                self.trouble += "; an empty controller_manager does without"
        return takes_over

    async def _found(self) -> tuple[bool, str]:
        """Return whether the arm is to be taken over, and the problem with the controllers.

        Raises MbsError if the manager does not list them.
        """
        settings = self.core.settings
        if not settings.controller_manager:
            return False, ""
        if not self._manager.present():
            return False, self._trouble_without_manager()
        seen = await self._list()
        trouble = seen.problem(settings.joints) or self._trouble_with_topic()
        if settings.hands_over and not trouble:
            starts = await self._manager.starts_from_command(self._position)
            trouble = seen.leap(starts)
        return settings.hands_over and seen.position_acts and not seen.torques_act, trouble

    def _trouble_without_manager(self) -> str:
        """Return what is wrong where there is no controller manager; "" if none is needed."""
        missing = f"there is no controller manager {self._manager.name!r}"
        if self._position:
            soon = self._now() < self._begun + DISCOVERY
            later = " yet; discovery takes some seconds" if soon else ""
            return f"position_controller is {self._position!r}, but {missing}{later}"
        managers = {name.rpartition("/")[0]: name for name in self._manager.others()}
        nodes = self._commands.subscribers()
        for node in nodes:
            space = node.rpartition("/")[0]
            if space in managers or (managers and node.endswith(UNKNOWN_NODE)):
                manager = managers.get(space) or listed(managers.values())
                return (
                    f"{missing}, but {node} receives the commands, beside {manager}: set "
                    "controller_manager to that"
                )
        return "" if nodes else self._unheard("no node subscribes", nodes)

    def _trouble_with_topic(self) -> str:
        """Return the message that the controller does not receive the commands; "" if it does."""
        nodes = self._commands.subscribers()
        full = f"{self._manager.name.rpartition('/')[0]}/{self._effort}"
        if any(node == full or node.endswith(UNKNOWN_NODE) for node in nodes):
            return ""
        return self._unheard(f"controller {self._effort!r} does not subscribe", nodes)

    def _unheard(self, who: str, nodes: Sequence[str]) -> str:
        return (
            f"{who} to the command topic {self._commands.topic}; its subscribers: "
            f"{', '.join(nodes) or 'none'}. Is command_topic in the namespace of the controller?"
        )

    async def _take_over(self) -> tuple[bool, str]:
        arm = self.core.described
        while arm.engaged and not arm.torques_are_in:
            await self._manager.pause(LOOK)
        if arm.engaged:
            reason = await self._to_torques()
            if not reason and self.core.engaged:
                self.core.set_holds(False)
                return True, f"{self.core.state}; {self._effort} has taken over"
            message = f"{self._effort} has taken over, but by then: {_state(self.core)}"
            if reason:
                message = f"the controllers were not switched: {reason}"
            self.core.set_holds(False)  # a request whose answer was lost may have taken effect
        else:
            message = f"the torques did not ramp in: {_state(self.core)}"
        self.core.disable(self._now())
        try:
            return False, f"{message}; {await self._give_back()}"
        except MbsError as error:
            return False, f"{message}; {error}"

    async def _to_torques(self) -> str:
        """Let the effort controller alone act; return why it does not, empty if it does."""
        reason = ""
        while self.core.engaged:
            try:
                step = (await self._list()).to_torques()
                if not any(step):
                    return ""
                if reason:
                    return reason
                await self._switch(step)
            except ControllerError as error:
                if reason:
                    return reason
                reason = str(error)
        return ""

    async def _switch(self, step: Switch) -> None:
        try:
            await self._manager.switch(step.activate, step.deactivate)
        except NoAnswerError:
            self._unanswered_until = self._now() + LATE_ANSWER
            raise

    # -- while torques act, and after --------------------------------------------------------------

    async def watch(self) -> Fault | None:
        """Check the controllers; return a fault if torques must not continue."""
        if self.busy or self._looking:
            return None
        self._looking, fault, engaged = True, "", self.core.engaged
        settings = self.core.settings
        try:
            if not engaged:
                await self._look()
            elif self._position or (settings.controller_manager and self._manager.present()):
                seen = await self._list()
                fault = seen.fault(settings.joints)
                lost = seen.lost(settings.joints)
                self.trouble = fault or (f"{lost}; the torques alone hold the arm" if lost else "")
        except MbsError as error:
            # a manager that is busy stops no arm; without a manager, no states come
            self.trouble = str(error)
        finally:
            self._looking = False
        if engaged and self.trouble:
            self._warn(self.trouble)
        return Fault("controller", fault) if fault and not self.busy else None

    async def release(self) -> str:
        """Let ``position_controller`` hold the arm, if it must; return the message about it.

        Whole gravity torques are commanded meanwhile, as long as states of the robot are valid, for
        at most RELEASE; then they ramp out. They end at once when the position
        controller holds. Raises ControllerError if it does not by the end of that ramp.
        """
        if self.busy or not self.gives_back:
            return ""
        self.busy = True
        try:
            return await self._give_back()
        finally:
            self.busy = False

    async def _give_back(self) -> str:
        """Switch until the position controller, or another one, holds the arm; see :meth:`release`.

        An attempt that fails may have dropped the arm. Then the torques hold it, if they can, until
        the next attempt.
        """
        end = self._now() + RELEASE + self.core.settings.ramp_time
        next_attempt, switched = -math.inf, False
        while True:
            step: Switch | None = Switch()
            try:
                seen = await self._list()
                now = self._now()
                whole = self.core.arm is not None and self.core.arm.holds_arm(now)
                step = _planned(seen, whole=whole, early=now < next_attempt)
                if step is not None and (not any(step) or (switched and seen.position_acts)):
                    if now >= self._unanswered_until:
                        break
                elif step is not None:
                    switched = True
                    await self._switch(step)
                    continue
            except ControllerError as error:
                now = self._now()
                if step is not None and step.activate:
                    next_attempt = now if self._effort in step.activate else now + RETRY
                self.trouble = f"{self._position} does not hold the arm: {error}"
                self._warn(self.trouble)
                if now >= end:
                    self.gives_back = False
                    raise ControllerError(f"no controller holds the arm: {error}") from error
            await self._manager.pause(LOOK)
        self.gives_back, self.trouble = False, ""
        self.core.set_holds(True)
        message = f"{self._position if seen.position_acts else 'another controller'} holds the arm"
        return message + (f"; {self._effort} is still active" if seen.torques_act else "")


def _planned(seen: ControllerList, *, whole: bool, early: bool) -> Switch | None:
    """Return the next request while the arm is given back; None: wait.

    ``whole``: commands are the full gravity torques; ``early``: it is too early for another attempt
    to activate the position controller.
    """
    if whole and seen.torques_wait and (early or seen.unusable):
        return seen.to_torques()
    if whole and seen.torques_act and early and not seen.position_acts:
        return None
    return seen.to_position()


def _state(core: GravityCompensator) -> str:
    return core.state if core.fault is None else core.fault.reason
