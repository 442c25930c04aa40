# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The algorithms on random mechanisms, against definitions, and the identities they must obey.

Chains, trees and forests of revolute, prismatic and screw joints, bodies numbered in any order,
massless ones, and joints that mimic others. What reference.py knows is compared with it; the rest
are theorems of mechanics. Rates along a motion are exact: the equations themselves are evaluated
with truncated Taylor series of numbers.
"""

from functools import lru_cache

import numpy as np
import pytest
from mechanisms import POSITIONS, every_mechanism, mechanisms_of_their_own
from reference import Reference, assert_close, twist, upper_factor

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.factorization import factorize
from mbs_dynamics.model.orders import path
from mbs_dynamics.representation.tree import Tree

MECHANISMS = mechanisms_of_their_own()
METHODS = ("articulated_body", "udut", "mass_matrix")

POSITIONS = {**POSITIONS, "many turns": lambda rng, n: rng.uniform(-60.0, 60.0, n)}

every_position = pytest.mark.parametrize("where", POSITIONS)
every_representation = pytest.mark.parametrize("representation", mbs.REPRESENTATIONS)
with_auto = pytest.mark.parametrize("representation", [*mbs.REPRESENTATIONS, "auto"])


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
@with_auto
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


@with_auto
@every_mechanism
def test_mass_matrix_and_its_inverse(name, representation):
    mechanism, q, *_, reference = state(name)
    M = mbs.mass_matrix(mechanism.model, q, representation=representation)
    assert_close(M, reference.mass_matrix())
    np.testing.assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0
    inverse = mbs.inverse_mass_matrix(mechanism.model, q, representation=representation)
    assert_close(inverse, np.linalg.inv(reference.mass_matrix()))
    np.testing.assert_array_equal(inverse, inverse.T)


@every_mechanism
def test_factors_of_the_mass_matrix(name):
    """M = U D U^T, where U couples a joint with its ancestors only."""
    mechanism, *_, reference = state(name)
    model, M = mechanism.model, reference.mass_matrix()
    factors = factorize(Tree(model), M)
    U, D = upper_factor(factors), np.array(factors.D, dtype=float)
    assert_close(U @ np.diag(D) @ U.T, M, 1e-14)
    np.testing.assert_array_equal(U, np.triu(U))
    np.testing.assert_array_equal(np.diag(U), 1.0)
    assert (D > 0.0).all()
    if model.n == model.nb:
        for k in range(model.n):
            assert set(np.flatnonzero(U[:, k])) <= set(path(model, k))
    b = np.arange(1.0, model.n + 1.0)
    assert_close(M @ np.array(factors.solution(b), dtype=float), b, 1e-12)


@every_mechanism
def test_coriolis_matrix_is_that_of_the_christoffel_symbols(name):
    mechanism, q, qd, *_, reference = state(name)
    dM = reference.mass_matrix_derivative()  # [l, i, j]: of M_ij by q_l
    gamma = 0.5 * (dM.transpose(1, 2, 0) + dM.transpose(1, 0, 2) - dM)
    found = mbs.christoffel_symbols(mechanism.model, q)
    assert_close(found, gamma)
    assert_close(found, found.transpose(0, 2, 1), 1e-13)
    assert_close(mbs.coriolis_matrix(mechanism.model, q, qd), gamma @ qd)


@with_auto
@every_mechanism
def test_forward_dynamics_undoes_inverse_dynamics(name, representation):
    mechanism, q, qd, qdd, W, reference = state(name)
    model = mechanism.model
    wrenches = None if representation == "auto" else W
    same = {"representation": representation}
    tau = reference.inverse_dynamics(qd, qdd, wrenches, representation)
    for method in METHODS:
        found = mbs.forward_dynamics(model, q, qd, tau, wrenches, method=method, **same)
        assert_close(found, qdd, 1e-10, method)
        back = mbs.inverse_dynamics(model, q, qd, found, wrenches, **same)
        assert_close(back, tau, 1e-10, method)


@every_mechanism
def test_momenta_are_wrenches_in_all_representations(name):
    mechanism, q, qd, *_, reference = state(name)
    model, C = mechanism.model, reference.C[:-1]
    V = np.array([reference.jacobian(i, "body_fixed") @ qd for i in range(mechanism.nb)])
    body_fixed = np.einsum("ijk,ik->ij", mechanism.inertias, V)
    for target in mbs.REPRESENTATIONS:
        found = mbs.momenta(model, q, qd, representation=target)
        assert_close(found, mbs.convert_wrench(body_fixed, C, source="body_fixed", target=target))
        twists = mbs.twists(model, q, qd, representation=target)
        assert_close(0.5 * np.sum(found * twists), mbs.kinetic_energy(model, q, qd))
