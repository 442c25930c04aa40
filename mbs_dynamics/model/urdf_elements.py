# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The elements of a URDF that dynamics needs, read and checked.

Every required name is present, every number is finite, except for limits, and optional elements
that are absent are None. The connections of links and joints are not checked here.
"""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple

from mbs_dynamics.errors import UrdfError, listed, quoted
from mbs_dynamics.model.urdf_xml import Element, document_of

Vector = tuple[float, float, float]

EXPAND = "expand it with xacro first, or give the .xacro file to a command or launch file"

VERSIONS = ("1.0", "1.1", "1.2")
"""Versions of URDF, as the parser of ROS reads them; 1.0 where none is stated."""

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating", "spherical")

LARGEST_NUMBER = 1e50
"""No number is larger, so that products are finite; but limits may be the largest float."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_LEFT_OVER = re.compile(r"\$[({]")


class Origin(NamedTuple):
    """A pose, by three angles or, where there is one, by a quaternion of any length."""

    xyz: Vector = (0.0, 0.0, 0.0)
    """m."""
    rpy: Vector = (0.0, 0.0, 0.0)
    """rad, about the fixed axes x, y, z in turn."""
    quat_xyzw: tuple[float, float, float, float] | None = None


class Tensor(NamedTuple):
    """The upper triangle of a tensor of inertia, in kg m^2."""

    ixx: float
    ixy: float
    ixz: float
    iyy: float
    iyz: float
    izz: float


class Inertial(NamedTuple):
    """The inertia of a link; the origin is at its centre of mass."""

    origin: Origin
    mass: float | None
    """kg."""
    inertia: Tensor | None


class Link(NamedTuple):
    """A link."""

    name: str
    inertial: Inertial | None


class Limit(NamedTuple):
    """Limits of a joint, in rad or m, rad/s or m/s, N m or N; None if not stated."""

    lower: float | None
    upper: float | None
    velocity: float | None
    effort: float | None


class Dynamics(NamedTuple):
    """Damping in N m s/rad or N s/m, and Coulomb friction in N m or N."""

    damping: float
    friction: float


class Mimic(NamedTuple):
    """The joint that another one follows, at ``multiplier`` times its position plus ``offset``."""

    joint: str
    multiplier: float
    offset: float


class Joint(NamedTuple):
    """A joint between two links."""

    name: str
    type: str
    """One of :data:`JOINT_TYPES`."""
    origin: Origin
    parent: str
    child: str
    axis: Vector | None
    limit: Limit | None
    dynamics: Dynamics | None
    mimic: Mimic | None
    soft_gain: float | None
    """``k_velocity`` of the ``safety_controller``."""


class Robot(NamedTuple):
    """The links and joints of a robot, in the order of the file."""

    name: str
    links: list[Link]
    joints: list[Joint]


def read(source: str | bytes | os.PathLike[str]) -> tuple[str, Robot]:
    """Return the name of the source for messages, and its robot.

    ``source`` is a path, or XML text: a string whose first non-blank character is "<", or bytes.
    Raises UrdfError, naming the source, the element and the attribute.
    """
    where, document = document_of(source)
    if document.tag != "robot":
        raise UrdfError(f"{where}: the root element must be <robot>; got <{document.tag}>")
    _refuse_xacro(where, document)
    name = document.get("name")
    if not name:
        raise UrdfError(f"{where}: the robot has no name; write <robot name='...'>")
    version = document.get("version", VERSIONS[0])
    if version not in VERSIONS:
        raise UrdfError(
            f"{where}: <robot version={quoted(version)}> is unknown; the versions of URDF are "
            f"{', '.join(VERSIONS)}"
        )
    robot = Robot(name, [], [])
    for element in document.named("link", "joint"):
        if not element.get("name"):
            raise UrdfError(f"{where}: the <{element.tag}> in line {element.line} has no name")
        owner = f"{where}: {element.tag} {element.get('name')!r}"
        if element.tag == "link":
            robot.links.append(_link(element, owner))
        else:
            robot.joints.append(_joint(element, owner))
        _check_version(element, owner, version)
    return where, robot


def _link(link: Element, owner: str) -> Link:
    inertial = _child(link, "inertial", owner)
    return Link(_text(link, "name", owner), inertial and _inertial(inertial, owner))


def _inertial(inertial: Element, owner: str) -> Inertial:
    mass = _child(inertial, "mass", owner)
    tensor = _child(inertial, "inertia", owner)
    return Inertial(
        _origin(inertial, owner),
        mass and _number(mass, "value", owner),
        tensor and Tensor(*(_number(tensor, entry, owner) for entry in Tensor._fields)),
    )


def _joint(joint: Element, owner: str) -> Joint:
    kind = _text(joint, "type", owner)
    if kind not in JOINT_TYPES:
        valid = ", ".join(JOINT_TYPES)
        raise UrdfError(f"{owner}: type must be one of {valid}; got {quoted(kind)}")
    # the axis of other joints has no meaning, and need not be one
    axis = None if kind in ("fixed", "floating") else _child(joint, "axis", owner)
    limit = _child(joint, "limit", owner)
    dynamics = _child(joint, "dynamics", owner)
    mimic = _child(joint, "mimic", owner)
    safety = _child(joint, "safety_controller", owner)
    return Joint(
        _text(joint, "name", owner),
        kind,
        origin=_origin(joint, owner),
        parent=_end(joint, "parent", owner),
        child=_end(joint, "child", owner),
        axis=axis and _vector(axis, "xyz", owner),
        limit=limit and Limit(*(_optional(limit, x, owner) for x in Limit._fields)),
        dynamics=dynamics
        and Dynamics(*(_number(dynamics, x, owner, 0.0) for x in Dynamics._fields)),
        mimic=mimic
        and Mimic(
            _text(mimic, "joint", owner),
            _number(mimic, "multiplier", owner, 1.0),
            _number(mimic, "offset", owner, 0.0),
        ),
        soft_gain=safety and _optional(safety, "k_velocity", owner),
    )


def _end(joint: Element, tag: str, owner: str) -> str:
    """Return the link that the parent or child of a joint names."""
    end = _child(joint, tag, owner)
    if end is None:
        raise UrdfError(f"{owner}: it has no <{tag} link='...'>")
    return _text(end, "link", owner)


def _origin(parent: Element, owner: str) -> Origin:
    """Return the origin of an element, the identity if it has none."""
    origin = _child(parent, "origin", owner)
    if origin is None:
        return Origin()
    xyz, rpy = (_vector(origin, x, owner, (0.0, 0.0, 0.0)) for x in ("xyz", "rpy"))
    text = origin.get("quat_xyzw")
    if text is None:
        return Origin(xyz, rpy)
    if origin.get("rpy") is not None:
        raise UrdfError(f"{owner}: <origin> must have rpy or quat_xyzw, not both rpy and quat_xyzw")
    x, y, z, w = _numbers(origin, "quat_xyzw", owner, 4)
    if not any((x, y, z, w)):
        raise UrdfError(f"{owner}: <origin quat_xyzw={quoted(text)}>: it must not be zero")
    return Origin(xyz, rpy, (x, y, z, w))


def _child(element: Element, tag: str, owner: str) -> Element | None:
    """Return the child element of a tag, None if there is none; raise UrdfError for several."""
    several = list(element.named(tag))
    if len(several) > 1:
        raise UrdfError(f"{owner}: it has {len(several)} elements <{tag}>; at most one is allowed")
    return several[0] if several else None


def _text(element: Element, attribute: str, owner: str) -> str:
    """Return the text of an attribute; raise UrdfError if it is absent or empty."""
    text = element.get(attribute)
    if not text:
        raise UrdfError(f"{owner}: <{element.tag}> has no attribute {attribute!r}")
    if _LEFT_OVER.search(text):
        raise UrdfError(f"{owner}: <{element.tag} {attribute}={quoted(text)}>: {EXPAND}")
    return text


def _number(element: Element, attribute: str, owner: str, absent: float | None = None) -> float:
    """Return the number of an attribute, or the one for an ``absent`` attribute."""
    if absent is not None and element.get(attribute) is None:
        return absent
    return _numbers(element, attribute, owner, 1)[0]


def _vector(element: Element, attribute: str, owner: str, absent: Vector | None = None) -> Vector:
    """Return the three numbers of an attribute, or those for an ``absent`` attribute."""
    if absent is not None and element.get(attribute) is None:
        return absent
    x, y, z = _numbers(element, attribute, owner, 3)
    return x, y, z


def _optional(element: Element, attribute: str, owner: str) -> float | None:
    """Return the number of an attribute, None if it is absent; a limit may be infinite."""
    if element.get(attribute) is None:
        return None
    return _numbers(element, attribute, owner, 1)[0]


def _numbers(element: Element, attribute: str, owner: str, count: int) -> list[float]:
    """Return ``count`` numbers, or raise UrdfError. Limits may be any float, or infinite."""
    text = element.get(attribute)
    words = _text(element, attribute, owner).split() if text != "" else []
    limit = element.tag == "limit"
    largest = sys.float_info.max if limit else LARGEST_NUMBER
    fine = all(
        (_NUMBER.fullmatch(word) and (limit or abs(float(word)) <= largest))
        or (limit and _INFINITE.fullmatch(word))
        for word in words
    )
    if len(words) != count or not fine:
        valid = "one finite number" if count == 1 else f"{count} finite numbers"
        raise UrdfError(
            f"{owner}: <{element.tag} {attribute}={quoted(text or '')}> must be {valid} of at most "
            f"{largest:g}"
        )
    return list(map(float, words))


def _check_version(element: Element, owner: str, version: str) -> None:
    """Raise UrdfError if a link or joint has what its version of URDF does not allow."""
    if version == "1.0" and any(x.get("quat_xyzw") is not None for x in element.iter()):
        raise UrdfError(
            f"{owner}: <origin quat_xyzw='...'> needs URDF 1.1, and this is 1.0: state "
            "<robot version='1.1'>, or write rpy='...'"
        )
    if version == "1.2" and element.get("type") in ("revolute", "prismatic"):
        for limit in element.named("limit"):
            for end in ("lower", "upper"):
                if limit.get(end) is None:
                    raise UrdfError(
                        f"{owner}: <limit> has no attribute {end!r}, which URDF 1.2 requires of "
                        f"{element.get('type')} joints"
                    )


def _refuse_xacro(where: str, document: Element) -> None:
    """Raise UrdfError if a description has to be expanded by xacro."""
    for element in document.iter():
        if element.prefix == "xacro":
            macros = [x.get("name") for x in document.named("macro") if x.prefix == "xacro"]
            if macros and not any(document.named("link", "joint")):
                raise UrdfError(
                    f"{where}: it only defines xacro macros, {listed(macros)}, and describes no "
                    "robot; take the file that includes it and calls them"
                )
            raise UrdfError(
                f"{where}: it contains <xacro:{element.tag}> in line {element.line}; {EXPAND}"
            )
