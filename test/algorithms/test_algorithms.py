# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The algorithms on random mechanisms, against the definitions evaluated in reference.py."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from mechanisms import MECHANISMS, POSITIONS, every_mechanism
from reference import Reference, assert_close, twist

import mbs_dynamics as mbs

REPRESENTATIONS = ("body_fixed", "spatial", "hybrid", "mixed")
TORQUES = (*REPRESENTATIONS, "auto")

POSITIONS = {**POSITIONS, "many turns": lambda rng, n: rng.uniform(-60.0, 60.0, n)}

every_position = pytest.mark.parametrize("where", POSITIONS)
every_representation = pytest.mark.parametrize("representation", REPRESENTATIONS)


@lru_cache
def state(name, where="generic"):
    """The numbers of a mechanism, q, qd, qdd, wrenches, and the reference at q."""
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(len(name))
    q = POSITIONS[where](rng, mechanism.n)
    qd, qdd = rng.uniform(-2.0, 2.0, (2, mechanism.n))
    wrenches = rng.uniform(-5.0, 5.0, (mechanism.nb, 6))
    return mechanism, q, qd, qdd, wrenches, Reference(mechanism, q)


@every_mechanism
def test_reference_differentiates_correctly(name):
    mechanism, q, *_, here = state(name)
    h = 1e-5
    for k, step in enumerate(h * np.eye(mechanism.n)):
        ahead, behind = Reference(mechanism, q + step), Reference(mechanism, q - step)
        assert_close((ahead.C - behind.C) / (2 * h), here.dC[:, k], 1e-8)
        assert_close((ahead.dC - behind.dC) / (2 * h), here.ddC[:, k], 1e-8)
        slope = (ahead.mass_matrix() - behind.mass_matrix()) / (2 * h)
        assert_close(slope, here.mass_matrix_derivative()[k], 1e-7)


@every_position
@every_mechanism
def test_forward_kinematics(name, where):
    mechanism, q, *_, reference = state(name, where)
    assert_close(mbs.forward_kinematics(mechanism.model, q), reference.C[:-1])


@every_position
@every_representation
@every_mechanism
def test_twists(name, representation, where):
    mechanism, q, qd, *_, reference = state(name, where)
    Cd = np.einsum("iklm,k->ilm", reference.dC, qd)
    expected = [twist(reference.C[i], Cd[i], representation) for i in range(mechanism.nb)]
    assert_close(mbs.twists(mechanism.model, q, qd, representation=representation), expected)


@every_position
@every_representation
@every_mechanism
def test_jacobians(name, representation, where):
    mechanism, q, *_, reference = state(name, where)
    for i, body in enumerate(mechanism.model.body_names):
        J = mbs.jacobian(mechanism.model, q, body, representation=representation)
        assert_close(J, reference.jacobian(i, representation), what=body)


@every_position
@every_representation
@every_mechanism
def test_inverse_dynamics(name, representation, where):
    mechanism, q, qd, qdd, wrenches, reference = state(name, where)
    for W in (None, wrenches):
        tau = mbs.inverse_dynamics(mechanism.model, q, qd, qdd, W, representation=representation)
        assert_close(tau, reference.inverse_dynamics(qd, qdd, W, representation))


@every_position
@pytest.mark.parametrize("representation", TORQUES)
@every_mechanism
def test_gravity_and_bias(name, representation, where):
    mechanism, q, qd, _, _, reference = state(name, where)
    g = mbs.gravity_torques(mechanism.model, q, representation=representation)
    assert_close(g, reference.gravity_torques())
    h = mbs.bias_torques(mechanism.model, q, qd, representation=representation)
    assert_close(h, reference.inverse_dynamics(qd, 0.0 * qd))
    c = mbs.coriolis_torques(mechanism.model, q, qd, representation=representation)
    assert_close(c, h - g)
    assert_close(c, mbs.coriolis_matrix(mechanism.model, q, qd) @ qd)
