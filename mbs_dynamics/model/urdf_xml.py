# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reading URDF files: from a path or text to checked elements.

This uses the standard library. The import of ``urdf_parser_py`` and lxml takes three times as long
as reading a robot; they accept NaN, do not distinguish "0" from an absent value, and reject real
robots because of textures and transmissions. The tests compare with them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple
from xml.parsers import expat

from mbs_dynamics.errors import ArgumentError, UrdfError

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")

_LARGEST = 1e50
"""No number is larger, so that products are finite; but limits may be the largest float."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class _Form(NamedTuple):
    """The parts of an element that are read. A single attribute replaces its element."""

    names: tuple[str, ...] = ()
    """Attributes of text, all required."""
    numbers: tuple[str, ...] = ()
    """Attributes of numbers."""
    each: int = 1
    """Count of numbers in each."""
    absent: Any = "required"
    """Default of absent attributes of ``numbers``; "required" if there is none."""
    children: tuple[str, ...] = ()
    """Child elements, each at most once; None if absent."""


_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMITS = ("lower", "upper", "velocity", "effort")
_JOINT_CHILDREN = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")

_FORMS = {
    "link": _Form(names=("name",), children=("inertial",)),
    "inertial": _Form(children=("origin", "mass", "inertia")),
    "mass": _Form(numbers=("value",)),
    "inertia": _Form(numbers=_TENSOR),
    "joint": _Form(names=("name", "type"), children=_JOINT_CHILDREN),
    "origin": _Form(numbers=("xyz", "rpy"), each=3, absent=(0.0, 0.0, 0.0)),
    "parent": _Form(names=("link",)),
    "child": _Form(names=("link",)),
    "axis": _Form(numbers=("xyz",), each=3),
    "limit": _Form(numbers=_LIMITS, absent=None),
    "dynamics": _Form(numbers=("damping", "friction"), absent=0.0),
    "mimic": _Form(names=("joint",), numbers=("multiplier", "offset"), absent=None),
}


class Element:
    """An XML element; its tag is without the namespace."""

    def __init__(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.namespace, _, self.tag = name.rpartition("}")
        self.get = attributes.get
        self.line = line
        self.children: list[Element] = []

    def iter(self) -> Iterator[Element]:
        """Yield the element and all below it."""
        stack = [self]
        while stack:
            yield (element := stack.pop())
            stack += reversed(element.children)

    def named(self, *tags: str) -> Iterator[Element]:
        """Yield the child elements of these tags."""
        return (child for child in self.children if child.tag in tags)


def read(source: str | bytes | os.PathLike[str]) -> tuple[str, Any]:
    """Return the name of the source for messages, and its robot: ``name``, ``links``, ``joints``.

    ``source`` is a path, or XML text: a string whose first non-blank character is "<", or bytes.
    Links and joints have the attributes in :data:`_FORMS`, such as ``link.inertial.mass`` and
    ``joint.limit.lower``. Every required name is present, every number is finite, and optional
    parts that are absent are None. The connections of links and joints are not checked.

    Raises UrdfError, naming the source, the element and the attribute.
    """
    where, document = document_of(source)
    if document.tag != "robot":
        raise UrdfError(f"{where}: the root element must be <robot>; got <{document.tag}>")
    name = document.get("name")
    if not name:
        raise UrdfError(f"{where}: the robot has no name; valid is <robot name='...'>")
    for element in document.iter():
        if element.namespace.endswith("xacro"):
            tag = f"<xacro:{element.tag}>"
            raise UrdfError(f"{where}: it contains {tag}; expand it with xacro first")
    found: dict[str, list[Any]] = {"link": [], "joint": []}
    for element in document.named("link", "joint"):
        if not element.get("name"):
            raise UrdfError(f"{where}: the <{element.tag}> in line {element.line} has no name")
        owner = f"{where}: {element.tag} {element.get('name')!r}"
        found[element.tag].append(_checked(element, owner))
        if element.tag == "joint" and element.get("type") not in JOINT_TYPES:
            raise UrdfError(
                f"{owner} has the unknown type {element.get('type')!r}; valid are "
                f"{', '.join(JOINT_TYPES)}"
            )
    return where, SimpleNamespace(name=name, links=found["link"], joints=found["joint"])


def document_of(source: str | bytes | os.PathLike[str]) -> tuple[str, Element]:
    """Return the name of the source for messages, and the root element of its XML.

    Raises UrdfError if it cannot be read or is not well-formed XML.
    """
    where, data, encoding = _content(source)
    return where, _parsed(where, data, encoding)


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
        with open(source, "rb") as file:
            return f"URDF {os.fspath(source)}", file.read(), None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        shown = os.fspath(source)
        shown = shown if len(shown) <= 200 else shown[:200] + "..."
        reason = getattr(error, "strerror", None) or error
        raise UrdfError(
            f"cannot read the URDF {shown!r}: {reason}; valid is the path of a file, or XML text, "
            "which begins with '<'"
        ) from error


def _parsed(where: str, data: bytes, encoding: str | None) -> Element:
    """Return the root element. Nothing is loaded, and no entity of the document is expanded."""
    parser = expat.ParserCreate(encoding, "}")
    around = Element("", {}, 0)
    path = [around]

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(Element(name, attributes, parser.CurrentLineNumber))
        path[-2].children.append(path[-1])

    def refuse(*_: Any) -> None:
        raise UrdfError(f"{where}: its DOCTYPE declares or loads XML entities, which are refused")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: path.pop()
    parser.EntityDeclHandler = refuse
    parser.StartDoctypeDeclHandler = lambda name, system, *_: refuse() if system else None
    try:
        parser.Parse(data, True)
    except UrdfError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # also an unknown encoding
        raise UrdfError(f"{where}: it is not well-formed XML: {error}") from error
    return around.children[0]


def _checked(element: Element, owner: str) -> Any:
    """Return the contents of an element; ``owner`` is the link or joint, for messages."""
    tag = element.tag
    form = _FORMS[tag]
    found: dict[str, Any] = {}
    for attribute in (*form.names, *form.numbers):
        text = element.get(attribute)
        if text is not None and attribute in form.numbers:
            largest = sys.float_info.max if tag == "limit" else _LARGEST
            what = f"{owner}: <{tag} {attribute}={text!r}>"
            found[attribute] = _numbers(text, form.each, largest, what)
        elif text or (attribute in form.numbers and form.absent != "required"):
            found[attribute] = text or form.absent
        else:
            raise UrdfError(f"{owner}: <{tag}> has no attribute {attribute!r}")
    if tag == "origin" and element.get("quat_xyzw") is not None:
        raise UrdfError(f"{owner}: <origin quat_xyzw='...'> is not supported; valid is rpy='...'")
    for child in form.children:
        several = list(element.named(child))
        if len(several) > 1:
            raise UrdfError(f"{owner}: it has {len(several)} elements <{child}>; valid is one")
        found[child] = _checked(several[0], owner) if several else None
        if not several and child in ("parent", "child"):
            raise UrdfError(f"{owner}: it has no <{child} link='...'>")
    return SimpleNamespace(**found) if len(found) > 1 else found.popitem()[1]


def _numbers(text: str, count: int, largest: float, what: str) -> Any:
    """Return a number, or a tuple of ``count`` numbers, or raise UrdfError."""
    words = text.split()
    fine = all(_NUMBER.fullmatch(word) and abs(float(word)) <= largest for word in words)
    if len(words) != count or not fine:
        valid = "one finite number" if count == 1 else f"{count} finite numbers"
        raise UrdfError(f"{what}: valid is {valid}, at most {largest:g}")
    numbers = tuple(map(float, words))
    return numbers if count > 1 else numbers[0]
