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

OTHER_FORMATS = "SDF and USD must be converted to URDF; Model.from_mjcf reads MJCF"

BLANK = "\ufeff \t\r\n"
"""Characters that may come before a document."""

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

    Nothing else is loaded, and no entity of the document is expanded. Raises UrdfError if it cannot
    be read or is not well-formed XML.
    """
    where, text = _read(source)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > LARGEST_SIZE:
        raise UrdfError(
            f"{where}: it has more than {LARGEST_SIZE / 1e6:g} MB, the most that is read"
        )
    parser = expat.ParserCreate("utf-8")
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
        raise UrdfError(f"{where}: it is not well-formed XML: {error}. {OTHER_FORMATS}") from error
    return where, around.children[0]


def _read(source: object) -> tuple[str, str]:
    """Return a name for the source, and its text."""
    where = "URDF text"
    if isinstance(source, bytes):
        text = _decoded(where, source)
    elif isinstance(source, str) and source.lstrip(BLANK).startswith("<"):
        text = source
    elif isinstance(source, str) and not source.strip(BLANK):
        raise UrdfError("the URDF must be a path or XML text; got an empty string")
    elif isinstance(source, (str, os.PathLike)):
        where = f"URDF {os.fspath(source)}"
        text = _decoded(where, _file(source))
    else:
        kind = type(source).__name__
        raise ArgumentError(f"source must be a path or XML text of a URDF; got {kind}: {source!r}")
    return where, text.lstrip(BLANK)


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


def _decoded(where: str, data: bytes) -> str:
    """Return the text of bytes, in the encoding that their first bytes or declaration state."""
    declared = _ENCODING.match(data)
    encoding = declared[1].decode() if declared else "utf-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return data.decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise UrdfError(
            f"{where}: it is not in its encoding {encoding}: {error}; save it as UTF-8, or declare "
            "its encoding"
        ) from error
