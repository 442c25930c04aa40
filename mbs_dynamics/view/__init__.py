# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Drawings of robots, and a page that shows them in the browser.

``shapes``, ``drawings`` and ``layers`` depend on no viewer; the other modules need the extra
``view`` and are imported on demand.
"""

from mbs_dynamics.view.shapes import (
    Ellipsoid,
    ScrewAxis,
    ellipsoid_of_inertia,
    screw_axis,
    turn_to,
    velocity_ellipsoid,
)

__all__ = [
    "Ellipsoid",
    "ScrewAxis",
    "ellipsoid_of_inertia",
    "screw_axis",
    "turn_to",
    "velocity_ellipsoid",
]
