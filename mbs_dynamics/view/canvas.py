# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Robots and drawings in the scene of viser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import trimesh

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import AXES
from mbs_dynamics.lie.so3 import to_quaternion
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.view.drawings import Arrows, Discs, Drawing, Ellipsoids, Frames, Labels, Lines
from mbs_dynamics.view.meshes import Part

_BALL = trimesh.creation.icosphere(subdivisions=3, radius=1.0)
_DISC = trimesh.creation.cylinder(radius=1.0, height=1.0, sections=48)


class Canvas:
    """Named drawings in a scene. Existing objects are moved rather than replaced, for speed."""

    def __init__(self, scene: Any, size: float) -> None:
        self._scene, self._size = scene, size
        self._drawn: dict[str, list[tuple[object, list[Any]]]] = {}

    def draw(self, name: str, drawings: Sequence[Drawing]) -> None:
        """Replace the drawings of a name."""
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
        if isinstance(drawing, Arrows | Frames):
            points, colours, shares = _arrows_of(drawing)
            names = ("shaft_radius", "head_radius", "head_length")
            sizes = {key: share * size for key, share in zip(names, shares, strict=True)}
            return [scene.add_arrows(name, points, colours, **sizes)]
        if isinstance(drawing, Lines):
            return [
                scene.add_line_segments(
                    name, drawing.points, _ends(drawing.colours), thickness=0.006 * size
                )
            ]
        return [
            scene.add_label(f"{name}/{k}", text, position=place, font_screen_scale=0.8)
            for k, (place, text) in enumerate(zip(drawing.places, drawing.texts, strict=True))
        ]

    def _move(self, handles: list[Any], drawing: Drawing) -> None:
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


class Robot:
    """Meshes of a robot, which are sent to the page when they are first shown."""

    def __init__(self, scene: Any, name: str, parts: Callable[[], Iterable[Part]]) -> None:
        self._scene, self._name, self._parts = scene, name, parts
        self._bodies: dict[int, Any] = {}

    def _add(self) -> None:
        bodies: dict[int, Any] = {}
        for part in self._parts():
            name = f"/{self._name}/{part.body}"
            if part.body not in bodies:
                bodies[part.body] = self._scene.add_frame(name, show_axes=False)
            self._scene.add_mesh_trimesh(f"{name}/{part.name}", part.mesh)
        self._bodies = bodies  # at once: another thread may move them

    def move(self, poses: FloatArray) -> None:
        """Move the bodies to their poses (nb, 4, 4)."""
        quaternions = wxyz(poses[:, :3, :3])
        for body, frame in self._bodies.items():
            if body != GROUND:
                frame.wxyz = quaternions[body]
                frame.position = poses[body, :3, 3]

    def show(self, visible: bool) -> None:
        """Show or hide the meshes."""
        if visible and not self._bodies:
            self._add()
        for frame in self._bodies.values():
            frame.visible = visible


def wxyz(rotations: FloatArray) -> FloatArray:
    """Return the quaternions (..., 4) of rotations (..., 3, 3), real part first."""
    return np.asarray(np.roll(to_quaternion(rotations), 1, axis=-1))


def _key(drawing: Drawing) -> object:
    """Return a key that is equal for two drawings if one can be moved to replace the other."""
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
    """Return points (k, 2, 3) and colours (k, 3) of arrows, or of the axes of frames.

    Also their sizes relative to the robot: radii of shaft and head, and length of the head.
    """
    if isinstance(drawing, Arrows):
        return drawing.points, _bytes(drawing.colours), (0.006, 0.014, 0.04)
    poses = drawing.poses
    origins = np.repeat(poses[:, None, :3, 3], 3, axis=1)
    along = drawing.length * np.swapaxes(poses[:, :3, :3], 1, 2)
    points = np.stack([origins, origins + along], axis=2).reshape(-1, 2, 3)
    return points, _bytes(np.tile(np.array(AXES), (len(poses), 1))), (0.004, 0.008, 0.015)


def _bytes(colours: FloatArray) -> Any:
    """Return sRGB colours in the linear encoding that viser expects of batched objects."""
    srgb = np.asarray(colours, dtype=float)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.round(255.0 * linear).astype(np.uint8)


def _ends(colours: FloatArray) -> Any:
    return np.repeat(_bytes(colours)[:, None], 2, axis=1)
