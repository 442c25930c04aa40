# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The cameras of a page, which show the robot beside the panel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray

START = np.array([0.75, -0.56, 0.35])
"""Direction from the robot to the camera at the start."""

PICTURE = (1200.0, 800.0)
"""Assumed width and height of the picture in pixels before a browser is connected."""

PANEL = 400.0
"""Width of the panel in pixels."""

FIELD_OF_VIEW = np.radians(45.0)
"""Vertical field of view of cameras at the start."""

MARGIN = 1.15
"""Distance of the camera relative to the one at which the robot fills the picture."""


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

    def start_all(self) -> None:
        """Give the cameras of all browsers the view of the start.

        The initial camera of the server stays unset: viser may apply it after this view.
        """
        for client in self._server.get_clients().values():
            self.start(client.camera)

    def start(self, camera: Any) -> None:
        """Give a camera the view of the start."""
        if self.points is not None:
            camera.fov = FIELD_OF_VIEW
            self.view(camera, START)

    def view(self, camera: Any, back: FloatArray) -> None:
        """Aim a camera from a direction (3,) so that all points fit beside the panel."""
        points = self.points
        assert points is not None
        width, height = PICTURE
        if camera is not self._server.initial_camera and camera.image_height:
            width, height = camera.image_width, camera.image_height
        side = PANEL if self.panel and width > 2.0 * PANEL else 0.0
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        back = back / np.linalg.norm(back)
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        up = np.cross(back, right)
        x, y, z = np.stack([right, up, back]) @ (points - middle).T
        pixel = 2.0 * np.tan(0.5 * camera.fov) / height  # at a distance of 1 m
        free = 0.5 * pixel * np.array([width - side, height])
        least = np.maximum(np.abs(x) / free[0], np.abs(y) / free[1]) + z
        distance = MARGIN * max(float(least.max()), 0.2 * self._size)
        target = middle + 0.5 * pixel * distance * side * right
        camera.position = target + distance * back
        camera.look_at = target  # after the position, since setting it moves the target too
