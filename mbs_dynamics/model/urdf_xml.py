# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reading URDF files: from a path or text to elements of which every one has been checked."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.parsers import expat

from mbs_dynamics.errors import ArgumentError, UrdfError
from mbs_dynamics.model.urdf_elements import (
    Dynamics,
    Inertial,
    Joint,
    Limit,
    Link,
    Mimic,
    Origin,
    Robot,
    Vector,
)

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")

_LARGEST = 1e50
"""No number is larger, so that products are finite; but limits may be the largest float."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read(source: str | bytes | os.PathLike[str]) -> tuple[str, Robot]:
    """Return what to call the source in messages, and its robot.

    ``source`` is a path, or XML text: a string whose first non-blank character is "<", or bytes.
    In the robot that is returned every name is there and every number is finite. Nothing is said
    yet about how links and joints hang together.

    Raises UrdfError, naming the source, the element and the attribute.
    """
    where, data, encoding = _content(source)
    document = _parsed(where, data, encoding)
    if document.tag != "robot":
        raise UrdfError(f"{where}: the root element must be <robot>; got <{document.tag}>")
    name = document.attributes.get("name")
    if not name:
        raise UrdfError(f"{where}: the robot has no name; valid is <robot name='...'>")
    links, joints = [], []
    for element in document.children:
        if element.tag in ("link", "joint"):
            named = element.attributes.get("name")
            if not named:
                raise UrdfError(f"{where}: the <{element.tag}> in line {element.line} has no name")
            element.owner = f"{where}: {element.tag} {named!r}"
            if element.tag == "link":
                links.append(_link(named, element))
            else:
                joints.append(_joint(named, element))
    return where, Robot(name, links, joints)


def _content(source: object) -> tuple[str, bytes, str | None]:
    """Return a name for the source, its bytes, and their encoding where it is known beforehand."""
    if isinstance(source, bytes):
        return "URDF text", source, None
    if isinstance(source, str):
        text = source.lstrip("\ufeff \t\r\n")
        if text.startswith("<"):
            return "URDF text", text.encode("utf-8", "surrogatepass"), "utf-8"
        if not text:
            raise UrdfError("the URDF is an empty string; valid is a path or XML text")
    elif not isinstance(source, os.PathLike):
        kind = type(source).__name__
        raise ArgumentError(f"source must be a path or XML text of a URDF; got {kind}: {source!r}")
    try:
        return f"URDF {os.fspath(source)}", Path(source).read_bytes(), None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        shown = os.fspath(source)
        shown = shown if len(shown) <= 200 else shown[:200] + "..."
        reason = getattr(error, "strerror", None) or error
        raise UrdfError(
            f"cannot read the URDF {shown!r}: {reason}; valid is the path of a file, or XML text, "
            "which begins with '<'"
        ) from error


class _Element:
    """An XML element, without the namespace of its name."""

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.children: list[_Element] = []
        self.owner = ""
        """The source, and the link or joint that the element belongs to, for messages."""

    def child(self, tag: str) -> _Element | None:
        """Return the child element of a name, None if there is none; raise if there are two."""
        found = [child for child in self.children if child.tag == tag]
        if len(found) > 1:
            raise UrdfError(f"{self.owner}: it has {len(found)} elements <{tag}>; valid is one")
        for child in found:
            child.owner = self.owner
            return child
        return None

    def text(self, attribute: str) -> str:
        """Return an attribute that must not be empty."""
        text = self.attributes.get(attribute)
        if not text:
            raise UrdfError(f"{self.owner}: <{self.tag}> has no attribute {attribute!r}")
        return text

    def vector(self, attribute: str, count: int, largest: float = _LARGEST) -> Vector | None:
        """Return ``count`` numbers; None if the attribute is absent."""
        text = self.attributes.get(attribute)
        if text is None:
            return None
        words = text.split()
        fine = all(_NUMBER.fullmatch(word) and abs(float(word)) <= largest for word in words)
        if len(words) != count or not fine:
            valid = "one finite number" if count == 1 else f"{count} finite numbers"
            raise UrdfError(
                f"{self.owner}: <{self.tag} {attribute}={text!r}>: valid is {valid}, at most "
                f"{largest:g}"
            )
        return tuple(map(float, words))

    def number(self, attribute: str, largest: float = _LARGEST) -> float | None:
        """Return a number; None if the attribute is absent."""
        found = self.vector(attribute, 1, largest)
        return None if found is None else found[0]

    def required(self, attribute: str, count: int) -> Vector:
        """Return ``count`` numbers of an attribute that must be there."""
        found = self.vector(attribute, count)
        if found is None:
            raise UrdfError(f"{self.owner}: <{self.tag}> has no attribute {attribute!r}")
        return found


def _parsed(where: str, data: bytes, encoding: str | None) -> _Element:
    """Return the root element of a document. Nothing is loaded, and no entity is expanded."""
    parser: Any = expat.ParserCreate(encoding, "}")
    around = _Element("", {}, 0)
    stack = [around]

    def start(name: str, attributes: dict[str, str]) -> None:
        namespace, _, tag = name.rpartition("}")
        if namespace.endswith("xacro"):
            raise UrdfError(f"{where}: it contains <xacro:{tag}>; expand it with xacro first")
        element = _Element(tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def doctype(name: str, system: str | None, public: str | None, subset: int) -> None:
        if system or subset:
            raise UrdfError(
                f"{where}: its DOCTYPE declares or loads something, as XML entities are, which is "
                "refused"
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: stack.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except UrdfError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # or an encoding that is unknown
        raise UrdfError(f"{where}: it is not well-formed XML: {error}") from error
    return around.children[0]


def _link(name: str, element: _Element) -> Link:
    inertial = element.child("inertial")
    if inertial is None:
        return Link(name, None)
    origin = _origin(inertial.child("origin"))
    mass, inertia = inertial.child("mass"), inertial.child("inertia")
    tensor = None
    if inertia is not None:
        entries = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        xx, xy, xz, yy, yz, zz = (inertia.required(entry, 1)[0] for entry in entries)
        tensor = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    stated = None if mass is None else mass.required("value", 1)[0]
    return Link(name, Inertial(origin, stated, tensor))


def _joint(name: str, element: _Element) -> Joint:
    kind = element.text("type")
    if kind not in JOINT_TYPES:
        raise UrdfError(
            f"{element.owner} has the unknown type {kind!r}; valid are {', '.join(JOINT_TYPES)}"
        )
    axis = element.child("axis")
    return Joint(
        name,
        kind,
        _end(element, "parent"),
        _end(element, "child"),
        _origin(element.child("origin")),
        (1.0, 0.0, 0.0) if axis is None else axis.required("xyz", 3),
        _limit(element.child("limit")),
        _dynamics(element.child("dynamics")),
        _mimic(element.child("mimic")),
    )


def _end(joint: _Element, which: str) -> str:
    """Return the name of the parent or child link."""
    found = joint.child(which)
    if found is None:
        raise UrdfError(f"{joint.owner}: it has no <{which} link='...'>")
    return found.text("link")


def _origin(element: _Element | None) -> Origin:
    if element is None:
        return Origin()
    if "quat_xyzw" in element.attributes:
        raise UrdfError(
            f"{element.owner}: <origin quat_xyzw='...'> is not supported; valid is rpy='...'"
        )
    nothing = Origin()
    return Origin(element.vector("xyz", 3) or nothing.xyz, element.vector("rpy", 3) or nothing.rpy)


def _limit(element: _Element | None) -> Limit | None:
    if element is None:
        return None
    return Limit(*(element.number(bound, sys.float_info.max) for bound in Limit._fields))


def _dynamics(element: _Element | None) -> Dynamics | None:
    if element is None:
        return None
    return Dynamics(*(element.number(what) or 0.0 for what in Dynamics._fields))


def _mimic(element: _Element | None) -> Mimic | None:
    if element is None:
        return None
    multiplier = element.number("multiplier")
    return Mimic(
        element.text("joint"),
        1.0 if multiplier is None else multiplier,
        element.number("offset") or 0.0,
    )
