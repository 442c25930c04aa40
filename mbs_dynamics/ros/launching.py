# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the launch files: arguments, robot descriptions, parameters, and failures of nodes.

A bad argument, and a node that fails, end the launch with one line and exit code 1.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.events import matches_action
from launch.events.process import ProcessExited, ShutdownProcess
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, SubstitutionFailure
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare
from launch_ros.utilities import make_namespace_absolute, prefix_namespace

from mbs_dynamics.control.settings import ALGORITHMS
from mbs_dynamics.errors import ArgumentError, MbsError, UnknownNameError, quoted
from mbs_dynamics.ros.compensation.interface import COMMAND_TOPIC
from mbs_dynamics.ros.entry_points import interface_of
from mbs_dynamics.ros.interface import UnknownParameterError, flattened, read_parameters
from mbs_dynamics.ros.robot_description import read_robot
from mbs_dynamics.ros.simulator.interface import SIMULATOR_NODE
from mbs_dynamics.settings import TYPES
from mbs_dynamics.yaml_files import read_yaml

PACKAGE = "mbs_dynamics"

TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
"""Values of boolean arguments, in any case."""

VALID = {
    "bool": "true or false",
    "double": "a number",
    "string": "a text",
    "double_array": "a list of numbers with at least one",
    "string_array": 'a list of texts; [""] means none',
}
"""Valid values of parameters of each type."""

DESCRIBED_BY_TOPIC = {"robot_description": "", "robot_description_file": ""}

SIMULATED = {
    "compensates_itself": False,  # the simulated arm does not
    "position_controller": "",  # there is no controller manager
    "adds_to_position_control": False,  # nor a position loop
    "use_imu": False,
    "max_age": 0.0,  # stamps fall behind the clock where the simulation is too slow
    **DESCRIBED_BY_TOPIC,
}
"""Parameters of nodes that command a simulated arm, where they differ from those of a real one."""

FOREIGN_NODES = ["rviz", "robot_state_publisher"]
"""Switches that start nodes of other packages."""

SHAPES: dict[type[Any], str] = {dict: '"{name: value, ...}"', list: '"[number, ...]"'}
"""Forms of arguments that are read as YAML."""

SIMILAR = 0.8
"""Ratio of difflib above which an unknown launch argument counts as misspelt."""


class UnknownLaunchArgumentError(UnknownNameError, kind="launch argument"):
    """An argument was given to a launch file that does not declare it."""


# -- the arguments that several launch files have ------------------------------------------------


def argument(
    name: str, default: Any = "", choices: Sequence[str] | None = None
) -> Callable[[str], DeclareLaunchArgument]:
    """Return the function that declares an argument by its description."""
    return lambda description: DeclareLaunchArgument(
        name, default_value=default, choices=choices, description=description
    )


class BooleanArgument(DeclareLaunchArgument):
    """A launch argument that is true or false. Its value "" is allowed only as its default.

    :func:`boolean` reads its value, not launch, whose choices would refuse ``True``.
    """

    def __init__(self, name: str, description: str, default: str = "false") -> None:
        super().__init__(name, default_value=default, description=description)
        self.optional = not default


def boolean(name: str, text: str) -> bool:
    """Return the value of a boolean argument. Raises ArgumentError naming it."""
    word = text.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise ArgumentError(f"{name} must be true or false, got {text!r}")


def urdf_arguments(
    empty: str = "as in params_file, or the topic robot_description, as robot_state_publisher "
    "publishes it.",
) -> list[DeclareLaunchArgument]:
    """Return the arguments for a robot description; ``empty`` is the default source."""
    return [
        argument("urdf")(f"Path of a URDF, or of a .xacro that becomes one. Empty: {empty}"),
        argument("xacro_args")('Arguments of the .xacro file, such as "ur_type:=ur5e name:=ur".'),
        BooleanArgument(
            "robot_state_publisher", "Start robot_state_publisher with this description as well."
        ),
    ]


def share(*path: str) -> PathJoinSubstitution:
    """Return the path of a file that this package has installed."""
    return PathJoinSubstitution([FindPackageShare(PACKAGE), *path])


