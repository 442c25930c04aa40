# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of an MJCF, read by MuJoCo's compiler, and of files of either format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.errors import missing_extra
from mbs_dynamics.model.mjcf import Assembly, compiled, is_mjcf, mujoco_module, pose_of
from mbs_dynamics.view.urdf_visuals import (
    Box,
    Capsule,
    Cylinder,
    Rgba,
    Shape,
    Sphere,
    Triangles,
    Visual,
    Visuals,
    visuals_of,
)

try:
    import trimesh
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

SHOWN_GROUPS = 3
"""Groups of geoms that MuJoCo's viewer shows by default: 0, 1 and 2."""

DEFAULT_COLOUR = (0.5, 0.5, 0.5, 1.0)
"""Colour of geoms that state none; the colour of their material is used instead."""


def shapes_of(source: Path | str) -> Visuals:
    """Return the shapes of a URDF, given as a path or as XML text, or of the path of an MJCF."""
    if isinstance(source, Path) and is_mjcf(source):
        return visuals_of_mjcf(source)
    return visuals_of(source)


def visuals_of_mjcf(source: Any) -> Visuals:
    """Return the shapes of the bodies of an MJCF, given as :meth:`Model.from_mjcf` takes it.

    They are those of the groups that MuJoCo shows. Planes, which are infinite, are left out; height
    fields are reported as problems. Raises ModelError for a file that MuJoCo cannot read,
    BackendError without MuJoCo.
    """
    mujoco = mujoco_module()
    m = compiled(mujoco, source)
    assembly = Assembly(mujoco, m)
    visuals, problems = [], []
    for k in np.flatnonzero(m.geom_group < SHOWN_GROUPS).tolist():
        body = int(m.geom_bodyid[k])
        name = assembly.name("body", body) if body else "world"
        kind = mujoco.mjtGeom(int(m.geom_type[k])).name.removeprefix("mjGEOM_").lower()
        shape = _shape(m, k, kind)
        if shape is not None:
            placement = pose_of(m.geom_pos[k], m.geom_quat[k])
            visuals.append(Visual(name, placement, shape, _colour(m, k)))
        elif kind != "plane":
            problems.append(f"body {name!r}: a geom is not shown: it is a {kind}")
    return Visuals(tuple(visuals), tuple(problems))


def _shape(m: Any, k: int, kind: str) -> Shape | None:
    a, b, c = map(float, m.geom_size[k])
    if kind == "box":
        return Box(2.0 * np.array([a, b, c]))
    if kind == "sphere":
        return Sphere(a)
    if kind == "capsule":
        return Capsule(a, 2.0 * b)
    if kind == "cylinder":
        return Cylinder(a, 2.0 * b)
    if kind == "ellipsoid":
        ball = trimesh.creation.icosphere(subdivisions=3)
        return Triangles(np.asarray(ball.vertices) * [a, b, c], np.asarray(ball.faces))
    if kind in ("mesh", "sdf") and m.geom_dataid[k] >= 0:
        one = int(m.geom_dataid[k])
        first, count = int(m.mesh_vertadr[one]), int(m.mesh_vertnum[one])
        begin, faces = int(m.mesh_faceadr[one]), int(m.mesh_facenum[one])
        vertices = np.array(m.mesh_vert[first : first + count], dtype=float)
        return Triangles(vertices, np.array(m.mesh_face[begin : begin + faces]))
    return None


def _colour(m: Any, k: int) -> Rgba:
    material, rgba = int(m.geom_matid[k]), m.geom_rgba[k]
    if material >= 0 and np.allclose(rgba, DEFAULT_COLOUR):
        rgba = m.mat_rgba[material]
    red, green, blue, alpha = np.clip(rgba, 0.0, 1.0).tolist()
    return red, green, blue, alpha
