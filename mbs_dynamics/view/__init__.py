# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What there is to see of a mechanism, and a page of the browser that shows it.

``shapes``, ``drawings`` and ``layers`` know no viewer; ``page`` and what it needs are imported when
they are asked for, and need the extra ``view``.
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
