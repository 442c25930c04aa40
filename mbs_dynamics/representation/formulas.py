# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Thresholds: which of several formulas with the same result takes the fewest operations."""

from __future__ import annotations

BY_MASS_MATRIX = 34
"""Mean square of the joints that move a body up to which accelerations are solved by the mass
matrix: counted for chains of 8 to 14 joints and for twelve robots."""

ARTICULATED = 12.0
"""Mean number of joints that move a body above which articulated bodies factorize M."""

PAIRS_IN_GROUND = 50
"""Mean square of the joints that move a body above which pairs of bodies meet in the ground.

There, for the Panda, the UR5 and Talos, the mass matrix takes 1.8 to 2.3 times the operations, the
Coriolis matrix 1.4 to 1.5 times, the derivatives 1.3 to 1.4 times and the regressor 1.2 to 1.3
times. In the bodies, for a chain of 30 joints, they take 1.5, 1.6, 1.2 and 2.4 times as many.
"""

CARRIED_SCREWS, CARRIED_COLUMNS, CARRIED_PARAMETERS = 47, 23, 2
"""Joints up to which screws, and those of derivatives, are carried from body to body, with two
thirds of the operations; more are taken there independently of each other, as loops require. And
geometric parameters up to which they are carried one by one."""
