# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Ellipsoids of inertias, and rotations to axes, independent of the viewer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.inertia import Inertia


class Ellipsoid(NamedTuple):
    """An ellipsoid."""

    centre: FloatArray
    """(3,)."""
    axes: FloatArray
    """(3, 3) rotation matrix; its columns are the directions of the semi-axes."""
    semi_axes: FloatArray
    """(3,)."""


def ellipsoid_of_inertia(inertia: Inertia) -> Ellipsoid:
    """Return the uniform solid ellipsoid with the given inertia, in the frame of the inertia, in m.

    Its second moments about the centre are m a^2 / 5. Semi-axes are zero for a massless body, and
    where an unphysical inertia would make their squares negative.
    """
    centre = np.asarray(inertia.com, dtype=float)
    mass = float(inertia.mass)
    if mass <= 0.0:
        return Ellipsoid(centre, np.eye(3), np.zeros(3))
    about_centre = np.asarray(inertia.second_moments) - mass * np.outer(centre, centre)
    moments, axes = np.linalg.eigh(about_centre)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    return Ellipsoid(centre, axes, np.sqrt(5.0 * np.maximum(moments, 0.0) / mass))


def turn_to(direction: FloatArray) -> FloatArray:
    """Return a rotation matrix (3, 3) whose z axis has the given non-zero direction (3,)."""
    z = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    other = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(other, z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
