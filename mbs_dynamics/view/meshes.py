# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The meshes of a robot, the search for their files, and capsules for bodies without meshes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import GREY
from mbs_dynamics.errors import missing_extra, quoted, shortened
from mbs_dynamics.lie.se3 import pose as pose_of
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.view.shapes import turn_to
from mbs_dynamics.view.urdf_visuals import (
    Box,
    Capsule,
    Cylinder,
    Mesh,
    Sphere,
    Triangles,
    Visual,
    Visuals,
)

try:
    import trimesh
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

CAPSULE = "/capsule"
"""Suffix of the names of capsules."""

THICKNESS = 0.035
"""Radius of a capsule relative to the size of the robot."""

PAINT = (0.72, 0.74, 0.78)
"""Colour of meshes that state none."""

FORMATS = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply", ".off")
"""Formats of meshes that are read; archives are not."""

LONGEST_REASON = 500
"""Longest part of a mesh reader's message that is shown, in characters."""


class Part(NamedTuple):
    """A mesh fixed to a body."""

    body: int
    """Index of the body, or GROUND."""
    name: str
    mesh: Any
    """A ``trimesh.Trimesh`` in the frame of the body."""


class Appearance(NamedTuple):
    """The parts of a robot, and messages about missing ones."""

    parts: list[Part]
    problems: list[str]


def appearance(
    model: Model,
    visuals: Visuals,
    size: float,
    source: Path | None = None,
    packages: Sequence[Path] = (),
    *,
    capsules: bool = True,
) -> Appearance:
    """Return the meshes of a robot.

    Meshes are searched in the folder of the URDF ``source`` and in ``packages``, each of which is a
    package or a folder of packages. Unless ``capsules`` is False, bodies without a mesh are drawn
    as capsules with a radius proportional to the ``size`` of the robot in m.
    """
    parts: list[Part] = []
    problems, shown = list(visuals.problems), set()
    with np.errstate(all="ignore"):
        for number, visual in enumerate(visuals.visuals):
            if visual.link not in model.frames:  # outside the chain chosen by root and tip
                continue
            frame = model.frames[visual.link]
            try:
                mesh = _shaped(visual, source, packages)
                mesh.apply_transform(frame.placement @ visual.placement)
                if mesh.bounds is None or not np.isfinite(mesh.bounds.astype(np.float32)).all():
                    raise ValueError("it has no extent, or numbers beyond single precision")
                if mesh.faces.min() < 0:
                    raise ValueError("it has triangles with vertices that do not exist")
            except Exception as error:  # mesh readers raise many kinds of errors
                name = quoted(visual.link)
                reason = shortened(str(error) or type(error).__name__, LONGEST_REASON)
                instead = (
                    "; shown as a capsule" if capsules else "; its collision geometry is not shown"
                )
                problems.append(f"link {name}: {reason}{instead}")
                continue
            parts.append(Part(frame.body, f"{visual.link}/{number}", mesh))
            shown.add(frame.body)
    for body, name, begin, end in _bones(model) if capsules else ():
        if body not in shown:
            capsule = _capsule(begin, end, THICKNESS * size)
            parts.append(Part(body, f"{name}{CAPSULE}", capsule))
    return Appearance(parts, problems)


def _shaped(visual: Visual, source: Path | None, packages: Sequence[Path]) -> Any:
    """Return the mesh of a visual in the frame of the visual."""
    shape = visual.shape
    if isinstance(shape, Box):
        mesh = trimesh.creation.box(extents=shape.size)
    elif isinstance(shape, Cylinder):
        mesh = trimesh.creation.cylinder(radius=shape.radius, height=shape.length, sections=32)
    elif isinstance(shape, Capsule):
        mesh = trimesh.creation.capsule(radius=shape.radius, height=shape.length)
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
    elif isinstance(shape, Sphere):
        mesh = trimesh.creation.icosphere(subdivisions=3, radius=shape.radius)
    elif isinstance(shape, Triangles):
        mesh = trimesh.Trimesh(shape.vertices, shape.faces)
    else:
        return _loaded(shape, visual, find_mesh(shape.filename, source, packages))
    return painted(mesh, visual.colour or PAINT)


def _loaded(shape: Mesh, visual: Visual, path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"mesh {quoted(shape.filename)}: must end in {', '.join(FORMATS)}")
    mesh = trimesh.load_scene(path).to_geometry()
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise ValueError(f"mesh {shape.filename!r} has no triangles")
    mesh.apply_scale(shape.scale)
    if visual.colour is not None:
        return painted(mesh, visual.colour)
    if mesh.visual.kind is None or suffix == ".stl":
        return painted(mesh, PAINT)
    mesh.export(file_type="glb")  # raises for unreadable images, which are loaded only now
    return mesh


