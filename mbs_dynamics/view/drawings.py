# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The drawing primitives of the layers: solids, arrows, lines, frames and labels.

Positions and lengths are in m, in the inertial frame or, within :class:`Fixed`, in the frame of a
body. Colours are RGB from 0 to 1, one row for each primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import Colour


class Ellipsoids(NamedTuple):
    """Solid ellipsoids."""

    centres: FloatArray
    """(k, 3)."""
    rotations: FloatArray
    """(k, 3, 3); columns are the directions of the semi-axes."""
    semi_axes: FloatArray
    """(k, 3)."""
    colours: FloatArray
    """(k, 3)."""
    opacity: float = 1.0


class Discs(NamedTuple):
    """Thin cylinders."""

    centres: FloatArray
    """(k, 3)."""
    rotations: FloatArray
    """(k, 3, 3); the z axis is the axis of the cylinder."""
    radii: FloatArray
    """(k,)."""
    colours: FloatArray
    """(k, 3)."""
    thickness: float = 0.01
    opacity: float = 0.9


class Arrows(NamedTuple):
    """Arrows."""

    points: FloatArray
    """(k, 2, 3): tails and heads."""
    colours: FloatArray
    """(k, 3)."""


class Lines(NamedTuple):
    """Line segments."""

    points: FloatArray
    """(k, 2, 3): both ends."""
    colours: FloatArray
    """(k, 3)."""


class Frames(NamedTuple):
    """Coordinate frames."""

    poses: FloatArray
    """(k, 4, 4)."""
    length: float


class Label(NamedTuple):
    """A text label."""

    place: FloatArray
    """(3,)."""
    text: str
    """Empty for a label that is not shown."""
    rank: float = 0.0
    """Labels with a higher rank are placed first; others are moved or omitted."""


class Fixed(NamedTuple):
    """A drawing in the frame of a body, which moves with the body."""

    body: int
    drawing: Ellipsoids | Discs | Arrows | Lines | Frames | Label


Drawing = Ellipsoids | Discs | Arrows | Lines | Frames | Label | Fixed


def same(colour: Colour, count: int) -> FloatArray:
    """Return ``count`` copies of a colour, (count, 3)."""
    return np.tile(np.array(colour), (count, 1))


def scale(colours: Sequence[Colour], share: float) -> FloatArray:
    """Return the colour (3,) at a share from 0 to 1 of a scale of evenly spaced colours."""
    at = np.linspace(0.0, 1.0, len(colours))
    return np.array([np.interp(share, at, part) for part in zip(*colours, strict=True)])
