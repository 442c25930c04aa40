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
"""The torque that a robot needs in its present state: gravity, damping, friction. Knows no ROS.

    tau = scale g(q) - damping qd + friction tanh(qd / v0)

Gravity, loads and gains change along a ramp, so that no step of theirs becomes a step of torque.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError
from mbs_dynamics.model.tree import STANDARD_GRAVITY, Model


class Gains(NamedTuple):
    """The coefficients of the law for n commanded joints."""

    scale: tuple[float, ...]
    """(n,) of the gravity torques; 1 compensates them wholly."""
    damping: tuple[float, ...]
    """(n,) in N m s/rad or N s/m."""
    friction: tuple[float, ...]
    """(n,) Coulomb friction to be compensated, in N m or N."""


class Slew:
    """A vector that reaches each new goal along a straight line, in a given time."""

    def __init__(self, value: FloatArray) -> None:
        self._from = self.goal = self._value = np.array(value, dtype=float)
        self._begin = self._duration = 0.0
        self.moving = False

    def aim(self, goal: FloatArray, now: float, duration: float) -> None:
        """Begin to move to another goal; at once if the duration is 0."""
        self._from = self.at(now)
        self.goal = np.array(goal, dtype=float)
        self._begin, self._duration = now, duration
        self.moving = True

    def at(self, now: float) -> FloatArray:
        """Return the vector at this time."""
        if self.moving:
            elapsed = now - self._begin
            if elapsed >= self._duration:
                self._value, self.moving = self.goal, False
            else:
                share = max(0.0, elapsed) / self._duration
                self._value = self._from + share * (self.goal - self._from)
        return self._value


class TorqueLaw:
    """The law of one robot for the joints that are commanded.

    Parameters: ``joints`` are the coordinates of the commanded joints, in their order; ``speed`` is
    v0 in rad/s or m/s, at which friction has reached 76 %. The kernel takes loads at every body, so
    that hanging one on compiles nothing. Gravity is standard gravity and there are no loads until
    they are aimed at. Raises ModelError for a robot without joints.
    """

    def __init__(self, model: Model, joints: Sequence[int], gains: Gains, speed: float) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        self.speed = speed
        self.gravity = Slew(np.array(STANDARD_GRAVITY, dtype=float))
        self.loads = Slew(np.zeros((model.nb, 10)))
        self._joints = tuple(joints)
        self._gains = Slew(np.array(gains))
        self._current = gains
        carrying = model.without_payloads()
        for body in model.body_names:
            carrying = carrying.with_payload(body, 0.0)
        kernel = mbs.compile(mbs.gravity_torques, carrying)
        self._call = kernel.call
        names = [port.name for port in kernel.inputs]
        self._takes = [source for name, source in self._sources().items() if name in names]
        self.torques(np.zeros(model.n), [0.0] * model.n, 0.0)  # binds what is bound once

    def _sources(self) -> dict[str, Slew]:
        return {"gravity": self.gravity, "payload": self.loads}

    def aim(self, gains: Gains, now: float, duration: float) -> None:
        """Move to other gains."""
        self._gains.aim(np.array(gains), now, duration)

    def torques(self, q: FloatArray, rates: Sequence[float], now: float) -> list[float]:
        """Return the torques of the commanded joints at positions q (n,) and velocities (n,)."""
        if self._gains.moving:
            self._current = Gains(*map(tuple, self._gains.at(now).tolist()))
        g = self._call(q, *[source.at(now) for source in self._takes]).tolist()
        tau = []
        for k, scale, damping, friction in zip(self._joints, *self._current, strict=True):
            rate = rates[k]
            value = scale * g[k] - damping * rate
            if friction:
                value += friction * math.tanh(rate / self.speed)
            tau.append(value)
        return tau
