# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A URDF file in which some elements change; other elements and comments stay as they are."""

from __future__ import annotations

import os
import warnings
from typing import Any

from lxml import etree
from scipy.spatial.transform import Rotation

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.urdf_elements import TENSOR

INDENT = "  "

ANY = "{*}"
"""Wildcard for the namespace of a tag, or none."""

LIMITS = ("lower", "upper", "soft_lower_limit", "soft_upper_limit")
"""Attributes of <limit> and <safety_controller> that are positions."""


class UrdfDocument:
    """The XML of a URDF, given as a path or as text."""

    def __init__(self, source: str | os.PathLike[str]) -> None:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        if isinstance(source, str) and source.lstrip().startswith("<"):
            self.root: Any = etree.fromstring(source.encode(), parser)
        else:
            self.root = etree.parse(os.fspath(source), parser).getroot()

    def set_inertia(self, link: str, inertia: Inertia | None) -> None:
        """Give a link this inertia, or none."""
        element = self._named("link", link)
        if inertia is None:
            if (old := element.find(ANY + "inertial")) is not None:
                element.remove(old)
            return
        tensor = inertia.tensor_at_com
        inertial = etree.Element("inertial")
        etree.SubElement(inertial, "origin", xyz=_text(inertia.com), rpy="0 0 0")
        etree.SubElement(inertial, "mass", value=repr(float(inertia.mass)))
        entries = {name: repr(float(tensor[place])) for name, place in TENSOR.items()}
        etree.SubElement(inertial, "inertia", entries)
        _put(element, inertial)

    def set_dynamics(self, joint: str, damping: float, friction: float) -> None:
        """Set damping in N m s/rad or N s/m, and Coulomb friction in N m or N."""
        element = self._named("joint", joint)
        if element.find(ANY + "dynamics") is None:
            _put(element, etree.Element("dynamics"))
        dynamics = element.find(ANY + "dynamics")
        dynamics.set("damping", repr(float(damping)))
        dynamics.set("friction", repr(float(friction)))

    def set_origin(self, joint: str, pose: FloatArray, zero: float) -> None:
        """Set the origin (4, 4) of a joint, and subtract ``zero`` from its position limits."""
        element = self._named("joint", joint)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # yaw is zero at a pitch of 90 degrees
            rpy = Rotation.from_matrix(pose[:3, :3]).as_euler("xyz")
        _put(element, etree.Element("origin", xyz=_text(pose[:3, 3]), rpy=_text(rpy)))
        if element.get("type") == "continuous":
            return
        for limits in element.iterfind("*"):
            for end in LIMITS:
                if limits.get(end) is not None:
                    limits.set(end, repr(float(limits.get(end)) - zero))

    def to_bytes(self) -> bytes:
        """Return the document in UTF-8, with comments before and after its root on own lines."""
        root = self.root
        top = [*reversed([*root.itersiblings(preceding=True)]), root, *root.itersiblings()]
        header = ['<?xml version="1.0" encoding="utf-8"?>', root.getroottree().docinfo.doctype]
        parts = [line.encode() for line in header if line]
        parts += [etree.tostring(x, encoding="UTF-8", with_tail=False) for x in top]
        return b"\n".join(parts) + b"\n"

    def _named(self, tag: str, name: str) -> Any:
        """Return the link or joint with a name."""
        return next(x for x in self.root.iterfind(ANY + tag) if x.get("name") == name)


def _put(parent: Any, new: Any) -> None:
    """Put an element in the place of the one with the same tag, or behind all others."""
    old = parent.find(ANY + new.tag)
    if old is None:
        parent.append(new)
        etree.indent(parent, space=INDENT, level=1)
        return
    etree.indent(new, space=INDENT, level=2)
    new.tail = old.tail
    parent.replace(old, new)


def _text(values: FloatArray) -> str:
    return " ".join(map(repr, values.tolist()))
