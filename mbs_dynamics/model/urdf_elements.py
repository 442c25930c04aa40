# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What a URDF states, as far as dynamics needs it; the file's own units, which are SI."""

from __future__ import annotations

from typing import NamedTuple

Vector = tuple[float, ...]


class Origin(NamedTuple):
    """An element ``origin``: the position, and rotations about the fixed axes x, y, z in turn."""

    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)


class Inertial(NamedTuple):
    """An element ``inertial``; None stands for a mass or a tensor that is not stated."""

    origin: Origin
    mass: float | None
    tensor: tuple[Vector, ...] | None
    """The inertia (3, 3) about the center of mass."""


class Link(NamedTuple):
    """An element ``link``."""

    name: str
    inertial: Inertial | None


class Limit(NamedTuple):
    """An element ``limit``; None stands for a bound that is not stated."""

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


class Dynamics(NamedTuple):
    """An element ``dynamics``."""

    damping: float = 0.0
    friction: float = 0.0


class Mimic(NamedTuple):
    """An element ``mimic``: position = multiplier * position of the other joint + offset."""

    joint: str
    multiplier: float
    offset: float


class Joint(NamedTuple):
    """An element ``joint``; None stands for elements that it does not have."""

    name: str
    type: str
    parent: str
    child: str
    origin: Origin
    axis: Vector
    limit: Limit | None
    dynamics: Dynamics | None
    mimic: Mimic | None


class Robot(NamedTuple):
    """An element ``robot``."""

    name: str
    links: list[Link]
    joints: list[Joint]
