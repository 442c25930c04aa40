# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Controllers of ros2_control: which one takes the efforts, and how the arm passes between them.

ros2_control's controllers take commands at any time, and act on them while they are active. Where
``position_controller`` is named, torques ramp in while it still holds the arm; then one call
activates the effort controller and deactivates the other one, and whenever torques are released,
another call gives the arm back. So the arm is held all the time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future

from mbs_dynamics.errors import ControllerError, MbsError
from mbs_dynamics.ros.compensation.command_policy import Fault, State
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings, controller_of

EFFORT = "effort"
"""The command interface of a joint that takes torques or forces."""

BOTH = ("active", "inactive")

SWITCHING = 0.75
"""Share of the timeout that the controller manager has for a switch, so that its answer comes."""

NOT_INSTALLED = (
    "the package controller_manager_msgs is not installed: "
    "install ros-<distro>-controller-manager-msgs"
)

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


def find(controllers: Sequence[Controller], name: str) -> Controller | None:
    """Return the controller of that name; None if it is not loaded."""
    return next((one for one in controllers if one.name == name), None)


def not_loaded(controllers: Sequence[Controller], name: str) -> str:
    """Return the message that a controller is not loaded, with those that are."""
    loaded = ", ".join(one.name for one in controllers) or "none"
    return f"controller {name!r} is not loaded; loaded controllers: {loaded}"


def problem(
    controllers: Sequence[Controller],
    name: str,
    joints: Sequence[str],
    states: Sequence[str] = ("active",),
) -> str:
    """Return why controller ``name`` does not take efforts of ``joints`` in this order.

    ``states`` are those in which it may be. Returns "" if it is the right controller.
    """
    controller = find(controllers, name)
    if controller is None:
        return not_loaded(controllers, name)
    if controller.state not in states:
        return f"controller {name!r} is {controller.state}; valid is {' or '.join(states)}"
    if not controller.command_interfaces:
        return f"controller {name!r} ({controller.type}) commands no joint"
    taken = [interface.rpartition("/") for interface in controller.command_interfaces]
    others = [f"{joint}/{kind}" for joint, _, kind in taken if kind != EFFORT]
    if others:
        return f"controller {name!r} commands {', '.join(others)}; valid is the interface {EFFORT}"
    theirs, ours = [joint for joint, _, _ in taken], list(joints)
    if theirs != ours:
        wrong = "order" if sorted(theirs) == sorted(ours) else "joints"
        return (
            f"controller {name!r} has other {wrong}: it takes [{', '.join(theirs)}]; "
            f"joints is [{', '.join(ours)}]"
        )
    return ""


class ControllerManager:
    """Lists and switches controllers.

    Its coroutines are for callbacks of a node in an executor of rclpy, and never block it. While a
    callback awaits them, its callback group is occupied: it must be in a group of its own, or in a
    reentrant one, for the other callbacks of the node to be served meanwhile.
    """

    def __init__(self, node: Node, name: str = "controller_manager", timeout: float = 2.0) -> None:
        """``name`` is relative to the node's namespace; ``timeout`` in s is that of each call."""
        self._node, self._timeout = node, timeout
        self.name: str = node.resolve_service_name(f"{name}/list_controllers").rpartition("/")[0]
        """The full name of the controller manager."""
        self._services = _services()
        self._group = ReentrantCallbackGroup()
        if self.installed:
            # created early, since the manager discovers a new client late
            self._list = self._client(self._services.ListControllers, "list_controllers")
            self._switch = self._client(self._services.SwitchController, "switch_controller")

    @property
    def installed(self) -> bool:
        """Whether the package controller_manager_msgs is installed."""
        return self._services is not None

    def present(self) -> bool:
        """Return whether the manager's services are in the graph; the messages are not needed."""
        return bool(self._node.count_services(f"{self.name}/list_controllers"))

    async def list(self) -> Sequence[Controller]:
        """Return all controllers that are loaded. Raises ControllerError."""
        self._check_installed()
        request = self._services.ListControllers.Request()
        answer = await self._answer(self._list, request, "no list of controllers")
        return [
            Controller(one.name, one.state, one.type, tuple(one.required_command_interfaces))
            for one in answer.controller
        ]

    async def switch(self, activate: Sequence[str], deactivate: Sequence[str]) -> None:
        """Activate and deactivate controllers in one call, all of them or none.

        Raises ControllerError. Controllers that are already in the state asked for are refused.
        """
        self._check_installed()
        request = self._services.SwitchController.Request()
        request.activate_controllers = [*activate]
        request.deactivate_controllers = [*deactivate]
        request.strictness = request.STRICT
        request.timeout = Duration(seconds=SWITCHING * self._timeout).to_msg()
        answer = await self._answer(self._switch, request, "the switch may still happen")
        if not answer.ok:
            reason = getattr(answer, "message", "") or "no reason given"  # Humble gives none
            raise ControllerError(f"{self.name} refused to switch controllers: {reason}")

    def _client(self, kind: Any, service: str) -> Any:
        full = f"{self.name}/{service}"
        return self._node.create_client(kind, full, callback_group=self._group)

    def _check_installed(self) -> None:
        if not self.installed:
            raise ControllerError(NOT_INSTALLED)

    async def _answer(self, client: Any, request: Any, otherwise: str) -> Any:
        if not client.service_is_ready():
            raise ControllerError(f"there is no service {client.srv_name}")
        pending = client.call_async(request)
        either: Future = Future(executor=self._node.executor)
        pending.add_done_callback(lambda _: either.done() or either.set_result(None))
        try:
            await _until(self._node, either, self._timeout)
        finally:
            client.remove_pending_request(pending)
        if not pending.done():
            raise ControllerError(
                f"no answer from {client.srv_name} within {self._timeout:g} s: {otherwise}"
            )
        return pending.result()


