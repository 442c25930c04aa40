# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
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