def parameter_arguments(
    executable: str, prefix: str = "", default: str = ""
) -> list[DeclareLaunchArgument]:
    """Return the arguments that give a node its parameters: in a file, and in the command.

    ``default`` is the name of a file in ``config``; without one there is none by default.
    """
    return [
        argument(f"{prefix}params_file", share("config", default) if default else "")(
            f"YAML file with parameters of {executable}."
        ),
        argument(f"{prefix}params")(
            f'Parameters of {executable}, such as "{{stale_timeout: 0.2}}". They '
            "replace those of the file."
        ),
    ]


def algorithm_argument(whose: str = "the node") -> DeclareLaunchArgument:
    """Return the argument for the parameter ``algorithm``."""
    return argument("algorithm", choices=["", *ALGORITHMS])(
        f"Representation of the recursions of {whose}. Empty: that of the parameters."
    )


def arm_arguments(node: str, default: str) -> list[DeclareLaunchArgument]:
    """Return the arguments of a node that commands an arm; ``default`` is its parameter file."""
    topic = argument("command_topic")(
        "Topic of the commands; without a slash in front it is in the namespace. "
        "Empty: as in params_file."
    )
    parameters = parameter_arguments(node, default=default)
    return [*parameters, topic, algorithm_argument(), *urdf_arguments()]


def time_argument(more: str = "") -> DeclareLaunchArgument:
    """Return the argument for the parameter ``use_sim_time``."""
    return BooleanArgument(
        "use_sim_time",
        f"Whether time is that of /clock. Empty: that of the parameters.{more}",
        default="",
    )


# -- a launch file ---------------------------------------------------------------------------------