async def pause(node: Node, seconds: float) -> None:
    """Let other callbacks of the node run for so long, by a steady clock."""
    await _until(node, Future(executor=node.executor), seconds)


async def _until(node: Node, future: Future, seconds: float) -> None:
    """Wait for a future without a result; give it one after so many seconds."""
    timer = node.create_timer(
        seconds,
        lambda: future.done() or future.set_result(None),
        callback_group=ReentrantCallbackGroup(),
        clock=Clock(clock_type=ClockType.STEADY_TIME),
    )
    try:
        await future
    finally:
        node.destroy_timer(timer)


def _services() -> Any:
    """Return the module of the services; None if it is not installed."""
    try:
        from controller_manager_msgs import srv
    except ImportError:
        return None
    return srv


class Handover:
    """Enables a compensator if the controller behind its topic is the right one."""

    def __init__(self, settings: GravityCompensationSettings, manager: ControllerManager) -> None:
        self.settings = settings
        self.trouble = ""
        """The problem with the controller at the latest check; empty if there was none."""
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
        """Enable, and switch the controllers if they are named; return success and a message.

        ``torques_are_in`` waits for the end of the ramp in, and returns False if it was stopped.
        """
        if core.policy.engaged:
            return True, core.policy.state.value
        if self._busy:
            return False, "another call is about to enable it"
        self._busy = True
        try:
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
        finally:
            self._busy = False
        said = core.policy.state.value
        if not core.supported():
            said += f"; {UNSUPPORTED.format(self.settings.ramp_in_time)}"
        return True, said

    async def _look(self) -> tuple[bool, str]:
        """Return whether the arm is to be taken over, and the problem with the controllers.

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
            return False, f"the torques did not ramp in: {_state(core)}"
        self.switched = True  # a call without an answer may have switched them
        try:
            await self._manager.switch([self._effort], [self._position])
        except MbsError as error:
            core.disable(now())
            return False, f"the controllers were not switched: {error}"
        if not core.policy.engaged:
            return False, f"{self._effort} has taken over, but by then: {_state(core)}"
        return True, f"{core.policy.state.value}; {self._effort} has taken over"

    async def give_back(self, core: GravityCompensator) -> str:
        """Let ``position_controller`` hold the arm again, if it did; return the message about it.

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
        """Check the controllers; return a fault if the commanded one is not the right one."""
        if self._busy:
            return None
        try:
            _, self.trouble = await self._look()
        except MbsError as error:
            # a manager that is busy stops no arm; without a manager, no states come
            self.trouble = str(error)
            return None
        if self._busy or not (self.trouble and core.policy.engaged and self._manager.present()):
            return None
        return Fault("controller", self.trouble)


def _state(core: GravityCompensator) -> str:
    fault = core.policy.fault
    stopped = core.policy.state is State.FAULT and fault is not None
    return fault.reason if stopped and fault is not None else core.policy.state.value
