# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Estimates contact with the surroundings from the efforts of the joints. No ROS is needed.

A momentum observer gives the external torques of the joints; these give the wrench at the tool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mbs_dynamics.algorithms import GeneralizedMomentum
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_input import Reading
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import Results, Robot

if TYPE_CHECKING:
    from mbs_dynamics.integrate import JointForces

TINY = float(np.finfo(float).tiny)


JUST_STARTED = "the observer has just started: it needs two messages"
UNSTAMPED = "the message has no time stamp"
NO_VELOCITY = "the message gives no velocities"


class _Sample(NamedTuple):
    """State and momentum at one message."""

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
        """Restart the integration."""
        self._r, self._before, self.why_not = None, None, JUST_STARTED

    def adopt(self, momentum: Callable[[FloatArray, FloatArray], GeneralizedMomentum]) -> None:
        """Continue with the same joints under another gravity or load, from the present residual.

        ``momentum`` gives that of the robot as it is now, at q and qd.
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
        self,
        stamp: int,
        q: FloatArray,
        qd: FloatArray,
        tau: FloatArray,
        momentum: GeneralizedMomentum,
    ) -> _Sample:
        rate = tau + momentum.rate
        if self.friction is not None:
            rate += self.friction.resistance(qd)
        return _Sample(stamp, q, qd, momentum.p, rate)


class ToolWrench(NamedTuple):
    """An estimate, and how much of it joint torques can show."""

    W: FloatArray
    """(6,) moment first, in N m and N."""
    observed: int
    """How many of six directions of wrenches joint torques show well; others are damped or 0."""
    weakest: float
    """The smallest of six singular values of the Jacobian, lengths in m; 0 with fewer joints."""


def tool_wrench(J: FloatArray, torques: FloatArray, damping: float) -> ToolWrench:
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


class Contact:
    """The momentum observer of the robot in force, and its results."""

    def __init__(self) -> None:
        self.joints: tuple[str, ...] = ()
        """The joints whose external torque is known."""
        self.torques: FloatArray | None = None
        """Their external torques in N m or N; None if none is known."""
        self.why_not = ""
        """Why some or all torques are unknown; empty if none is, or just after the start."""
        self._observer: MomentumObserver | None = None
        self._robot: Robot | None = None
        self._names: tuple[str, ...] = ()
        self._external: tuple[FloatArray, FloatArray, float] | None = None
        self._wrench: ToolWrench | None = None

    @property
    def wrench(self) -> ToolWrench | None:
        """The wrench on the tool, if it is asked for and known; computed at the first access."""
        if self._wrench is None and self._external is not None:
            self._wrench = tool_wrench(*self._external)
        return self._wrench

    def lacking(self, settings: DynamicsSettings, missing: str) -> str:
        """Return the topics that lack efforts, and why; empty if none does.

        ``missing`` is the reason for those that do not depend on the observer.
        """
        if not (missing or self.why_not):  # mostly
            return ""
        by_reason: dict[str, list[str]] = {}
        rows = (self.why_not, settings.observed), (missing, settings.needing_effort)
        for why, topics in rows:
            if why and topics:
                by_reason.setdefault(why, []).extend(topics)
        return "; ".join(
            f"{' and '.join(topics)} missing or partial: {why}" for why, topics in by_reason.items()
        )

    def restart(self) -> None:
        """Forget all results and the observer."""
        self._clear()
        self.why_not = ""
        self._observer, self._robot = None, None

    def _clear(self) -> None:
        self.joints, self.torques = (), None
        self._external, self._wrench = None, None

    def update(self, robot: Robot, reading: Reading, results: Results) -> None:
        """Process a state of the robot, and the results that were computed for it."""
        efforts = reading.efforts
        observer = self._observer_of(robot)
        observer.update(reading.stamp, reading.q, reading.qd, efforts.tau, results.momentum)
        self._clear()
        self.why_not = observer.why_not or efforts.why_not
        if self.why_not == JUST_STARTED:
            self.why_not = efforts.why_not
        residual = observer.residual
        if residual is None:
            return
        self.joints, self.torques = self._names, residual
        known = np.isfinite(residual)
        if not known.all():
            names = zip(self.joints, known, strict=True)
            self.joints = tuple(name for name, there in names if there)
            self.torques = residual[known]
        if not self.joints:
            self._clear()
        elif results.tool_jacobian is not None:
            self._external = results.tool_jacobian, residual, robot.settings.wrench_damping

    def _observer_of(self, robot: Robot) -> MomentumObserver:
        """Return the observer, which continues if only a load or a setting has changed."""
        settings, observer, before = robot.settings, self._observer, self._robot
        if before is robot and observer is not None:
            return observer
        self._names = robot.model.joint_names
        if (
            observer is None
            or before is None
            or before.model.joint_names != robot.model.joint_names
        ):
            observer = self._observer = MomentumObserver(
                gain=settings.observer_gain, longest=settings.stale_timeout, friction=robot.friction
            )
        else:
            observer.gain, observer.longest = settings.observer_gain, settings.stale_timeout
            observer.friction = robot.friction
            observer.adopt(robot.momentum)
        self._robot = robot
        return observer
