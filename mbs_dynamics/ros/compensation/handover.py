# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds the arm: from the controllers that are listed to the next request. No ROS is needed.

ros2_control's controllers take commands at any time, and act on them while they are active. Where
``position_controller`` is named, torques ramp in while it holds the arm; then one request activates
the effort controller and deactivates the position controller. Whenever torques are released, and
whenever the effort controller is lost, the arm is given back. With ``adds_to_position_control``
both are active all the time, and none is switched.

No request is remembered. Others switch controllers as well, controllers end by errors, and a
request of several controllers may succeed in part, even if it is STRICT: after each request the
list shows what is left to do.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from mbs_dynamics.control.policy import Fault, State
from mbs_dynamics.errors import ControllerError, MbsError, NoAnswerError, listed
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings, controller_of

EFFORT = "effort"
"""The command interface of a joint that takes torques or forces."""

MOTION = ("position", "velocity", EFFORT)
"""Command interfaces of a joint that move it."""

STARTS_FROM_COMMAND = "set_last_command_interface_value_as_state_on_activation"
"""Parameter of joint_trajectory_controller: start from the last command, not from the position."""

KEEPS_COMMAND = ("forward_command_controller/", "position_controllers/")
"""Packages of controllers that write no command before they have received one."""

TRAJECTORY_CONTROLLER = "joint_trajectory_controller/"

RETRY, LONGEST_RETRY = 0.1, 1.0
"""Time in s to the next attempt to give the arm back while torques hold it; doubled each time."""

RETRY_UNHELD = 0.02
"""Time in s to the next attempt while nothing holds the arm."""

LATE_ANSWER = 2.0
"""Time in s after which a request without an answer no longer takes effect."""

UNKNOWN_NODE = "_NODE_NAME_UNKNOWN_"
"""Name that the middleware gives to nodes of which it has not received the name."""

DISCOVERY = 5.0
"""Time in s in which a node discovers the services of others."""

UNSUPPORTED = (
    "nothing is known to hold the arm: it must be supported until the torques have ramped in "
    "({:g} s), as by its brakes, or name position_controller"
)


class Controller(NamedTuple):
    """A controller that is loaded."""

    name: str
    state: str
    """unconfigured, inactive, active or finalized."""
    type: str
    command_interfaces: tuple[str, ...]
    """Interfaces such as ``joint1/effort``, in the order of its commands.

    Known in the states inactive and active."""
    chained_to: tuple[str, ...] = ()
    """Controllers whose references it commands."""


class Switch(NamedTuple):
    """A request to the controller manager."""

    activate: tuple[str, ...] = ()
    deactivate: tuple[str, ...] = ()


