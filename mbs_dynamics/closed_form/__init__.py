# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of the papers for a whole mechanism at once, as short products of large matrices.

The twists of all bodies, one below the other, are one column V (6 nb,). A recursion from body to
body is then a single equation between block matrices, and its solution a product of them. Nothing
here is fast. It is there to be read beside the papers, and as an oracle for the algorithms, with
which it shares no recursion: poses are products of exponentials of the screws at q = 0, and all
else is written down block by block. The equations of one body are in rigid_body.py.
"""

from mbs_dynamics.closed_form.accelerations import MovingSystem
from mbs_dynamics.closed_form.dynamics import DynamicSystem
from mbs_dynamics.closed_form.kinematics import System

__all__ = ["DynamicSystem", "MovingSystem", "System"]
