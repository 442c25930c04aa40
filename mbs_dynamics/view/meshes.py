# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The meshes of a robot, the search for their files, and capsules for bodies without meshes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
from mbs_dynamics.view.urdf_visuals import Box, Capsule, Cylinder, Sphere, Triangles, Visual

try:
    import trimesh
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

THICKNESS, SHORTEST = 0.035, 1e-6
"""Radius of a capsule relative to the size of the robot, and length in m of the shortest one."""

PAINT = (0.72, 0.74, 0.78)
"""Colour of meshes that state none."""


class Part(NamedTuple):
    """A mesh fixed to a body."""

    body: int
    """Index of the body, or GROUND."""
    name: str
    mesh: Any
    """A ``trimesh.Trimesh`` in the frame of the body."""


def appearance(
    model: Model,
    visuals: Sequence[Visual],
    size: float,
    source: Path | None = None,
    packages: Sequence[Path] = (),
) -> tuple[list[Part], list[str]]:
    """Return the meshes of a robot, and messages about those that cannot be shown.

    Meshes are searched in the folder of the URDF ``source`` and in ``packages``, each of which is a
    package or a folder of packages. Bodies without a mesh are drawn as capsules with a radius
    proportional to the ``size`` of the robot in m.
    """
    parts: list[Part] = []
    problems, shown = [], set()
    for number, visual in enumerate(visuals):
        if visual.link not in model.frames:  # outside the chain chosen by root and tip
            continue
        frame = model.frames[visual.link]
        try:
            mesh = _shaped(visual, source, packages)
            mesh.apply_transform(frame.placement @ visual.placement)
            if mesh.bounds is None or not np.isfinite(mesh.bounds).all():
                raise ValueError("it has no extent")
        except Exception as error:  # mesh readers raise many kinds of errors
            reason = shortened(str(error) or type(error).__name__)
            problems.append(f"link {quoted(visual.link)}: {reason}; shown as a capsule")
            continue
        parts.append(Part(frame.body, f"{visual.link}/{number}", mesh))
        shown.add(frame.body)
    for body, name, end in _bones(model):
        if body not in shown:
            parts.append(Part(body, f"{name}/capsule", _capsule(end, THICKNESS * size)))
    return parts, problems


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
        path = find_mesh(shape.filename, source, packages)
        mesh = trimesh.load_scene(path).to_geometry()
        if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
            raise ValueError(f"mesh {shape.filename!r} has no triangles")
        mesh.apply_scale(shape.scale)
        if visual.colour is None and mesh.visual.kind is not None and path.suffix.lower() != ".stl":
            mesh.export(file_type="glb")  # raises for unreadable images, which are loaded only now
            return mesh
    return painted(mesh, visual.colour or PAINT)


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


def _bones(model: Model) -> Iterator[tuple[int, str, FloatArray]]:
    """Yield body, name and end (3,) of lines from the origin of a body to the joints it carries.

    For bodies without children the lines end at a link, or else at their centre of mass.
    """
    drawn = set()
    for body, p in zip(model.bodies, model.parents, strict=True):
        end = body.home_rel[:3, 3]
        if np.linalg.norm(end) > SHORTEST:
            name = "ground" if p == GROUND else model.bodies[p].name
            yield p, f"{name}/{body.name}", end
            drawn.add(p)
    for frame in model.frames.values():
        end = frame.placement[:3, 3]
        if frame.body not in drawn | {GROUND} and np.linalg.norm(end) > SHORTEST:
            yield frame.body, frame.name, end
            drawn.add(frame.body)
    for i, body in enumerate(model.bodies):
        if i not in drawn and body.inertia.mass > 0.0:
            yield i, f"{body.name}/mass", np.asarray(body.inertia.com, dtype=float)


def _capsule(end: FloatArray, radius: float) -> Any:
    """Return a capsule from the origin to a point (3,)."""
    length = max(float(np.linalg.norm(end)), SHORTEST)
    mesh = trimesh.creation.capsule(height=length, radius=radius, count=[16, 16])
    mesh.apply_translation([0.0, 0.0, -mesh.bounds[0, 2] - radius])
    direction = end if np.linalg.norm(end) > SHORTEST else np.array([0.0, 0.0, 1.0])
    mesh.apply_transform(pose_of(turn_to(direction), np.zeros(3)))
    return painted(mesh, GREY)


def find_mesh(filename: str, source: Path | None, packages: Sequence[Path]) -> Path:
    """Return the path of a mesh file.

    ``package://name/rest`` is searched in ``packages``, in the sourced workspaces, and in the
    folders above the URDF ``source``. Relative paths start at the folder of the URDF. Raises
    FileNotFoundError for a missing file and for a URL.
    """
    address = urlparse(filename)
    if address.scheme in ("http", "https"):
        raise FileNotFoundError(f"mesh {quoted(filename)} is a URL, and nothing is downloaded")
    if address.scheme in ("package", "model"):
        name, rest = address.netloc, unquote(address.path).lstrip("/")
        folders = [place for folder in packages for place in (folder, folder.parent)]
        for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
            folders.append(Path(prefix) / "share")
        folders += [] if source is None else source.resolve().parents
        for folder in folders:
            if (file := folder / name / rest).is_file():
                return file
        raise FileNotFoundError(
            f"no mesh {quoted(filename)}; give the folder that contains package {quoted(name)} by "
            f"--package-path FOLDER"
        )
    named = unquote(address.path) if address.scheme == "file" else filename
    path = Path(os.path.abspath(named if source is None else source.parent / named))
    if not path.is_file():
        raise FileNotFoundError(f"no mesh {quoted(filename)}")
    return path
