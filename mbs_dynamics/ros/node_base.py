# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The base class of the nodes: topics, services and parameters from tables; log lines."""

from __future__ import annotations

import importlib
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import FloatingPointRange, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from rclpy.task import Task
from rclpy.timer import Timer

from mbs_dynamics.compiler import default_backend
from mbs_dynamics.errors import LONGEST_MESSAGE, MbsError, shortened
from mbs_dynamics.ros import interface, parameters
from mbs_dynamics.ros.interface import Interface, Quality, Service, Topic

LOG_PERIOD = 5.0
"""Shortest time in s between two log lines about the same kind of bad message."""

REMINDER_PERIOD = 10.0
"""Time in s between two log lines about the same missing input."""

CLOCK = "/clock"


OVERRIDABLE = (
    QoSPolicyKind.HISTORY,
    QoSPolicyKind.DEPTH,
    QoSPolicyKind.RELIABILITY,
    QoSPolicyKind.DURABILITY,
)
"""Policies that ``qos_overrides.<topic>.<publisher or subscription>.<policy>`` can change."""


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


class BaseNode(Node):
    """A node with the parameters, topics and services that its :attr:`interface` declares."""

    interface: ClassVar[Interface]

    def __init__(self, **options: Any) -> None:
        self._shutting_down = False
        super().__init__(
            self.interface.node, automatically_declare_parameters_from_overrides=True, **options
        )
        self._latest_answer = ""
        """The latest answer of a service."""
        self._logged: dict[str, float] = {}
        """Time of the latest log line by kind."""
        self._reminded: dict[str, str] = {}
        """The latest reminder by kind."""
        self._refusals: dict[str, str] = {}
        """Why the latest payload, gravity and so on was refused, until one is accepted."""
        self._settings: Any = parameters.declare(self, self.interface.settings)
        self._diagnostics = self.advertise("/diagnostics")
        self._steady_timer(1.0, self._publish_diagnostics)
        self.add_pre_set_parameters_callback(lambda given: parameters.converted(self, given))
        self.add_on_set_parameters_callback(self._on_parameters_given)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    # -- start and end -----------------------------------------------------------------------------

    def start(self) -> bool:
        """Start the work of the node; False if that fails."""
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

    def advertise(self, declared: str, name: str = "") -> Publisher:
        """Create the publisher of a declared topic; ``name`` replaces a name with placeholders."""
        topic: Topic = _find(self.interface.published, declared)
        kind, qos = message_type(topic.type), profile(topic.quality)
        options = self._overrides(name or declared)
        return self.create_publisher(kind, name or declared, qos, qos_overriding_options=options)

    def subscribe(
        self, declared: str, callback: Callable[[Any], object], name: str = ""
    ) -> Subscription:
        """Create the subscription of a declared topic; ``name`` as for publishers."""
        topic: Topic = _find(self.interface.subscribed, declared)
        kind, qos = message_type(topic.type), profile(topic.quality)
        options = self._overrides(name or declared)
        return self.create_subscription(
            kind, name or declared, callback, qos, qos_overriding_options=options
        )

    def _overrides(self, topic: str) -> QoSOverridingOptions:
        """Return the policies of a topic that parameters override: none unless they are given."""
        given = self.get_parameters_by_prefix(f"qos_overrides.{self.resolve_topic_name(topic)}")
        return QoSOverridingOptions(OVERRIDABLE if given else ())

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
        """Create a timer of a steady clock, which a paused simulation does not stop."""
        return self.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _later(self, coroutine: Callable[[], Any]) -> Task | None:
        """Let the executor run a coroutine; None, and nothing is done, without an executor."""
        return None if self.executor is None else self.executor.create_task(coroutine)

    def stamp_now(self) -> Any:
        """Return the present time as a stamp."""
        return self.get_clock().now().to_msg()

    def _report(self, statuses: Sequence[DiagnosticStatus], hardware: str = "") -> None:
        """Publish diagnostics, once a second. ``hardware`` is the name of the robot."""
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
        """Narrow the ranges of parameters for sliders, but not below the present values."""
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
        """Apply the settings: ``before`` are the previous ones, ``given`` the names that were set.

        By default they only need to be stored.
        """

    # -- log lines ---------------------------------------------------------------------------------

    def warn(self, kind: str, message: str, *, error: bool = False) -> None:
        """Log a warning, or an error, unless one of its kind was logged within 5 s."""
        if not self._is_due(kind, LOG_PERIOD):
            return
        if error:  # rclpy allows one level per calling line
            self.get_logger().error(shortened(message, LONGEST_MESSAGE))
        else:
            self.get_logger().warning(shortened(message, LONGEST_MESSAGE))

    def _is_due(self, kind: str, period: float) -> bool:
        """Return whether nothing of this kind was logged within a period in s."""
        now = time.monotonic()
        if now - self._logged.get(kind, -period) < period:
            return False
        self._logged[kind] = now
        return True

    def _try(self, what: str, action: Callable[[], object]) -> bool:
        """Apply what a message asks for; False, and a log line, if it is refused."""
        try:
            action()
        except MbsError as error:
            self._refusals[what] = str(error)
            self.warn(what, f"{what} refused: {error}")
            return False
        if self._refusals.pop(what, None) is not None:
            self._logged.pop(what, None)  # the next refusal is logged at once
        return True

    def _log_model(self, line: str, remarks: Sequence[str] = ()) -> None:
        """Log a robot that has come into force, and the remarks about it."""
        if default_backend() == "python":
            self.get_logger().warning(
                "llvmlite is missing: kernels are plain Python, some 50 times as slow; to install "
                "it: python3 -m pip install --user --break-system-packages llvmlite"
            )
        for remark in remarks:
            self.get_logger().warning(shortened(remark, LONGEST_MESSAGE))
        self.get_logger().info(shortened(line, LONGEST_MESSAGE))

    def _remind(self, kind: str, missing: str) -> None:
        """Log missing input, at once and then every ten seconds; empty if nothing is missing.

        Call it once a second. A text that differs in numbers only is not logged again at once.
        """
        plain = re.sub(r"\d[\d.]*", "#", missing)
        if not missing or plain != self._reminded.get(kind):
            self._logged.pop(f"missing {kind}", None)
        self._reminded[kind] = plain
        if missing and self._is_due(f"missing {kind}", REMINDER_PERIOD):
            self.get_logger().warning(shortened(missing, LONGEST_MESSAGE))

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
