# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the launch files: robot descriptions, parameters, and a check of packages.

Bad arguments raise before anything starts: launch prints one line and ends with exit code 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable
from launch.conditions import evaluate_condition_expression
from launch.substitutions import (
    EnvironmentVariable,
    LaunchConfiguration,
    PathJoinSubstitution,
    SubstitutionFailure,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.remap_rule_type import SomeRemapRules
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.ros.interface import flattened
from mbs_dynamics.ros.robot_description import text_of
from mbs_dynamics.yaml_files import read_yaml

PACKAGE = "mbs_dynamics"

UDP = SetEnvironmentVariable(
    "FASTDDS_BUILTIN_TRANSPORTS",
    EnvironmentVariable("FASTDDS_BUILTIN_TRANSPORTS", default_value="UDPv4"),
)
"""Over shared memory a publisher may block for 1/3 s as participants come (Fast-DDS#6535)."""

ALGORITHM = "Representation of the recursions. Empty: as in the parameter files."
COMMAND_TOPIC = "Topic of the commands. Empty: as in params_file."


def arguments(**about: str) -> list[DeclareLaunchArgument]:
    """Return launch arguments that are empty by default, with these descriptions."""
    return [
        DeclareLaunchArgument(name, default_value="", description=text)
        for name, text in about.items()
    ]


def parameter_arguments(node: str, prefix: str = "", file: str = "") -> list[DeclareLaunchArgument]:
    """Return the arguments that give a node its parameters, by a file and in the command.

    ``file`` is the default file in the folder config of this package.
    """
    default = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", file]) if file else ""
    about = f'Parameters of {node}, such as "{{stale_timeout: 0.2}}". They replace those of a file.'
    return [
        DeclareLaunchArgument(
            f"{prefix}params_file",
            default_value=default,
            description=f"YAML file with parameters of {node}.",
        ),
        DeclareLaunchArgument(f"{prefix}params", default_value="", description=about),
    ]


def robot_arguments() -> list[DeclareLaunchArgument]:
    """Return the arguments about the robot and where its node runs."""
    return arguments(
        namespace="Namespace of the nodes and of their topics.",
        urdf="Path of a URDF, or of a .xacro that becomes one. Empty: as in params_file.",
        xacro_args='Arguments of the .xacro file, such as "ur_type:=ur5e name:=ur".',
        use_sim_time="Whether time is that of /clock. Empty: as in params_file.",
    )


def value(context: LaunchContext, name: str) -> str:
    """Return the value of a launch argument."""
    return str(LaunchConfiguration(name).perform(context))


def asked(context: LaunchContext, name: str) -> bool:
    """Return the value of a launch argument that is true or false; raise if it is neither."""
    return bool(evaluate_condition_expression(context, [LaunchConfiguration(name)]))


def description(context: LaunchContext, otherwise: str = "") -> str:
    """Return the URDF that ``urdf`` or else ``otherwise`` is or names; empty without both."""
    given, xacro_args = value(context, "urdf") or otherwise, value(context, "xacro_args")
    if given:
        return text_of(given, "urdf", xacro_args)
    if xacro_args:
        raise ArgumentError(f"xacro_args is {xacro_args!r}, but there is no urdf to use it on")
    return ""


def parameters(context: LaunchContext, *names: str, prefix: str = "") -> list[Any]:
    """Return the parameters of a node: its file, those in the command, and some arguments.

    The later replace the earlier. ``names`` are arguments that are parameters of the same names,
    where they are not empty.
    """
    file = value(context, f"{prefix}params_file")
    given = in_command(context, prefix)
    for name in names:
        text = value(context, name)
        if text:
            given[name] = asked(context, name) if name == "use_sim_time" else text
    return [*([str(Path(file).expanduser())] if file else []), *([typed(given)] if given else [])]


def in_command(context: LaunchContext, prefix: str = "") -> dict[str, Any]:
    """Return the parameters in the argument ``<prefix>params``."""
    text = value(context, f"{prefix}params")
    given = read_yaml(text) if text else {}
    if not isinstance(given, Mapping):
        raise ArgumentError(f'{prefix}params is {text!r}; must be "{{name: value, ...}}"')
    return flattened(given)


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters whose texts stay texts: launch would read them as YAML."""
    return {
        name: ParameterValue(x, value_type=str) if isinstance(x, str) else x
        for name, x in given.items()
    }


def described(urdf: str) -> list[dict[str, Any]]:
    """Return the parameters of a node with this description; none without one."""
    return [typed({"robot_description": urdf})] if urdf else []


def node_of_robot(
    context: LaunchContext,
    executable: str,
    *names: str,
    fixed: Mapping[str, Any] = {},
    remappings: SomeRemapRules | None = None,
) -> Sequence[Node]:
    """Return a node of this package with the description in ``urdf``.

    ``names`` are arguments that are parameters as well, see :func:`parameters`; ``fixed`` are
    parameters that the launch file states.
    """
    urdf = description(context)
    given = parameters(context, *names, "use_sim_time")
    node = Node(
        package=PACKAGE,
        executable=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=[*given, *([fixed] if fixed else []), *described(urdf)],
        remappings=remappings,
        output="screen",
    )
    return checked(context, [node])


def checked(context: LaunchContext, nodes: Sequence[Node]) -> Sequence[Node]:
    """Return nodes whose programs are installed; raise ArgumentError if one is not."""
    for node in nodes:
        try:
            ExecutableInPackage(node.node_executable, node.node_package).perform(context)
        except (LookupError, SubstitutionFailure) as error:
            raise ArgumentError(
                f"this launch needs {node.node_executable!r}, and nothing was started: "
                f"{error.args[0].strip()}; install the package {node.node_package!r}, or source "
                "its workspace"
            ) from error
    return nodes
