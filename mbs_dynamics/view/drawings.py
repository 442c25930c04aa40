# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The drawing primitives of the layers: solids, arrows, lines, frames and labels.

Positions and lengths are in m, in the inertial frame; colours are RGB from 0 to 1, one row for each
primitive.
"""

from __future__ import annotations

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
    """Straight lines."""

    points: FloatArray
    """(k, 2, 3): both ends."""
    colours: FloatArray
    """(k, 3)."""


class Frames(NamedTuple):
    """Coordinate frames."""

    poses: FloatArray
    """(k, 4, 4)."""
    length: float


class Labels(NamedTuple):
    """Text labels."""

    places: FloatArray
    """(k, 3)."""
    texts: tuple[str, ...]


Drawing = Ellipsoids | Discs | Arrows | Lines | Frames | Labels


def same(colour: Colour, count: int) -> FloatArray:
    """Return ``count`` copies of a colour, (count, 3)."""
    return np.tile(np.array(colour), (count, 1))


def between(low: Colour, high: Colour, share: FloatArray) -> FloatArray:
    """Return colours (k, 3) interpolated from ``low`` at a share (k,) of 0 to ``high`` at 1."""
    weight = np.asarray(share, dtype=float)[:, None]
    mixed: FloatArray = (1.0 - weight) * np.array(low) + weight * np.array(high)
    return mixed
