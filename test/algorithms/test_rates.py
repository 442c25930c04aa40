# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Accelerations, jerks, Jacobian rates and partial derivatives of any order."""

import numpy as np
import pytest
from interpreted import evaluated
from mechanisms import MECHANISMS, every_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import leaves

REPRESENTATIONS = tuple(mbs.REPRESENTATIONS)


def motion_at(model, t, order, seed=0):
    """Return q and its time derivatives along a polynomial motion, (order + 1, n)."""
    c = np.random.default_rng(seed).uniform(-1.0, 1.0, (7, model.n))
    powers = np.polynomial.polynomial
    return np.array([powers.polyval(t, powers.polyder(c, k)) for k in range(order + 1)])


def along(function, h=2e-3):
    """Return the derivative of function(t) at 0 by central differences of order 8."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return sum(w * (function(k * h) - function(-k * h)) for k, w in weights.items()) / h


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@every_mechanism
def test_derivatives_of_twists_are_rates_of_each_other(name, representation):
    model = MECHANISMS[name].model
    for order in (1, 2, 4):
        options = {"representation": representation}

        def lower(t, order=order, options=options):
            motion = motion_at(model, t, order)
            return evaluated(mbs.twist_derivatives, model, motion, order - 1, **options)

        found = evaluated(
            mbs.twist_derivatives, model, motion_at(model, 0.0, order + 1), order, **options
        )
        assert_close(found, along(lower), 1e-9)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@every_mechanism
def test_jacobian_rates_give_accelerations_and_jerks(name, representation):
    model = MECHANISMS[name].model
    q, qd, qdd, qddd = motion_at(model, -0.4, 3)
    link = leaves(model)[-1]
    options = {"representation": representation}
    J = evaluated(mbs.jacobian, model, q, link, **options)
    Jd = evaluated(mbs.jacobian_rate, model, q, qd, link, **options)
    Jdd = evaluated(mbs.jacobian_second_rate, model, q, qd, qdd, link, **options)
    Vd = evaluated(mbs.accelerations, model, q, qd, qdd, bodies=[link], **options)[0]
    Vdd = evaluated(mbs.jerks, model, q, qd, qdd, qddd, bodies=[link], **options)[0]
    assert_close(J @ qdd + Jd @ qd, Vd)
    assert_close(J @ qddd + 2.0 * Jd @ qdd + Jdd @ qd, Vdd)
