# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The controllers of ros2_control at one moment, with checks and requests. No ROS is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mbs_dynamics.errors import ControllerError, listed

EFFORT = "effort"
"""The command interface of a joint that takes torques or forces."""

MOTION = ("position", "velocity", EFFORT)
"""Command interfaces of a joint that move it."""

STARTS_FROM_COMMAND = "set_last_command_interface_value_as_state_on_activation"
"""Parameter of joint_trajectory_controller: start from the last command, not from the position."""

KEEPS_COMMAND = ("forward_command_controller/", "position_controllers/")
"""Packages of controllers that write no command before they have received one."""

TRAJECTORY_CONTROLLER = "joint_trajectory_controller/"


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

    def __str__(self) -> str:
        done = [f"deactivated {name!r}" for name in self.deactivate]
        return ", ".join([*done, *(f"activated {name!r}" for name in self.activate)])


class ControllerList:
    """The controllers of an arm, as they are listed at one moment.

    Parameters: ``effort`` and ``position`` are the names of the controllers that take torques and
    that hold the arm otherwise, the latter empty if there is none; ``manager`` is the full name of
    the controller manager, for the commands in messages. ``adds``: both controllers are to be
    active, since torques are added to the commands of the position controller.
    """

    def __init__(
        self,
        controllers: Sequence[Controller],
        effort: str,
        position: str = "",
        manager: str = "/controller_manager",
        *,
        adds: bool = False,
    ) -> None:
        self._adds = adds
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
        """Return the request after which only the effort controller acts; empty if that is so."""
        return Switch(
            () if self.torques_act else (self.find(self._effort).name,),
            tuple(name for name in self._members() if self.state(name) == "active"),
        )

    def to_position(self) -> Switch:
        """Return the request after which only the position controller holds; empty if that is so.

        If a third controller has claimed interfaces that it needs, that one holds the arm, and only
        the effort controller is deactivated. Raises ControllerError as :meth:`chain` does.
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
        if lost := self.lost(joints):
            return lost
        if effort.state == "active" and holding and not self._adds:
            return self._both(holding[0].name)
        if effort.state == "inactive" and (self._adds or not chain):
            return (
                f"controller {effort.name!r} is inactive; must be active: "
                f"{self.command(effort.name, 'active')}"
                f"{'' if self._adds else '; or name position_controller'}"
            )
        if effort.state == "inactive" and len(holding) < len(chain):
            idle = next(one for one in reversed(chain) if one.state == "inactive")
            return (
                f"neither {effort.name!r} nor position_controller {self._position!r} holds the "
                f"arm: {idle.name!r} is inactive; {self.command(idle.name, 'active')}"
            )
        return self._rival(joints, [one.name for one in chain])

    def fault(self, joints: Sequence[str]) -> str:
        """Return why torques on ``joints`` must not continue; "" if nothing is wrong."""
        try:
            effort = self._checked(joints)
        except ControllerError as error:
            return str(error)
        if effort.state != "active":
            return f"controller {effort.name!r} is {effort.state}; must be active"
        if not self._adds:
            return self._rival(joints, [])
        active = [one for one in self._all.values() if one.state == "active"]
        moved = {interface for one in active for interface in one.command_interfaces}
        if self.lost(joints) and not all(moved & _position_loops(joint) for joint in joints):
            return ""  # the torques are all that holds some joint
        return self._rival(joints, self._members())

    def lost(self, joints: Sequence[str]) -> str:
        """Return why the position controller does not hold ``joints`` along with torques.

        Where torques are not added to it: why it cannot hold them after a release. "" if nothing is
        wrong, or if none is named.
        """
        if not self._position:
            return ""
        try:
            chain = self.chain()
        except ControllerError as error:
            return str(error)
        if not self._adds:
            return ""
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

    def leap(self, starts_from_command: bool | None) -> str:
        """Return the message that the position controller would jump at its start; "" if not.

        It does so if it starts from its last command. ``starts_from_command`` is the value of its
        parameter STARTS_FROM_COMMAND, None if it has none or does not answer. Raises
        ControllerError as :meth:`chain` does.
        """
        holder = self.chain()[0]
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
            f"command, so that the arm would leap back at release; {mend}"
        )

    def _checked(self, joints: Sequence[str]) -> Controller:
        """Return the effort controller. Raises ControllerError if it cannot take these joints."""
        if not self._effort:
            raise ControllerError(
                "command_topic does not name a controller, as <controller>/commands does"
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
                f"controller {one.name!r} commands {', '.join(others)}; must be the interface "
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
        if self._adds:
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
        return f"{one.name!r} is {one.state}; must be active or inactive: {mend}"

    def command(self, name: str, state: str) -> str:
        """Return the command line that brings a controller into a state."""
        return self._line(f"set_controller_state {name} {state}")

    def _line(self, verb: str) -> str:
        manager = "" if self._manager == "/controller_manager" else f" -c {self._manager}"
        return f"`ros2 control {verb}{manager}`"


def _position_loops(joint: str) -> set[str]:
    """Return the command interfaces of a joint behind which a loop can hold it."""
    return {f"{joint}/position", f"{joint}/velocity"}
