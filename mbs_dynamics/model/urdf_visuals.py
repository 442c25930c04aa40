# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of the links of a URDF. Faulty shapes are reported and omitted; they raise nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import quoted, shortened
from mbs_dynamics.model.urdf import pose_of
from mbs_dynamics.model.urdf_xml import Element, document_of

Rgba = tuple[float, float, float, float]


class Box(NamedTuple):
    """A box centred at the origin."""

    size: FloatArray
    """(3,) in m."""


class Cylinder(NamedTuple):
    """A cylinder along the z axis, centred at the origin."""

    radius: float
    length: float
    """In m."""


class Capsule(NamedTuple):
    """A cylinder along the z axis, centred at the origin, with a half sphere at either end."""

    radius: float
    length: float
    """Of the cylinder, in m."""


class Sphere(NamedTuple):
    """A sphere centred at the origin."""

    radius: float


class Mesh(NamedTuple):
    """A mesh file."""

    filename: str
    """As in the URDF: ``package://name/meshes/base.stl``."""
    scale: FloatArray
    """(3,)."""


Shape = Box | Cylinder | Capsule | Sphere | Mesh


class Visual(NamedTuple):
    """A shape of a link."""

    link: str
    placement: FloatArray
    """(4, 4) pose in the frame of the link."""
    shape: Shape
    colour: Rgba | None
    """None if the URDF states none."""


class Visuals(NamedTuple):
    """The shapes of all links."""

    visuals: tuple[Visual, ...]
    problems: tuple[str, ...]
    """One message for each faulty shape, which is omitted."""


def visuals_of(source: str | bytes | os.PathLike[str], *tags: str) -> Visuals:
    """Return the shapes of the links of a URDF, given as a path or as XML text.

    ``tags`` are "visual" (the default), "collision", or both: each link has the shapes of the first
    tag that it contains. Raises UrdfError if the URDF cannot be read or is not well-formed XML.
    """
    _, document = document_of(source)
    materials: dict[str, Rgba] = {}
    for element in document.iter():
        if element.tag == "material" and (colour := _colour(element)) is not None:
            materials.setdefault(element.get("name", ""), colour)
    visuals, problems = [], []
    for link in document.named("link"):
        name = link.get("name", "")
        elements = [list(link.named(tag)) for tag in tags or ("visual",)]
        for element in next(filter(None, elements), ()):
            try:
                visuals.append(_visual(name, element, materials))
            except (ValueError, TypeError) as error:
                cause = shortened(str(error), 200)
                problems.append(f"link {quoted(name)}: a {element.tag} is not shown: {cause}")
    return Visuals(tuple(visuals), tuple(problems))


def _visual(link: str, element: Element, materials: Mapping[str, Rgba]) -> Visual:
    placement, colour, shape = np.eye(4), None, None
    plain = "0 0 0"
    for child in element.named("origin"):
        xyz, rpy = (_numbers(child.get(name, plain), 3) for name in ("xyz", "rpy"))
        quaternion = child.get("quat_xyzw")
        turn = None if quaternion is None else _numbers(quaternion, 4).tolist()
        if turn is not None and not any(turn):
            raise ValueError("its quat_xyzw must not be zero")
        placement = pose_of(xyz.tolist(), rpy.tolist(), turn)
    for child in element.named("material"):
        colour = _colour(child) or materials.get(child.get("name", ""))
    for child in element.named("geometry"):
        shape = next(_shapes(child), None)
    if shape is None:
        raise ValueError("its <geometry> is none of <box>, <cylinder>, <capsule>, <sphere>, <mesh>")
    return Visual(link, placement, shape, colour)


def _shapes(geometry: Element) -> Iterator[Shape]:
    for one in geometry.named("box"):
        yield Box(_numbers(one.get("size"), 3))
    for kind, tag in ((Cylinder, "cylinder"), (Capsule, "capsule")):
        for one in geometry.named(tag):
            yield kind(*(float(_numbers(one.get(a), 1)[0]) for a in ("radius", "length")))
    for one in geometry.named("sphere"):
        yield Sphere(float(_numbers(one.get("radius"), 1)[0]))
    for one in geometry.named("mesh"):
        filename = one.get("filename")
        if not filename:
            raise ValueError("its <mesh> has no filename")
        yield Mesh(filename, _numbers(one.get("scale", "1 1 1"), 3))


def _colour(material: Element) -> Rgba | None:
    for child in material.named("color"):
        try:
            red, green, blue, alpha = np.clip(_numbers(child.get("rgba"), 4), 0.0, 1.0).tolist()
        except (ValueError, TypeError):
            return None
        return red, green, blue, alpha
    return None


def _numbers(text: str | None, count: int) -> FloatArray:
    words = (text or "").split()
    values = np.array(words if len(words) == count else [], dtype=float)
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"{quoted(text)} must be {count} finite numbers")
    return values
