# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The Lie groups SO(3) and SE(3), on floats and on traced symbols alike."""

from mbs_dynamics.lie import se3 as se3
from mbs_dynamics.lie import so3 as so3
