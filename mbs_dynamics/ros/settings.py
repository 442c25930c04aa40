# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What can be set on a node: names, defaults, meanings, ranges, and what is refused.

Knows no ROS: :mod:`mbs_dynamics.ros.parameters` declares these fields as parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.representation import AUTO, REPRESENTATIONS

LARGEST_GRAVITY = 100.0
"""A free-fall acceleration above this, in m/s^2, is taken for a mistake."""

ALGORITHMS = (AUTO, *REPRESENTATIONS)
"""The valid values of ``algorithm``."""

S = TypeVar("S", bound="NodeSettings")


def setting(
    default: Any,
    description: str,
    *,
    read_only: bool = False,
    range: tuple[float, float] | None = None,
    choices: Iterable[str] = (),
    constraints: str = "",
    element: type = str,
) -> Any:
    """Return a dataclass field that carries all that a parameter declaration needs.

    ``choices`` are the valid values of a text, none for any; ``element`` is the type of what an
    empty tuple may hold: str or float.
    """
    valid = tuple(choices)
    about = {
        "description": description,
        "read_only": read_only,
        "range": range,
        "choices": valid,
        "constraints": (f"One of {', '.join(valid)}. " if valid else "") + constraints,
        "element": element,
    }
    return field(default=default, metadata=about)


def algorithm_setting(computes: str, constraints: str = "") -> Any:
    """Return the field ``algorithm`` of a node; ``computes`` says what it computes by it."""
    return setting(
        AUTO,
        f"Representation of the recursion that computes {computes}. The results agree to rounding; "
        "the time differs. auto: the one with the fewest operations.",
        choices=ALGORITHMS,
        constraints=constraints,
    )


def by_joint(default: float, description: str, range: tuple[float, float]) -> Any:
    """Return a field with one number per joint of ``joints``: parameters ``<field>.<joint>``."""
    about = {
        "description": description,
        "read_only": False,
        "range": None,
        "choices": (),
        "constraints": "",
        "each": range,
        "each_default": default,
    }
    return field(default=(), metadata=about)


def by_link(description: str) -> Any:
    """Return a field with several numbers for each link that is named: ``<field>.<link>``.

    Its value is a tuple of pairs of a link and its numbers.
    """
    about = {
        "description": description,
        "read_only": True,
        "range": None,
        "choices": (),
        "constraints": "",
        "by_link": True,
    }
    return field(default=(), metadata=about)


@dataclass(frozen=True)
class NodeSettings:
    """The parameters of a node; ArgumentError says what is out of range."""

    def __post_init__(self) -> None:
        for item in fields(self):
            limits = item.metadata["range"]
            if limits is not None:
                value = checks.number(item.name, getattr(self, item.name))
                if not limits[0] <= value <= limits[1]:
                    raise ArgumentError(
                        f"{item.name} is {value:g}; valid is {limits[0]:g} to {limits[1]:g}"
                    )
            valid = item.metadata["choices"]
            if valid and getattr(self, item.name) not in valid:
                raise ArgumentError(
                    f"{item.name} is {getattr(self, item.name)!r}; valid is one of "
                    f"{', '.join(valid)}"
                )

    def changed(self: S, values: Mapping[str, Any]) -> S:
        """Return the settings with some values replaced, checked as a whole."""
        return replace(self, **values)


@dataclass(frozen=True)
class RobotSettings(NodeSettings):
    """The parameters of every node that computes with a robot."""

    loads: tuple[tuple[str, tuple[float, ...]], ...] = by_link(
        "A load that this link always carries, such as a tool: mass in kg, centre of mass x, y, z "
        "in m, and, unless it is a point mass, ixx, ixy, ixz, iyy, iyz, izz in kg m^2 about it, in "
        "the frame of the link. Payloads come on top."
    )
    frame_prefix: str = setting(
        "",
        "What stands before the names of links in header.frame_id, as robot_state_publisher's "
        "frame_prefix.",
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for link, numbers in self.loads:
            if len(numbers) not in (4, 10):
                raise ArgumentError(
                    f"loads.{link} has {len(numbers)} number(s); valid are 4 (mass and centre of "
                    "mass) or 10 (the tensor as well)"
                )


@dataclass(frozen=True)
class DescribedSettings(RobotSettings):
    """The parameters of a node for a robot that a URDF describes."""

    root: str = setting(
        "",
        "Link to start from in place of the URDF's root. Empty: the URDF's root.",
        read_only=True,
    )
    tip: str = setting(
        "",
        "Last link of the chain to take out of the URDF. Empty: the whole tree.",
        read_only=True,
    )
    robot_description: str = setting(
        "",
        "The text of a URDF. Empty: robot_description_file or the topic is used.",
        read_only=True,
    )
    robot_description_file: str = setting(
        "",
        "Path of a URDF file. Empty: robot_description or the topic of that name is used.",
        read_only=True,
    )
    fixed_joints: tuple[str, ...] = setting(
        (),
        "Joints that nobody reports in joint_states. They are taken to stand at fixed_positions.",
        read_only=True,
        constraints="Names of joints, each at most once.",
    )
    fixed_positions: tuple[float, ...] = setting(
        (),
        "Positions of fixed_joints, in their order, rad or m.",
        read_only=True,
        constraints="As many finite numbers as fixed_joints has names.",
        element=float,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.robot_description and self.robot_description_file:
            raise ArgumentError(
                "robot_description and robot_description_file are both given; valid is one of them"
            )
        check_once("fixed_joints", "joint", self.fixed_joints)
        joints, positions = len(self.fixed_joints), len(self.fixed_positions)
        if joints != positions:
            raise ArgumentError(
                f"fixed_joints has {joints} name(s) but fixed_positions has {positions} number(s); "
                "valid is one position for each joint"
            )
        checks.numbers("fixed_positions", self.fixed_positions, (joints,))

    @property
    def fixed(self) -> dict[str, float]:
        """Positions in rad or m of the joints that nobody reports, by name."""
        return dict(zip(self.fixed_joints, self.fixed_positions, strict=True))


def whole_fields(kind: type[NodeSettings]) -> list[Field[Any]]:
    """Return the fields that are one parameter."""
    return [item for item in fields(kind) if not {"each", "by_link"} & set(item.metadata)]


def by_joint_fields(kind: type[NodeSettings]) -> list[Field[Any]]:
    """Return the fields that are one parameter for each joint of ``joints``."""
    return [item for item in fields(kind) if "each" in item.metadata]


def by_link_fields(kind: type[NodeSettings]) -> list[Field[Any]]:
    """Return the fields that are one parameter for each link that the user names."""
    return [item for item in fields(kind) if "by_link" in item.metadata]


def check_once(name: str, kind: str, given: Iterable[str]) -> None:
    """Raise ArgumentError if a parameter names something twice."""
    given = list(given)
    twice = sorted({one for one in given if given.count(one) > 1})
    if twice:
        raise ArgumentError(f"{name} must name each {kind} once; got twice: {', '.join(twice)}")


def check_gravity(name: str, value: Any) -> checks.FloatArray:
    """Return a free-fall acceleration (3,) in m/s^2, or raise ArgumentError."""
    gravity = checks.numbers(name, value, (3,))
    length = float(np.linalg.norm(gravity))
    if length > LARGEST_GRAVITY:
        raise ArgumentError(
            f"{name} has a length of {length:g} m/s^2; valid is at most {LARGEST_GRAVITY:g}"
        )
    return gravity
