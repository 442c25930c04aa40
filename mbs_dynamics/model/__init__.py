# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Models of mechanisms: trees of rigid bodies, from URDF, screws, joint frames or DH tables."""

from mbs_dynamics.model import dh, macro_joints, screws
from mbs_dynamics.model.body import GROUND, Body, Frame
from mbs_dynamics.model.doubts import Doubt
from mbs_dynamics.model.inertia import Inertia, spatial_inertia
from mbs_dynamics.model.joint import Joint, Limits
from mbs_dynamics.model.tree import Model, State

__all__ = [
    "GROUND",
    "Body",
    "Doubt",
    "Frame",
    "Inertia",
    "Joint",
    "Limits",
    "Model",
    "State",
    "dh",
    "macro_joints",
    "screws",
    "spatial_inertia",
]
