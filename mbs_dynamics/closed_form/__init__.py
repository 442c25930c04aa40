# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of the papers for a whole mechanism, as short products of system matrices.

The twists of all bodies are stacked in one column V (6 nb,). A recursion over the bodies is then
one equation of block matrices, and its solution a product of them. The functions are slow. They
are for reading beside the papers, and an independent reference for the algorithms, whose recursions
they do not use: poses are products of exponentials of the screws at q = 0, and all other matrices
are assembled block by block.
"""

from mbs_dynamics.closed_form.accelerations import MovingSystem
from mbs_dynamics.closed_form.dynamics import DynamicSystem
from mbs_dynamics.closed_form.kinematics import System

__all__ = ["DynamicSystem", "MovingSystem", "System"]
