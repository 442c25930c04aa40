# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The momentum observer against exact dynamics: silent without contact, right with one."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import GeneralizedMomentum
from mbs_dynamics.control.contact import MomentumObserver, tool_wrench
from mbs_dynamics.integrate import JointForces
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))
N, NB = ARM.n, ARM.nb
START = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
PERIOD = 0.002
GAIN = 20.0
FORWARD = mbs.compile(mbs.forward_dynamics, ARM, wrenches=True)


class Smooth(JointForces):
    """Friction that rises within 0.1 rad/s, which states every 2 ms resolve."""

    def resistance(self, qd):
        return -(self.damping * qd + self.friction * np.tanh(qd / 0.1))


FRICTION = Smooth.of(ARM)
PUSH = np.array([0.3, -0.2, 0.5, 10.0, -6.0, 4.0])
"""A wrench on the last body, moment first, in its axes."""


def stepped(q, qd, tau, wrenches, dt, friction):
    """Return the state after dt, by the classical Runge-Kutta method; effort is held."""

    def rate(x):
        effort = tau + friction.resistance(x[N:]) if friction else tau
        return np.concatenate([x[N:], FORWARD(x[:N], x[N:], effort, wrenches)])

    x = np.concatenate([q, qd])
    k1 = rate(x)
    k2 = rate(x + 0.5 * dt * k1)
    k3 = rate(x + 0.5 * dt * k2)
    k4 = rate(x + dt * k3)
    x = x + dt / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
    return x[:N], x[N:]


def moved(seconds, push=None, *, pushed_from=0.0, friction=None, swing=1.0):
    """Yield stamp, q, qd, tau and the true J^T W of an arm that swings under feedback."""
    q, qd = START.copy(), np.zeros(N)
    inertia = 10.0 * np.diag(mbs.mass_matrix(ARM, START)) + 0.1
    for k in range(round(seconds / PERIOD) + 1):
        t = k * PERIOD
        W = np.zeros((NB, 6))
        if push is not None and t >= pushed_from:
            W[-1] = push
        J = mbs.jacobian(ARM, q, ARM.body_names[-1], representation="body_fixed")
        target = START + swing * 0.3 * (np.sin(3.0 * t + np.arange(N)) - np.sin(np.arange(N)))
        tau = mbs.bias_torques(ARM, q, qd) + inertia * (4.0 * (target - q) - 2.0 * qd)
        yield round(1e9 * t) + 10**9, q, qd, tau, J.T @ W[-1]
        q, qd = stepped(q, qd, tau, W, PERIOD, friction)


def observer(**options):
    return MomentumObserver(gain=GAIN, longest=0.5, **options)


def momentum(q, qd, model=ARM):
    rate = mbs.coriolis_matrix(model, q, qd).T @ qd - mbs.gravity_torques(model, q)
    return GeneralizedMomentum(mbs.mass_matrix(model, q) @ qd, rate)


def hear(watcher, stamp, q, qd, tau, model=ARM):
    watcher.update(stamp, q, qd, tau, None if qd is None else momentum(q, qd, model))


def fed(watcher, samples):
    """Return the residuals and the true external torques."""
    residuals, truth, held = [], [], None
    for stamp, q, qd, tau, external in samples:
        # what a drive reports at t is what it exerted until then
        effort = tau if held is None else held
        hear(watcher, stamp, q, qd, effort)
        held = tau
        if watcher.residual is not None:
            residuals.append(watcher.residual.copy())
            truth.append(external)
    return np.array(residuals), np.array(truth)


def filtered(truth):
    """Return the truth through a low-pass filter of the time constant 1 / GAIN."""
    kept, r, out = np.exp(-GAIN * PERIOD), np.zeros(N), []
    for before, now in zip([truth[0], *truth], truth, strict=False):
        r = kept * r + (1.0 - kept) * 0.5 * (before + now)
        out.append(r)
    return np.array(out)


@pytest.mark.parametrize("swing", [0.0, 1.0], ids=["at rest", "in motion"])
def test_without_contact_nothing_is_seen(swing):
    residuals, _ = fed(observer(), moved(2.0, swing=swing))
    assert len(residuals) == 1000
    # what remains is that the torques between two messages are taken for their mean
    assert np.abs(residuals).max() < (0.15 if swing else 1e-9)


