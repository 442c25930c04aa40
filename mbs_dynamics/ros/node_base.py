# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Base classes of the nodes: an interface from tables, throttled log lines, and a lifecycle.

A field of the settings is one parameter; or one for each joint of the field ``joints``; or one for
each link that the user names.
"""

from __future__ import annotations

import difflib
import importlib
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from mbs_dynamics.control.environment import Gravity, Load
from mbs_dynamics.errors import LONGEST_MESSAGE, ArgumentError, MbsError, listed, quoted, shortened
from mbs_dynamics.ros import interface, messages
from mbs_dynamics.ros.interface import Interface, Quality, Service, Topic, applies, parameter_groups
from mbs_dynamics.ros.performance import Throttle
from mbs_dynamics.ros.robot_description import read_robot
from mbs_dynamics.settings import Parameter as Declared
from mbs_dynamics.settings import Settings, check_once, parameters_of

S = TypeVar("S", bound=Settings)

LOG_PERIOD = 5.0
"""Shortest time in s between two log lines about the same kind of bad message and reason."""

REMARKS = 20
"""Remarks about a robot that are logged."""

REMINDER_PERIOD = 10.0
"""Time in s between two log lines about the same missing input."""

CLOCK = "/clock"

MISSPELT = 0.85
"""Ratio of difflib above which an unknown name counts as a misspelt parameter."""

FOREIGN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
"""Parameters, or prefixes of them, that rclpy itself declares."""

DOUBLES = {
    Parameter.Type.INTEGER: Parameter.Type.DOUBLE,
    Parameter.Type.INTEGER_ARRAY: Parameter.Type.DOUBLE_ARRAY,
}
"""Types of integers, and the types of doubles that they are converted to."""

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

# -- parameters ------------------------------------------------------------------------------------


def names(kind: type[Settings], joints: Sequence[str] = ()) -> list[str]:
    """Return the names of all parameters of a node with these settings and these ``joints``."""
    declared = parameters_of(kind)
    each = [f"{one.name}.{joint}" for one in declared if one.per == "joint" for joint in joints]
    return [one.name for one in declared if not one.per] + each


def declare(node: Node, kind: type[S]) -> S:
    """Declare all parameters on the node and return their values.

    Integers that are given for doubles become doubles. Raises rclpy's exceptions for a value of the
    wrong type or out of range, and MbsError for values that contradict each other and for names
    that are misspelt. Other names that do not exist are logged, since nodes may share a file.
    """
    overrides = _overrides(node)
    declared = parameters_of(kind)
    for one in declared:
        if not one.per:
            _declare(node, one.name, one)
    by_joint = [one for one in declared if one.per == "joint"]
    joints = [name for name in node.get_parameter("joints").value if name] if by_joint else []
    check_once("joints", "joint", joints)
    known = names(kind, joints)
    for one in declared:
        each = joints if one.per == "joint" else []
        if one.per == "link":
            named = sorted(name for name in overrides if name.startswith(f"{one.name}."))
            each = [name.partition(".")[2] for name in named]
            known += named
        for owner in each:
            _declare(node, f"{one.name}.{owner}", one)
    _check_names(node, known)
    found = _values(kind, [node.get_parameter_or(name) for name in known], joints)
    if by_joint:
        found["joints"] = tuple(joints)
    return kind(**found)


def changed(settings: S, given: Iterable[Parameter]) -> S:
    """Return the settings with these parameters; the same object if none of them is a setting.

    Raises ArgumentError for invalid values.
    """
    found = _values(type(settings), given, getattr(settings, "joints", ()), settings)
    return settings.changed(found) if found else settings


def converted(node: Node, given: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters with doubles in place of integers where the node has declared doubles."""
    # an unset parameter has no value to give, but a type that is not to be taken for a double
    return [
        _converted(parameter, node.get_parameter_or(parameter.name, parameter).type_)
        for parameter in given
    ]


def misdirected_files(node: Node, args: Sequence[str]) -> list[str]:
    """Return messages about parameter files without parameters of this node, which ROS ignores.

    ``args`` are the arguments that ROS was initialised with.
    """
    found = []
    name = node.get_fully_qualified_name()
    for option, path in pairwise(args):
        if option != "--params-file":
            continue
        try:
            nodes = [one for one, _ in parameter_groups(Path(path))]
        except ArgumentError as error:  # valid for ROS, which has read it
            found.append(str(error))
            continue
        if not any(applies(one, name) for one in nodes):
            others = f"it has those of {', '.join(nodes)}" if nodes else "it has none at all"
            found.append(f"{path} has no parameters for {name}: {others}")
    return found


