# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Drawings of robots, and a page that shows them in the browser.

:func:`show` and :func:`play` need the extra ``view``, which is imported when they are called; the
quantities that are drawn, such as :func:`screw_axis`, do not.
"""

from mbs_dynamics.view.shapes import (
    Ellipsoid,
    ScrewAxis,
    ellipsoid_of_inertia,
    screw_axis,
    turn_to,
    velocity_ellipsoid,
)
from mbs_dynamics.view.showing import View, play, show
from mbs_dynamics.view.urdf_visuals import (
    Box,
    Capsule,
    Cylinder,
    Mesh,
    Sphere,
    Triangles,
    Visual,
)

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Mesh",
    "ScrewAxis",
    "Sphere",
    "Triangles",
    "View",
    "Visual",
    "ellipsoid_of_inertia",
    "play",
    "screw_axis",
    "show",
    "turn_to",
    "velocity_ellipsoid",
]
