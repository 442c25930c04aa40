# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Declares the parameters, topics and services of nodes in tables, and reads parameter files.

No ROS is needed. The tables of each node are one :class:`Interface`, in the module ``interface`` of
its package (``dynamics``, ``compensation``, ``simulator``). ``entry_points.interface_of`` returns
it by the name of the node. :mod:`mbs_dynamics.ros.node_base` creates parameters, publishers,
subscriptions and services from these tables only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mbs_dynamics.control.environment import LARGEST_GRAVITY, check_gravity
from mbs_dynamics.control.settings import InputSettings
from mbs_dynamics.errors import ArgumentError, UnknownNameError
from mbs_dynamics.output_files import missing_file
from mbs_dynamics.settings import Parameter, Settings, parameter, parameters_of
from mbs_dynamics.yaml_files import read_yaml_file


class UnknownParameterError(UnknownNameError, kind="parameter"):
    """A parameter was given that the node does not have."""


# -- topics and services ---------------------------------------------------------------------------


class Quality(NamedTuple):
    """Quality of service of a topic."""

    reliability: str
    durability: str
    depth: int

    def __str__(self) -> str:
        return f"{self.reliability}, {self.durability}, depth {self.depth}".replace("_", " ")


RELIABLE = Quality("reliable", "volatile", 10)
LATEST = Quality("reliable", "volatile", 1)
LATCHED = Quality("reliable", "transient_local", 1)
SENSOR_DATA = Quality("best_effort", "volatile", 5)


class Topic(NamedTuple):
    """A topic that a node publishes or subscribes to."""

    name: str
    """With placeholders: ``<body>``, ``<joint>``, or a parameter that holds the whole name."""
    type: str
    """Such as ``sensor_msgs/msg/JointState``."""
    description: str
    quality: Quality = RELIABLE
    condition: str = ""
    """The parameter that asks for the topic, or a condition in words; empty: always present."""


class Service(NamedTuple):
    """A service of a node, in addition to those of parameters and of the lifecycle."""

    name: str
    type: str
    description: str
    condition: str = ""
    """As for a topic."""


class Interface(NamedTuple):
    """Parameters, topics and services of a node."""

    node: str
    description: str
    settings: type[Settings]
    subscribed: tuple[Topic, ...]
    published: tuple[Topic, ...]
    services: tuple[Service, ...] = ()
    lifecycle: bool = False
    """Whether it is a lifecycle node."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in the order of their declaration."""
        return tuple(one for one in parameters_of(self.settings) if not one.constant)


DIAGNOSTICS = Topic(
    "/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", "State of the node, once a second."
)
DESCRIPTION = Topic(
    "robot_description",
    "std_msgs/msg/String",
    "URDF of the robot. A new one replaces the robot without a restart.",
    LATCHED,
    condition="unless robot_description is set",
)
JOINT_STATES = Topic(
    "joint_states",
    "sensor_msgs/msg/JointState",
    "State of the robot. Joints are matched by name, in any order and over several messages.",
    SENSOR_DATA,
)
GRAVITY = Topic(
    "~/gravity",
    "geometry_msgs/msg/Vector3Stamped",
    "Free-fall acceleration in m/s^2, in the axes of the fixed link header.frame_id.",
)
PAYLOAD = Topic(
    "~/payload",
    "geometry_msgs/msg/InertiaStamped",
    "Load on the link header.frame_id. A mass of zero removes it.",
)

# -- parameters of every node ----------------------------------------------------------------------


@dataclass(frozen=True)
class FrameSettings(Settings):
    """Parameters of every node that reads names of links."""

    frame_prefix: str = parameter(
        "",
        "Prefix of link names in header.frame_id, as frame_prefix of robot_state_publisher.",
        read_only=True,
    )


