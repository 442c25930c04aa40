# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of inertias, twists and velocities, independent of the viewer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3
from mbs_dynamics.model.inertia import Inertia


class Ellipsoid(NamedTuple):
    """An ellipsoid."""

    centre: FloatArray
    """(3,)."""
    axes: FloatArray
    """(3, 3) rotation matrix; its columns are the directions of the semi-axes."""
    semi_axes: FloatArray
    """(3,)."""


class ScrewAxis(NamedTuple):
    """The axis about which a body rotates and along which it translates."""

    point: FloatArray
    """(3,) point of the axis nearest to the origin in m; zero for a translation."""
    direction: FloatArray
    """(3,) unit vector; zero for a body at rest."""
    rate: float
    """Angular velocity in rad/s; 0 for a translation."""
    speed: float
    """Velocity along the axis in m/s."""


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


def screw_axis(V: FloatArray) -> ScrewAxis:
    """Return the screw axis of a spatial twist V (6,), angular part first.

    See :func:`~mbs_dynamics.lie.se3.screw_parameters`.
    """
    point, direction, pitch, magnitude = se3.screw_parameters(V)
    if np.isinf(pitch):
        return ScrewAxis(point, direction, 0.0, float(magnitude))
    return ScrewAxis(point, direction, float(magnitude), float(pitch * magnitude))


def velocity_ellipsoid(J: FloatArray) -> Ellipsoid:
    """Return the ellipsoid of the velocities J qd for all qd of norm 1, J of shape (3, n).

    Its semi-axes are the singular values of J (Yoshikawa 1985), in m/s per rad/s.
    """
    axes, lengths, _ = np.linalg.svd(np.asarray(J, dtype=float))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    semi_axes = np.zeros(3)
    semi_axes[: len(lengths)] = lengths
    return Ellipsoid(np.zeros(3), axes, semi_axes)


def turn_to(direction: FloatArray) -> FloatArray:
    """Return a rotation matrix (3, 3) whose z axis has the given non-zero direction (3,)."""
    z = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    other = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(other, z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)