def test_the_residual_follows_a_push_with_the_time_constant_of_the_gain():
    residuals, truth = fed(observer(), moved(1.0, PUSH, pushed_from=0.3, swing=0.0))
    at = int(0.3 / PERIOD)
    np.testing.assert_allclose(residuals[: at - 1], 0.0, atol=1e-9)
    largest = np.abs(truth[-1]).max()
    np.testing.assert_allclose(residuals[-1], truth[-1], atol=0.02 * largest)
    np.testing.assert_allclose(residuals[at:], filtered(truth[at:]), atol=0.03 * largest)


def test_friction_of_the_description_is_no_contact():
    with_friction, _ = fed(observer(friction=FRICTION), moved(2.0, friction=FRICTION))
    without, _ = fed(observer(), moved(2.0, friction=FRICTION))
    assert np.abs(with_friction).max() < 0.3
    assert np.abs(without).max() > 1.0


def test_a_repeated_stamp_changes_nothing_and_a_pause_starts_anew():
    watcher = observer()
    fed(watcher, moved(0.2, PUSH))
    before = watcher.residual.copy()
    stamp = round(0.2e9) + 10**9
    hear(watcher, stamp, START, np.ones(N), np.zeros(N))
    np.testing.assert_array_equal(watcher.residual, before)
    hear(watcher, stamp + 10**9, START, np.zeros(N), np.zeros(N))
    assert watcher.residual is None
    assert "started" in watcher.why_not
    hear(watcher, stamp, START, np.zeros(N), np.zeros(N))  # time went back
    assert watcher.residual is None


def test_another_load_is_taken_up_without_a_step():
    heavy = ARM.with_payload("tool", 2.0, (0.0, 0.0, 0.05))
    watcher = observer()
    qd, tau = 0.1 * np.ones(N), np.zeros(N)
    for k in range(2):
        hear(watcher, 10**9 + 2_000_000 * k, START, qd, tau)
    before = watcher.residual.copy()
    watcher.adopt(lambda q, qd: momentum(q, qd, heavy))
    np.testing.assert_array_equal(watcher.residual, before)
    # the load adds momentum, which no contact has given: at 500 Hz it would pass for 100s of N m
    added = np.abs(momentum(START, qd, heavy).p - momentum(START, qd).p).max()
    assert added / 0.002 > 100.0
    hear(watcher, 10**9 + 4_000_000, START, qd, tau, heavy)
    mean = 0.5 * (momentum(START, qd, heavy).rate + momentum(START, qd).rate)
    kept = np.exp(-GAIN * 0.002)
    np.testing.assert_allclose(watcher.residual, kept * before - (1.0 - kept) * mean, atol=1e-9)


def test_the_tool_wrench_follows_from_the_torques_that_are_known():
    J = mbs.jacobian(ARM, START, "tool", representation="body_fixed")
    torques = J.T @ PUSH
    found = tool_wrench(J, torques, 0.02)
    np.testing.assert_allclose(found.W, PUSH, rtol=1e-9)
    assert found.observed == 6
    assert found.weakest > 0.02
    torques[2] = np.nan
    np.testing.assert_allclose(tool_wrench(J, torques, 1e-6).W, PUSH, rtol=1e-9)
    torques[:] = np.nan
    nothing = tool_wrench(J, torques, 0.05)
    assert nothing.observed == 0
    np.testing.assert_array_equal(nothing.W, 0.0)


@pytest.mark.parametrize("damping", [0.0, 0.05])
def test_where_the_arm_is_singular_the_estimate_stays_finite_and_says_so(damping):
    q = np.zeros(N)  # upright: all axes in one plane
    J = mbs.jacobian(ARM, q, "tool", representation="body_fixed")
    torques = J.T @ PUSH
    found = tool_wrench(J, torques + 1e-3, damping)
    assert found.observed < 6
    assert found.weakest < 1e-9
    assert np.isfinite(found.W).all()
    felt = tool_wrench(J, torques, max(damping, 1e-9))
    np.testing.assert_allclose(J.T @ felt.W, torques, atol=1e-6)
