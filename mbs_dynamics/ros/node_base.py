# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The base class of the nodes: topics, services and parameters from tables; throttled log lines."""

from __future__ import annotations

import importlib
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from threading import Lock
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import FloatingPointRange, SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from mbs_dynamics.errors import LONGEST_MESSAGE, ArgumentError, MbsError, shortened
from mbs_dynamics.ros import interface, parameters
from mbs_dynamics.ros.interface import Interface, Quality, Service, Topic, UnknownParameterError
from mbs_dynamics.ros.performance import Throttle

LOG_PERIOD = 5.0
"""Shortest time in s between two log lines about the same kind of bad message and reason."""

REMARKS = 20
"""Remarks about a robot that are logged."""

REMINDER_PERIOD = 10.0
"""Time in s between two log lines about the same missing input."""

CLOCK = "/clock"

OVERRIDABLE = QoSOverridingOptions(
    (
        QoSPolicyKind.HISTORY,
        QoSPolicyKind.DEPTH,
        QoSPolicyKind.RELIABILITY,
        QoSPolicyKind.DURABILITY,
    )
)
"""Policies that ``qos_overrides.<topic>.<publisher or subscription>.<policy>`` can change."""

# rclpy builds its wait set anew for each message: each event handler costs 2 to 3 % of a message
QUIET_PUBLISHER = PublisherEventCallbacks(use_default_callbacks=False)
QUIET_SUBSCRIPTION = SubscriptionEventCallbacks(use_default_callbacks=False)


def message_type(name: str) -> Any:
    """Return the class of a message or service type such as ``std_msgs/msg/String``.

    Raises ImportError if its package is not installed.
    """
    package, group, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.{group}"), kind)


def profile(quality: Quality) -> QoSProfile:
    """Return the QoS profile of a topic."""
    return QoSProfile(
        depth=quality.depth,
        reliability=ReliabilityPolicy[quality.reliability.upper()],
        durability=DurabilityPolicy[quality.durability.upper()],
    )


LATCHED = profile(interface.LATCHED)
"""QoS profile of topics such as robot_description."""


def _find(table: Sequence[Any], name: str) -> Any:
    return next(one for one in table if one.name == name)


