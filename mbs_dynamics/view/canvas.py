# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Robots and drawings in a scene of viser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import AXES
from mbs_dynamics.errors import missing_extra
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.view.drawings import (
    Arrows,
    Discs,
    Drawing,
    Ellipsoids,
    Fixed,
    Frames,
    Label,
    Lines,
)
from mbs_dynamics.view.meshes import Part

try:
    import trimesh
    from viser.transforms import SO3
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

ARROWS, AXES_OF_FRAMES = (0.006, 0.014, 0.04), (0.004, 0.008, 0.015)
"""Shaft radius, head radius and head length of arrows, relative to the size of the robot."""

_BALL = trimesh.creation.icosphere(subdivisions=3, radius=1.0)
_DISC = trimesh.creation.cylinder(radius=1.0, height=1.0, sections=48)


class Bodies:
    """The frames of the bodies of a robot in a scene; meshes and drawings are their children."""

    def __init__(self, scene: Any, name: str) -> None:
        self._scene, self._name = scene, name
        self.frames: dict[int, Any] = {}
        self._poses: FloatArray | None = None

    def path(self, body: int) -> str:
        """Return the scene node name of a body; add the node if it does not exist."""
        name = f"/{self._name}/{body}"
        if body not in self.frames:
            frame = self._scene.add_frame(name, show_axes=False)
            if self._poses is not None and body != GROUND:
                frame.wxyz = wxyz(self._poses[body, :3, :3])
                frame.position = self._poses[body, :3, 3]
            self.frames[body] = frame
        return name

    def move(self, poses: FloatArray) -> None:
        """Move the bodies to their poses (nb, 4, 4)."""
        self._poses, quaternions = poses, wxyz(poses[:, :3, :3])
        for body, frame in list(self.frames.items()):  # another thread may add some
            if body != GROUND:
                frame.wxyz = quaternions[body]
                frame.position = poses[body, :3, 3]


class Meshes:
    """Meshes of a robot, which are sent to the browser when they are first shown."""

    def __init__(
        self,
        scene: Any,
        bodies: Bodies,
        name: str,
        parts: Callable[[], Iterable[Part]],
        picked: Callable[[Part], None] | None = None,
    ) -> None:
        """Keep the meshes that ``parts`` returns; ``picked`` is called with a clicked part."""
        self._scene, self._bodies, self._name = scene, bodies, name
        self._parts, self._picked = parts, picked
        self.handles: list[Any] = []

    def show(self, visible: bool) -> None:
        """Show or hide the meshes."""
        if visible and not self.handles:
            self.handles = [self._add(part) for part in self._parts()]
        for handle in self.handles:
            handle.visible = visible

    def _add(self, part: Part) -> Any:
        name = f"{self._bodies.path(part.body)}/{self._name}/{part.name}"
        handle = self._scene.add_mesh_trimesh(name, part.mesh)
        if (picked := self._picked) is not None:
            handle.on_click(lambda _: picked(part))
        return handle


