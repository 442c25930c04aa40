# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The cameras of a page, which show the robot beside the panel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray

VIEWS = {
    "start": np.array([0.75, -0.56, 0.35]),
    "front": np.array([1.0, 0.0, 0.0]),
    "side": np.array([0.0, -1.0, 0.0]),
    "top": np.array([0.01, 0.0, 1.0]),
}
"""Directions from the robot to the camera; in the view ``top`` the x axis points down."""

PICTURE = (1200.0, 800.0)
"""Assumed width and height of the picture in pixels before a browser is connected."""

PANEL, NARROW = 400.0, 700.0
"""Width of the panel in pixels, and largest width of pages with the panel below the robot."""

BELOW = 0.6
"""Share of the height of a narrow page that the panel covers."""

FIELD_OF_VIEW = np.radians(45.0)
"""Vertical field of view of cameras at the start."""

MARGIN = 1.15
"""Distance of the camera relative to the one at which the robot fills the picture."""


class Camera(NamedTuple):
    """A pinhole camera with a level horizon."""

    position: FloatArray
    """(3,) in m."""
    look_at: FloatArray
    """(3,) point at the centre of the picture, in m."""
    fov: float
    """Vertical field of view in rad."""
    height: float
    """Height of the picture in pixels."""

    def axes(self) -> FloatArray:
        """Return the unit vectors to the right, up and forward, as rows (3, 3)."""
        forward = self.look_at - self.position
        right = np.cross(forward, [0.0, 0.0, 1.0])
        up = np.cross(right, forward)
        return np.stack([axis / np.linalg.norm(axis) for axis in (right, up, forward)])

    def pixels_per_metre(self, depth: float) -> float:
        """Return the scale of the picture at a depth in m."""
        return float(0.5 * self.height / (depth * np.tan(0.5 * self.fov)))


class Cameras:
    """The cameras of a viser server: the initial one, and those of the connected browsers.

    They are aimed at points, the extent of the robot and the floor, once these are known.
    """

    def __init__(self, server: Any, size: float) -> None:
        """Take the cameras of a server; ``size`` in m of the robot bounds their distance."""
        self._server, self._size = server, size
        self.points: FloatArray | None = None
        """(k, 3) in m, None until they are known."""
        self.panel = True
        """Whether the robot is shown beside the panel, or else at the centre."""

    def _connected(self) -> list[Any]:
        return [client.camera for client in self._server.get_clients().values()]

    def start_all(self) -> None:
        """Give the cameras of all browsers the view of the start.

        The initial camera of the server stays unset: viser may apply it after this view.
        """
        for camera in self._connected():
            self.start(camera)

    def start(self, camera: Any) -> None:
        """Give a camera the view of the start."""
        if self.points is not None:
            camera.fov = FIELD_OF_VIEW
            self.view(camera, VIEWS["start"])

    def view(self, camera: Any, back: FloatArray) -> None:
        """Aim a camera from a direction (3,) so that all points fit beside the panel."""
        points = self.points
        assert points is not None
        width, height = PICTURE
        if camera is not self._server.initial_camera and camera.image_height:
            width, height = camera.image_width, camera.image_height
        side = PANEL if self.panel and width > NARROW else 0.0
        bottom = BELOW * height if self.panel and width <= NARROW else 0.0
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        back = back / np.linalg.norm(back)
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        up = np.cross(back, right)
        x, y, z = np.stack([right, up, back]) @ (points - middle).T
        pixel = 2.0 * np.tan(0.5 * camera.fov) / height  # at a distance of 1 m
        free = 0.5 * pixel * np.array([width - side, height - bottom])
        least = np.maximum(np.abs(x) / free[0], np.abs(y) / free[1]) + z
        distance = MARGIN * max(float(least.max()), 0.2 * self._size)
        target = middle + 0.5 * pixel * distance * (side * right - bottom * up)
        camera.position = target + distance * back
        camera.look_at = target  # after the position, since setting it moves the target too

    def last(self) -> Camera:
        """Return the camera that moved last, or the initial one if no browser is connected."""
        cameras = self._connected()
        if not cameras:
            initial = self._server.initial_camera
            return Camera(initial.position, initial.look_at, initial.fov, PICTURE[1])
        last = max(cameras, key=lambda camera: camera.update_timestamp)
        return Camera(last.position, last.look_at, last.fov, last.image_height)
