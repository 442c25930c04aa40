# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kinematic calibration: zeros of joints, and placements of links, from postures of an arm.

It needs the extra ``identify`` of this package.
"""

from mbs_dynamics.calibration.kinematic import (
    Calibration,
    calibrate_hold,
    calibrate_poses,
    calibrate_touches,
    calibrated_urdf,
)

__all__ = [
    "Calibration",
    "calibrate_hold",
    "calibrate_poses",
    "calibrate_touches",
    "calibrated_urdf",
]