class Canvas:
    """Named drawings in a scene. Existing objects are moved instead of replaced, for speed."""

    def __init__(self, scene: Any, bodies: Bodies, size: float) -> None:
        self._scene, self._bodies, self._size = scene, bodies, size
        self._lock = threading.Lock()  # the page and its clicks draw in separate threads
        self._drawn: dict[str, list[tuple[object, Any]]] = {}

    def handles(self, name: str) -> list[Any]:
        """Return the viser handles of the drawings with a name."""
        return [handle for _, handle in self._drawn.get(name, [])]

    def draw(self, name: str, drawings: Sequence[Drawing]) -> None:
        """Replace the drawings with a name."""
        with self._lock:
            self._replace(name, drawings)

    def _replace(self, name: str, drawings: Sequence[Drawing]) -> None:
        before = self._drawn.get(name, [])
        after = []
        for k, drawing in enumerate(drawings):
            key = _key(drawing)
            if k < len(before) and before[k][0] == key:
                handle = before[k][1]
                for attribute, value in _changing(drawing).items():
                    setattr(handle, attribute, value)
            else:
                if k < len(before):
                    before[k][1].remove()
                handle = self._add(f"/{name}/{k}", drawing)
            after.append((key, handle))
        for _, handle in before[len(drawings) :]:
            handle.remove()
        self._drawn[name] = after

    def _add(self, name: str, drawing: Drawing) -> Any:
        if isinstance(drawing, Fixed):
            return self._add(self._bodies.path(drawing.body) + name, drawing.drawing)
        scene, size, changing = self._scene, self._size, _changing(drawing)
        if isinstance(drawing, Label):
            return scene.add_label(name, font_screen_scale=0.8, **changing)
        if isinstance(drawing, Ellipsoids | Discs):
            solid = _BALL if isinstance(drawing, Ellipsoids) else _DISC
            return scene.add_batched_meshes_simple(
                name,
                solid.vertices,
                solid.faces,
                opacity=None if drawing.opacity >= 1.0 else drawing.opacity,
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
                **changing,
            )
        if isinstance(drawing, Lines):
            return scene.add_line_segments(name, thickness=0.006 * size, **changing)
        shaft, head, length = ARROWS if isinstance(drawing, Arrows) else AXES_OF_FRAMES
        return scene.add_arrows(
            name,
            shaft_radius=shaft * size,
            head_radius=head * size,
            head_length=length * size,
            **changing,
        )


def wxyz(rotations: FloatArray) -> FloatArray:
    """Return the quaternions (..., 4) of rotations (..., 3, 3), real part first."""
    return np.asarray(SO3.from_matrix(rotations).wxyz)


def _key(drawing: Drawing) -> object:
    """Return a key; drawings with equal keys have the same viser objects, which can be moved."""
    if isinstance(drawing, Fixed):
        return drawing.body, _key(drawing.drawing)
    if isinstance(drawing, Label):
        return Label
    if isinstance(drawing, Frames):
        return Frames, len(drawing.poses)
    opacity = drawing.opacity if isinstance(drawing, Ellipsoids | Discs) else 1.0
    return type(drawing), len(drawing.colours), opacity


def _changing(drawing: Drawing) -> dict[str, Any]:
    """Return the attributes of a viser object that may change while it is moved."""
    if isinstance(drawing, Fixed):
        return _changing(drawing.drawing)
    if isinstance(drawing, Label):
        text = drawing.text
        return {"position": drawing.place, "text": text, "visible": bool(text)}
    if isinstance(drawing, Ellipsoids | Discs):
        if isinstance(drawing, Ellipsoids):
            scales = drawing.semi_axes
        else:
            thickness = np.full(len(drawing.radii), drawing.thickness)
            scales = np.stack([drawing.radii, drawing.radii, thickness], axis=1)
        return {
            "batched_wxyzs": wxyz(drawing.rotations),
            "batched_positions": drawing.centres,
            "batched_scales": scales.astype(np.float32),
            "batched_colors": _bytes(drawing.colours),
        }
    if isinstance(drawing, Frames):
        poses = drawing.poses
        origins = np.repeat(poses[:, None, :3, 3], 3, axis=1)
        along = drawing.length * np.swapaxes(poses[:, :3, :3], 1, 2)
        points = np.stack([origins, origins + along], axis=2).reshape(-1, 2, 3)
        return {"points": points, "colors": _bytes(np.tile(np.array(AXES), (len(poses), 1)))}
    colours = _bytes(drawing.colours)
    if isinstance(drawing, Lines):
        colours = np.repeat(colours[:, None], 2, axis=1)
    return {"points": drawing.points, "colors": colours}


def _bytes(colours: FloatArray) -> Any:
    """Return sRGB colours in the linear encoding that viser expects for batched objects."""
    srgb = np.asarray(colours, dtype=float)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.round(255.0 * linear).astype(np.uint8)