def _check_names(node: Node, known: Sequence[str]) -> None:
    given = [name for name in _overrides(node) if not name.startswith(FOREIGN)]
    others = [name for name in given if name not in known]
    for name in others:
        if difflib.get_close_matches(name, known, n=1, cutoff=MISSPELT) and "." not in name:
            raise ArgumentError(unknown(known, name))
    if others:
        node.get_logger().warning(f"ignored, as they are no parameters: {listed(others)}")


def unknown(known: Sequence[str], name: str) -> str:
    """Return the message about a parameter that does not exist."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"no parameter {quoted(name)}{hint}; the parameters are: {listed(known)}"


def _overrides(node: Node) -> dict[str, Parameter]:
    """Return the values from files and the command line."""
    found: dict[str, Parameter] = getattr(node, "_parameter_overrides", {})  # has no public name
    return found


def _converted(parameter: Parameter, declared: Parameter.Type) -> Parameter:
    if DOUBLES.get(parameter.type_) is not declared:
        return parameter
    return Parameter(parameter.name, declared, np.asarray(parameter.value, dtype=float).tolist())


def _declare(node: Node, name: str, declared: Declared) -> None:
    """Declare one parameter; without a default it has a type only."""
    about = ParameterDescriptor(
        description=declared.description + (f" Unit: {declared.unit}." if declared.unit else ""),
        additional_constraints=declared.remarks,
        read_only=declared.read_only,
    )
    if declared.range is not None:
        low, high = declared.range
        about.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    kind, default = Parameter.Type[declared.type.upper()], declared.default
    overrides = _overrides(node)
    if name in overrides:
        overrides[name] = _converted(overrides[name], kind)
    if default is None or declared.per == "link":
        node.declare_parameter(name, kind, about)
    elif default != ():
        value = list(default) if isinstance(default, tuple) else default
        node.declare_parameter(name, value, about)
    else:  # rclpy takes an empty list for an array of bytes
        about.type, about.read_only = kind.value, False
        node.declare_parameter(name, kind, about)
        if node.get_parameter_or(name).value is None:
            node.set_parameters([Parameter(name, kind, [])])
        if declared.read_only:  # only now: an empty list could not have been set before
            fixed = copy(about)
            fixed.name, fixed.read_only = name, True
            node.set_descriptor(name, fixed)


def _values(
    kind: type[Settings],
    given: Iterable[Parameter],
    joints: Sequence[str],
    before: Settings | None = None,
) -> dict[str, Any]:
    """Return those parameters that are settings, as values of ``kind``.

    Arrays become tuples. Empty strings in them are dropped: ``['']`` means none in a file.
    """
    declared = {one.name: one for one in parameters_of(kind)}
    found: dict[str, Any] = {}
    for parameter in given:
        group, _, owner = parameter.name.partition(".")
        one = declared.get(group)
        if one is None or bool(one.per) != bool(owner):
            continue
        value = parameter.value
        if one.per == "link":
            found[group] = (*found.get(group, ()), (owner, tuple(value)))
        elif one.per == "joint" and owner in joints:
            now = getattr(before, group, None) or [one.default] * len(joints)
            each = list(found.get(group, now))
            each[list(joints).index(owner)] = value
            found[group] = tuple(each)
        elif not one.per:
            is_array = one.type.endswith("_array")
            found[group] = tuple(x for x in value or () if x != "") if is_array else value
    return found


# -- topics and services ---------------------------------------------------------------------------


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
    """A node with the parameters, topics and services that its :attr:`interface` declares.

    Parameters can override the QoS of its topics; parameters that do not exist are refused. Log
    lines of one kind are throttled.
    """

    interface: ClassVar[Interface]
    quiet_subscriptions: ClassVar[bool] = False
    """Whether nothing is logged about publishers with an incompatible QoS, which saves time."""

    def __init__(self, **options: Any) -> None:
        self._shutting_down = False
        self._initialised = False  # rclpy creates topics of its own, before parameters
        super().__init__(self.interface.node, **options)
        self._initialised = True
        self._throttle = Throttle(LOG_PERIOD)
        self._reminders = Throttle(REMINDER_PERIOD)
        self._refusals: dict[str, str] = {}
        """Why the latest payload, gravity and so on was refused, until one is accepted."""
        self._settings: Any = declare(self, self.interface.settings)
        self._diagnostics = self.advertise("/diagnostics")

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
        given = self._initialised and any(name.startswith(prefix) for name in _overrides(self))
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

    def _steady_timer(self, period: float, callback: Callable[[], object]) -> Timer:
        """Create a timer that a simulation that stands still does not stop."""
        return self.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def stamp_now(self) -> Any:
        """Return the present time as a stamp."""
        return self.get_clock().now().to_msg()

    def _report(self, statuses: Sequence[DiagnosticStatus], hardware: str = "") -> None:
        """Publish diagnostics; ``hardware`` is the name of the robot."""
        name = self.get_fully_qualified_name().lstrip("/")
        array = DiagnosticArray()
        array.header.stamp = self.stamp_now()
        for status in statuses:
            status.name, status.hardware_id = f"{name}: {status.name}", hardware
        array.status = list(statuses)
        self._diagnostics.publish(array)

    # -- parameters --------------------------------------------------------------------------------

    def _watch_parameters(self) -> None:
        """Begin to check and apply parameters that are set."""
        self.add_on_set_parameters_callback(self._on_parameters_given)
        self.add_post_set_parameters_callback(self._on_parameters_set)

    def _on_parameters_given(self, given: list[Parameter]) -> SetParametersResult:
        try:
            settings = changed(self._settings, given)
            if settings is not self._settings:  # else it is a parameter of rclpy
                self._check(settings)
        except MbsError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _on_parameters_set(self, given: list[Parameter]) -> None:
        before = self._settings
        settings = changed(before, given)
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

    @abstractmethod
    def _apply(self, before: Any, given: Sequence[str]) -> None:
        """Apply the settings, which were ``before`` and of which some were ``given``."""

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set parameters, integers as doubles where those are declared, or refuse them all."""
        for parameter in parameter_list:
            if not self.has_parameter(parameter.name):
                own = self.get_parameters_by_prefix("")
                known = [name for name in own if not name.startswith(FOREIGN)]
                reason = unknown(known, parameter.name)
                return SetParametersResult(successful=False, reason=reason)
        return super().set_parameters_atomically(converted(self, parameter_list))

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
        self._refusals.pop(what, None)
        return True

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


