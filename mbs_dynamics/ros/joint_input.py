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
"""From the fields of a joint_states message to a clean state of the robot, or the reason why not.

Knows no ROS. Joints are matched by name, in any order; other joints are ignored. Whatever is
doubtful is rejected as a whole, so that bad data never becomes a torque.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.tree import Model

LARGEST = 1e9
"""A state of this length, in rad, m, rad/s or m/s, is no measurement; its torques may overflow."""

NO_VELOCITIES = "the message holds no velocities"
NAN_VELOCITIES = "all velocities are NaN, as ros2_control writes where none are measured"
FIRST_POSITION = "velocities are differences of positions, and this is the first position"
UNSTAMPED = "velocities are differences of positions, and the message has no time stamp"
REPEATED_STAMP = "velocities are differences of positions, and the time stamp did not advance"


class Reading(NamedTuple):
    """A clean state. The arrays are buffers: valid until the next message is read."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray | None
    """(n,) velocities in rad/s or m/s; None if there are none."""
    why_no_velocity: str = ""
    """Why ``qd`` is None."""


class Rejection(NamedTuple):
    """Why a message was rejected."""

    kind: str
    """A short key to count by, such as ``"missing_joints"``."""
    reason: str
    """What is wrong, with names and numbers, for a person."""


class JointInput:
    """Reads the state of one robot out of joint_states messages.

    Which entry of a message belongs to which coordinate is found once for each new list of names.

    Parameters: ``joint_names`` of the n coordinates in order; ``wraps`` says for each whether its
    position is an angle without limits, whose differences are taken modulo a full turn;
    ``stale_timeout`` in s; ``velocity_from_position`` takes differences of positions for messages
    that hold no velocities.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        wraps: Sequence[bool] | None = None,
        stale_timeout: float = 0.5,
        velocity_from_position: bool = False,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.stale_timeout = stale_timeout
        self.velocity_from_position = velocity_from_position
        n = len(self.joint_names)
        self._wraps = np.array(wraps if wraps is not None else [False] * n, dtype=bool)
        # between two messages the processor's caches go cold: arrays of Python are quicker then
        # than a few calls of NumPy, which sees the same memory
        self._positions, self._velocities = array("d", [0.0] * n), array("d", [0.0] * n)
        self._q, self._qd = np.frombuffer(self._positions), np.frombuffer(self._velocities)
        self._names: list[str] | None = None
        self._length = 0
        self._places: list[int] = []
        self._fault: Rejection | None = None
        self._accepted_stamp = 0
        self._accepted_at = -np.inf
        self._previous_q = np.zeros(n)
        self._previous_stamp = 0

    @classmethod
    def of_model(
        cls, model: Model, *, stale_timeout: float, velocity_from_position: bool
    ) -> JointInput:
        """Return the input of a model: its coordinates' joints, without those that mimic others."""
        wraps = [
            joint.kind == "revolute" and joint.limits.lower is None and joint.limits.upper is None
            for joint in model.joints
        ]
        return cls(
            model.joint_names,
            wraps=wraps,
            stale_timeout=stale_timeout,
            velocity_from_position=velocity_from_position,
        )

    def read(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        *,
        stamp: int,
        received: float,
    ) -> Reading | Rejection:
        """Return the state in a message, or the reason to reject it.

        ``stamp`` is the message's time stamp in ns, 0 if it has none; ``received`` a steady clock
        in s. ``velocities`` may be empty.

        A stamp before that of the last accepted message is rejected. Once nothing has been
        accepted for ``stale_timeout``, time starts anew, so that a simulation that is reset or a
        recording that is played again is followed after that pause.
        """
        if names != self._names:
            self._learn(names)
        if self._fault is not None:
            return self._fault
        if len(positions) != self._length:
            return self._wrong_length("position", len(positions))
        if velocities and len(velocities) != self._length:
            return self._wrong_length("velocity", len(velocities))
        for k, place in enumerate(self._places):
            self._positions[k] = positions[place]
        if not math.hypot(*self._positions) < LARGEST:  # nor is it for NaN
            return self._no_measurement("position", self._positions)
        if stamp and stamp < self._accepted_stamp:
            if received - self._accepted_at < self.stale_timeout:
                return self._backwards(stamp)
            self._previous_stamp = 0
        qd: FloatArray | None = None
        why_not = NO_VELOCITIES
        if velocities:
            for k, place in enumerate(self._places):
                self._velocities[k] = velocities[place]
            if math.hypot(*self._velocities) < LARGEST:
                qd = self._qd
            elif all(map(math.isnan, self._velocities)):
                why_not = NAN_VELOCITIES
            else:
                return self._no_measurement("velocity", self._velocities)
        if self.velocity_from_position:
            if qd is None:
                qd, why_not = self._difference(stamp)
            if stamp != self._previous_stamp:
                self._previous_q[:] = self._q
                self._previous_stamp = stamp
        if stamp:
            self._accepted_stamp = stamp
        self._accepted_at = received
        return Reading(self._q, qd, "" if qd is not None else why_not)

    def _learn(self, names: Sequence[str]) -> None:
        """Find out where the joints stand in messages with these names, or what is wrong there."""
        self._names = list(names)
        self._length = len(self._names)
        self._fault = None
        places: dict[str, int] = {}
        twice: list[str] = []
        for place, name in enumerate(self._names):
            if name in places:
                twice.append(name)
            places[name] = place
        twice = [name for name in self.joint_names if name in twice]
        missing = [name for name in self.joint_names if name not in places]
        if len(missing) == len(self.joint_names):
            held = ", ".join(self._names) or "no names at all"
            wanted = ", ".join(self.joint_names)
            self._fault = Rejection(
                "no_joints",
                f"none of the robot's joints is in the message: it holds {held}; "
                f"the robot has {wanted}",
            )
        elif missing:
            self._fault = Rejection(
                "missing_joints", f"joints missing from the message: {', '.join(missing)}"
            )
        elif twice:
            self._fault = Rejection(
                "duplicate_joints", f"joints named more than once: {', '.join(twice)}"
            )
        else:
            self._places = [places[name] for name in self.joint_names]

    def _difference(self, stamp: int) -> tuple[FloatArray | None, str]:
        """Return velocities from the positions of this message and the one before."""
        if not stamp:
            return None, UNSTAMPED
        if stamp == self._previous_stamp:
            return None, REPEATED_STAMP
        elapsed = 1e-9 * (stamp - self._previous_stamp)
        if not self._previous_stamp or elapsed > self.stale_timeout:
            return None, FIRST_POSITION
        moved = self._q - self._previous_q
        turned = np.remainder(moved + np.pi, 2.0 * np.pi) - np.pi
        np.copyto(moved, turned, where=self._wraps)
        np.divide(moved, elapsed, out=self._qd)
        return self._qd, ""

    def _wrong_length(self, what: str, length: int) -> Rejection:
        return Rejection(
            f"{what}_length",
            f"{self._length} joint names but {length} {what} value(s)",
        )

    def _no_measurement(self, what: str, values: Sequence[float]) -> Rejection:
        pairs = list(zip(self.joint_names, values, strict=True))
        bad = [f"{name} = {value}" for name, value in pairs if not math.isfinite(value)]
        if bad:
            return Rejection("not_finite", f"{what} is not finite: {', '.join(bad)}")
        name, value = max(pairs, key=lambda pair: abs(pair[1]))
        return Rejection("too_large", f"{what} is too large to be true: {name} = {value:g}")

    def _backwards(self, stamp: int) -> Rejection:
        late = 1e-9 * (self._accepted_stamp - stamp)
        return Rejection(
            "time_backwards",
            f"time goes backwards: the stamp {1e-9 * stamp:.6f} s is {late:.6f} s before that of "
            "the message before",
        )
