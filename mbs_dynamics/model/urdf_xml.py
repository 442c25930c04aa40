# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The XML of a URDF, from a path, text or bytes.

This uses the standard library. The import of ``urdf_parser_py`` and lxml takes three times as long
as reading a robot; they accept NaN, do not distinguish "0" from an absent value, and reject real
robots because of textures and transmissions. The tests compare with them.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from typing import Any, final
from xml.parsers import expat

from mbs_dynamics.errors import ArgumentError, UrdfError, quoted
from mbs_dynamics.output_files import missing_file

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, with whose mark it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks, and their encodings."""

BLANK = "\ufeff \t\r\n"
"""Characters that may come before a document."""

FORMATS = {
    "<sdf": "an SDF, the format of Gazebo: convert it, for example by sdf2urdf of pysdf",
    "<mujoco": "an MJCF, the format of MuJoCo: mbs_dynamics.Model.from_mjcf reads it",
    "<COLLADA": "a COLLADA mesh, which belongs in the <mesh> of a link",
    "#usda": "a USD: convert it, for example by the URDF exporter of Isaac Sim",
    "PXR-USDC": "a USD: convert it, for example by the URDF exporter of Isaac Sim",
    "PK\x03\x04": "an archive (zip, or USDZ, a packed USD): give the path of a URDF",
    "#VRML": "a VRML or a PROTO, the format of Webots: convert it",
}
"""Other formats by their first characters."""

LARGEST_SIZE = 32_000_000
"""Bytes of a description; the largest known have one hundredth of this."""

_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([\w.-]{1,40})["']""")


@final
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


def text_of(source: str | bytes | os.PathLike[str]) -> str:
    """Return the text of a URDF in any encoding; raise UrdfError if it cannot be read."""
    return _read(source)[1]


def document_of(source: str | bytes | os.PathLike[str]) -> tuple[str, Element]:
    """Return the name of the source for messages, and the root element of its XML.

    Raises UrdfError if it cannot be read, is another format, or is not well-formed XML.
    """
    where, text = _read(source)
    document = _parsed(where, text)
    _refuse_format(where, f"<{document.tag}")
    return where, document


def _read(source: object) -> tuple[str, str]:
    """Return a name for the source, and its text; raise UrdfError for another format."""
    where = "URDF text"
    if isinstance(source, bytes):
        text = _decoded(where, source)
    elif isinstance(source, str) and source.lstrip(BLANK).startswith(("<", *FORMATS)):
        text = source
    elif isinstance(source, str) and not source.strip(BLANK):
        raise UrdfError("the URDF must be a path or XML text; got an empty string")
    elif isinstance(source, (str, os.PathLike)):
        where = f"URDF {os.fspath(source)}"
        text = _decoded(where, _file(source))
    else:
        kind = type(source).__name__
        raise ArgumentError(f"source must be a path or XML text of a URDF; got {kind}: {source!r}")
    text = text.lstrip(BLANK)
    _refuse_format(where, text)
    return where, text


def _file(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_SIZE + 1)
    except FileNotFoundError as error:
        raise UrdfError(
            f"{missing_file(os.fspath(path))}; a URDF is given as its path, or as XML text, which "
            "begins with '<'"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise UrdfError(
            f"cannot read the URDF {quoted(os.fspath(path))}: {reason}; it must be the path of a "
            "file, or XML text, which begins with '<'"
        ) from error


def _refuse_format(where: str, text: str) -> None:
    for start, other in FORMATS.items():
        if text.startswith(start):
            raise UrdfError(f"{where}: this is no URDF, but {other}")


def _decoded(where: str, data: bytes) -> str:
    """Return the text of bytes, in the encoding that their first bytes or declaration state.

    Text that is not UTF-8, and declares no other encoding, is read byte by byte, as urdfdom does;
    this suits files whose names are ASCII.
    """
    marked = next((name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)), None)
    declared = _ENCODING.match(data)
    encoding = marked or (declared[1].decode() if declared else "utf-8")
    try:
        return data.decode(encoding)
    except LookupError as error:
        raise UrdfError(f"{where}: {error}") from error
    except UnicodeError as error:
        if encoding.lower() in ("utf-8", "utf8"):
            return data.decode("latin-1")
        raise UrdfError(f"{where}: it is not in its encoding {encoding}: {error}") from error


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

    def start(name: str, attributes: dict[str, str]) -> None:
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
