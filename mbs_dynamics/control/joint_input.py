# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Merges messages of joint states into the state of a robot.

The joints of one robot may come in several messages, at different rates: the latest measurement of
each joint counts, and each must be fresh. A doubtful message is rejected as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_states import (
    JointStateReader,
    Rejection,
    States,
    fixed_coordinates,
)
from mbs_dynamics.control.turns import turning, turns_to
from mbs_dynamics.errors import listed
from mbs_dynamics.model.model import Model

NOT_REPORTED = "not reported yet"


class Reading(NamedTuple):
    """A clean state, merged of all messages. The arrays are buffers: valid until the next read."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray | None
    """(n,) velocities in rad/s or m/s; None if the velocity of a joint is unknown."""
    why_no_velocity: str
    """Why ``qd`` is None, with the joints; empty if it is not."""
    tau: FloatArray
    """(n,) efforts in N m or N of the latest message of each joint; NaN where none is known."""
    why_no_effort: str
    """Which efforts are unknown; empty if none is."""
    stamp: int
    """The newest time stamp of the joints, in ns; 0 if this message has none."""
    repeated: bool
    """Whether no joint of this message advanced its time stamp: the same measurement again."""


class JointInput:
    """Merges the state of one robot out of messages of joint states.

    Parameters: ``joint_names`` of the n coordinates in order; ``wraps`` tells for each whether its
    position is an angle without limits, to be unwrapped; ``velocity_from_position`` takes
    differences of positions for messages that hold no velocities. Joints must be no older than
    ``stale_timeout`` in s. ``fixed`` are the positions in rad or m of joints that no driver
    reports: they are at rest and always fresh.

    Raises what :func:`fixed_coordinates` raises.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        wraps: Sequence[bool] | None = None,
        stale_timeout: float = 0.5,
        velocity_from_position: bool = False,
        fixed: Mapping[str, float] = {},
    ) -> None:
        self.joint_names, n = tuple(joint_names), len(joint_names)
        self.stale_timeout, self.velocity_from_position = stale_timeout, velocity_from_position
        at = fixed_coordinates(self.joint_names, fixed)
        self._reader = JointStateReader(self.joint_names, list(at))
        self._wraps = wraps if wraps is not None else [False] * n
        self._q, (self._qd, self._tau) = np.zeros(n), np.full((2, n), math.nan)
        self.stamps = [0] * n
        """(n,) in ns, of the latest stamped measurement of each coordinate; 0 if there is none."""
        self._received, self._before = [-math.inf] * n, [0.0] * n
        """(n,) when the latest measurement was received, and its position."""
        for k, position in at.items():
            self._q[k], self._qd[k], self._received[k] = position, 0.0, math.inf

    @classmethod
    def of_model(cls, model: Model, **options: Any) -> JointInput:
        """Return the input of a model; ``options`` are parameters of the class.

        Joints that mimic others have no coordinates, and a floating base has no joint state.
        """
        joints, turns = [joint for joint in model.joints if joint.nv == 1], turning(model)
        wraps = [turns[joint.coordinate] for joint in joints]
        return cls([joint.name for joint in joints], wraps=wraps, **options)

    def read(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        efforts: Sequence[float] = (),
        *,
        stamp: int,
        received: float,
    ) -> Reading | Rejection:
        """Merge a message; return the state of the robot, or the reason why there is none.

        ``stamp`` is the message's time stamp in ns, 0 if it has none; ``received`` a steady clock
        in s. ``velocities`` and ``efforts`` may be empty. A message with a stamp before that of one
        of its joints is rejected, unless that joint is stale. A repeated stamp is no new
        measurement: it keeps no joint fresh.
        """
        found = self._reader.read(names, positions, velocities, efforts)
        if isinstance(found, Rejection):
            return found
        late = self._late(found, stamp, received)
        if late is not None:
            return late
        new = [k for k in found.joints if not stamp or stamp != self.stamps[k]]
        for k, q, rate, tau in zip(*found, strict=True):
            if self._wraps[k] and self._received[k] > -math.inf:
                q += turns_to(q, self._q[k])
            if rate == rate or not self.velocity_from_position:
                self._qd[k] = rate
            elif k in new:  # else the same measurement has the same velocity
                self._qd[k] = self._difference(k, q, stamp)
            self._q[k], self._tau[k] = q, tau
        for k in new:
            self._received[k], self.stamps[k] = received, stamp or self.stamps[k]
            self._before[k] = float(self._q[k])
        if self.stale(received):
            return self._incomplete(received, repeated=not new)
        why_not = self._unknown("velocities", self._qd)
        return Reading(
            self._q,
            None if why_not else self._qd,
            why_not,
            self._tau,
            self._unknown("efforts", self._tau),
            max(self.stamps) if stamp else 0,
            not new,
        )

    def _late(self, found: States, stamp: int, received: float) -> Rejection | None:
        """Return why this stamp is rejected; restart the time of joints that are stale."""
        late = [k for k in found.joints if 0 < stamp < self.stamps[k]]
        for k in late:
            if received - self._received[k] < self.stale_timeout:
                ago = 1e-9 * (self.stamps[k] - stamp)
                return Rejection(
                    "time_backwards",
                    f"time goes backwards: the stamp {1e-9 * stamp:.6f} s is {ago:.6f} s before "
                    f"that of the latest measurement of {self.joint_names[k]}",
                )
        for k in late:
            self.stamps[k] = 0
        return None

    def _difference(self, k: int, q: float, stamp: int) -> float:
        """Return the velocity of a joint since its previous position; NaN without one in time."""
        before = self.stamps[k]
        elapsed = 1e-9 * (stamp - before)
        if not stamp or not before or elapsed > self.stale_timeout:
            return math.nan
        return (q - self._before[k]) / elapsed

    def stale(self, now: float) -> list[str]:
        """Return the joints that are not fresh and their ages in words; empty if all are fresh."""
        ages = []
        for name, received in zip(self.joint_names, self._received, strict=True):
            if received == -math.inf:
                ages.append(f"{name} {NOT_REPORTED}")
            elif now - received >= self.stale_timeout:
                ages.append(f"{name} for {now - received:.3f} s")
        return ages

    def _incomplete(self, now: float, *, repeated: bool) -> Rejection:
        reason = f"joints without fresh measurement: {listed(self.stale(now))}"
        pairs = zip(self.joint_names, self._received, strict=True)
        never = [name for name, received in pairs if received == -math.inf]
        if never:
            reason += f"; if no driver reports {listed(never)}, state them in fixed_positions"
        if repeated:
            reason += "; the time stamp of this message did not advance"
        return Rejection("incomplete_joints", reason)

    def _unknown(self, what: str, values: FloatArray) -> str:
        """Return which joints report no such values (n,); empty if all do."""
        unknown = np.isnan(values)
        if not unknown.any():
            return ""
        names = [name for name, so in zip(self.joint_names, unknown, strict=True) if so]
        return f"no {what} of {listed(names)} are reported"
