# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The client of ros2_control's controller manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future

from mbs_dynamics.errors import ControllerError, NoAnswerError
from mbs_dynamics.ros.compensation.controller_list import STARTS_FROM_COMMAND, Controller
from mbs_dynamics.ros.compensation.interface import ControllerSettings

SWITCHING = 0.75
"""Share of the timeout that the controller manager has for a switch, so that its answer comes."""

DISCOVERING = 25
"""Number of looks, 20 ms apart, within which a new client discovers its service."""

NOT_INSTALLED = (
    "the package controller_manager_msgs is not installed: "
    "install ros-<distro>-controller-manager-msgs"
)

LIST = "controller_manager_msgs/srv/ListControllers"


class ControllerManager:
    """Lists and switches controllers. ``timeout`` in s is that of each call.

    A relative name of the manager is in the namespace of the controller, since ros2_control creates
    the nodes of controllers there. The resolved command topic shows it:
    ``/left/forward_effort_controller/commands`` is in ``/left``, wherever ``node`` is.

    Its coroutines are for callbacks of a node in an executor of rclpy, and never block it. While a
    callback awaits them, its callback group is occupied: it must be in a group of its own, or in a
    reentrant one, for the other callbacks of the node to be served meanwhile.
    """

    def __init__(self, node: Node, settings: ControllerSettings, timeout: float = 2.0) -> None:
        self._node, self._timeout = node, timeout
        name = settings.controller_manager or "controller_manager"
        namespace, *controller = node.resolve_topic_name(settings.command_topic).rsplit("/", 2)
        if not name.startswith(("/", "~")) and controller[-1:] == ["commands"]:
            name = f"{namespace}/{name}"
        self.name: str = node.resolve_service_name(f"{name}/list_controllers").rpartition("/")[0]
        """The full name of the controller manager."""
        self._services = _services()
        self._group = ReentrantCallbackGroup()
        self._clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._parameters: dict[str, Any] = {}
        if self._services is not None:
            # created early, since the manager discovers a new client late
            self._list = self._client(self._services.ListControllers, "list_controllers")
            self._switch = self._client(self._services.SwitchController, "switch_controller")

    def present(self) -> bool:
        """Return whether the manager's services are in the graph; the messages are not needed."""
        return bool(self._node.count_services(f"{self.name}/list_controllers"))

    def others(self) -> Sequence[str]:
        """Return the full names of the other controller managers in the graph."""
        services = self._node.get_service_names_and_types()
        names = [service.rpartition("/")[0] for service, types in services if LIST in types]
        return [name for name in names if name != self.name]

    async def list(self) -> Sequence[Controller]:
        """Return all controllers that are loaded. Raises ControllerError."""
        self.check_installed()
        request = self._services.ListControllers.Request()
        answer = await self._answer(self._list, request, "no list of controllers")
        return [
            Controller(
                one.name,
                one.state,
                one.type,
                tuple(one.required_command_interfaces),
                tuple(chained.name for chained in one.chain_connections),
            )
            for one in answer.controller
        ]

    async def switch(self, activate: Sequence[str], deactivate: Sequence[str]) -> None:
        """Activate and deactivate controllers in one call.

        Raises ControllerError. Nothing is switched if a controller is already in the state asked
        for, or if the hardware refuses. Where an activation fails, the others of the call have been
        deactivated nevertheless.
        """
        self.check_installed()
        request = self._services.SwitchController.Request()
        request.activate_controllers = [*activate]
        request.deactivate_controllers = [*deactivate]
        request.strictness = request.STRICT
        # by the control loop at the end of a cycle: else cycles run in which neither is updated
        request.activate_asap = True
        request.timeout = Duration(seconds=SWITCHING * self._timeout).to_msg()
        answer = await self._answer(self._switch, request, "the switch may still happen")
        if not answer.ok:
            reason = answer.message or "no reason given"
            raise ControllerError(f"{self.name} refused to switch controllers: {reason}")

    async def starts_from_command(self, controller: str) -> bool | None:
        """Return the value of STARTS_FROM_COMMAND of a controller; None if it has none.

        None as well if it does not answer.
        """
        client = self._parameters.get(controller)
        if client is None:
            full = f"{self.name.rpartition('/')[0]}/{controller}/get_parameters"
            client = self._node.create_client(GetParameters, full, callback_group=self._group)
            self._parameters[controller] = client
            for _ in range(DISCOVERING):
                if not client.service_is_ready():
                    await self.pause(0.02)
        request = GetParameters.Request(names=[STARTS_FROM_COMMAND])
        try:
            answer = await self._answer(client, request, "its start is not known")
        except ControllerError:
            return None
        known = [one for one in answer.values if one.type == ParameterType.PARAMETER_BOOL]
        return bool(known[0].bool_value) if known else None

    async def pause(self, seconds: float) -> None:
        """Let other callbacks of the node run for some seconds of a steady clock."""
        await self._wait(Future(executor=self._node.executor), seconds)

    async def _wait(self, future: Future, seconds: float) -> Any:
        """Return the result of a future, None if it has none after some seconds."""

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        # a timer that exists no longer than needed: each costs time at every message
        timer = self._node.create_timer(
            seconds, wake, callback_group=self._group, clock=self._clock
        )
        try:
            return await future
        finally:
            self._node.destroy_timer(timer)

    def _client(self, kind: Any, service: str) -> Any:
        full = f"{self.name}/{service}"
        return self._node.create_client(kind, full, callback_group=self._group)

    def check_installed(self) -> None:
        """Raise ControllerError without controller_manager_msgs."""
        if self._services is None:
            raise ControllerError(NOT_INSTALLED)

    async def _answer(self, client: Any, request: Any, otherwise: str) -> Any:
        if not client.service_is_ready():
            raise ControllerError(f"there is no service {client.srv_name}")
        pending = client.call_async(request)
        try:
            answer = await self._wait(pending, self._timeout)
        finally:
            client.remove_pending_request(pending)  # or the client keeps those without an answer
        if answer is None:
            raise NoAnswerError(
                f"no answer from {client.srv_name} within {self._timeout:g} s: {otherwise}"
            )
        return answer


def _services() -> Any:
    """Return the module of the services; None if it is not installed."""
    try:
        from controller_manager_msgs import srv
    except ImportError:
        return None
    return srv
