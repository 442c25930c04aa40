# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models of mechanisms: trees of rigid bodies, from URDF, MJCF, screws, joints or DH tables."""

from mbs_dynamics.model.body import GROUND as GROUND
from mbs_dynamics.model.body import Body as Body
from mbs_dynamics.model.body import Frame as Frame
from mbs_dynamics.model.diagnostics import Diagnostic as Diagnostic
from mbs_dynamics.model.inertia import Inertia as Inertia
from mbs_dynamics.model.inertia import spatial_inertia as spatial_inertia
from mbs_dynamics.model.joint import Joint as Joint
from mbs_dynamics.model.joint import Limits as Limits
from mbs_dynamics.model.model import Model as Model
from mbs_dynamics.model.model import State as State