class ExclusiveGroup(CallbackGroup):
    """Runs one callback at a time, as rclpy's group does, and is asked in a sixth of the time.

    An executor asks the group about each topic, service and timer, twice per message.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running = Lock()

    def can_execute(self, entity: object) -> bool:
        """Return whether no callback runs."""
        return not self._running.locked()

    def beginning_execution(self, entity: object) -> bool:
        """Return whether the callback may run, and exclude others until it ends."""
        return self._running.acquire(blocking=False)

    def ending_execution(self, entity: object) -> None:
        """Admit the next callback."""
        self._running.release()


class BaseNode(Node):
    """A node with the parameters, topics and services that its :attr:`interface` declares.

    Parameters can override the QoS of its topics; parameters that do not exist are refused. Log
    lines of one kind are throttled.
    """

    interface: ClassVar[Interface]
    quiet_subscriptions: ClassVar[bool] = False
    """Whether nothing is logged about publishers with an incompatible QoS, which saves time."""
    prefers_udp: ClassVar[bool] = False
    """Whether its process does without shared memory, see :func:`process.prefer_udp`."""

    def __init__(self, **options: Any) -> None:
        self._shutting_down = False
        self._initialised = False  # rclpy creates topics of its own, before parameters
        self._exclusive = ExclusiveGroup()
        super().__init__(self.interface.node, **options)
        self._initialised = True
        self._latest_answer = ""
        """The latest answer of a service."""
        self._throttle = Throttle(LOG_PERIOD)
        self._reminders = Throttle(REMINDER_PERIOD)
        self._refusals: dict[str, str] = {}
        """Why the latest payload, gravity and so on was refused, until one is accepted."""
        self._settings: Any = parameters.declare(self, self.interface.settings)
        self._diagnostics = self.advertise("/diagnostics")

    @property
    def default_callback_group(self) -> CallbackGroup:
        """The group of all callbacks that are given no other."""
        return self._exclusive

    # -- start and end -----------------------------------------------------------------------------

    def start(self) -> bool:
        """Begin to work; False if that fails."""
        return True

    def begin_shutdown(self) -> None:
        """Begin to shut down. See :attr:`shutdown_complete`."""
        self._shutting_down = True

    @property
    def shutdown_complete(self) -> bool:
        """Whether the node was asked to end and has ended its work."""
        return self._shutting_down

    def flush(self) -> None:
        """Wait until the latest message has arrived."""

    def fail(self, error: Exception) -> None:
        """Handle an error that a callback has raised."""
        raise error

    # -- topics and services -----------------------------------------------------------------------

    def create_publisher(self, kind: Any, topic: str, qos: Any, **options: Any) -> Publisher:
        """Create a publisher whose QoS can be overridden by parameters."""
        # rclpy writes what overrides into the profile that it is given
        options = {**self._overriding(topic, "publisher"), **options}
        return super().create_publisher(kind, topic, copy(qos), **options)

    def create_subscription(
        self, kind: Any, topic: str, callback: Any, qos: Any, **options: Any
    ) -> Subscription:
        """Create a subscription whose QoS can be overridden by parameters."""
        options = {**self._overriding(topic, "subscription"), **options}
        return super().create_subscription(kind, topic, callback, copy(qos), **options)

    def _overriding(self, topic: str, end: str) -> dict[str, Any]:
        """Return the option to declare the overrides of a topic, if any were given."""
        prefix = f"qos_overrides.{self.resolve_topic_name(topic)}.{end}."
        given = self._initialised and any(
            name.startswith(prefix) for name in parameters.overrides(self)
        )
        return {"qos_overriding_options": OVERRIDABLE} if given else {}

    def advertise(self, declared: str, name: str = "") -> Publisher:
        """Create the publisher of a declared topic; ``name`` replaces a name with placeholders."""
        topic: Topic = _find(self.interface.published, declared)
        kind, qos = message_type(topic.type), profile(topic.quality)
        return self.create_publisher(kind, name or declared, qos, event_callbacks=QUIET_PUBLISHER)

    def subscribe(
        self, declared: str, callback: Callable[[Any], object], name: str = ""
    ) -> Subscription:
        """Create the subscription of a declared topic; ``name`` as for publishers.

        A message that is too large or malformed is logged and ignored. Its size is checked before
        rclpy converts it, which takes most of the time.
        """
        topic: Topic = _find(self.interface.subscribed, declared)
        options = {"event_callbacks": QUIET_SUBSCRIPTION} if self.quiet_subscriptions else {}
        kind, qos, largest = message_type(topic.type), profile(topic.quality), topic.largest

        def take(data: bytes) -> None:
            try:
                if len(data) > largest:
                    raise ArgumentError(f"it has {len(data)} bytes; valid is at most {largest}")
                message = deserialize_message(data, kind)
            except (ArgumentError, RuntimeError) as error:  # the latter of malformed data
                self.warn(f"unread {declared}", f"{declared}: a message is ignored: {error}")
            else:
                callback(message)

        return self.create_subscription(kind, name or declared, take, qos, raw=True, **options)

    def serve(self, declared: str, callback: Callable[..., Any], **options: Any) -> Any:
        """Create a declared service."""
        service: Service = _find(self.interface.services, declared)
        return self.create_service(message_type(service.type), declared, callback, **options)

    def answer(self, declared: str, action: Callable[[Any], str]) -> Any:
        """Serve a declared service by the text that ``action`` returns for a request.

        A MbsError is a refusal. Either is logged, and stored as the latest answer.
        """

        def serve(request: Any, response: Any) -> Any:
            try:
                response.success, response.message = True, action(request)
                self.get_logger().info(f"{declared}: {response.message}")
            except MbsError as error:
                response.success, response.message = False, str(error)
                self.get_logger().warning(f"{declared} refused: {error}")
            self._latest_answer = response.message
            return response

        return self.serve(declared, serve)

    def _steady_timer(self, period: float, callback: Callable[[], object]) -> Timer:
        """Create a timer that a simulation that stands still does not stop."""
        return self.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def stamp_now(self) -> Any:
        """Return the present time as a stamp."""
        return self.get_clock().now().to_msg()

    def _report(self, statuses: Sequence[DiagnosticStatus], hardware: str = "") -> None:
        """Publish diagnostics, and log refusals that were withheld, once a second.

        ``hardware`` is the name of the robot.
        """
        self._log_repeated_refusals()
        name = self.get_fully_qualified_name().lstrip("/")
        array = DiagnosticArray()
        array.header.stamp = self.stamp_now()
        for status in statuses:
            status.name, status.hardware_id = f"{name}: {status.name}", hardware
        array.status = list(statuses)
        self._diagnostics.publish(array)

    @abstractmethod
    def _publish_diagnostics(self) -> None:
        """Publish the state of the node, and log what it waits for; once a second."""

    # -- parameters --------------------------------------------------------------------------------

    def _watch_parameters(self) -> None:
        """Begin to check and apply parameters that are set."""
        self.add_on_set_parameters_callback(self._on_parameters_given)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    def _on_parameters_given(self, given: list[Parameter]) -> SetParametersResult:
        try:
            settings = parameters.changed(self._settings, given)
            if settings is not self._settings:  # else it is a parameter of rclpy
                self._check(settings)
        except MbsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _on_parameters_set(self, given: list[Parameter]) -> None:
        before = self._settings
        settings = parameters.changed(before, given)
        for parameter in given:
            self._refusals.pop(parameter.name, None)
        if settings is not before:
            self._settings = settings
            self._apply(before, [parameter.name for parameter in given])

    def _narrow(self, largest: Mapping[str, float]) -> None:
        """End the ranges of parameters at other values, for sliders, or at the present value."""
        declared = {one.name: one for one in self.interface.parameters}
        for name, limit in largest.items():
            low, high = declared[name.partition(".")[0]].range or (0.0, 0.0)
            high = min(high, max(limit, self.get_parameter(name).value))
            about = copy(self.describe_parameter(name))
            about.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
            self.set_descriptor(name, about)

    def _check(self, settings: Any) -> None:
        """Raise MbsError if these settings cannot be applied now."""

    def _apply(self, before: Any, given: Sequence[str]) -> None:
        """Apply the settings, which were ``before`` and of which some were ``given``.

        By default nothing but to store them is to be done.
        """

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set parameters, integers as doubles where those are declared, or refuse them all."""
        for parameter in parameter_list:
            if not self.has_parameter(parameter.name):
                own = self.get_parameters_by_prefix("")
                known = [name for name in own if not name.startswith(parameters.FOREIGN)]
                reason = str(UnknownParameterError(parameter.name, known))
                return SetParametersResult(successful=False, reason=reason)
        return super().set_parameters_atomically(parameters.converted(self, parameter_list))

    # -- log lines ---------------------------------------------------------------------------------

    def warn(self, kind: str, message: str, *, error: bool = False) -> None:
        """Log a warning, or an error, unless one of its kind and reason was logged within 5 s."""
        line = self._throttled(kind, message)
        if line and error:  # each level has its own line: rclpy tells calls apart by theirs
            self.get_logger().error(line)
        elif line:
            self.get_logger().warning(line)

    def _inform(self, kind: str, message: str) -> None:
        """Log accepted input, unless the same was logged within 5 s."""
        line = self._throttled(kind, message)
        if line:
            self.get_logger().info(line)

    def _throttled(self, kind: str, message: str) -> str:
        message = shortened(message, LONGEST_MESSAGE)
        withheld = self._throttle.due(kind, time.monotonic(), _reason(message))
        if withheld is None:
            return ""
        more = f" ({withheld} more of this kind since the last line)"
        return message + more * bool(withheld)

    def _try(self, what: str, action: Callable[[], object]) -> bool:
        """Apply what a message asks for; False, and a log line, if it is refused."""
        try:
            action()
        except MbsError as error:
            self._refusals[what] = str(error)
            self._refuse(what, f"{what} refused: {error}")
            return False
        if self._refusals.pop(what, None) is not None:
            self._throttle.restart(what)  # the next refusal is news again
        return True

    def _log_repeated_refusals(self) -> None:
        """Log the latest refusal of each kind that was withheld, once its period has passed."""
        for what, why in self._refusals.items():
            line = shortened(f"{what} refused: {why}", LONGEST_MESSAGE)
            times = self._throttle.released(what, time.monotonic(), _reason(line))
            if times:
                more = f" ({times} more of this kind since the last line)"
                self.get_logger().warning(line + more)

    def _refuse(self, kind: str, message: str) -> None:
        """Log that input was refused."""
        self.warn(kind, message)

    def _log_model(self, line: str, remarks: Sequence[str] = ()) -> None:
        """Log a robot that has come into force, and the remarks about it."""
        now = time.monotonic()
        if self._throttle.due("model", now, str(now)) is None:  # each is another one
            return
        for remark in remarks[:REMARKS]:
            self.get_logger().warning(shortened(remark, LONGEST_MESSAGE))
        if len(remarks) > REMARKS:
            more = f"{len(remarks) - REMARKS} more remarks; 'mbs-dynamics info' lists them"
            self.get_logger().warning(more)
        self.get_logger().info(shortened(line, LONGEST_MESSAGE))

    def _remind(self, kind: str, missing: str) -> None:
        """Log missing input, at once and then every ten seconds; empty if nothing is missing.

        To be called once a second.
        """
        missing = shortened(missing, LONGEST_MESSAGE)
        if not missing:
            self._reminders.restart(kind)
        elif self._reminders.due(kind, time.monotonic(), _reason(missing)) is not None:
            self.get_logger().warning(missing)

    def _remind_of_clock(self, publishes: bool = False) -> None:
        """Log that the node's clock has no publisher, or more than one."""
        if not (publishes or self.get_clock().ros_time_is_active):
            return
        topic = self.resolve_topic_name(CLOCK)
        publishers = self.count_publishers(topic)
        problem = ""
        if publishers > 1:
            problem = (
                f"{publishers} nodes publish {topic}: time jumps between theirs; end all but one"
            )
        elif publishers == 0:
            problem = f"waiting for {topic}, as use_sim_time is true: it has no publisher"
        self._remind("clock", problem)


def _reason(message: str) -> str:
    """Return a message without its numbers: other ones are no other reason."""
    return re.sub(r"\d[\d.]*", "#", message)