class DescribedNode(BaseNode, LifecycleNode):
    """A lifecycle node for a robot that a URDF describes, under gravity and loads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._configured: list[Any] = []
        """Subscriptions in the states inactive and active."""
        self._activated: list[Any] = []
        """Subscriptions in the state active."""

    @abstractmethod
    def _describe(self, text: str) -> bool:
        """Build the robot of a URDF; False, and a log line, if it is refused."""

    @abstractmethod
    def _set_gravity(self, gravity: Gravity) -> None:
        """Apply a gravity. Raises MbsError if it is refused."""

    @abstractmethod
    def _set_load(self, load: Load) -> None:
        """Apply a load. Raises MbsError if it is refused."""

    @abstractmethod
    def _enter(self, state: str) -> None:
        """Note the state of the lifecycle."""

    def _forget(self) -> None:
        """Return to the state before it was configured."""
        self._refusals.clear()
        while self._configured:
            self.destroy_subscription(self._configured.pop())

    def _unsubscribe(self) -> None:
        """Destroy the subscriptions of the state active."""
        while self._activated:
            self.destroy_subscription(self._activated.pop())

    def start(self) -> bool:
        """Configure and activate, if ``autostart`` is true. False if that fails."""
        if not self._settings.autostart:
            return True
        transitions = (self.trigger_configure, self.trigger_activate)
        return all(change() == TransitionCallbackReturn.SUCCESS for change in transitions)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Use the description in the parameters, or subscribe to descriptions."""
        self._configured = [
            self.subscribe("~/gravity", self._on_gravity),
            self.subscribe("~/payload", self._on_payload),
        ]
        text, path = self._settings.robot_description, self._settings.robot_description_file
        if not text and not path:
            take = self.subscribe("robot_description", lambda one: self._describe(one.data))
            self._configured.append(take)
        elif not self._describe_by_parameters(text, path):
            self._forget()
            return TransitionCallbackReturn.FAILURE
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Unsubscribe from the robot's state; the model stays."""
        self._unsubscribe()
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End all activity."""
        self.on_deactivate(state)
        self._forget()
        self._enter("finalized")
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the model, gravity and loads."""
        self._forget()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to the state before it was configured after an error in a transition."""
        # rclpy does not log the error
        self.get_logger().error(f"an internal error in a transition from {state.label!r}")
        self.on_deactivate(state)
        return self.on_cleanup(state)

    def _describe_by_parameters(self, text: str, path: str) -> bool:
        try:
            return self._describe(text or read_robot("robot_description_file", path))
        except MbsError as error:
            self.get_logger().error(str(error))
            return False

    def _on_gravity(self, message: Any) -> None:
        gravity = messages.gravity_of(message, self._settings.frame_prefix)
        if self._try("gravity", lambda: self._set_gravity(gravity)):
            self._inform("gravity accepted", messages.gravity_line(gravity))

    def _on_payload(self, message: Any) -> None:
        load = messages.load_of(message, self._settings.frame_prefix)
        if self._try("payload", lambda: self._set_load(load)):
            self._inform("payload accepted", messages.payload_line(load))

    def _waiting_for_description(self, refused: str) -> str:
        """Return that the node waits for a description, and why the latest was refused."""
        topic = self.resolve_topic_name("robot_description")
        why = f"; the latest was refused: {refused}" if refused else ""
        return f"waiting for a robot_description on {topic}{why}"
