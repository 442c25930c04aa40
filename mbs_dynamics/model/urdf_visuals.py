# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the links of a URDF look like. Dynamics needs none of it, so nothing here is an error."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.urdf import pose_of

Rgba = tuple[float, float, float, float]


class Box(NamedTuple):
    """A box about its centre."""

    size: FloatArray
    """(3,) in m."""


class Cylinder(NamedTuple):
    """A cylinder about the z axis."""

    radius: float
    length: float
    """Along z, in m; its middle is the origin."""


class Sphere(NamedTuple):
    """A ball about its centre."""

    radius: float


class Mesh(NamedTuple):
    """A file of triangles."""

    filename: str
    """As the URDF has it, such as ``package://name/meshes/base.stl``."""
    scale: FloatArray
    """(3,)."""


class Visual(NamedTuple):
    """One shape of a link."""

    link: str
    placement: FloatArray
    """(4, 4) pose in the frame of the link."""
    shape: Box | Cylinder | Sphere | Mesh
    colour: Rgba | None
    """None where the URDF states none: a mesh may have its own."""


class Visuals(NamedTuple):
    """What all links look like."""

    visuals: tuple[Visual, ...]
    problems: tuple[str, ...]
    """What could not be understood, and is not shown."""


def visuals_of(source: str | bytes | os.PathLike[str]) -> Visuals:
    """Return what the links of a URDF look like.

    ``source`` is a path or XML text. Raises UrdfError only if it cannot be read or is no XML.
    """
    from mbs_dynamics.model import urdf_xml  # imports XML libraries, slow and needed only here

    _, document = urdf_xml.document_of(source)
    materials: dict[str, Rgba] = {}
    for element in document.iter("{*}material"):
        colour = _colour(element)
        if colour is not None:
            materials.setdefault(element.get("name", ""), colour)
    found, problems = [], []
    for link in document.iterchildren("{*}link"):
        name = link.get("name", "")
        for element in link.iterchildren("{*}visual"):
            try:
                found.append(_visual(name, element, materials))
            except (ValueError, TypeError) as error:
                problems.append(f"link {name!r}: a visual is not shown: {error}")
    return Visuals(tuple(found), tuple(problems))


def _visual(link: str, element: Any, materials: Mapping[str, Rgba]) -> Visual:
    placement, colour, shape = np.eye(4), None, None
    plain = "0 0 0"
    for child in element.iterchildren("{*}origin"):
        xyz, rpy = (_numbers(child.get(name, plain), 3) for name in ("xyz", "rpy"))
        placement = pose_of(xyz.tolist(), rpy.tolist())
    for child in element.iterchildren("{*}material"):
        colour = _colour(child) or materials.get(child.get("name", ""))
    for child in element.iterchildren("{*}geometry"):
        shape = next(_shapes(child), None)
    if shape is None:
        raise ValueError("its <geometry> is none of <box>, <cylinder>, <sphere>, <mesh>")
    return Visual(link, placement, shape, colour)


def _shapes(geometry: Any) -> Iterator[Box | Cylinder | Sphere | Mesh]:
    for one in geometry.iterchildren("{*}box"):
        yield Box(_numbers(one.get("size"), 3))
    for one in geometry.iterchildren("{*}cylinder"):
        yield Cylinder(*(float(_numbers(one.get(a), 1)[0]) for a in ("radius", "length")))
    for one in geometry.iterchildren("{*}sphere"):
        yield Sphere(float(_numbers(one.get("radius"), 1)[0]))
    for one in geometry.iterchildren("{*}mesh"):
        if not one.get("filename"):
            raise ValueError("its <mesh> has no filename")
        yield Mesh(one.get("filename"), _numbers(one.get("scale", "1 1 1"), 3))


def _colour(material: Any) -> Rgba | None:
    for child in material.iterchildren("{*}color"):
        try:
            red, green, blue, alpha = np.clip(_numbers(child.get("rgba"), 4), 0.0, 1.0).tolist()
        except (ValueError, TypeError):
            return None
        return red, green, blue, alpha
    return None


def _numbers(text: str | None, count: int) -> FloatArray:
    values = np.array((text or "").split(), dtype=float)
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"{text!r} must be {count} finite numbers")
    return values
