# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The drawing primitives of the layers: solids, arrows, lines and labels.

Positions and lengths are in m, in the frame of the ``body`` with which a drawing moves, which is
the inertial frame for ``GROUND``. Colours are RGB from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import AXES, Colour
from mbs_dynamics.model.body import GROUND

BALL, DISC = "ball", "disc"
"""Shapes of solids: a ball of radius 1, and a cylinder about z of radius 1 and height 1."""

THIN = 0.6
"""Thickness of the arrows of frames, relative to the others."""


class Solid(NamedTuple):
    """A ball or a disc, scaled along its axes."""

    shape: str
    """``BALL`` or ``DISC``."""
    centre: FloatArray
    """(3,)."""
    axes: FloatArray
    """(3, 3) rotation; its columns are the directions of the axes."""
    scales: FloatArray
    """(3,) in m along the axes."""
    colour: FloatArray | Colour
    opacity: float = 1.0
    body: int = GROUND


class Arrows(NamedTuple):
    """Arrows."""

    points: FloatArray
    """(k, 2, 3): tails and heads."""
    colours: FloatArray
    """(k, 3)."""
    thickness: float = 1.0
    body: int = GROUND


class Lines(NamedTuple):
    """Line segments."""

    points: FloatArray
    """(k, 2, 3): both ends."""
    colours: FloatArray
    """(k, 3)."""
    body: int = GROUND


class Label(NamedTuple):
    """A text label."""

    place: FloatArray
    """(3,)."""
    text: str
    body: int = GROUND


Drawing = Solid | Arrows | Lines | Label


def frame(pose: FloatArray, length: float, body: int = GROUND) -> Arrows:
    """Return the axes of a coordinate frame with a pose (4, 4)."""
    tails = np.tile(pose[:3, 3], (3, 1))
    points = np.stack([tails, tails + length * pose[:3, :3].T], axis=1)
    return Arrows(points, np.array(AXES), THIN, body)


def same(colour: Colour, count: int) -> FloatArray:
    """Return ``count`` copies of a colour, (count, 3)."""
    return np.tile(np.array(colour), (count, 1))


def scale(colours: Sequence[Colour], share: float) -> FloatArray:
    """Return the colour (3,) at a share from 0 to 1 of a scale of evenly spaced colours."""
    at = np.linspace(0.0, 1.0, len(colours))
    return np.array([np.interp(share, at, part) for part in zip(*colours, strict=True)])
