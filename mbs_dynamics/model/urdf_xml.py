# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reading URDF files: from a path or text to elements of which every one has been checked.

``urdf_parser_py`` accepts NaN, loses the difference between "0" and "not stated", prints warnings
and rejects real robots for textures and transmissions. It is therefore given a copy of the document
with nothing in it but what dynamics needs, and only after every name and number has been checked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree
from urdf_parser_py import urdf

from mbs_dynamics.errors import ArgumentError, UrdfError

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")

NOT_STATED = "nan"
"""Stands in the copy for a number that the file does not state; a NaN in the file is an error."""

_LARGEST = 1e50
"""No number is larger, so that products are finite; but limits may be the largest float."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class _Form:
    """What is copied of an element."""

    names: tuple[str, ...] = ()
    """Attributes of text, all required."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Attributes of numbers, and how many numbers each holds."""
    absent: str | None = None
    """What stands in the copy for an absent attribute of ``numbers``; None if it is required."""
    children: tuple[str, ...] = ()
    """Child elements, each at most once."""


_LEFT_OUT = ""
_TENSOR = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMITS = ("lower", "upper", "velocity", "effort")
_JOINT_CHILDREN = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic")

_FORMS = {
    "link": _Form(names=("name",), children=("inertial",)),
    "inertial": _Form(children=("origin", "mass", "inertia")),
    "mass": _Form(numbers={"value": 1}),
    "inertia": _Form(numbers=dict.fromkeys(_TENSOR, 1)),
    "joint": _Form(names=("name", "type"), children=_JOINT_CHILDREN),
    "origin": _Form(numbers={"xyz": 3, "rpy": 3}, absent=_LEFT_OUT),
    "parent": _Form(names=("link",)),
    "child": _Form(names=("link",)),
    "axis": _Form(numbers={"xyz": 3}),
    "limit": _Form(numbers=dict.fromkeys(_LIMITS, 1), absent=NOT_STATED),
    "dynamics": _Form(numbers={"damping": 1, "friction": 1}, absent=_LEFT_OUT),
    "mimic": _Form(names=("joint",), numbers={"multiplier": 1, "offset": 1}, absent=_LEFT_OUT),
}


def read(source: str | bytes | os.PathLike[str]) -> tuple[str, Any]:
    """Return what to call the source in messages, and its ``urdf_parser_py.urdf.Robot``.

    ``source`` is a path, or XML text: a string whose first non-blank character is "<", or bytes.
    In the robot that is returned every name is there and every number is finite; a limit that the
    file does not state is NaN, and so is a mass. Nothing is said yet about how links and joints
    hang together.

    Raises UrdfError, naming the source, the element and the attribute.
    """
    where, document = document_of(source)
    if etree.QName(document).localname != "robot":
        raise UrdfError(f"{where}: the root element must be <robot>; got <{document.tag}>")
    name = document.get("name")
    if not name:
        raise UrdfError(f"{where}: the robot has no name; valid is <robot name='...'>")
    for element in document.iter("{*}*"):
        namespace = etree.QName(element).namespace or ""
        if namespace.endswith("xacro"):
            tag = f"<xacro:{etree.QName(element).localname}>"
            raise UrdfError(f"{where}: it contains {tag}; expand it with xacro first")
    copy = etree.Element("robot", name=name)
    for element in document.iterchildren("{*}link", "{*}joint"):
        tag = etree.QName(element).localname
        if not element.get("name"):
            raise UrdfError(f"{where}: the <{tag}> in line {element.sourceline} has no name")
        owner = f"{where}: {tag} {element.get('name')!r}"
        _copy(element, copy, owner)
        if tag == "joint" and element.get("type") not in JOINT_TYPES:
            raise UrdfError(
                f"{owner} has the unknown type {element.get('type')!r}; valid are "
                f"{', '.join(JOINT_TYPES)}"
            )
    return where, urdf.Robot.from_xml_string(etree.tostring(copy))


def document_of(source: str | bytes | os.PathLike[str]) -> tuple[str, etree._Element]:
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
        return f"URDF {os.fspath(source)}", Path(source).read_bytes(), None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        shown = os.fspath(source)
        shown = shown if len(shown) <= 200 else shown[:200] + "..."
        reason = getattr(error, "strerror", None) or error
        raise UrdfError(
            f"cannot read the URDF {shown!r}: {reason}; valid is the path of a file, or XML text, "
            "which begins with '<'"
        ) from error


def _parsed(where: str, data: bytes, encoding: str | None) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        encoding=encoding,
    )
    refused = f"{where}: its DOCTYPE declares or loads XML entities, which are refused"
    try:
        document = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if b"<!ENTITY" in data.replace(b"\0", b""):  # in UTF-16 as well
            raise UrdfError(f"{refused} ({error.msg})") from error
        raise UrdfError(f"{where}: it is not well-formed XML: {error.msg}") from error
    dtd: Any = document.getroottree().docinfo.internalDTD
    if dtd is not None and (dtd.system_url or any(True for _ in dtd.iterentities())):
        raise UrdfError(refused)
    return document


def _copy(element: etree._Element, parent: etree._Element, owner: str) -> None:
    """Append the checked copy of an element; ``owner`` is the link or joint, for messages."""
    tag = etree.QName(element).localname
    form = _FORMS[tag]
    copy = etree.SubElement(parent, tag)
    for attribute in form.names:
        name = element.get(attribute)
        if not name:
            raise UrdfError(f"{owner}: <{tag}> has no attribute {attribute!r}")
        copy.set(attribute, name)
    for attribute, count in form.numbers.items():
        text = element.get(attribute)
        if text is not None:
            largest = sys.float_info.max if tag == "limit" else _LARGEST
            what = f"{owner}: <{tag} {attribute}={text!r}>"
            copy.set(attribute, _numbers(text, count, largest, what))
        elif form.absent is None:
            raise UrdfError(f"{owner}: <{tag}> has no attribute {attribute!r}")
        elif form.absent is not _LEFT_OUT:
            copy.set(attribute, form.absent)
    if tag == "origin" and element.get("quat_xyzw") is not None:
        raise UrdfError(f"{owner}: <origin quat_xyzw='...'> is not supported; valid is rpy='...'")
    for child in form.children:
        found = list(element.iterchildren("{*}" + child))
        if len(found) > 1:
            raise UrdfError(f"{owner}: it has {len(found)} elements <{child}>; valid is one")
        for one in found:
            _copy(one, copy, owner)
        if not found and child in ("parent", "child"):
            raise UrdfError(f"{owner}: it has no <{child} link='...'>")
        if not found and child == "mass":
            etree.SubElement(copy, child, value=NOT_STATED)


def _numbers(text: str, count: int, largest: float, what: str) -> str:
    """Return the text of ``count`` numbers unchanged, or raise UrdfError."""
    words = text.split()
    fine = all(_NUMBER.fullmatch(word) and abs(float(word)) <= largest for word in words)
    if len(words) != count or not fine:
        valid = "one finite number" if count == 1 else f"{count} finite numbers"
        raise UrdfError(f"{what}: valid is {valid}, at most {largest:g}")
    return text
