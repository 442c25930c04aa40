# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What there is to see of a mechanism: shapes, without any viewer."""

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
