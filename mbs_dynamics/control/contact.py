# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Contact with the surroundings, from efforts of joints: external torques and the tool wrench."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms import GeneralizedMomentum
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import isnan, select
from mbs_dynamics.integrate import JointForces

TINY = float(np.finfo(float).tiny)


JUST_STARTED = "the observer has just started: it needs two messages"
UNSTAMPED = "the message has no time stamp"
NO_VELOCITY = "the message gives no velocities"


def residual_after(before: Any, change: Any, rate: Any, decay: Any) -> Any:
    """Return the residual (n,) of the momentum observer after a time; NaN where it is unknown.

    ``change`` is that of the momentum over this time, divided by it, and ``rate`` the mean rate
    without external torques, (n,) each. The filter keeps the share ``decay`` of the residual
    ``before`` (n,), which counts as 0 where it is NaN.
    """
    known = select(isnan(before), 0.0, before)
    return decay * known + (1.0 - decay) * (change - rate)


class _Sample(NamedTuple):
    stamp: int
    q: FloatArray
    qd: FloatArray
    p: FloatArray
    """(n,) M qd, generalised momentum in N m s or N s."""
    rate: FloatArray
    """(n,) its rate without external torques; NaN where the effort is unknown."""


class MomentumObserver:
    """Estimates the torques that the surroundings exert on the joints, without accelerations.

    The generalised momentum p = M qd obeys pd = tau + C^T qd - g + tau_ext, since Md = C + C^T.
    The residual r = K (p - p0 - integral of (tau + C^T qd - g + r)) of De Luca, Albu-Schaeffer,
    Haddadin and Hirzinger (2006) then obeys rd = K (tau_ext - r): it follows tau_ext as a low-pass
    filter with the time constant 1/K does.

    Time is that of the messages; if joints are measured at different times, that of the newest
    measurement, and nothing is integrated before it advances. From one time to the next, at
    whatever distance, the mean external torque is the change of p over the time between, less the
    mean of the other torques (trapezoidal rule), and rd is solved exactly: r <- a r + (1 - a)
    tau_ext with a = exp(-K dt). The noise of the velocities goes into r through K M, that of the
    efforts directly.

    ``gain`` K in 1/s. The observer restarts after a gap of more than ``longest`` s between
    messages. ``friction`` is subtracted from the efforts; None subtracts nothing.
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
        """Restart the integration."""
        self._r, self._before, self.why_not = None, None, JUST_STARTED

    def adopt(self, momentum: Callable[[FloatArray, FloatArray], GeneralizedMomentum]) -> None:
        """Continue with the same joints under another gravity or load, from the present residual.

        ``momentum`` returns the momentum of the changed robot at q and qd.
        """
        before = self._before
        if before is not None:  # a load changes the momentum, not the rate before
            self._before = before._replace(p=momentum(before.q, before.qd).p)

    def update(
        self,
        stamp: int,
        q: FloatArray,
        qd: FloatArray | None,
        tau: FloatArray,
        momentum: GeneralizedMomentum | None,
    ) -> None:
        """Process a state q, qd (n,) with the efforts tau (n,), NaN where there are none.

        ``stamp`` is the time of measurement in ns, 0 if it is unknown. ``momentum`` is that of
        the robot in this state; it may be None without velocities.
        """
        if qd is None or momentum is None or not stamp:
            self.restart()
            self.why_not = UNSTAMPED if qd is not None else NO_VELOCITY
            return
        before = self._before
        if before is not None and stamp == before.stamp:  # no time to integrate over
            return
        rate = tau + momentum.rate
        if self.friction is not None:
            rate += self.friction.resistance(qd)
        sample = self._before = _Sample(stamp, q.copy(), qd.copy(), momentum.p, rate)
        elapsed = 1e-9 * (stamp - before.stamp) if before is not None else 0.0
        if before is None or not 0.0 < elapsed <= self.longest:
            self._r, self.why_not = None, JUST_STARTED
            return
        r = np.zeros(q.size) if self._r is None else self._r
        change, rate = (sample.p - before.p) / elapsed, 0.5 * (sample.rate + before.rate)
        decay = math.exp(-self.gain * elapsed)
        self._r, self.why_not = residual_after(r, change, rate, decay), ""


class ToolWrench(NamedTuple):
    """An estimated wrench, and how well joint torques show it."""

    W: FloatArray
    """(6,) moment first, in N m and N."""
    observed: int
    """How many of six directions of wrenches joint torques show well; others are damped or 0."""
    weakest: float
    """The smallest of six singular values of the Jacobian, lengths in m; 0 with fewer joints."""


def tool_wrench(J: FloatArray, torques: FloatArray, damping: float = 0.1) -> ToolWrench:
    """Return the least-squares solution W of J^T W = ``torques``.

    J (6, n) is the Jacobian of the link on which the wrench acts, torques (n,) in N m and N; joints
    with NaN, whose torque is unknown, are left out. A direction of wrenches whose singular value
    s is below ``damping`` is weighted s / damping^2 in place of 1 / s. So the estimate is
    continuous and stays finite where the arm is singular; it then lacks what no joint shows.
    """
    known = np.isfinite(torques)
    if not known.all():
        J, torques = J[:, known], torques[known]
    # J^T = V S U^T
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    weights = s / np.maximum(s, max(damping, TINY)) ** 2
    W = U @ (weights * (Vt @ torques))
    weakest = float(s[-1]) if s.size == 6 else 0.0
    return ToolWrench(W, int((s >= max(damping, 1e-12)).sum()), weakest)
