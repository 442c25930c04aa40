# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics: joint rates for a twist, and joint positions for a pose within the limits."""

from mbs_dynamics.algorithms.inverse_kinematics.poses import InverseKinematics, inverse_kinematics
from mbs_dynamics.algorithms.inverse_kinematics.rates import inverse_differential_kinematics

__all__ = ["InverseKinematics", "inverse_differential_kinematics", "inverse_kinematics"]
