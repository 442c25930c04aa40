# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""External joint torques by the generalised-momentum observer. Knows no ROS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.ros.robot import Momentum

if TYPE_CHECKING:
    from mbs_dynamics.integrate import JointForces

JUST_STARTED = "the observer has just started: it needs two messages"
UNSTAMPED = "the message has no time stamp"
NO_VELOCITY = "the message gives no velocities"


class _Sample(NamedTuple):
    """What one message says."""

    stamp: int
    q: FloatArray
    qd: FloatArray
    p: FloatArray
    """(n,) M qd, generalised momentum in N m s or N s."""
    rate: FloatArray
    """(n,) its rate without external torques; NaN where the effort is not known."""


class MomentumObserver:
    """Finds the torques that the surroundings exert on the joints, without accelerations.

    The generalised momentum p = M qd obeys pd = tau + C^T qd - g + tau_ext, since Md = C + C^T.
    The residual r = K (p - p0 - integral of (tau + C^T qd - g + r)) of De Luca, Albu-Schaeffer,
    Haddadin and Hirzinger (2006) then obeys rd = K (tau_ext - r): it follows tau_ext as a low-pass
    filter with the time constant 1/K does.

    Time is that of the messages; where joints are measured at different times, that of the newest
    measurement, and nothing is integrated before it advances. From one time to the next, at
    whatever distance, the mean external torque is the change of p over the time between, less the
    mean of the other torques (trapezoidal rule), and rd is solved exactly: r <- a r + (1 - a)
    tau_ext with a = exp(-K dt). The noise of the velocities goes into r through K M, that of the
    efforts directly.

    ``gain`` K in 1/s. Between messages further apart than ``longest`` s too much is unknown: the
    observer starts anew. ``friction`` is taken off the efforts; None takes nothing off.
    """

    def __init__(self, *, gain: float, longest: float, friction: JointForces | None = None) -> None:
        self.gain = gain
        self.longest = longest
        self.friction = friction
        self.why_not = JUST_STARTED
        """Why there is no residual; empty if there is one."""
        self._r: FloatArray | None = None
        self._before: _Sample | None = None

    @property
    def residual(self) -> FloatArray | None:
        """External torques (n,) in N m or N, NaN at joints without effort; None if none is known.

        They act on the robot: a push along a joint's positive direction gives a positive torque.
        """
        return self._r

    def restart(self) -> None:
        """Forget the past."""
        self._r, self._before, self.why_not = None, None, JUST_STARTED

    def adopt(self, momentum: Callable[[FloatArray, FloatArray], Momentum]) -> None:
        """Go on with the same joints under another gravity or load, from the residual as it is.

        ``momentum`` gives that of the robot as it is now, at q and qd.
        """
        before = self._before
        if before is not None:  # the momentum changes with the load, what it went by does not
            self._before = before._replace(p=momentum(before.q, before.qd).p)

    def hear(
        self,
        stamp: int,
        q: FloatArray,
        qd: FloatArray | None,
        tau: FloatArray,
        momentum: Momentum | None,
    ) -> None:
        """Take in a state q, qd (n,) with the efforts tau (n,), NaN where there are none.

        ``stamp`` is the time of measurement in ns, 0 if it is not known. ``momentum`` is that of
        the robot in this state; it may be None without velocities.
        """
        if qd is None or momentum is None or not stamp:
            self.restart()
            self.why_not = UNSTAMPED if qd is not None else NO_VELOCITY
            return
        before = self._before
        if before is not None and stamp == before.stamp:  # no time to integrate over
            return
        sample = self._before = self._sample(stamp, q.copy(), qd.copy(), tau, momentum)
        elapsed = 1e-9 * (stamp - before.stamp) if before is not None else 0.0
        if before is None or not 0.0 < elapsed <= self.longest:
            self._r, self.why_not = None, JUST_STARTED
            return
        external = (sample.p - before.p) / elapsed - 0.5 * (sample.rate + before.rate)
        r = np.zeros(q.size) if self._r is None else np.where(np.isnan(self._r), 0.0, self._r)
        kept = math.exp(-self.gain * elapsed)
        self._r, self.why_not = kept * r + (1.0 - kept) * external, ""

    def _sample(
        self, stamp: int, q: FloatArray, qd: FloatArray, tau: FloatArray, momentum: Momentum
    ) -> _Sample:
        rate = tau + momentum.rate
        if self.friction is not None:
            rate += self.friction.resistance(qd)
        return _Sample(stamp, q, qd, momentum.p, rate)