def painted(mesh: Any, colour: Sequence[float]) -> Any:
    """Give a mesh one colour, RGB or RGBA from 0 to 1, and return it."""
    rgba = [*colour, 1.0][:4]
    mesh.visual = trimesh.visual.TextureVisuals(
        material=trimesh.visual.material.PBRMaterial(
            baseColorFactor=rgba,
            metallicFactor=0.1,
            roughnessFactor=0.6,
            alphaMode="OPAQUE" if rgba[3] >= 1.0 else "BLEND",
        )
    )
    return mesh


def shaded(parts: Iterable[Part], colour: Sequence[float]) -> Iterator[Part]:
    """Yield copies of parts in one colour, RGB or RGBA from 0 to 1."""
    for part in parts:
        yield part._replace(mesh=painted(part.mesh.copy(), colour))


def _bones(model: Model) -> Iterator[tuple[int, str, FloatArray, FloatArray]]:
    """Yield body, name and both ends, in the frame of the body, of lines between joints.

    For bodies without children the lines end at their links, or else at their centre of mass.
    """
    origin, has_line = np.zeros(3), set()
    for i, p in enumerate(model.parents):
        end = model.bodies[i].home_rel[:3, 3]
        name = "ground" if p == GROUND else model.bodies[p].name
        if np.linalg.norm(end) > 1e-6:
            yield p, f"{name}/{model.bodies[i].name}", origin, end
            has_line.add(p)
    inner = frozenset(has_line)
    for frame in model.frames.values():
        end = frame.placement[:3, 3]
        if frame.body == GROUND or frame.body in inner or not np.linalg.norm(end) > 1e-6:
            continue
        yield frame.body, frame.name, origin, end
        has_line.add(frame.body)
    for i, body in enumerate(model.bodies):
        if i not in has_line and body.inertia.mass > 0.0:
            yield i, f"{body.name}/mass", origin, np.asarray(body.inertia.com, dtype=float)


def _capsule(begin: FloatArray, end: FloatArray, radius: float) -> Any:
    way = end - begin
    length = float(np.linalg.norm(way))
    if length < 1e-6:
        mesh = trimesh.creation.icosphere(subdivisions=2, radius=radius)
        mesh.apply_translation(begin)
    else:
        mesh = trimesh.creation.capsule(height=length, radius=radius, count=[16, 16])
        low = mesh.bounds[:, 2].min() + radius  # start of the cylinder
        mesh.apply_translation([0.0, 0.0, -low])
        mesh.apply_transform(pose_of(turn_to(way), begin))
    return painted(mesh, GREY)


def find_mesh(filename: str, source: Path | None, packages: Sequence[Path]) -> Path:
    """Return the path of a mesh file.

    ``package://name/rest`` is searched in ``packages``, in the sourced workspaces, in packages
    (folders with a ``package.xml``) above the URDF ``source``, and in the parent of its folder.
    Relative paths start at the folder of the URDF. Raises FileNotFoundError for a missing file and
    for a URL.
    """
    shown = shortened(repr(filename), LONGEST_REASON)
    try:
        address = urlparse(filename)
    except ValueError as error:
        raise FileNotFoundError(f"mesh {shown} is neither a path nor a URL: {error}") from error
    if address.scheme in ("http", "https"):
        raise FileNotFoundError(f"mesh {shown} is a URL, and nothing is downloaded")
    if address.scheme in ("package", "model"):
        name, rest = address.netloc, unquote(address.path).lstrip("/")
        for file in _in_packages(name, rest, source, packages):
            if file.is_file():
                return file
        raise FileNotFoundError(
            f"no mesh {shown}; give the folder that contains package {quoted(name)} by "
            f"--package-path FOLDER"
        )
    named = unquote(address.path) if address.scheme == "file" else filename
    path = Path(os.path.abspath(named if source is None else source.parent / named))
    if not path.is_file():
        raise FileNotFoundError(f"no mesh {shown}")
    return path


def _workspaces() -> Iterator[Path]:
    for variable, within in (("AMENT_PREFIX_PATH", "share"), ("ROS_PACKAGE_PATH", ".")):
        for prefix in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(prefix) / within


def _in_packages(
    name: str, rest: str, source: Path | None, packages: Sequence[Path]
) -> Iterator[Path]:
    for folder in packages:
        yield folder / name / rest
        if folder.name == name:
            yield folder / rest
    for folder in _workspaces():
        yield folder / name / rest
    if source is None:
        return
    source = source.resolve()
    near = source.parents[min(1, len(source.parents) - 1)]
    for folder in source.parents:
        for place in (folder, folder / name):
            known = (place / "package.xml").is_file() or place.is_relative_to(near)
            if place.name == name and known:
                yield place / rest
