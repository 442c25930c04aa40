# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The elements of a URDF that dynamics needs, read and checked.

Required names are present, numbers are finite, except for limits, and optional elements that are
absent are None. The connections of links and joints are checked in
:mod:`mbs_dynamics.model.urdf_tree`.
"""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import UrdfError, quoted
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.joint import Limits
from mbs_dynamics.model.urdf_xml import OTHER_FORMATS, Element, document_of

Vector = tuple[float, float, float]

ONE_FREEDOM = ("revolute", "continuous", "prismatic")
JOINT_TYPES = (*ONE_FREEDOM, "fixed", "planar", "floating", "spherical")

VERSIONS = ("1", "1.0", "1.1", "1.2")
"""Versions of URDF. In 1.2 joints with limits must state both ends; before, an absent one is 0."""

TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
"""Places of the attributes of a tensor of inertia."""

LARGEST_NUMBER = 1e50
"""Largest number that is read, so that products are finite; limits may be any float."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


class Origin(NamedTuple):
    """A pose, by a quaternion of any length if there is one, else by three angles."""

    xyz: Vector = (0.0, 0.0, 0.0)
    """m."""
    rpy: Vector = (0.0, 0.0, 0.0)
    """rad, about the fixed axes x, y, z in turn."""
    quat_xyzw: tuple[float, float, float, float] | None = None

    def pose(self) -> FloatArray:
        """Return the pose (4, 4)."""
        if self.quat_xyzw is not None:
            x = np.array(self.quat_xyzw)
            return np.asarray(se3.pose(so3.from_quaternion(x / np.linalg.norm(x)), self.xyz))
        (sr, sp, sy), (cr, cp, cy) = np.sin(self.rpy), np.cos(self.rpy)
        R = [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
        return np.asarray(se3.pose(R, self.xyz))


class Inertial(NamedTuple):
    """The inertia of a link; the origin is at its centre of mass."""

    origin: Origin
    mass: float | None
    """kg."""
    inertia: FloatArray | None
    """(3, 3) tensor about the centre of mass, in kg m^2."""


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
    limit: Limits | None
    """With ``k_velocity`` of the ``safety_controller``."""
    dynamics: Dynamics | None
    mimic: Mimic | None


def read(
    source: str | bytes | os.PathLike[str],
) -> tuple[str, str, dict[str, Inertial | None], dict[str, Joint]]:
    """Return the name of the source for messages, the name of the robot, its links and joints.

    Links, None if they state no inertia, and joints are by name, in the order of the file.
    ``source`` is a path, or XML text: a string whose first non-blank character is "<", or bytes.
    Raises UrdfError, naming the source, the element and the attribute.
    """
    where, document = document_of(source)
    if document.tag != "robot":
        raise UrdfError(
            f"{where}: the root element must be <robot>; got <{document.tag}>. {OTHER_FORMATS}"
        )
    for element in document.iter():
        if element.prefix == "xacro":
            raise UrdfError(
                f"{where}: it contains <xacro:{element.tag}> in line {element.line}; expand it "
                "with xacro first, or give the .xacro file to a command or launch file"
            )
    if (version := document.get("version") or "1.0") not in VERSIONS:
        raise UrdfError(f"{where}: the version of a URDF must be 1.0 to 1.2; got {quoted(version)}")
    name = document.get("name")
    if not name:
        raise UrdfError(f"{where}: the robot has no name; write <robot name='...'>")
    links: dict[str, Inertial | None] = {}
    joints: dict[str, Joint] = {}
    for element in document.named("link", "joint"):
        label = element.get("name")
        if not label:
            raise UrdfError(f"{where}: the <{element.tag}> in line {element.line} has no name")
        if label in (links if element.tag == "link" else joints):
            raise UrdfError(f"{where}: two {element.tag}s have the name {label!r}")
        reader = Reader(f"{where}: {element.tag} {label!r}")
        if element.tag == "link":
            links[label] = reader.inertial(element)
        else:
            joints[label] = joint = reader.joint(element)
            if version == "1.2" and joint.type in ("revolute", "prismatic"):
                for end in ("lower", "upper"):
                    if getattr(joint.limit, end, None) is None:
                        raise reader.error(f"<limit> must state {end!r} in version 1.2 of URDF")
    return where, name, links, joints


class Reader:
    """Reader of the elements of one ``owner``, which its errors name."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def error(self, message: str) -> UrdfError:
        """Return an error about the owner."""
        return UrdfError(f"{self.owner}: {message}")

    def inertial(self, link: Element) -> Inertial | None:
        """Return the inertia of a link, None if it states none."""
        inertial = self.child(link, "inertial")
        if inertial is None:
            return None
        mass, inertia = self.child(inertial, "mass"), self.child(inertial, "inertia")
        tensor = None
        if inertia is not None:
            tensor = np.zeros((3, 3))
            for entry, (i, j) in TENSOR.items():
                tensor[i, j] = tensor[j, i] = self.number(inertia, entry)
        return Inertial(self.origin(inertial), mass and self.number(mass, "value"), tensor)

    def joint(self, joint: Element) -> Joint:
        """Return a joint."""
        kind = self.text(joint, "type")
        if kind not in JOINT_TYPES:
            raise self.error(f"type must be one of {', '.join(JOINT_TYPES)}; got {quoted(kind)}")
        # these joints have no axis, and what is stated need not be one
        axis = None if kind in ("fixed", "floating") else self.child(joint, "axis")
        dynamics, mimic = self.child(joint, "dynamics"), self.child(joint, "mimic")
        return Joint(
            self.text(joint, "name"),
            kind,
            self.origin(joint),
            self.end(joint, "parent"),
            self.end(joint, "child"),
            axis=axis and self.vector(axis, "xyz"),
            limit=self.limits(joint),
            dynamics=dynamics
            and Dynamics(*(self.number(dynamics, x, 0.0) for x in Dynamics._fields)),
            mimic=mimic
            and Mimic(
                self.text(mimic, "joint"),
                self.number(mimic, "multiplier", 1.0),
                self.number(mimic, "offset", 0.0),
            ),
        )

    def end(self, joint: Element, tag: str) -> str:
        """Return the link that the parent or child of a joint names."""
        end = self.child(joint, tag)
        if end is None:
            raise self.error(f"it has no <{tag} link='...'>")
        return self.text(end, "link")

    def limits(self, joint: Element) -> Limits | None:
        """Return the limits of a joint, None if it states none."""
        limit, safety = self.child(joint, "limit"), self.child(joint, "safety_controller")
        stated = {
            x: self.number(limit, x)
            for x in ("lower", "upper", "velocity", "effort")
            if limit and limit.get(x) is not None
        }
        if safety and safety.get("k_velocity") is not None:
            stated["soft_gain"] = self.number(safety, "k_velocity")
        return Limits(**stated) if limit or stated else None

    def origin(self, parent: Element) -> Origin:
        """Return the origin of an element, the identity if it has none."""
        origin = self.child(parent, "origin")
        if origin is None:
            return Origin()
        xyz, rpy = (self.vector(origin, x, (0.0, 0.0, 0.0)) for x in ("xyz", "rpy"))
        if origin.get("quat_xyzw") is None:
            return Origin(xyz, rpy)
        if origin.get("rpy") is not None:
            raise self.error("<origin> must have rpy or quat_xyzw, not both rpy and quat_xyzw")
        x, y, z, w = self.numbers(origin, "quat_xyzw", 4)
        if not any((x, y, z, w)):
            raise self.error("quat_xyzw of <origin> must not be zero")
        return Origin(xyz, rpy, (x, y, z, w))

    def child(self, element: Element, tag: str) -> Element | None:
        """Return the child element of a tag, None if there is none; raise UrdfError for several."""
        several = list(element.named(tag))
        if len(several) > 1:
            raise self.error(f"it has {len(several)} elements <{tag}>; at most one is allowed")
        return several[0] if several else None

    def text(self, element: Element, attribute: str) -> str:
        """Return the text of an attribute; raise UrdfError if it is absent or empty."""
        text = element.get(attribute)
        if not text:
            raise self.error(f"<{element.tag}> has no attribute {attribute!r}")
        return text

    def number(self, element: Element, attribute: str, absent: float | None = None) -> float:
        """Return the number of an attribute, or the one for an ``absent`` attribute."""
        if absent is not None and element.get(attribute) is None:
            return absent
        return self.numbers(element, attribute, 1)[0]

    def vector(self, element: Element, attribute: str, absent: Vector | None = None) -> Vector:
        """Return the three numbers of an attribute, or those for an ``absent`` attribute."""
        if absent is not None and element.get(attribute) is None:
            return absent
        x, y, z = self.numbers(element, attribute, 3)
        return x, y, z

    def numbers(self, element: Element, attribute: str, count: int) -> list[float]:
        """Return ``count`` numbers, or raise UrdfError. Limits may be any float, or infinite."""
        text = element.get(attribute)
        words = self.text(element, attribute).split() if text != "" else []
        limit = element.tag == "limit"
        largest = sys.float_info.max if limit else LARGEST_NUMBER
        fine = all(
            (_NUMBER.fullmatch(word) and (limit or abs(float(word)) <= largest))
            or (limit and _INFINITE.fullmatch(word))
            for word in words
        )
        if len(words) != count or not fine:
            valid = "one finite number" if count == 1 else f"{count} finite numbers"
            given = f"<{element.tag} {attribute}={quoted(text or '')}>"
            raise self.error(f"{given} must be {valid} of at most {largest:g}")
        return list(map(float, words))
