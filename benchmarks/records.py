# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Records of the motion of an arm in MuJoCo, and energies of arms that are let go."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from simulated.mujoco_arm import STEP, FloatArray, MujocoArm, Statics

DELAY = 10
"""Samples of a record, 20 ms, within which terms are dropped that nothing has renewed.

Two periods, the way of state and command, and what the rate limit of the torques needs.
"""

ROUNDING = 1e-6
"""Difference between torques of two programs for one arm, N m."""


class Record:
    """Samples of an arm's motion and of its commands over a stretch of time.

    ``t`` (N,) is the clock of the machine in s, 0 at the event; ``simulated`` (N,) the time of the
    simulation. ``q``, ``qd`` and ``tau`` are (N, n), the torques those of the motors; ``arrivals``
    (N,) counts the commands until then.
    """

    def __init__(
        self,
        rows: Sequence[tuple[float, float, FloatArray, FloatArray, FloatArray, int]],
        statics: Statics,
        event: float,
    ) -> None:
        t, simulated, q, qd, tau, arrivals = zip(*rows, strict=True)
        self.t = np.array(t) - event
        self.q, self.qd, self.tau = np.array(q), np.array(qd), np.array(tau)
        self.simulated = np.array(simulated)
        self.arrivals = np.array(arrivals)
        self.at = int(np.searchsorted(self.t, 0.0, side="right") - 1)
        """Index of the last sample before the event."""
        self.simulated -= self.simulated[self.at]
        self.statics = statics
        self.kinetic = np.array([statics.kinetic_energy(*row) for row in zip(q, qd, strict=True)])
        """(N,) kinetic energy in J."""

    def turned_back(self, joint: int) -> float:
        """Return the largest speed of a joint after the event against its motion before, rad/s."""
        after = self.qd[self.at :, joint] * np.sign(self.qd[self.at, joint])
        return float(max(0.0, -after.min()))

    @property
    def kinetic_before(self) -> float:
        """Kinetic energy at the event, in J."""
        return float(self.kinetic[self.at])

    @property
    def kinetic_peak(self) -> float:
        """Largest kinetic energy after the event, in J."""
        return float(self.kinetic[self.at :].max())

    @property
    def fastest(self) -> float:
        """Largest speed of any joint after the event, rad/s."""
        return float(np.abs(self.qd[self.at :]).max())

    @property
    def at_the_end(self) -> float:
        """Largest speed of any joint in the end, rad/s."""
        return float(np.abs(self.qd[-1]).max())

    @property
    def moved(self) -> float:
        """Farthest that any joint came from where it was at the event, rad."""
        return float(np.abs(self.q[self.at :] - self.q[self.at]).max())

    @property
    def zero_after(self) -> float | None:
        """Seconds from the event until torques were zero for good; None if they never were."""
        nonzero = np.flatnonzero(self.tau[self.at :].any(axis=1))
        if not len(nonzero):
            return 0.0
        last = self.at + int(nonzero[-1])
        return None if last + 1 == len(self.t) else float(self.t[last + 1])

    @property
    def excess(self) -> FloatArray:
        """(N, n) how far torques lie beyond any share of gravity's, in N m; zero before the event.

        A release brings the torque of each joint from g(q) to zero, for positions between that at
        the event and the present one: what lies between zero and those belongs to gravity
        compensation, and all else to terms that it does not consist of.
        """
        excess = np.zeros_like(self.tau)
        low = high = np.zeros(self.q.shape[1])
        for k in range(max(0, self.at - DELAY), len(self.t)):
            g = self.statics.gravity(self.q[k])
            low, high = np.minimum(g, low), np.maximum(g, high)
            excess[k] = self.tau[k] - np.clip(self.tau[k], low, high)
        excess[: self.at + 1] = 0.0
        return excess

    @property
    def excess_until(self) -> float:
        """Simulated seconds from the event until torques were shares of gravity's for good."""
        beyond = np.flatnonzero((np.abs(self.excess) > ROUNDING).any(axis=1))
        return float(self.simulated[beyond[-1]]) if len(beyond) else 0.0

    @property
    def put_in(self) -> float:
        """Energy that torques beyond gravity's gave to the arm after the event, in J.

        What they took from it, as damping does, is not set off against that.
        """
        return self._energy(np.maximum(0.0, self.excess * self.qd).sum(axis=1))

    def _energy(self, power: FloatArray) -> float:
        return float(np.sum(power[1:] * np.diff(self.simulated)))


def released(
    arm: MujocoArm,
    q: ArrayLike,
    qd: ArrayLike,
    ramp_time: float,
    seconds: float,
    *,
    frozen: bool,
    after: float = 0.0,
) -> list[float]:
    """Return kinetic energies of an arm that is released with gravity torques alone, in J.

    They go out in ``ramp_time`` (inf: never), ``after`` seconds have passed: those of the position
    at the release if ``frozen``, else those of the present one.
    """
    arm.place(q)
    arm.let_go()
    arm.loop = None
    arm.data.qvel[:] = qd
    first = arm.statics.gravity(arm.q)
    energies = []
    for k in range(round(seconds / STEP)):
        gone = max(0.0, k * STEP - after)
        left = max(0.0, 1.0 - gone / ramp_time) if ramp_time > 0.0 else float(gone == 0.0)
        arm.command = left * (first if frozen else arm.statics.gravity(arm.q))
        arm.advance(STEP)
        energies.append(arm.statics.kinetic_energy(arm.q, arm.qd))
    return energies
