# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Playback of trajectories: approach, pause, and the way back to where it was paused.

Each call returns a whole motion, from rest to rest: whoever follows it needs no other command. A
pause changes the part of the motion that is still to come, and nothing of what is over, so that
the reference is continuous whenever the pause is received.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.teaching import BEYOND, POINTS, Rig
from mbs_dynamics.control.trajectory import Point, Trajectory
from mbs_dynamics.errors import ArgumentError

APPROACH_SPEED, APPROACH_ACCELERATION, APPROACH_SHARE = 0.5, 1.0, 0.3
"""Largest speed and acceleration of an approach per s and s^2, and share of the speed limits."""

APART = 1e-3
"""Least time between two points in s."""

BEARABLE = 0.95
"""Factor of speed within limits from which on a ramp is accepted."""

SOFT = 0.2, 0.4, 0.8, 1.6
"""Times in s in which a motion pauses or goes on; the first within limits is taken."""


class Motion(NamedTuple):
    """A trajectory, and when it begins."""

    trajectory: Trajectory
    start: float
    """In s, of the caller's clock."""

    def at(self, t: float) -> Point:
        """Return the reference at time ``t`` in s."""
        return self.trajectory.at(t - self.start)


class Playback:
    """Plays a trajectory of the joints of a rig; times are those of one clock, in s.

    Raises what ``trajectory.check`` raises, and ArgumentError for a trajectory of other joints.
    """

    def __init__(self, rig: Rig, trajectory: Trajectory) -> None:
        trajectory.check(rig.model)
        self._rig, self._plan = rig, trajectory.ordered(rig.names)
        self._motion: Motion | None = None
        self._paused_at: float | None = None
        """Time of the plan at which it paused."""

    def state(self, t: float) -> str:
        """Return ``"playing"``, ``"paused"``, or ``"idle"`` before the beginning and at the end."""
        if self._paused_at is not None:
            return "paused"
        motion = self._motion
        return (
            "idle"
            if motion is None or t >= motion.start + motion.trajectory.times[-1]
            else "playing"
        )

    def start(self, t: float, positions: ArrayLike) -> Motion:
        """Return the approach from measured ``positions`` (m,) at time ``t``, and the trajectory.

        Raises ArgumentError for positions beyond the limits, and for an approach that the motors
        cannot bear.
        """
        plan = self._plan
        return self._go(t, positions, plan.times - plan.times[0], _along(plan, plan.times))

    def pause(self, t: float) -> Motion:
        """Return the motion that comes to rest on its path from time ``t`` on.

        Raises ArgumentError if nothing is playing.
        """
        if self._motion is None or self.state(t) != "playing":
            raise ArgumentError(f"there is nothing to pause: playback is {self.state(t)}")
        plan, start = self._plan, self._motion.start
        now = max(t - start, 0.0)
        past = plan.times[plan.times < now - APART]
        times, x, motion = self._ramped(now, rising=False)
        self._paused_at = float(x[-1])
        whole = np.hstack([_along(plan, past), motion])
        self._motion = Motion(Trajectory(plan.names, np.append(past, now + times), *whole), start)
        return self._motion

    def resume(self, t: float, positions: ArrayLike) -> Motion:
        """Return the motion from measured ``positions`` (m,) to where it paused, and on from there.

        Raises ArgumentError if it has not paused, and as :meth:`start`.
        """
        if self._paused_at is None:
            raise ArgumentError(f"there is nothing to resume: playback is {self.state(t)}")
        plan = self._plan
        times, x, motion = self._ramped(self._paused_at, rising=True)
        left = plan.times[plan.times > x[-1] + APART]
        times = np.append(times, times[-1] + left - x[-1])
        return self._go(t, positions, times, np.hstack([motion, _along(plan, left)]))

    def _go(self, t: float, positions: ArrayLike, times: FloatArray, motion: FloatArray) -> Motion:
        """Return a motion (3, N, m) with an approach before it, which becomes the plan."""
        rig = self._rig
        q = checks.numbers("positions", positions, (len(rig.names),))
        beyond = np.maximum(rig.lower - q, q - rig.upper)
        if beyond.max() > BEYOND:
            j = int(beyond.argmax())
            raise ArgumentError(
                f"{rig.names[j]!r} is at {q[j]:.4g}; valid is {rig.lower[j]:.4g} to "
                f"{rig.upper[j]:.4g}: move it back first"
            )
        q = np.clip(q, rig.lower, rig.upper)
        turns = np.round((q - motion[0, 0]) / math.tau)
        motion[0] += np.where(rig.turning, math.tau * turns, 0.0)
        way = motion[0, 0] - q
        speed = np.minimum(APPROACH_SHARE * rig.velocity, APPROACH_SPEED)
        # the quintic polynomial from rest to rest
        lead = max(
            float((1.875 * abs(way) / speed).max()),
            float(np.sqrt(5.774 * abs(way) / APPROACH_ACCELERATION).max()),
            SOFT[0],
        )
        y = np.linspace(0.0, 1.0, 50)[:, None]
        share = y**3 * (10.0 - 15.0 * y + 6.0 * y**2)
        rate, bend = 30.0 * y**2 * (1.0 - y) ** 2, 60.0 * y * (1.0 - y) * (1.0 - 2.0 * y)
        slower, what = rig.largest_speed(q + way * share, way * rate / lead, way * bend / lead**2)
        if slower == 0.0:
            raise ArgumentError(f"{what} exceeds its limit on the approach: move the arm nearer")
        lead /= min(slower, 1.0)
        rest = np.stack([q, 0.0 * q, 0.0 * q])[:, None]
        whole = np.hstack([rest, motion])
        self._plan = Trajectory(self._plan.names, np.append(0.0, lead + times), *whole)
        self._paused_at, self._motion = None, Motion(self._plan, t)
        return self._motion

    def _ramped(self, at: float, *, rising: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return times (N,), those of the plan, and the motion (3, N, m) of a ramp of its rate."""
        for T in SOFT:
            y = np.linspace(0.0, 1.0, round(POINTS * T) + 1)
            rate, bend, x = y**2 * (3.0 - 2.0 * y), 6.0 * y * (1.0 - y) / T, y**3 - 0.5 * y**4
            if not rising:
                rate, bend, x = 1.0 - rate, -bend, y - x
            x = at + T * x
            motion = _along(self._plan, x, rate, bend)
            if self._rig.largest_speed(*motion)[0] >= BEARABLE:
                break
        return T * y, x, motion


def _along(plan: Trajectory, x: FloatArray, rate: Any = 1.0, bend: Any = 0.0) -> FloatArray:
    """Return the motion (3, N, m) at times x (N,) of a plan that pass at a rate, and its rate."""
    if not len(x):
        return np.zeros((3, 0, len(plan.names)))
    q, qd, qdd = np.swapaxes([plan.at(t) for t in x], 0, 1)
    rate, bend = (np.broadcast_to(each, x.shape)[:, None] for each in (rate, bend))
    return np.stack([q, rate * qd, rate**2 * qdd + bend * qd])
