# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reading URDF files: from a path or text to checked elements.

This uses the standard library. The import of ``urdf_parser_py`` and lxml takes three times as long
as reading a robot; they accept NaN, do not distinguish "0" from an absent value, and reject real
robots because of textures and transmissions. The tests compare with them.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple
from xml.parsers import expat

from mbs_dynamics.errors import ArgumentError, UrdfError, listed, quoted
from mbs_dynamics.files import BYTE_ORDER_MARKS

EXPAND = "expand it with xacro first, or give the .xacro file to a command or launch file"

BLANK = "\ufeff \t\r\n"
"""Characters that may come before a document."""

VERSIONS = ("1.0", "1.1", "1.2")
"""Versions of URDF, as the parser of ROS reads them; 1.0 where none is stated."""

_ANOTHER = "take the URDF from which it was made, or convert it"

FORMATS = {
    "sdf": f"an SDF, the format of Gazebo: {_ANOTHER}, for example by sdf2urdf of pysdf",
    "mujoco": "an MJCF, the format of MuJoCo: mbs_dynamics.Model.from_mjcf reads it",
    "mujocoinclude": "a part of an MJCF: mbs_dynamics.Model.from_mjcf reads the file with <mujoco>",
    "COLLADA": "a COLLADA mesh, which belongs in the <mesh> of a link",
}
"""Other formats by their root element."""

_USD = f"a USD: {_ANOTHER}, for example by the URDF exporter of Isaac Sim"

BEGINNINGS = {
    "#usda": _USD,
    "PXR-USDC": _USD,
    "PK\x03\x04": "an archive (zip, or USDZ, a packed USD): give the path of a URDF",
    "#VRML": f"a VRML or a PROTO, the format of Webots: {_ANOTHER}",
}
"""Other formats by their first characters."""

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating", "spherical")

_LARGEST = 1e50
"""No number is larger, so that products are finite; but limits may be the largest float."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_LEFT_OVER = re.compile(r"\$[({]")

LARGEST_SIZE = 32_000_000
"""Bytes of a description; the largest known have one hundredth of these limits."""
MOST_ELEMENTS = 200_000
DEEPEST = 200
LONGEST_NUMBER = 1000
"""Characters of a number; the largest float has 309 digits."""

_MARKS = dict(BYTE_ORDER_MARKS) | {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}
"""First bytes of texts, and their encodings."""

_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([\w.-]{1,40})["']""")
_NO_CHARACTERS = ("idna", "punycode", "undefined", "utf-7", "unicode_escape", "raw_unicode_escape")
"""Encodings of Python that are none of files."""


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
_JOINT_CHILDREN = (
    "origin",
    "parent",
    "child",
    "axis",
    "limit",
    "dynamics",
    "mimic",
    "safety_controller",
)

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
    "safety_controller": _Form(numbers=("k_velocity", "k_position"), absent=None),
}


