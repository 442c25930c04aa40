# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Robots and drawings in a scene of viser."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import missing_extra
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.view.drawings import BALL, DISC, Arrows, Drawing, Label, Lines, Solid

try:
    import trimesh
    from viser.transforms import SO3
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

SHAFT, HEAD, HEAD_LENGTH = 0.006, 0.014, 0.04
"""Shaft radius, head radius and head length of arrows, relative to the size of the robot."""

SOLIDS = {
    BALL: trimesh.creation.icosphere(subdivisions=3, radius=1.0),
    DISC: trimesh.creation.cylinder(radius=1.0, height=1.0, sections=48),
}


class Canvas:
    """The frames of a robot's bodies in a scene, and named drawings that move with them."""

    def __init__(self, scene: Any, size: float) -> None:
        """Draw in a scene; ``size`` in m of the robot scales arrows and lines."""
        self._scene, self._size = scene, size
        self._lock = threading.Lock()  # the page and its clicks draw in separate threads
        self._drawn: dict[str, dict[str, Any]] = {}
        self._poses: FloatArray | None = None
        self.frames: dict[int, Any] = {}
        """Frames of the bodies by index; meshes and drawings are their children."""

    def path(self, body: int) -> str:
        """Return the scene node name of a body; add the node if it does not exist."""
        name = f"/robot/{body}"
        if body not in self.frames:
            self.frames[body] = self._scene.add_frame(name, show_axes=False)
            if self._poses is not None:
                self.move(self._poses)
        return name

    def move(self, poses: FloatArray) -> None:
        """Move the bodies to their poses (nb, 4, 4)."""
        self._poses, quaternions = poses, wxyz(poses[:, :3, :3])
        for body, frame in list(self.frames.items()):  # another thread may add some
            if body != GROUND:
                frame.wxyz = quaternions[body]
                frame.position = poses[body, :3, 3]

    def handles(self, name: str) -> list[Any]:
        """Return the viser handles of the drawings with a name."""
        return list(self._drawn.get(name, {}).values())

    def draw(self, name: str, drawings: Sequence[Drawing]) -> None:
        """Replace the drawings with a name. Those of the same kind are moved instead, for speed."""
        with self._lock:
            before, after = self._drawn.get(name, {}), {}
            for k, drawing in enumerate(drawings):
                count = len(drawing.points) if isinstance(drawing, Arrows | Lines) else 1
                kind = f"{type(drawing).__name__}_{count}"
                path = f"{self.path(drawing.body)}/{name}/{k}_{kind}"  # equal if it can be moved
                handle = before.pop(path, None)
                if handle is None:
                    handle = self._add(path, drawing)
                else:
                    for attribute, value in _changing(drawing).items():
                        setattr(handle, attribute, value)
                after[path] = handle
            for handle in before.values():
                handle.remove()
            self._drawn[name] = after

    def _add(self, path: str, drawing: Drawing) -> Any:
        scene, size, changing = self._scene, self._size, _changing(drawing)
        if isinstance(drawing, Label):
            return scene.add_label(path, font_screen_scale=0.8, **changing)
        if isinstance(drawing, Lines):
            return scene.add_line_segments(path, thickness=0.006 * size, **changing)
        if isinstance(drawing, Arrows):
            size *= drawing.thickness
            radii = {"shaft_radius": SHAFT * size, "head_radius": HEAD * size}
            return scene.add_arrows(path, head_length=HEAD_LENGTH * size, **radii, **changing)
        solid = SOLIDS[drawing.shape]
        return scene.add_batched_meshes_simple(
            path,
            solid.vertices,
            solid.faces,
            opacity=None if drawing.opacity >= 1.0 else drawing.opacity,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
            **changing,
        )


def wxyz(rotations: FloatArray) -> FloatArray:
    """Return the quaternions (..., 4) of rotations (..., 3, 3), real part first."""
    return np.asarray(SO3.from_matrix(rotations).wxyz)


def _changing(drawing: Drawing) -> dict[str, Any]:
    """Return the attributes of a viser object that may change while it is moved."""
    if isinstance(drawing, Label):
        return {"position": drawing.place, "text": drawing.text}
    if isinstance(drawing, Solid):
        return {
            "batched_wxyzs": wxyz(drawing.axes)[None],
            "batched_positions": drawing.centre[None],
            "batched_scales": drawing.scales[None].astype(np.float32),
            "batched_colors": _bytes(drawing.colour)[None],
        }
    colours = _bytes(drawing.colours)
    if isinstance(drawing, Lines):
        colours = np.repeat(colours[:, None], 2, axis=1)
    return {"points": drawing.points, "colors": colours}


def _bytes(colours: Any) -> Any:
    """Return sRGB colours in the linear encoding that viser expects for batched objects."""
    srgb = np.asarray(colours, dtype=float)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.round(255.0 * linear).astype(np.uint8)
