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
from mbs_dynamics.lie.so3 import to_quaternion
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.view.drawings import (
    Arrows,
    Discs,
    Drawing,
    Ellipsoids,
    Fixed,
    Frames,
    Labels,
    Lines,
)
from mbs_dynamics.view.meshes import Part

try:
    import trimesh
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

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
        self._drawn: dict[str, list[tuple[object, list[Any]]]] = {}

    def handles(self, name: str) -> list[Any]:
        """Return the viser handles of the drawings with a name."""
        return [handle for _, handles in self._drawn.get(name, []) for handle in handles]

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
                handles = before[k][1]
                self._move(handles, drawing)
            else:
                for handle in before[k][1] if k < len(before) else ():
                    handle.remove()
                handles = self._add(f"/{name}/{k}", drawing)
            after.append((key, handles))
        for _, handles in before[len(drawings) :]:
            for handle in handles:
                handle.remove()
        self._drawn[name] = after

    def _add(self, name: str, drawing: Drawing) -> list[Any]:
        scene, size = self._scene, self._size
        if isinstance(drawing, Fixed):
            return self._add(self._bodies.path(drawing.body) + name, drawing.drawing)
        if isinstance(drawing, Labels):
            return [
                scene.add_label(f"{name}/{k}", text, position=place, font_screen_scale=0.8)
                for k, (place, text) in enumerate(zip(drawing.places, drawing.texts, strict=True))
            ]
        if isinstance(drawing, Ellipsoids | Discs):
            solid = _BALL if isinstance(drawing, Ellipsoids) else _DISC
            handle = scene.add_batched_meshes_simple(
                name,
                solid.vertices,
                solid.faces,
                batched_wxyzs=wxyz(drawing.rotations),
                batched_positions=drawing.centres,
                batched_scales=_scales(drawing),
                batched_colors=_bytes(drawing.colours),
                opacity=None if drawing.opacity >= 1.0 else drawing.opacity,
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
            )
            return [handle]
        if isinstance(drawing, Lines):
            ends, thickness = _ends(drawing.colours), 0.006 * size
            return [scene.add_line_segments(name, drawing.points, ends, thickness=thickness)]
        points, colours, shares = _arrows_of(drawing)
        names = ("shaft_radius", "head_radius", "head_length")
        sizes = {key: share * size for key, share in zip(names, shares, strict=True)}
        return [scene.add_arrows(name, points, colours, **sizes)]

    def _move(self, handles: list[Any], drawing: Drawing) -> None:
        if isinstance(drawing, Fixed):
            self._move(handles, drawing.drawing)
            return
        if isinstance(drawing, Labels):
            for handle, place, text in zip(handles, drawing.places, drawing.texts, strict=True):
                handle.position = place
                handle.text = text
            return
        (handle,) = handles
        if isinstance(drawing, Ellipsoids | Discs):
            handle.batched_wxyzs = wxyz(drawing.rotations)
            handle.batched_positions = drawing.centres
            handle.batched_scales = _scales(drawing).astype(np.float32)
            handle.batched_colors = _bytes(drawing.colours)
        elif isinstance(drawing, Lines):
            handle.points, handle.colors = drawing.points, _ends(drawing.colours)
        else:
            handle.points, colours, _ = _arrows_of(drawing)
            if isinstance(drawing, Arrows):
                handle.colors = colours


def wxyz(rotations: FloatArray) -> FloatArray:
    """Return the quaternions (..., 4) of rotations (..., 3, 3), real part first."""
    return np.asarray(np.roll(to_quaternion(rotations), 1, axis=-1))


def _key(drawing: Drawing) -> object:
    """Return a key; drawings with equal keys have the same viser objects, which can be moved."""
    if isinstance(drawing, Fixed):
        return drawing.body, _key(drawing.drawing)
    if isinstance(drawing, Labels):
        return Labels, len(drawing.texts)
    if isinstance(drawing, Frames):
        return Frames, len(drawing.poses), drawing.length
    opacity = drawing.opacity if isinstance(drawing, Ellipsoids | Discs) else 1.0
    return type(drawing), len(drawing.colours), opacity


def _scales(drawing: Ellipsoids | Discs) -> FloatArray:
    if isinstance(drawing, Ellipsoids):
        return drawing.semi_axes
    thickness = np.full(len(drawing.radii), drawing.thickness)
    return np.stack([drawing.radii, drawing.radii, thickness], axis=1)


def _arrows_of(drawing: Arrows | Frames) -> tuple[FloatArray, Any, tuple[float, float, float]]:
    """Return points (k, 2, 3), colours (k, 3) and sizes of arrows, or of the axes of frames.

    The sizes are shaft radius, head radius and head length relative to the robot.
    """
    if isinstance(drawing, Arrows):
        return drawing.points, _bytes(drawing.colours), (0.006, 0.014, 0.04)
    poses = drawing.poses
    origins = np.repeat(poses[:, None, :3, 3], 3, axis=1)
    along = drawing.length * np.swapaxes(poses[:, :3, :3], 1, 2)
    points = np.stack([origins, origins + along], axis=2).reshape(-1, 2, 3)
    return points, _bytes(np.tile(np.array(AXES), (len(poses), 1))), (0.004, 0.008, 0.015)


def _bytes(colours: FloatArray) -> Any:
    """Return sRGB colours in the linear encoding that viser expects for batched objects."""
    srgb = np.asarray(colours, dtype=float)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.round(255.0 * linear).astype(np.uint8)


def _ends(colours: FloatArray) -> Any:
    return np.repeat(_bytes(colours)[:, None], 2, axis=1)
