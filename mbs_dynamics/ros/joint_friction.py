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
"""What the joints' own friction takes, as the description of a robot states it. Knows no ROS."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.tree import Model


class JointFriction:
    """Viscous damping and Coulomb friction of the joints of a model, smooth at zero speed.

    A joint with rate v opposes its motion with d v + c tanh(v / ``speed``), d and c being the
    ``damping`` and ``friction`` of its ``<dynamics>``. ``speed`` in rad/s or m/s is where Coulomb
    friction has risen to three quarters. At rest there is none: what a joint that sticks bears is
    not known.
    """

    def __init__(self, model: Model, speed: float) -> None:
        joints = [body.joint for body in model.bodies]
        self.speed = speed
        self._ratios = np.zeros((len(joints), model.n))
        """Rates of the joints by rates of the coordinates: mimic joints share theirs."""
        for ratios, joint in zip(self._ratios, joints, strict=True):
            ratios[joint.coordinate] = joint.ratio
        self._damping = np.array([joint.damping for joint in joints])
        self._coulomb = np.array([joint.friction for joint in joints])

    def torques(self, qd: FloatArray) -> FloatArray:
        """Return the torques (n,) in N m or N that turn against the rates qd (n,)."""
        rate = self._ratios @ qd
        opposing = self._damping * rate + self._coulomb * np.tanh(rate / self.speed)
        torques: FloatArray = -(self._ratios.T @ opposing)
        return torques