class Given:
    """The arguments of a launch file by name, and the actions that they ask for."""

    def __init__(self, values: Mapping[str, str], namespace: str) -> None:
        self._values = values
        self._parent = namespace
        """The namespace of the launch file that includes this one."""

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def on(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self._values[name] == "true"

    def time(self) -> dict[str, Any]:
        """Return the parameter ``use_sim_time``, if it was given."""
        return {"use_sim_time": self.on("use_sim_time")} if self["use_sim_time"] else {}

    def texts(self, *names: str) -> dict[str, Any]:
        """Return those of the arguments that are not empty, as parameters of the same names."""
        return {name: self[name] for name in names if self[name]}

    def number(self, name: str) -> dict[str, float]:
        """Return a number as a parameter of the same name."""
        try:
            return {name: float(self[name])}
        except ValueError:
            raise ArgumentError(f"{name} is {self[name]!r}; valid is a number") from None

    def numbers(self, name: str) -> dict[str, Any]:
        """Return a list of numbers as a parameter of the same name, if it was given."""
        if not self[name]:
            return {}
        numbers = _yaml(name, self[name], list)
        if any(isinstance(x, bool) or not isinstance(x, int | float) for x in numbers):
            raise ArgumentError(f"{name} is {self[name]!r}; valid is a list of numbers")
        return {name: [float(x) for x in numbers]}

    def description(self, otherwise: str = "") -> str:
        """Return the URDF that ``urdf`` or else ``otherwise`` names; empty without both."""
        for argument, path in (("urdf", self["urdf"]), ("robot_description_file", otherwise)):
            if path:
                return read_robot(argument, path, self["xacro_args"])
        for name in ("xacro_args", "robot_state_publisher"):
            if self[name] not in ("", "false"):
                raise ArgumentError(f"{name} is {self[name]!r}, but there is no urdf to use it on")
        return ""

    def in_file(self, executable: str, prefix: str = "") -> dict[str, Any]:
        """Return the parameters that the file of a node holds for it; empty without a file."""
        name = f"{prefix}params_file"
        node = f"{make_namespace_absolute(self._full_namespace)}/{executable}".replace("//", "/")
        return read_parameters(name, self[name], node) if self[name] else {}

    def asked(self, executable: str, prefix: str = "") -> dict[str, Any]:
        """Return the parameters that the file and the command hold for a node, the latter first."""
        return {**self.in_file(executable, prefix), **self.in_command(prefix)}

    def in_command(self, prefix: str = "") -> dict[str, Any]:
        """Return the parameters that the command holds for a node."""
        name = f"{prefix}params"
        return flattened(_yaml(name, self[name], dict)) if self[name] else {}

    @property
    def _full_namespace(self) -> str:
        return str(prefix_namespace(self._parent, self["namespace"]) or "")

    def node(
        self,
        executable: str,
        *,
        prefix: str = "",
        defaults: Mapping[str, Any] | None = None,
        fixed: Mapping[str, Any] | None = None,
        remapped: Mapping[str, str] | None = None,
    ) -> Node:
        """Return the action that starts a node of this package.

        ``defaults`` are overridden by the user's file, that by the user's ``params``, and that by
        ``fixed``. ``remapped`` are topics by other names.
        """
        in_file = self.in_file(executable, prefix)
        given = {k: v for k, v in (defaults or {}).items() if k not in in_file}
        given.update(self.in_command(prefix))
        given.update(fixed or {})
        file = self[f"{prefix}params_file"]
        files = [str(Path(file).expanduser())] if file else []
        return self.started(executable, files, given, remapped=remapped)

    def started(
        self,
        executable: str,
        files: Sequence[str],
        given: Mapping[str, Any],
        package: str = PACKAGE,
        remapped: Mapping[str, str] | None = None,
    ) -> Node:
        """Return the action that starts an executable with parameters of files and a mapping."""
        if package == PACKAGE:
            check_parameters(executable, given)
        return Node(
            package=package,
            executable=executable,
            name=executable,
            namespace=self["namespace"],
            parameters=[*files, typed(given)] if given else list(files),
            remappings=[*(remapped or {}).items()],
            output="screen",
        )

    def rviz(self) -> Node:
        """Return the action that starts RViz with the configuration of this package."""
        return Node(
            package="rviz2",
            executable="rviz2",
            namespace=self["namespace"],
            arguments=["-d", share("config", "mbs_dynamics.rviz")],
            parameters=[self.time()] if self.time() else [],
        )

    def state_publisher(self, description: str, *, wanted: bool = False) -> list[Node]:
        """Return the action that starts robot_state_publisher, if it is asked for."""
        if not (wanted or self.on("robot_state_publisher")):
            return []
        name = "robot_state_publisher"
        given = {"robot_description": description, **self.time()}
        return [self.started(name, [], given, package=name)]


def described_node(
    given: Given,
    executable: str,
    *texts: str,
    fixed: Mapping[str, Any] | None = None,
    remapped: Mapping[str, str] | None = None,
) -> list[Node]:
    """Return a node with the description that its arguments or its file name, if any.

    The arguments ``texts`` are parameters of the same names; ``fixed`` and ``remapped`` as for
    :meth:`Given.node`.
    """
    otherwise = given.asked(executable).get("robot_description_file", "")
    description = given.description(otherwise)
    parameters = {**given.texts(*texts), **given.time(), **(fixed or {})}
    if description:
        parameters |= {"robot_description": description, "robot_description_file": ""}
    started = given.node(executable, fixed=parameters, remapped=remapped)
    return [started, *given.state_publisher(description)]


def launch_file(
    file: str,
    namespace: str,
    arguments: Iterable[DeclareLaunchArgument],
    start: Callable[[Given], Sequence[Node]],
) -> LaunchDescription:
    """Return the description of a launch file: its arguments, and the nodes that ``start`` returns.

    ``namespace`` describes that argument. :func:`ending_together` tells which nodes end together.
    """
    declared = argument("namespace")(namespace)
    arguments = [declared, *arguments]
    names = [one.name for one in arguments]

    def run(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        alone = _is_launched(file)
        try:
            check_arguments(names, context, alone)
            values = {name: LaunchConfiguration(name).perform(context) for name in names}
            for one in arguments:
                text = values[one.name]
                if isinstance(one, BooleanArgument) and (text or not one.optional):
                    values[one.name] = "true" if boolean(one.name, text) else "false"
            parent = context.launch_configurations.get("ros_namespace", "")
            nodes = list(start(Given(values, parent)))
            check_installed(nodes, values, context)
        except MbsError as error:
            return [failing(error)]
        return [*nodes, *ending_together(nodes, alone)]

    return LaunchDescription([*arguments, OpaqueFunction(function=run)])


def failing(error: MbsError) -> LaunchDescriptionEntity:
    """Return an action that ends the launch with an error, and with it all nodes.

    launch abandons nodes that run already if an action beside theirs raises: a timer waits.
    """

    def fail(context: LaunchContext) -> None:
        raise error

    return TimerAction(period=0.0, actions=[OpaqueFunction(function=fail)])


def check_installed(
    nodes: Sequence[Node], values: Mapping[str, str], context: LaunchContext
) -> None:
    """Raise ArgumentError if the program of a node is not installed; ``values`` are arguments."""
    for node in nodes:
        package, program = node.node_package, node.node_executable
        try:
            ExecutableInPackage(program, package).perform(context)
        except (LookupError, SubstitutionFailure) as error:
            asked = [f"{name}:=true" for name in FOREIGN_NODES if values.get(name) == "true"]
            who = "this launch file" if package == PACKAGE else " and ".join(asked)
            raise ArgumentError(
                f"{who} needs {program!r}, and nothing was started: {error.args[0].strip()}; "
                f"install the package {package!r}, or source its workspace"
            ) from error


def check_arguments(names: Sequence[str], context: LaunchContext, alone: bool) -> None:
    """Raise UnknownLaunchArgumentError for an argument in the command that does not exist.

    Arguments of a launch file that includes this one cannot be told from those that it passes on.
    They are only warned of, and only if they resemble one of ``names``.
    """
    if alone:
        for word in context.argv or ():
            name = word.partition(":=")[0]
            if name not in names and not name.startswith("launch-prefix"):
                raise UnknownLaunchArgumentError(name, names)
        return
    for name in context.launch_configurations:
        close = difflib.get_close_matches(name, names, n=1, cutoff=SIMILAR)
        if name not in names and close:
            get_logger(PACKAGE).warning(str(UnknownLaunchArgumentError(name, names)))


def _is_launched(file: str) -> bool:
    """Return whether the command names this file, which another launch file includes otherwise."""
    return any(Path(word).name == Path(file).name for word in sys.argv)


def ending_together(nodes: Sequence[Node], alone: bool) -> list[LaunchDescriptionEntity]:
    """Return handlers that end all nodes once one has failed; with exit code 1 if ``alone``.

    Where a node commands an arm, only that node and the simulated arm end the others: a node that
    commands nothing never ends one that holds the arm.
    """
    commanding = [node for node in nodes if _commands(node)]

    def ended(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        if event.returncode == 0 or context.is_shutdown:
            return []
        name = event.process_name.rpartition("-")[0]
        problem = f"{name} has failed with exit code {event.returncode}"
        if commanding and event.action not in commanding and not _simulates(event.action):
            goes_on = ", ".join(node.node_executable for node in commanding)
            get_logger(PACKAGE).error(f"{problem}; {goes_on} goes on")
            return []
        if alone:
            raise RuntimeError(problem)
        others = (node for node in nodes if node is not event.action)
        return [EmitEvent(event=ShutdownProcess(process_matcher=matches_action(n))) for n in others]

    return [
        RegisterEventHandler(OnProcessExit(target_action=node, on_exit=ended)) for node in nodes
    ]


def _commands(node: Node) -> bool:
    """Return whether a node publishes commands of an arm."""
    if node.node_package != PACKAGE:
        return False
    published = interface_of(node.node_executable).published
    return any(topic.name == COMMAND_TOPIC.name for topic in published)


def _simulates(node: Node) -> bool:
    return bool(node.node_package == PACKAGE and node.node_executable == SIMULATOR_NODE.node)


# -- parameters ------------------------------------------------------------------------------------


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of which texts stay texts: launch would read them as YAML."""
    return {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in given.items()
    }


def check_parameters(executable: str, given: Mapping[str, Any]) -> None:
    """Raise UnknownParameterError or ArgumentError for a parameter that a node does not have.

    launch raises for some values only once other nodes run, so that types are compared here.
    """
    declared = {one.name: one for one in interface_of(executable).parameters}
    for name, value in given.items():
        group, _, owner = name.partition(".")
        one = declared.get(group)
        if name != "use_sim_time" and (one is None or bool(one.per) != bool(owner)):
            raise UnknownParameterError(name, declared)
        kind = one.type if one else "bool"
        if not _has_type(value, kind):
            raise ArgumentError(f"{name} is {quoted(value)}; valid is {VALID[kind]}")


def _has_type(value: Any, kind: str) -> bool:
    if kind.endswith("_array"):
        each = kind.removesuffix("_array")
        return isinstance(value, list | tuple) and {_has_type(one, each) for one in value} == {True}
    return TYPES.get(float if type(value) is int else type(value)) == kind


def _yaml(name: str, text: str, kind: type[Any]) -> Any:
    try:
        value = read_yaml(text)
    except ArgumentError:
        value = None
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} is {text!r}; valid is {SHAPES[kind]}")
    return value
