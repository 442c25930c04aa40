# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The fast path beside the checks that it spares: the same commands, faults and events."""

import math

import numpy as np
import pytest
from guarded_bench import MODEL, Q, table

from mbs_dynamics.control import Motors
from mbs_dynamics.control.enabling import problems
from mbs_dynamics.control.old_guard import Guard
from mbs_dynamics.control.policy import CommandPolicy
from mbs_dynamics.control.settings import ArmSettings

SEEDS, STEPS, PERIOD = range(6), 600, 0.004
MOTORS = Motors(table(), MODEL)
JOINTS, M = list(MODEL.joint_names), MODEL.n
NEARBY = (0.5, 0.9, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.1, 3.0)
"""Shares of limits, at which most perturbations are."""


def judged(guard):
    """Return a guard whose checks and policy judge every state."""
    guard._fast.evaluate = lambda *_: (False, False, [], [], [])
    return guard


def trust(guard):
    """Let torques come in at once: this arm wanders, which is evidence against them."""
    guard.evidence.end()
    guard.policy.most_share = 1.0


def counted(policy):
    """Return a list of the times at which a policy was spared."""
    times, follow = [], policy.follow
    policy.follow = lambda now, *values: (times.append(now), follow(now, *values))
    return times


class States:
    """States of an arm that wanders slowly, and now and then reaches the limits of a check."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.q, self.qd, self.t = Q.copy(), np.zeros(M), 10.0
        self.frozen, self.last = 0, Q
        self.deviating, self.off = 0, np.zeros(M)
        self.near, self.side = self.rng.integers(M), self.rng.choice((-1.0, 1.0))
        self.edge = (MODEL.upper if self.side > 0.0 else MODEL.lower)[self.near]
        if seed % 2:
            self.q[self.near] = self.edge + self.side * 0.04

    def next(self, expected):
        """Return time, stamps, positions, velocities and efforts, which follow ``expected``."""
        rng = self.rng
        self.t += PERIOD
        self.qd = 0.98 * self.qd + rng.normal(0.0, 0.05, M)
        self.q = self.q + PERIOD * self.qd
        self.q = np.clip(self.q, MODEL.lower - 0.1, MODEL.upper + 0.1)
        q, qd, tau = self.q.copy(), self.qd + rng.normal(0.0, 0.01, M), np.array(expected)
        stamps, t = np.full(M, self.t), self.t
        k, share, sign = rng.integers(M), rng.choice(NEARBY), rng.choice((-1.0, 1.0))
        match rng.integers(400):
            case 0:
                if abs(q[self.near] - self.edge) < 0.1:
                    self.q[self.near] = q[self.near] = self.edge + self.side * 0.05 * share
            case 1:
                qd[k] = sign * share * MODEL.velocity_limits[k]
            case 2:
                q[k] += sign * share * 0.05
            case 3:
                self.q[k] += sign * share * 0.05
            case 4:
                self.off[k], self.deviating = sign * share * 0.05 * MOTORS.limits[k], 8
            case 5:
                (q, qd, tau, stamps)[rng.integers(4)][k] = rng.choice((math.nan, math.inf))
            case 6:
                stamps[k] += sign * share * MOTORS.max_age
            case 7:
                self.t += share * MOTORS.max_age
            case 8:
                self.qd[k] = sign * share * 2.0
            case 9:
                tau[:] = math.nan
            case 10:
                self.frozen = 30
        if self.deviating:
            tau, self.deviating = tau + self.off, self.deviating - 1
        if self.frozen:
            q, qd, self.frozen = self.last, np.full(M, 0.3), self.frozen - 1
        self.last = q
        return t, stamps, q, qd, tau


@pytest.mark.parametrize("frozen_timeout", [0.0, 0.03])
def test_a_guard_answers_messages_as_its_checks_and_its_policy_would(frozen_timeout):
    spared = []
    for seed in SEEDS:
        settings = ArmSettings.of(
            JOINTS, damping=0.5, settle_time=0.0, frozen_timeout=frozen_timeout
        )
        fast = Guard(MODEL, settings, CommandPolicy("ramp_down"))
        slow = judged(Guard(MODEL, settings, CommandPolicy("ramp_down")))
        spared.append(counted(fast.policy))
        states, guards = States(100 + seed), (fast, slow)
        for _ in range(STEPS):
            t, stamps, q, qd, tau = states.next(np.zeros(M))
            if states.rng.random() < 0.1:
                reasons = [problems(guard, t) for guard in guards]
                assert reasons[0] == reasons[1]
                if not reasons[0] and not fast.policy.engaged:
                    for guard in guards:
                        guard.enable(t, guard.limits)
                        trust(guard)
            some = states.rng.integers(1, M) if states.rng.random() < 0.3 else M
            stamp = 0 if math.isnan(stamps[0]) else int(1e9 * min(stamps[0], 1e6))
            given = [values[:some] for values in (JOINTS, q.tolist(), qd.tolist(), tau.tolist())]
            found, wanted = (guard.receive(*given, stamp=stamp, now=t) for guard in guards)
            assert found.rejected == wanted.rejected
            assert (fast.policy.state, fast.policy.fault) == (slow.policy.state, slow.policy.fault)
            assert (found.command is None) == (wanted.command is None)
            if found.command is not None:
                np.testing.assert_allclose(found.command, wanted.command, rtol=1e-13, atol=1e-13)
            assert fast.due_in(t) == pytest.approx(slow.due_in(t))
    assert 0.01 < sum(map(len, spared)) / (len(SEEDS) * STEPS) < 0.9