@dataclass(frozen=True)
class RobotSettings(FrameSettings):
    """Parameters of a node that computes with the masses of a robot."""

    loads: tuple[tuple[str, tuple[float, ...]], ...] = parameter(
        (),
        "Load that this link always carries, such as a tool: mass in kg, centre of mass x, y, z in "
        "m, and, unless it is a point mass, ixx, ixy, ixz, iyy, iyz, izz about it in kg m^2, in "
        "the frame of the link. Payloads are added to it.",
        type="double_array",
        read_only=True,
        per="link",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for link, numbers in self.loads:
            if len(numbers) not in (4, 10):
                raise ArgumentError(
                    f"loads.{link} has {len(numbers)} number(s); valid: 4 (mass and centre of "
                    "mass) or 10 (the tensor as well)"
                )


@dataclass(frozen=True)
class DescriptionSettings(FrameSettings, InputSettings):
    """Parameters of a node that subscribes to the description and the state of a robot."""

    robot_description: str = parameter(
        "",
        "Text of a URDF, or path of a URDF or .xacro file. Empty: the topic is used.",
        read_only=True,
    )
    autostart: bool = parameter(
        True,
        "Configure and activate on start. False: wait for lifecycle transitions.",
        read_only=True,
    )


@dataclass(frozen=True)
class GravitySettings(Settings):
    """Parameters of a node that publishes results under gravity."""

    gravity: tuple[float, float, float] = parameter(
        (0.0, 0.0, -9.81),
        "Free-fall acceleration in the axes of the URDF's root link. ~/gravity replaces it; the "
        "latest setting wins.",
        unit="m/s^2",
        constraints=f"Three finite numbers, a length of at most {LARGEST_GRAVITY:g}.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gravity("gravity", self.gravity)


# -- parameter files -------------------------------------------------------------------------------


def existing_file(argument: str, path: str) -> Path:
    """Return the path of a file; ``~`` is the home directory.

    Raises ArgumentError, which names the argument and the most similar file beside, if there is no
    such file.
    """
    file = Path(path).expanduser()
    if file.is_file():
        return file
    raise ArgumentError(f"{argument}: {missing_file(file)}")


def read_parameters(argument: str, path: str, node: str) -> dict[str, Any]:
    """Return the parameters in a YAML file that apply to a node, nested names joined by dots.

    ``node`` is the full name, such as ``/left/dynamics_node``. As for ROS, a key ``/**`` stands for
    any number of names and ``/*`` for one. Raises ArgumentError for a file that cannot be read or
    has nothing for this node.
    """
    file = existing_file(argument, path)
    try:
        groups = parameter_groups(file)
    except ArgumentError as error:
        raise ArgumentError(f"{argument} names {error}") from error
    matching = [values for name, values in groups if applies(name, node)]
    if not matching:
        names = ", ".join(name for name, _ in groups)
        has = f"parameters of {names}" if names else "no key 'ros__parameters'"
        raise ArgumentError(
            f"{argument} names {str(file)!r}, which has {has}; must be a file with parameters of "
            f"{node}, or of all nodes: '/**: {{ros__parameters: ...}}'"
        )
    parameters: dict[str, Any] = {}
    for values in matching:
        parameters.update(flattened(values))
    return parameters


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested parameters as ROS names them: ``{"a": {"b": 1}}`` as ``{"a.b": 1}``."""
    parameters: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            parameters.update(flattened(value, f"{prefix}{name}."))
        else:
            parameters[f"{prefix}{name}"] = value
    return parameters


def parameter_groups(file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the full names of nodes, with wildcards, and the parameters that a file has for each.

    Raises ArgumentError for a file that cannot be read; see :func:`yaml_files.read_yaml`.
    """
    return list(_groups(read_yaml_file(file)))


def _groups(content: Any, above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if key == "ros__parameters":
            yield above, value if isinstance(value, Mapping) else {}
        else:
            yield from _groups(value, f"{above}/{str(key).strip('/')}")


def applies(name: str, node: str) -> bool:
    """Return whether a name with the wildcards ``*`` and ``**`` stands for a node's full name."""
    wildcards = {"*": "/[^/]+", "**": "(/[^/]+)*"}
    parts = [wildcards.get(part, "/" + re.escape(part)) for part in name.split("/")[1:]]
    return re.fullmatch("".join(parts), node) is not None
