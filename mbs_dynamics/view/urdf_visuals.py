# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of links, and their reader for URDF, which reports and omits faulty shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import UrdfError, quoted
from mbs_dynamics.model.urdf_elements import Reader
from mbs_dynamics.model.urdf_xml import Element, document_of

Rgba = tuple[float, float, float, float]

IntArray = NDArray[np.integer]


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
    """Length of the cylinder in m."""


class Sphere(NamedTuple):
    """A sphere centred at the origin."""

    radius: float


class Mesh(NamedTuple):
    """A mesh file."""

    filename: str
    """Path or address as in a URDF, such as ``package://name/meshes/base.stl``."""
    scale: FloatArray
    """(3,)."""


class Triangles(NamedTuple):
    """A mesh in memory."""

    vertices: FloatArray
    """(k, 3) in m."""
    faces: IntArray
    """(m, 3) rows of the vertices, counterclockwise seen from outside."""


Shape = Box | Cylinder | Capsule | Sphere | Mesh | Triangles

SHAPES = ("box", "cylinder", "capsule", "sphere", "mesh")
"""The XML tags of shapes."""


class Visual(NamedTuple):
    """A shape of a link."""

    link: str
    """A link, a body or a frame of the model."""
    placement: FloatArray
    """(4, 4) pose in the frame of the link."""
    shape: Shape
    colour: Rgba | None = None
    """Red, green, blue and opacity from 0 to 1; None if the description states none."""


class Visuals(NamedTuple):
    """The shapes of all links."""

    visuals: tuple[Visual, ...]
    problems: tuple[str, ...]
    """One message for each faulty shape, which is omitted."""


def visuals_of(source: str | bytes | os.PathLike[str]) -> Visuals:
    """Return the visual shapes of the links of a URDF, given as a path or as XML text.

    Raises UrdfError if the URDF cannot be read or is not well-formed XML.
    """
    _, document = document_of(source)
    materials: dict[str, Rgba] = {}
    for element in document.iter():
        if element.tag == "material" and (colour := _colour(element)) is not None:
            materials.setdefault(element.get("name", ""), colour)
    visuals, problems = [], []
    for link in document.named("link"):
        name = link.get("name", "")
        reader = Reader(f"link {quoted(name)}: a visual is not shown")
        for element in link.named("visual"):
            try:
                visuals.append(_visual(reader, name, element, materials))
            except UrdfError as error:
                problems.append(str(error))
    return Visuals(tuple(visuals), tuple(problems))


def _visual(reader: Reader, link: str, element: Element, materials: Mapping[str, Rgba]) -> Visual:
    colour, shapes = None, []
    for child in element.named("material"):
        colour = _colour(child) or materials.get(child.get("name", ""))
    for child in element.named("geometry"):
        shapes = [_shape(reader, each) for each in child.named(*SHAPES)]
    if not shapes:
        raise reader.error(f"its <geometry> is none of {', '.join(f'<{tag}>' for tag in SHAPES)}")
    return Visual(link, reader.origin(element).pose(), shapes[0], colour)


def _shape(reader: Reader, shape: Element) -> Shape:
    if shape.tag == "box":
        return Box(np.array(reader.vector(shape, "size")))
    if shape.tag == "sphere":
        return Sphere(reader.number(shape, "radius"))
    if shape.tag == "mesh":
        scale = reader.vector(shape, "scale", (1.0, 1.0, 1.0))
        return Mesh(reader.text(shape, "filename"), np.array(scale))
    kind = Cylinder if shape.tag == "cylinder" else Capsule
    return kind(reader.number(shape, "radius"), reader.number(shape, "length"))


def _colour(material: Element) -> Rgba | None:
    for child in material.named("color"):
        try:
            rgba = Reader("material").numbers(child, "rgba", 4)
        except UrdfError:
            return None
        red, green, blue, alpha = np.clip(rgba, 0.0, 1.0).tolist()
        return red, green, blue, alpha
    return None
