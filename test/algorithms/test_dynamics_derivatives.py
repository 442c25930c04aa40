# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of inverse and forward dynamics, and rates of torques, on random mechanisms.

Exact derivatives come from the equations of the dynamics themselves, evaluated with truncated
Taylor series of numbers along one coordinate at a time, in the hybrid representation where there
are not wrenches. Rates along trajectories come from central differences of Lagrange's equations in
reference.py, which share nothing with the package. Pinocchio's derivatives are in
test_joints.py.
"""

from functools import lru_cache

import numpy as np
import pytest
from interpreted import evaluated
from mechanisms import every_mechanism, mechanisms_of_their_own
from reference import Reference, assert_close

import mbs_dynamics as mbs
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.representation.tree import Tree

MECHANISMS = mechanisms_of_their_own()
SIXTH_ORDER = {-3: -1 / 60, -2: 9 / 60, -1: -45 / 60, 1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
SIXTH_ORDER_SECOND = {-3: 2 / 180, -2: -27 / 180, -1: 270 / 180, 0: -490 / 180}
SIXTH_ORDER_SECOND |= {-k: w for k, w in SIXTH_ORDER_SECOND.items()}

every_representation = pytest.mark.parametrize("representation", mbs.REPRESENTATIONS)
under_wrenches_and_free = pytest.mark.parametrize(
    "pushed", [False, True], ids=["free", "under wrenches"]
)


@lru_cache
def state(name):
    """A mechanism, q, qd, qdd and applied wrenches, body-fixed."""
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(200 + len(name))
    q = rng.uniform(-3.0, 3.0, mechanism.n)
    qd, qdd = rng.uniform(-2.0, 2.0, (2, mechanism.n))
    return mechanism, q, qd, qdd, rng.uniform(-5.0, 5.0, (mechanism.nb, 6))


def gradients(function, model, arrays, wrenches, **options):
    """The derivatives (n, n) of a function of three arrays (n,) by each of them."""
    tree, found = Tree(model), []
    options["representation"] = "hybrid" if wrenches is None else "body_fixed"
    for k in range(3):
        columns = []
        for unit in np.eye(model.n):
            moved = [series_of([x, unit * (j == k)]) for j, x in enumerate(arrays)]
            value = function(tree, *moved, wrenches, **options)
            columns.append(np.asarray(derivative_of(value, 1), dtype=float))
        found.append(np.array(columns).T)
    return found


@under_wrenches_and_free
@every_mechanism
def test_inverse_dynamics_derivatives(name, pushed):
    mechanism, q, qd, qdd, wrenches = state(name)
    W = wrenches if pushed else None
    found = evaluated(mbs.inverse_dynamics_derivatives, mechanism.model, q, qd, qdd, W)
    expected = gradients(mbs.inverse_dynamics, mechanism.model, (q, qd, qdd), W)
    for dtau, exact in zip(found, expected, strict=True):
        assert_close(dtau, exact)


@under_wrenches_and_free
@every_mechanism
def test_forward_dynamics_derivatives(name, pushed):
    mechanism, q, qd, qdd, wrenches = state(name)
    model, W = mechanism.model, wrenches if pushed else None
    tau = mbs.inverse_dynamics(model, q, qd, qdd, W)
    found = evaluated(mbs.forward_dynamics_derivatives, model, q, qd, tau, W)
    expected = gradients(mbs.forward_dynamics, model, (q, qd, tau), W)
    for dqdd, exact in zip(found, expected, strict=True):
        assert_close(dqdd, exact, 1e-10)
    dq, dqd, M = evaluated(mbs.inverse_dynamics_derivatives, model, q, qd, qdd, W)
    inverse = np.linalg.inv(M)
    for dqdd, exact in zip(found, (-inverse @ dq, -inverse @ dqd, inverse), strict=True):
        assert_close(dqdd, exact, 1e-10)


def trajectory(n, t):
    """Values of sines and their derivatives up to the fourth, (5, n)."""
    rng = np.random.default_rng(n)
    amplitude, frequency, phase = rng.uniform(0.5, 1.5, (3, n))
    at = frequency * t + phase
    signs = [np.sin(at), np.cos(at), -np.sin(at), -np.cos(at), np.sin(at)]
    return np.array([amplitude * frequency**k * value for k, value in enumerate(signs)])


@every_representation
@every_mechanism
def test_inverse_dynamics_rates_are_those_along_a_trajectory(name, representation):
    mechanism = MECHANISMS[name]
    h, t = 5e-3, 0.7

    def tau(time):
        q, qd, qdd, *_ = trajectory(mechanism.n, time)
        return Reference(mechanism, q).inverse_dynamics(qd, qdd)

    near = {k: tau(t + k * h) for k in range(-3, 4)}
    motion, same = trajectory(mechanism.n, t), {"representation": representation}
    taud, taudd = evaluated(mbs.inverse_dynamics_rates, mechanism.model, *motion, **same)
    assert_close(taud, sum(w * near[k] for k, w in SIXTH_ORDER.items()) / h, 1e-9)
    assert_close(taudd, sum(w * near[k] for k, w in SIXTH_ORDER_SECOND.items()) / h**2, 1e-8)