class ControllerList:
    """The controllers of an arm, as they are listed at one moment.

    Parameters: ``effort`` and ``position`` are the names of the controllers that take torques and
    that hold the arm otherwise, the latter empty if there is none; ``manager`` is the full name of
    the controller manager, for the commands in messages. ``beside``: both are to be active, since
    torques are added to what the position controller commands.
    """

    def __init__(
        self,
        controllers: Sequence[Controller],
        effort: str,
        position: str = "",
        manager: str = "/controller_manager",
        *,
        beside: bool = False,
    ) -> None:
        self._beside = beside
        self._all = {one.name: one for one in controllers}
        self._effort, self._position, self._manager = effort, position, manager

    def state(self, name: str) -> str:
        """Return the state of a controller; "" if it is not loaded."""
        return self._all[name].state if name in self._all else ""

    def find(self, name: str) -> Controller:
        """Return a controller. Raises ControllerError if it is not loaded."""
        if name not in self._all:
            loaded = ", ".join(self._all) or "none"
            raise ControllerError(f"controller {name!r} is not loaded; those loaded: {loaded}")
        return self._all[name]

    def _members(self) -> list[str]:
        """Return the names of the position controller and of those that it commands, if loaded."""
        names = [self._position] if self._position in self._all else []
        for name in names:
            chained = self._all[name].chained_to
            names += [other for other in chained if other in self._all and other not in names]
        return names

    def chain(self) -> list[Controller]:
        """Return the position controller and those that it commands, from first to last.

        Raises ControllerError if it is not loaded, or one is neither active nor inactive.
        """
        self.find(self._position)
        chain = [self._all[name] for name in self._members()]
        for one in chain:
            if one.state not in ("active", "inactive"):
                raise ControllerError(f"position controller {self._not_ready(one)}")
        return chain

    @property
    def torques_act(self) -> bool:
        """Whether the effort controller is active."""
        return self.state(self._effort) == "active"

    @property
    def torques_wait(self) -> bool:
        """Whether the effort controller can be activated, and no position controller acts."""
        return self.state(self._effort) == "inactive" and not self.position_acts

    @property
    def position_acts(self) -> bool:
        """Whether the position controller is active, with all that it commands."""
        return not self.unusable and all(one.state == "active" for one in self.chain())

    @property
    def unusable(self) -> str:
        """Why no position controller can hold the arm; "" if one can."""
        try:
            self.chain()
        except ControllerError as error:
            return str(error)
        return ""

    # -- requests ----------------------------------------------------------------------------------

    def to_torques(self) -> Switch:
        """Return the request after which the effort controller alone acts; empty if it does."""
        return Switch(
            () if self.torques_act else (self.find(self._effort).name,),
            tuple(name for name in self._members() if self.state(name) == "active"),
        )

    def to_position(self) -> Switch:
        """Return the request after which the position controller alone holds; empty if it does.

        Where a third controller has taken interfaces that it needs, that one holds the arm, and
        only the effort controller is deactivated. Raises ControllerError as :meth:`chain` does.
        """
        idle = [one for one in self.chain() if one.state == "inactive"]
        needed = {interface for one in idle for interface in one.command_interfaces}
        ours = [*self._members(), self._effort]
        taken = any(
            one.state == "active" and one.name not in ours and needed & {*one.command_interfaces}
            for one in self._all.values()
        )
        return Switch(() if taken else tuple(one.name for one in idle), self.without_torques)

    @property
    def without_torques(self) -> tuple[str, ...]:
        """The names to deactivate so that the effort controller does not act."""
        return (self._effort,) if self.torques_act else ()

    # -- checks ------------------------------------------------------------------------------------

    def problem(self, joints: Sequence[str]) -> str:
        """Return why torques on ``joints`` must not be enabled; "" if nothing prevents it."""
        try:
            effort = self._checked(joints)
            chain = self.chain() if self._position else []
        except ControllerError as error:
            return str(error)
        holding = [one for one in chain if one.state == "active"]
        if self._beside and (lost := self.lost(joints)):
            return lost
        if effort.state == "active" and holding and not self._beside:
            return self._both(holding[0].name)
        if effort.state == "inactive" and (self._beside or not chain):
            return (
                f"controller {effort.name!r} is inactive; valid is active: "
                f"{self.command(effort.name, 'active')}"
                f"{'' if self._beside else '; or name position_controller'}"
            )
        if effort.state == "inactive" and len(holding) < len(chain):
            idle = next(one for one in reversed(chain) if one.state == "inactive")
            return (
                f"neither {effort.name!r} nor position_controller {self._position!r} holds the "
                f"arm: {idle.name!r} is inactive; {self.command(idle.name, 'active')}"
            )
        return self._rival(joints, [one.name for one in chain])

    def fault(self, joints: Sequence[str]) -> str:
        """Return why torques on ``joints`` must not go on; "" if nothing is wrong."""
        try:
            effort = self._checked(joints)
        except ControllerError as error:
            return str(error)
        if effort.state != "active":
            return f"controller {effort.name!r} is {effort.state}; valid is active"
        if not self._beside:
            return self._rival(joints, [])
        if self.lost(joints) and not self._all_moved_by_others(joints):
            return ""  # the torques are all that holds some joint
        return self._rival(joints, self._members())

    def lost(self, joints: Sequence[str]) -> str:
        """Return why the position controller does not hold ``joints`` beside torques.

        "" if it does, or if none is named.
        """
        if not self._position:
            return ""
        try:
            chain = self.chain()
        except ControllerError as error:
            return str(error)
        name = f"position_controller {self._position!r}"
        for one in reversed(chain):
            if one.state == "inactive":
                mend = self.command(one.name, "active")
                return f"{name} does not hold the arm: {one.name!r} is inactive; {mend}"
        commanded = {interface for one in chain for interface in one.command_interfaces}
        own = sorted(commanded & {f"{joint}/{EFFORT}" for joint in joints})
        if own:
            return f"{name} commands {listed(own)} itself: send efforts in its trajectories"
        missed = [joint for joint in joints if not commanded & _position_loops(joint)]
        if missed:
            return f"{name} commands neither position nor velocity of {listed(missed)}"
        return ""

    def _all_moved_by_others(self, joints: Sequence[str]) -> bool:
        """Return whether other active controllers command position or velocity of each joint."""
        others = [one for one in self._all.values() if one.state == "active"]
        commanded = {interface for one in others for interface in one.command_interfaces}
        return all(commanded & _position_loops(joint) for joint in joints)

    def leap(self, starts_from_command: bool | None) -> str:
        """Return the message that the position controller leaps at its start; "" if it does not.

        It does if it starts from its last command. ``starts_from_command`` is the value of its
        parameter STARTS_FROM_COMMAND, None if it has none or does not answer.
        """
        holder = self.find(self._position)
        if holder.chained_to:
            return ""  # chained controllers set their references to the measured positions
        kinds = {interface.rpartition("/")[2] for interface in holder.command_interfaces}
        if "position" not in kinds or starts_from_command is False:
            return ""
        if starts_from_command is None and not holder.type.startswith(
            (*KEEPS_COMMAND, TRAJECTORY_CONTROLLER)
        ):
            return ""  # its start is not known
        mend = "use a controller that starts from the measured position"
        if starts_from_command or holder.type.startswith(TRAJECTORY_CONTROLLER):
            node = f"{self._manager.rpartition('/')[0]}/{holder.name}"
            mend = (
                f"set its parameter {STARTS_FROM_COMMAND} to false: "
                f"`ros2 param set {node} {STARTS_FROM_COMMAND} false`"
            )
        return (
            f"position_controller {holder.name!r} ({holder.type}) starts from the last position "
            f"command, so that the arm would leap back at release; {mend}, or set "
            "resets_position_command where the hardware resets it"
        )

    def _checked(self, joints: Sequence[str]) -> Controller:
        """Return the effort controller. Raises ControllerError if it cannot take these joints."""
        if not self._effort:
            raise ControllerError(
                "command_topic does not name a controller, as <controller>/commands does: set "
                "effort_controller"
            )
        one = self.find(self._effort)
        if one.state not in ("active", "inactive"):
            raise ControllerError(f"controller {self._not_ready(one)}")
        if not one.command_interfaces:
            raise ControllerError(f"controller {one.name!r} ({one.type}) commands no joint")
        taken = [interface.rpartition("/") for interface in one.command_interfaces]
        others = [f"{joint}/{kind}" for joint, _, kind in taken if kind != EFFORT]
        if others:
            raise ControllerError(
                f"controller {one.name!r} commands {', '.join(others)}; valid is the interface "
                f"{EFFORT}"
            )
        theirs, ours = [joint for joint, _, _ in taken], list(joints)
        if theirs != ours:
            wrong = "order" if sorted(theirs) == sorted(ours) else "joints"
            raise ControllerError(
                f"controller {one.name!r} has other {wrong}: it takes [{', '.join(theirs)}]; "
                f"joints is [{', '.join(ours)}]"
            )
        return one

    def _rival(self, joints: Sequence[str], known: Sequence[str]) -> str:
        """Return the message that another active controller moves a joint; "" if none does."""
        ours = {f"{joint}/{kind}" for joint in joints for kind in MOTION}
        for one in self._all.values():
            moved = sorted(ours & {*one.command_interfaces})
            if one.state == "active" and moved and one.name not in (self._effort, *known):
                return self._both(one.name) + f": it commands {', '.join(moved)}"
        return ""

    def _both(self, other: str) -> str:
        if self._beside:
            mend = self.command(other, "inactive")
            mend += "" if self._position else ", or name it as position_controller"
            return f"controller {other!r} moves joints of {self._effort!r} as well; {mend}"
        return (
            f"controllers {other!r} and {self._effort!r} are both active, and the drives would "
            f"follow both; {self.command(self._effort, 'inactive')} and let ~/enable switch, or "
            f"{self.command(other, 'inactive')}"
        )

    def _not_ready(self, one: Controller) -> str:
        mend = self.command(one.name, "inactive")
        if one.state == "finalized":
            mend = f"unload it, {self._line(f'unload_controller {one.name}')}, and load it again"
        return f"{one.name!r} is {one.state}; valid is active or inactive: {mend}"

    def command(self, name: str, state: str) -> str:
        """Return the command line that brings a controller into a state."""
        return self._line(f"set_controller_state {name} {state}")

    def _line(self, verb: str) -> str:
        manager = "" if self._manager == "/controller_manager" else f" -c {self._manager}"
        return f"`ros2 control {verb}{manager}`"


