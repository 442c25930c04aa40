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
"""The screws of joints, measured at a frame that they move."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import Frame
from mbs_dynamics.representation.moves import Representation, after


def screws_at(rep: Representation, frame: Frame) -> Any:
    """Return the screws (6,) of the joints on the path to a frame, by joint, measured there."""
    return _by_the_ground(rep, frame) if rep.model.generic else _inwards(rep, frame)


def _inwards(rep: Representation, frame: Frame) -> dict[int, Array]:
    """Carry all of them from body to body at once, so that none is carried twice."""
    S: dict[int, Array] = {}
    to_frame = rep.at(frame)
    for i in reversed(rep.model.path(frame.body)):
        S[i] = to_frame @ rep.screw(i)
        to_frame = after(to_frame, rep.carry(i))
    return S


def _by_the_ground(rep: Representation, frame: Frame) -> Any:
    """Take each to the ground and from there to the frame: loops have nothing to carry so."""
    model = rep.model
    in_ground, S = model.per_body(), model.per_body()
    for i, _ in model.outward_to(frame.body):
        in_ground[i] = se3.Ad(rep.C(i)) @ model.bodies[i].joint.screw
    for i, _ in model.outward_to(frame.body):
        S[i] = _from_spatial(in_ground[i], rep.C(frame.body) @ frame.placement, rep.name)
    return S


def _from_spatial(S: Array, C: Array, representation: str) -> Array:
    """Return a spatial screw as it is measured at a frame with pose C: K Table 3."""
    if representation == "spatial":
        return S
    R, e = C[:3, :3], S[:3]
    v = S[3:] - so3.hat(C[:3, 3]) @ e
    if representation == "hybrid":
        return np.concatenate([e, v])
    return np.concatenate([R.T @ e, v if representation == "mixed" else R.T @ v])
