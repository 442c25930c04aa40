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
"""Watches what comes from a robot while torques are commanded. Knows no ROS and no clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.model.tree import Model
from mbs_dynamics.ros.compensation.command_policy import Fault

SLACK = 0.05
"""How far a joint may jump, rad or m, beside what its velocity explains: stamps jitter."""


class Watchdog:
    """Knows whether an input is fresh. Times are those of one steady clock, in s."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.trouble: Fault | None = None
        """What is wrong with the latest message; None if it was valid."""
        self._heard_at: float | None = None

    def feed(self, now: float) -> None:
        """Note a valid message."""
        self._heard_at, self.trouble = now, None

    def refuse(self, trouble: Fault) -> None:
        """Note a message that is not valid."""
        self.trouble = trouble

    def forget(self) -> None:
        """Begin anew, as if nothing had been heard."""
        self._heard_at, self.trouble = None, None

    def stale(self, now: float, timeout: float) -> Fault | None:
        """Return the fault that no valid message has come for ``timeout``, or None."""
        if self._heard_at is None:
            return Fault("stale", f"no valid {self.what} so far")
        age = now - self._heard_at
        if age < timeout:
            return None
        return Fault("stale", f"no valid {self.what} for {age:.3f} s; stale_timeout is {timeout:g}")

    def fresh_for(self, now: float, timeout: float) -> float:
        """Return how long it will take until this input is stale, if nothing is heard; or timeout.

        An input that is stale already cannot become so: look again after a whole ``timeout``.
        """
        left = 0.0 if self._heard_at is None else self._heard_at + timeout - now
        return left if left > 0.0 else timeout

    def problem(self, now: float, timeout: float) -> str:
        """Return why torques must not be enabled; empty if nothing is wrong."""
        stale = self.stale(now, timeout)
        parts = [fault.reason for fault in (stale, self.trouble) if fault is not None]
        return "; ".join(parts)


class Envelope:
    """The positions and velocities within which torques may be commanded.

    Parameters: ``joints`` are coordinates of the model. Limits that the robot's description does
    not state, or states as zero or empty ranges, do not bind. ``margin`` in rad or m.
    """

    def __init__(self, model: Model, joints: Sequence[int], margin: float) -> None:
        self._rows = []
        self.unlimited_speed: list[str] = []
        """Joints whose speed is not watched, since no limit is stated."""
        for k in joints:
            joint = model.joints[k]
            limits = joint.limits
            lower, upper = limits.lower, limits.upper
            if lower is not None and lower == upper:
                lower = upper = None
            low = -math.inf if lower is None else lower - margin
            high = math.inf if upper is None else upper + margin
            fastest = limits.velocity or math.inf
            if fastest == math.inf:
                self.unlimited_speed.append(joint.name)
            self._rows.append((joint.name, k, low, high, fastest))

    def check(self, positions: Sequence[float], rates: Sequence[float]) -> Fault | None:
        """Return what is beyond a limit at these positions and velocities, each (n,), or None."""
        for name, k, low, high, fastest in self._rows:
            if not low <= positions[k] <= high:
                return Fault(
                    "position_limit",
                    f"{name} is at {positions[k]:.4g}; valid is {low:.4g} to {high:.4g}, "
                    "position_margin included",
                )
            if not -fastest <= rates[k] <= fastest:
                return Fault(
                    "velocity_limit",
                    f"{name} moves at {rates[k]:.4g}; its velocity limit is {fastest:.4g}",
                )
        return None


class Continuity:
    """Knows whether positions can follow from those before, at the speeds that joints can have.

    They cannot where two publishers speak for one robot, or an encoder slips. Joints whose velocity
    limit is not stated are not watched.
    """

    def __init__(self, model: Model) -> None:
        self._rows = []
        for k, joint in enumerate(model.joints):
            limits = joint.limits
            turns = joint.kind == "revolute" and limits.lower is None and limits.upper is None
            if limits.velocity:
                self._rows.append((joint.name, k, limits.velocity, turns))
        self._before: Sequence[float] = ()
        self._stamp = 0

    def check(self, positions: Sequence[float], stamp: int) -> Fault | None:
        """Return what cannot be at positions (n,) measured at ``stamp`` in ns, or None.

        They are kept until the next call.
        """
        before = self._before
        elapsed = 1e-9 * (stamp - self._stamp)
        self._before, self._stamp = positions, stamp
        if not len(before) or elapsed <= 0.0:
            return None
        if math.dist(positions, before) <= SLACK:  # mostly, and quick to find
            return None
        for name, k, fastest, turns in self._rows:
            moved = positions[k] - before[k]
            if turns:
                moved = math.remainder(moved, math.tau)
            if abs(moved) > SLACK + 2.0 * fastest * elapsed:
                return Fault(
                    "position_jump",
                    f"{name} jumped by {moved:.4g} in {elapsed:.4g} s; its velocity limit is "
                    f"{fastest:.4g}. Are there two publishers of joint_states?",
                )
        return None