def _position_loops(joint: str) -> set[str]:
    """Return the command interfaces of a joint behind which a loop can hold it."""
    return {f"{joint}/position", f"{joint}/velocity"}


class Manager(Protocol):
    """The controller manager: calls raise ControllerError."""

    name: str

    def present(self) -> bool:
        """Return whether there is one."""

    async def list(self) -> Sequence[Controller]:
        """Return all controllers that are loaded."""

    async def switch(self, activate: Sequence[str], deactivate: Sequence[str]) -> None:
        """Activate and deactivate controllers."""

    async def starts_from_command(self, controller: str) -> bool | None:
        """Return the value of STARTS_FROM_COMMAND; None if there is no such parameter."""

    async def pause(self, seconds: float) -> None:
        """Let time pass."""


class Commands(Protocol):
    """The command topic, as other nodes are connected to it."""

    topic: str
    """Its full name."""

    def other_publishers(self) -> int:
        """Return the number of other publishers."""

    def subscribers(self) -> Sequence[str]:
        """Return the names of the nodes that subscribe to it."""


class Handover:
    """Enables a compensator if the controller behind its topic is the right one, and gives back.

    Parameters: ``now`` is a steady clock in s; ``say`` logs a problem that may pass.
    """

    def __init__(
        self,
        settings: GravityCompensationSettings,
        manager: Manager,
        commands: Commands,
        now: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.trouble = ""
        """The problem with the controllers at the latest check; empty if there was none."""
        self.owed = False
        """Whether ``position_controller`` must hold the arm once torques are released."""
        self.alone = False
        """Whether the trouble is that torques are all that holds the arm."""
        self._manager, self._commands, self._now, self._say = manager, commands, now, say
        self._begun = now()
        self.busy = False
        """Whether controllers are being switched."""
        self._looking = False
        self._effort = settings.effort_controller or controller_of(settings.command_topic)
        self._position = settings.position_controller
        self._beside = settings.adds_to_position_control
        self._unanswered_until = -math.inf
        """Until then a request without an answer may still take effect."""

    # -- before torques ----------------------------------------------------------------------------

    async def enable(
        self, core: GravityCompensator, torques_are_in: Callable[[], Awaitable[bool]]
    ) -> tuple[bool, str]:
        """Enable, and switch the controllers if they are named; return success and a message.

        ``torques_are_in`` waits for the end of the ramp in, and returns False if it was stopped.
        """
        if self.busy:
            return False, "controllers are being switched: wait until that has ended"
        if core.policy.engaged:
            return True, "; ".join(filter(None, [core.policy.state.value, self.trouble]))
        self.busy = True
        try:
            others = self._commands.other_publishers()
            problems = core.problems(self._now(), others)
            takes_over = False
            try:
                takes_over, self.trouble = await self._look()
            except MbsError as error:
                self.trouble = str(error)
                if not self._position:
                    self.trouble += "; check_controller false does without"
            problems += [self.trouble] if self.trouble else []
            reason = "; ".join(problems) or core.enable(self._now(), others)
            if reason:
                return False, reason
            self.owed = self.settings.hands_over
            if takes_over:
                return await self._take_over(core, torques_are_in)
        finally:
            self.busy = False
        said = [core.policy.state.value]
        if self._beside:
            holder = "no position_controller is named, and none is checked: the drives must hold"
            if self._position:
                holder = f"{self._position} is checked, and must go on holding"
            return True, "; ".join([*said, f"{holder} the arm; nothing is switched off"])
        if not core.supported():
            said.append(UNSUPPORTED.format(self.settings.ramp_in_time))
        if self._position:
            said.append(f"{self._position} will hold the arm at release")
        return True, "; ".join(said)

    async def _list(self) -> ControllerList:
        controllers = await self._manager.list()
        names = self._effort, self._position, self._manager.name
        return ControllerList(controllers, *names, beside=self._beside)

    async def _look(self) -> tuple[bool, str]:
        """Return whether the arm is to be taken over, and the problem with the controllers.

        Raises MbsError if the manager does not list them.
        """
        if not (self._position or self.settings.check_controller):
            return False, ""
        if not self._manager.present():
            return False, self._absent() if self._position else self._unheard("")
        seen = await self._list()
        trouble = seen.problem(self.settings.joints) or self._unheard(self._effort)
        hands_over = self.settings.hands_over
        if hands_over and not (trouble or self.settings.resets_position_command):
            starts = await self._manager.starts_from_command(self._position)
            trouble = seen.leap(starts)
        return hands_over and seen.position_acts and not seen.torques_act, trouble

    def _absent(self) -> str:
        soon = self._now() < self._begun + DISCOVERY
        return (
            f"position_controller is {self._position!r}, but there is no controller manager "
            f"{self._manager.name!r}{' yet; discovery takes some seconds' if soon else ''}"
        )

    def _unheard(self, controller: str) -> str:
        """Return the message that this controller, or if "" any node, receives no commands."""
        nodes = self._commands.subscribers()
        if {controller, UNKNOWN_NODE} & {*nodes} if controller else nodes:
            return ""
        who = (
            f"controller {controller!r} does not subscribe" if controller else "no node subscribes"
        )
        return (
            f"{who} to the command topic {self._commands.topic}; its subscribers: "
            f"{', '.join(nodes) or 'none'}. Is command_topic in the namespace of the controller?"
        )

    async def _take_over(
        self, core: GravityCompensator, torques_are_in: Callable[[], Awaitable[bool]]
    ) -> tuple[bool, str]:
        if await torques_are_in():
            reason = await self._to_torques(core)
            if not reason and core.policy.engaged:
                return True, f"{core.policy.state.value}; {self._effort} has taken over"
            said = f"{self._effort} has taken over, but by then: {_state(core)}"
            if reason:
                said = f"the controllers were not switched: {reason}"
        else:
            said = f"the torques did not ramp in: {_state(core)}"
        core.disable(self._now())
        try:
            return False, f"{said}; {await self._give_back(core)}"
        except MbsError as error:
            return False, f"{said}; {error}"

    async def _to_torques(self, core: GravityCompensator) -> str:
        """Let the effort controller alone act; return why it does not, empty if it does."""
        reason = ""
        while core.policy.engaged:
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

    async def watch(self, core: GravityCompensator) -> Fault | None:
        """Check the controllers; return a fault if torques must not go on."""
        if self.busy or self._looking:
            return None
        self._looking = True
        fault, self.alone = "", self.alone and core.policy.engaged
        try:
            if not core.policy.engaged:
                _, self.trouble = await self._look()
            elif self._position or (self.settings.check_controller and self._manager.present()):
                seen = await self._list()
                fault = seen.fault(self.settings.joints)
                lost = seen.lost(self.settings.joints) if self._beside else ""
                self.alone = bool(lost) and not fault
                if self.alone:
                    self._say(f"{lost}; the torques alone hold the arm")
                self.trouble = fault or lost or (seen.unusable if self._position else "")
        except MbsError as error:
            # a manager that is busy stops no arm; without a manager, no states come
            self.trouble = str(error)
        finally:
            self._looking = False
        return Fault("controller", fault) if fault and not self.busy else None

    async def release(self, core: GravityCompensator) -> str:
        """Let ``position_controller`` hold the arm, if that is owed; return the message about it.

        Whole gravity torques are commanded meanwhile, as long as states of the robot are valid, for
        at most ``release_timeout``; then they ramp out. They end at once when the position
        controller holds. Raises ControllerError if it does not by the end of that ramp.
        """
        if self.busy or not self.owed:
            return ""
        self.busy = True
        try:
            return await self._give_back(core)
        finally:
            self.busy = False

    async def _give_back(self, core: GravityCompensator) -> str:
        policy = core.policy
        until = self._now() + policy.limits.release_time + policy.limits.ramp_time
        again, delay, tried = -math.inf, RETRY, False
        while True:
            step, held = Switch(), False
            try:
                seen = await self._list()
                now = self._now()
                whole, waits = policy.bears(now), now < again
                held = whole and seen.torques_act
                if whole and seen.torques_wait and (waits or seen.unusable):
                    step = seen.to_torques()  # which hold the arm until the next attempt
                elif not (held and waits and not seen.position_acts):
                    step = seen.to_position()
                    done = not any(step) or (tried and seen.position_acts)
                    if done and now >= self._unanswered_until:
                        break
                if any(step):
                    tried = True
                    await self._switch(step)
                    continue
            except ControllerError as error:
                now, held = self._now(), False
                if self._effort in step.activate:
                    again = now
                elif step.activate:  # it may have dropped the arm, and would do so each time
                    again, delay = now + delay, min(2.0 * delay, LONGEST_RETRY)
                self.trouble = f"{self._position} does not hold the arm: {error}"
                self._say(self.trouble)
                if now >= until:
                    self.owed = False
                    raise ControllerError(f"no controller holds the arm: {error}") from error
            await self._manager.pause(RETRY if held else RETRY_UNHELD)
        self.owed, self.trouble = False, ""
        policy.dismiss()
        said = f"{self._position if seen.position_acts else 'another controller'} holds the arm"
        return said + (f"; {self._effort} is still active" if seen.torques_act else "")


def _state(core: GravityCompensator) -> str:
    fault = core.policy.fault
    stopped = core.policy.state is State.FAULT and fault is not None
    return fault.reason if stopped and fault is not None else core.policy.state.value
