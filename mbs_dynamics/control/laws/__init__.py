# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws: torques of a state and a reference, and nothing else."""

from mbs_dynamics.control.laws.gravity import Gravity

__all__ = ["Gravity"]
