# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Placement of text labels without overlaps in the picture of a camera."""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.view.cameras import Camera
from mbs_dynamics.view.drawings import Drawing, Fixed, Label

CHARACTER, ROW = 5.2, 15.0
"""Width of a character and height of a label in pixels, with margins."""

ROWS = 8
"""Largest number of rows by which a label is moved."""


def arranged(
    camera: Camera, layers: Sequence[list[Drawing]], poses: FloatArray
) -> list[list[Drawing]]:
    """Return the drawings of layers with labels that do not overlap.

    ``poses`` (nb, 4, 4) are the poses of the bodies. Labels with a higher rank are placed first.
    """
    result, layout = [list(drawings) for drawings in layers], LabelLayout(camera)
    found = []
    for row, drawings in enumerate(layers):
        for k, drawing in enumerate(drawings):
            label = drawing.drawing if isinstance(drawing, Fixed) else drawing
            if isinstance(label, Label):
                found.append((-label.rank, row, k, label))
    for _, row, k, label in sorted(found, key=lambda each: each[0]):
        drawing = layers[row][k]
        if isinstance(drawing, Fixed):
            R, p = poses[drawing.body, :3, :3], poses[drawing.body, :3, 3]
            placed = layout.place(label._replace(place=R @ label.place + p))
            local = placed._replace(place=R.T @ (placed.place - p))
            result[row][k] = Fixed(drawing.body, local)
        else:
            result[row][k] = layout.place(label)
    return result


class LabelLayout:
    """The labels of one picture. Labels that are placed first have precedence."""

    def __init__(self, camera: Camera) -> None:
        self._camera = camera
        self._taken: list[tuple[float, float, float]] = []
        """Left, right and upper edge in pixels of each placed label."""

    def place(self, label: Label) -> Label:
        """Return the label, moved up or down to the nearest free row.

        It has no text without a free row within ``ROWS``, or behind the camera.
        """
        camera, axes = self._camera, self._camera.axes()
        x, y, depth = (axes @ (label.place - camera.position)).tolist()
        if depth <= 0.0:
            return label._replace(text="")
        scale = camera.pixels_per_metre(depth)
        shift = self._free(scale * x, scale * y, CHARACTER * len(label.text))
        if shift is None:
            return label._replace(text="")
        return label._replace(place=label.place + shift / scale * axes[1])

    def _free(self, left: float, top: float, width: float) -> float | None:
        """Reserve the nearest free row for a label and return its shift in pixels, or None."""
        near = [upper for start, end, upper in self._taken if start < left + width and left < end]
        adjacent = [upper + side * ROW for upper in near for side in (1.0, -1.0)]
        for row in sorted([top, *adjacent], key=lambda row: abs(row - top)):
            if abs(row - top) > ROWS * ROW:
                return None
            if all(abs(row - upper) >= ROW - 1e-6 for upper in near):
                self._taken.append((left, left + width, row))
                return row - top
        return None
