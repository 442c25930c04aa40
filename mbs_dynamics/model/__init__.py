# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models of mechanisms: trees of rigid bodies, from URDF, screws, joint frames or DH tables."""

from mbs_dynamics.model.arrays import State
from mbs_dynamics.model.body import GROUND, Body, Frame
from mbs_dynamics.model.diagnostics import Diagnostic
from mbs_dynamics.model.inertia import Inertia, spatial_inertia
from mbs_dynamics.model.joint import Joint, Limits
from mbs_dynamics.model.model import Model

__all__ = [
    "GROUND",
    "Body",
    "Diagnostic",
    "Frame",
    "Inertia",
    "Joint",
    "Limits",
    "Model",
    "State",
    "spatial_inertia",
]
