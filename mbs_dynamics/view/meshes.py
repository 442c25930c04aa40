# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The meshes of a robot: those of its URDF, and capsules for bodies without."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import GREY
from mbs_dynamics.errors import BackendError
from mbs_dynamics.lie.se3 import pose as pose_of
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf_visuals import Box, Cylinder, Mesh, Sphere, Visual, Visuals
from mbs_dynamics.view.shapes import turn_to

try:
    import trimesh
except ImportError as error:
    raise BackendError(
        "the viewer needs viser and trimesh: install the extra 'view' of this package"
    ) from error

THICKNESS = 0.035
"""Radius of a capsule relative to the size of the robot."""

PAINT = (0.72, 0.74, 0.78)
"""The colour of meshes without one."""


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
) -> Appearance:
    """Return the meshes of a robot.

    Meshes are searched beside the URDF ``source`` and in ``packages``, each of which is a package
    or a folder of packages. Bodies without a mesh are replaced by capsules, whose radius is
    proportional to the ``size`` of the robot in m.
    """
    parts: list[Part] = []
    problems, shown = list(visuals.problems), set()
    for number, visual in enumerate(visuals.visuals):
        frame = model.frames.get(visual.link)
        if frame is None:  # outside the chain chosen by root and tip
            continue
        try:
            mesh = _shaped(visual, source, packages)
        except (OSError, ValueError, KeyError, IndexError, TypeError, ImportError) as error:
            problems.append(f"link {visual.link!r}: {_reason(error)}; shown as a capsule")
            continue
        mesh.apply_transform(frame.placement @ visual.placement)
        parts.append(Part(frame.body, f"{visual.link}/{number}", mesh))
        shown.add(frame.body)
    for body, name, begin, end in _bones(model):
        if body not in shown:
            capsule = _capsule(begin, end, THICKNESS * size)
            parts.append(Part(body, f"{name}/capsule", capsule))
    return Appearance(parts, problems)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def find_mesh(filename: str, source: Path | None, packages: Sequence[Path]) -> Path:
    """Return the path of a mesh file.

    ``package://name/rest`` is searched in ``packages``, in the sourced workspaces, and in the
    folders above the URDF ``source``; other relative paths beside the URDF. Raises
    FileNotFoundError for a missing file and for a URL.
    """
    address = urlparse(filename)
    if address.scheme in ("http", "https"):
        raise FileNotFoundError(f"mesh {filename!r} is a URL, and nothing is downloaded")
    if address.scheme in ("package", "model"):
        name, rest = address.netloc, unquote(address.path).lstrip("/")
        for found in _in_packages(name, rest, source, packages):
            if found.is_file():
                return found
        raise FileNotFoundError(
            f"no mesh {filename!r}; give the folder that contains package {name!r} by "
            f"--package-path FOLDER"
        )
    path = Path(unquote(address.path) if address.scheme == "file" else filename)
    if not path.is_absolute() and source is not None:
        path = source.parent / path
    if not path.is_file():
        raise FileNotFoundError(f"no mesh {filename!r}")
    return path


def _in_packages(
    name: str, rest: str, source: Path | None, packages: Sequence[Path]
) -> Iterator[Path]:
    for folder in packages:
        yield folder / name / rest
        if folder.name == name:
            yield folder / rest
    for variable, within in (("AMENT_PREFIX_PATH", "share"), ("ROS_PACKAGE_PATH", ".")):
        for prefix in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(prefix) / within / name / rest
    for folder in source.resolve().parents if source is not None else ():
        yield folder / name / rest
        if folder.name == name:
            yield folder / rest


def _shaped(visual: Visual, source: Path | None, packages: Sequence[Path]) -> Any:
    """Return the mesh of a visual in the frame of the visual."""
    shape = visual.shape
    if isinstance(shape, Box):
        mesh = trimesh.creation.box(extents=shape.size)
    elif isinstance(shape, Cylinder):
        mesh = trimesh.creation.cylinder(radius=shape.radius, height=shape.length, sections=32)
    elif isinstance(shape, Sphere):
        mesh = trimesh.creation.icosphere(subdivisions=3, radius=shape.radius)
    else:
        return _loaded(shape, visual, find_mesh(shape.filename, source, packages))
    return painted(mesh, visual.colour or PAINT)


def _loaded(shape: Mesh, visual: Visual, path: Path) -> Any:
    mesh = trimesh.load_scene(path).to_geometry()
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise ValueError(f"mesh {shape.filename!r} has no triangles")
    mesh.apply_scale(shape.scale)
    if visual.colour is not None:
        return painted(mesh, visual.colour)
    plain = mesh.visual.kind is None or path.suffix.lower() == ".stl"
    return painted(mesh, PAINT) if plain else mesh


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


def _bones(model: Model) -> Iterator[tuple[int, str, FloatArray, FloatArray]]:
    """Yield body, name and both ends, in the frame of the body, of lines between adjacent joints.

    Bodies without children have lines to their links, or else to their centre of mass.
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
        low = mesh.bounds[:, 2].min() + radius  # where the cylinder begins
        mesh.apply_translation([0.0, 0.0, -low])
        mesh.apply_transform(pose_of(turn_to(way), begin))
    return painted(mesh, GREY)
