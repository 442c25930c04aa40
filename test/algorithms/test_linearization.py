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