class Element:
    """An XML element; its tag is without the prefix of a namespace, which need not be declared."""

    def __init__(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.prefix, _, self.tag = name.rpartition(":")
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
    ``joint.limit.lower``. Every required name is present, every number is finite, except for
    limits, and optional parts that are absent are None. The connections of links and joints are not
    checked. Raises UrdfError, naming the source, the element and the attribute.
    """
    where, document = document_of(source)
    if document.tag != "robot":
        raise UrdfError(f"{where}: the root element must be <robot>; got <{document.tag}>")
    _refuse_xacro(where, document)
    name = document.get("name")
    if not name:
        raise UrdfError(f"{where}: the robot has no name; valid is <robot name='...'>")
    version = document.get("version", VERSIONS[0])
    if version not in VERSIONS:
        raise UrdfError(
            f"{where}: <robot version={quoted(version)}> is unknown; the versions of URDF are "
            f"{', '.join(VERSIONS)}"
        )
    elements: dict[str, list[Any]] = {"link": [], "joint": []}
    for element in document.named("link", "joint"):
        if not element.get("name"):
            raise UrdfError(f"{where}: the <{element.tag}> in line {element.line} has no name")
        owner = f"{where}: {element.tag} {element.get('name')!r}"
        elements[element.tag].append(_checked(element, owner))
        _check_version(element, owner, version)
        if element.tag == "joint" and element.get("type") not in JOINT_TYPES:
            raise UrdfError(
                f"{owner} has the unknown type {element.get('type')!r}; valid are "
                f"{', '.join(JOINT_TYPES)}"
            )
    return where, SimpleNamespace(name=name, links=elements["link"], joints=elements["joint"])


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


def text_of(source: str | bytes | os.PathLike[str]) -> str:
    """Return the text of a URDF in any encoding; raise UrdfError if it cannot be read."""
    return _content(source)[1].lstrip(BLANK)


def document_of(source: str | bytes | os.PathLike[str]) -> tuple[str, Element]:
    """Return the name of the source for messages, and the root element of its XML.

    Raises UrdfError if it cannot be read or is not well-formed XML.
    """
    where, text = _content(source)
    document = _parsed(where, text.lstrip(BLANK))
    if document.tag in FORMATS:
        raise UrdfError(f"{where}: this is no URDF, but {FORMATS[document.tag]}")
    return where, document


def _content(source: object) -> tuple[str, str]:
    """Return a name for the source, and its text; raise UrdfError for the text of other formats."""
    where, text = _read(source)
    begin = text[:100].lstrip(BLANK)
    for mark, other in BEGINNINGS.items():
        if begin.startswith(mark):
            raise UrdfError(f"{where}: this is no URDF, but {other}")
    return where, text


def _read(source: object) -> tuple[str, str]:
    if isinstance(source, bytes):
        return "URDF text", _decoded("URDF text", source)
    if isinstance(source, str):
        text = source.lstrip(BLANK)
        if text.startswith("<") or text.startswith(tuple(BEGINNINGS)):
            return "URDF text", text
        if not text:
            raise UrdfError("the URDF is an empty string; valid is a path or XML text")
    elif not isinstance(source, os.PathLike):
        kind = type(source).__name__
        raise ArgumentError(f"source must be a path or XML text of a URDF; got {kind}: {source!r}")
    where = f"URDF {os.fspath(source)}"
    try:
        with open(source, "rb") as file:
            data = file.read(LARGEST_SIZE + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise UrdfError(
            f"cannot read the URDF {quoted(os.fspath(source))}: {reason}; valid is the path of a "
            "file, or XML text, which begins with '<'"
        ) from error
    return where, _decoded(where, data)


def _decoded(where: str, data: bytes) -> str:
    """Return the text of bytes, in the encoding that their first bytes or declaration state.

    Without a declaration, text that is not UTF-8 is read byte by byte, as urdfdom does, which suits
    files whose names are ASCII.
    """
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    declared = _ENCODING.match(data)
    name = marked or (declared[1].decode() if declared else "utf-8")
    try:
        if not marked and codecs.lookup(name).name.startswith(("utf-16", "utf-32")):
            name = "utf-8"  # such a text could not be read so far
        if codecs.lookup(name).name in _NO_CHARACTERS:
            raise LookupError(f"unknown encoding: {name}")
        return data.decode(name)
    except UnicodeDecodeError as error:
        if codecs.lookup(name).name == "utf-8":
            return data.decode("latin-1")
        raise UrdfError(f"{where}: it is not in its encoding {name}: {error.reason}") from error
    except LookupError as error:
        raise UrdfError(f"{where}: {error}") from error


def _parsed(where: str, text: str) -> Element:
    """Return the root element. Nothing is loaded, and no entity of the document is expanded."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > LARGEST_SIZE:
        raise UrdfError(
            f"{where}: it has more than {LARGEST_SIZE / 1e6:g} MB, the most that is read"
        )
    parser = expat.ParserCreate("utf-8")
    around = Element("", {}, 0)
    path = [around]
    prefixes: dict[str, str] = {}
    count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST_ELEMENTS or len(path) > DEEPEST:
            raise UrdfError(
                f"{where}: it has too many elements; valid are at most {MOST_ELEMENTS} in all, and "
                f"{DEEPEST} within one another"
            )
        for key in attributes:
            if key.startswith("xmlns:") and attributes[key].endswith("xacro"):
                prefixes[key[6:]] = "xacro"
        element = Element(name, attributes, parser.CurrentLineNumber)
        element.prefix = prefixes.get(element.prefix, element.prefix)
        path.append(element)
        path[-2].children.append(element)

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
    contents: dict[str, Any] = {}
    for attribute in (*form.names, *form.numbers):
        text = element.get(attribute)
        if text and _LEFT_OVER.search(text):
            raise UrdfError(f"{owner}: <{tag} {attribute}={quoted(text)}>: {EXPAND}")
        if text is not None and attribute in form.numbers:
            what = f"{owner}: <{tag} {attribute}={quoted(text)}>"
            contents[attribute] = _numbers(text, form.each, what, limit=tag == "limit")
        elif text or (attribute in form.numbers and form.absent != "required"):
            contents[attribute] = text or form.absent
        else:
            raise UrdfError(f"{owner}: <{tag}> has no attribute {attribute!r}")
    if tag == "origin":
        contents["quat_xyzw"] = _quaternion(element, owner)
    for child in form.children:
        several = list(element.named(child))
        if child == "axis" and element.get("type") in ("fixed", "floating"):
            several = []  # it has no meaning, and need not be one
        if len(several) > 1:
            raise UrdfError(f"{owner}: it has {len(several)} elements <{child}>; valid is one")
        contents[child] = _checked(several[0], owner) if several else None
        if not several and child in ("parent", "child"):
            raise UrdfError(f"{owner}: it has no <{child} link='...'>")
    return SimpleNamespace(**contents) if len(contents) > 1 else contents.popitem()[1]


def _quaternion(origin: Element, owner: str) -> tuple[float, ...] | None:
    """Return the quaternion (x, y, z, w) of an origin, of any length, or None if it has none."""
    text = origin.get("quat_xyzw")
    if text is None:
        return None
    if origin.get("rpy") is not None:
        raise UrdfError(f"{owner}: <origin> has both rpy and quat_xyzw; valid is one of them")
    what = f"{owner}: <origin quat_xyzw={quoted(text)}>"
    quaternion: tuple[float, ...] = _numbers(text, 4, what, limit=False)
    if not any(quaternion):
        raise UrdfError(f"{what}: a quaternion must not be zero")
    return quaternion


def _numbers(text: str, count: int, what: str, limit: bool) -> Any:
    """Return a number, or a tuple of ``count`` numbers, or raise UrdfError.

    A ``limit`` may be any float, or infinite.
    """
    words = text.split(maxsplit=count)
    largest = sys.float_info.max if limit else _LARGEST
    fine = all(
        len(word) <= LONGEST_NUMBER
        and (
            (_NUMBER.fullmatch(word) and (limit or abs(float(word)) <= largest))
            or (limit and _INFINITE.fullmatch(word))
        )
        for word in words
    )
    if len(words) != count or not fine:
        valid = "one finite number" if count == 1 else f"{count} finite numbers"
        raise UrdfError(f"{what}: valid is {valid}, at most {largest:g}")
    numbers = tuple(map(float, words))
    return numbers if count > 1 else numbers[0]
