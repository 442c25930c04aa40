# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The linear state-space model against differences of the dynamics it linearises."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms import MECHANISMS
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics import linearize

WEIGHTS = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}  # of the fourth order


def state(name):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(300 + len(name))
    q = rng.uniform(-3.0, 3.0, mechanism.n)
    qd, tau = rng.uniform(-2.0, 2.0, (2, mechanism.n))
    return mechanism.model, q, qd, tau, rng.uniform(-5.0, 5.0, (mechanism.nb, 6))


@pytest.mark.parametrize("pushed", [False, True], ids=["free", "under wrenches"])
@pytest.mark.parametrize("name", ["one body", "screw chain", "tree", "mimics"])
def test_matrices_are_the_slopes_of_the_state_derivative(name, pushed):
    model, q, qd, tau, wrenches = state(name)
    n, W = model.n, wrenches if pushed else None

    def xd(x, u):
        return np.concatenate([x[n:], mbs.forward_dynamics(model, x[:n], x[n:], u, W)])

    def slope(function, at):
        h = 1e-3
        columns = [
            sum(w * function(at + k * h * unit) for k, w in WEIGHTS.items()) / h
            for unit in np.eye(len(at))
        ]
        return np.array(columns).T

    x = np.concatenate([q, qd])
    A, B = linearize(model, q, qd, tau, W)
    assert_close(A, slope(lambda at: xd(at, tau), x), 1e-8)
    assert_close(B, slope(lambda u: xd(x, u), tau), 1e-8)


def test_pendulum_by_hand():
    """A point mass m at the distance l: m l^2 qdd = tau - m g l sin(q)."""
    m, l, g = 2.0, 0.5, 9.81
    M = mbs.spatial_inertia(m, (0.0, 0.0, -l), np.zeros((3, 3)))
    model = mbs.Model.from_screws([-1], [np.eye(4)], [[0, -1, 0, 0, 0, 0]], [M], frame="body_fixed")
    for q in (0.0, 0.4, np.pi):
        A, B = linearize(model, [q], [3.0], [m * g * l * np.sin(q)])
        assert_close(A, [[0.0, 1.0], [-g / l * np.cos(q), 0.0]], 1e-14)
        assert_close(B, [[0.0], [1.0 / (m * l**2)]], 1e-14)


def test_batches_and_compiled_kernels():
    model, q, qd, tau, W = state("forest")
    states = [np.array([[x], [-x]]) for x in (q, qd, tau)]
    A, B = linearize(model, *states, W)
    assert A.shape == (2, 1, 2 * model.n, 2 * model.n)
    assert B.shape == (2, 1, 2 * model.n, model.n)
    kernel = mbs.compile(linearize, model, wrenches=True)
    assert [port.name for port in kernel.outputs] == ["A", "B"]
    for k in range(2):
        A_k, B_k = kernel(*[x[k, 0] for x in states], W)
        assert_close(A[k, 0], A_k, 1e-13)
        assert_close(B[k, 0], B_k, 1e-13)
