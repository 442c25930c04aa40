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
"""From the efforts of a joint_states message to torques in the order of the model. Knows no ROS.

Drives that measure no effort say NaN, as ros2_control writes it, or nothing at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray

LARGEST = 1e9
"""An effort above this, in N m or N, is no measurement."""

NO_EFFORTS = "the message holds no efforts"


class Efforts(NamedTuple):
    """Joint torques, as far as they are known."""

    tau: FloatArray
    """(n,) in N m or N; NaN where it is not known."""
    why_not: str = ""
    """Why some or all are not known; empty if all are."""

    @property
    def complete(self) -> bool:
        """Whether all are known."""
        return not self.why_not


class EffortInput:
    """Reads efforts by name out of messages whose names have been found complete and unique."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self._names: list[str] = []
        self._places: list[int] = []

    def read(self, names: Sequence[str], efforts: Sequence[float]) -> Efforts:
        """Return the torques in a message; a number that cannot be makes all of them unknown."""
        if not efforts:
            return self._none(NO_EFFORTS)
        if len(efforts) != len(names):
            return self._none(f"{len(names)} joint names but {len(efforts)} effort value(s)")
        if names != self._names:
            places = {name: place for place, name in enumerate(names)}
            self._places = [places[name] for name in self.joint_names]
            self._names = list(names)
        tau = np.array([efforts[place] for place in self._places])
        pairs = list(zip(self.joint_names, tau.tolist(), strict=True))
        wild = [f"{name} = {value:g}" for name, value in pairs if abs(value) > LARGEST]
        if wild:
            return self._none(f"effort is no measurement: {', '.join(wild)}")
        missing = [name for name, value in pairs if math.isnan(value)]
        return Efforts(tau, f"no effort of {', '.join(missing)}" if missing else "")

    def _none(self, why_not: str) -> Efforts:
        return Efforts(np.full(len(self.joint_names), np.nan), why_not)
