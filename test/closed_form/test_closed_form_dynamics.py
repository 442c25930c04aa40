# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The closed forms of the equations of motion, against Lagrange's equations and the recursions."""

from functools import lru_cache

import numpy as np
import pytest
from backends import BACKENDS, compiled
from mechanisms import MECHANISMS, every_mechanism, random_mechanism
from reference import Reference, assert_close

import mbs_dynamics as mbs
from mbs_dynamics.closed_form import DynamicSystem
from mbs_dynamics.closed_form.accelerations import angular, linear
from mbs_dynamics.closed_form.kinematics import shift
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.lie.se3 import Ad, ad
from mbs_dynamics.representation.tree import Tree

SKEW = ["revolute chain", "screw chain", "tree", "forest", "aligned tree", "mimics"]
"""Where (84) is not skew; a body alone and bodies that do not turn have nothing to be skew."""


@lru_cache
def state(name):
    """A mechanism, its equations of motion, q, qd, qdd, applied wrenches, and the reference."""
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(200 + len(name))
    q = rng.uniform(-3.0, 3.0, mechanism.n)
    qd, qdd = rng.uniform(-2.0, 2.0, (2, mechanism.n))
    W = rng.uniform(-5.0, 5.0, (mechanism.nb, 6))
    system = DynamicSystem(mechanism.model, q, qd, qdd, W)
    return mechanism, system, (q, qd, qdd, W), Reference(mechanism, q)


def mass_matrix_rate(name):
    _, _, (_, qd, *_), reference = state(name)
    return np.einsum("lij,l->ij", reference.mass_matrix_derivative(), qd)


@every_mechanism
def test_wrenches_of_the_joints(name):
    """(77): the joint of a body transmits to it what it needs, and what its children take."""
    mechanism, system, given, _ = state(name)
    W = mbs.joint_wrenches(mechanism.model, *given, representation="body_fixed")
    needed = system.bodies(system.W_joints)
    for i in range(mechanism.nb):
        children = [k for k, p in enumerate(mechanism.parents) if p == i]
        passed_on = sum(Ad(system.C_rel(k, i)).T @ W[k] for k in children)
        assert_close(needed[i], W[i] - passed_on, what=i)


@every_mechanism
def test_torques_of_euler_and_jourdain(name):
    """(78), in the body-fixed form, against Lagrange's equations."""
    mechanism, system, (q, qd, qdd, W), reference = state(name)
    assert_close(system.torques, reference.inverse_dynamics(qd, qdd, W))
    unloaded = DynamicSystem(mechanism.model, q, qd)
    assert_close(unloaded.torques, mbs.bias_torques(mechanism.model, q, qd))


@every_mechanism
def test_momentum_form(name):
    """(79), (36): momenta and their rates, which are the wrenches, and the torques from them."""
    mechanism, system, (q, qd, qdd, _), _ = state(name)
    momenta = mbs.momenta(mechanism.model, q, qd, representation="spatial")
    assert_close(system.bodies(system.Pi_s), momenta)
    tree = Tree(mechanism.model)
    moving = series_of(np.array([q, qd])), series_of(np.array([qd, qdd]))
    rates = derivative_of(mbs.momenta(tree, *moving, representation="spatial"), 1)
    assert_close(system.bodies(system.Pid_s), np.asarray(rates, dtype=float))
    acting = system.bodies(system.W_joints + system.W_gravity + system.W_app)
    for i, Pid in enumerate(system.bodies(system.Pid_s)):
        assert_close(Ad(system.C[i]).T @ Pid, acting[i])
    assert_close(system.torques_from_momenta, system.torques)


@every_mechanism
def test_lagrange_equations(name):
    """(80): d/dt dT/dqd - dT/dq = M qdd + C qd, term by term, gravity and the kinetic energy."""
    _, system, (_, qd, qdd, W), reference = state(name)
    M, dM = reference.mass_matrix(), reference.mass_matrix_derivative()
    gradient = 0.5 * np.einsum("lij,i,j->l", dM, qd, qd)
    assert_close(system.kinetic_energy, 0.5 * qd @ M @ qd)
    assert_close(system.momentum, M @ qd)
    assert_close(system.momentum_rate, M @ qdd + mass_matrix_rate(name) @ qd)
    assert_close(system.kinetic_energy_gradient, gradient)
    assert_close(system.gravity_torques, reference.gravity_torques())
    left = system.momentum_rate - system.kinetic_energy_gradient
    assert_close(left, system.mass_matrix @ qdd + system.C_b @ qd)
    expected = reference.inverse_dynamics(qd, qdd, W)
    assert_close(system.torques_from_lagrange, expected)
    assert_close(system.torques_by_component, expected)


@every_mechanism
def test_mass_matrix_and_its_rate(name):
    """(81)."""
    _, system, _, reference = state(name)
    assert_close(system.mass_matrix, reference.mass_matrix())
    assert_close(system.mass_matrix_rate, mass_matrix_rate(name))


@every_mechanism
def test_four_matrices_with_the_same_coriolis_torques(name):
    """(82), (83), (84), and the two matrices that are not in the paper."""
    mechanism, system, (q, qd, *_), reference = state(name)
    dM = reference.mass_matrix_derivative()
    expected = mass_matrix_rate(name) @ qd - 0.5 * np.einsum("lij,i,j->l", dM, qd, qd)
    for C in (system.C_from_lagrange, system.C_b, system.C_skew, system.C_christoffel):
        assert_close(C @ qd, expected)
    assert_close(system.C_from_lagrange, system.C_b)
    assert_close(system.C_christoffel, mbs.coriolis_matrix(mechanism.model, q, qd))


@every_mechanism
def test_two_of_the_four_are_skew(name):
    """d/dt M - 2 C is skew for the two matrices that are not in the paper, and not for (84).

    The two are not the same.
    """
    _, system, *_ = state(name)
    Md = mass_matrix_rate(name)
    for C in (system.C_skew, system.C_christoffel):
        assert_close(C + C.T, Md)
    if name == "tree":
        assert np.abs(system.C_skew - system.C_christoffel).max() > 1e-2
    if name in SKEW:
        assert np.abs(system.C_b + system.C_b.T - Md).max() > 1e-2


@every_mechanism
def test_christoffel_symbols(name):
    """(85), (86), (87), against the derivatives of the mass matrix."""
    _, system, (_, qd, *_), reference = state(name)
    dM = reference.mass_matrix_derivative()  # [l, i, j]: of M_ij by q_l
    gamma = 0.5 * (dM.transpose(1, 2, 0) + dM.transpose(1, 0, 2) - dM)
    assert_close(system.christoffel_symbols, gamma)
    assert_close(system.christoffel_symbols_by_binet, gamma)
    assert_close(system.christoffel_symbols @ qd, system.C_christoffel)


def steps(system, letter):
    """For each body: i, its parent, rates of its joint, twist and acceleration, the parent's."""
    V, Vd = (system.bodies(getattr(system, f"{what}_{letter}")) for what in ("V", "Vd"))
    for i, p in enumerate(system.model.parents):
        at_rest = np.zeros(6)
        parent = (V[p], Vd[p]) if p >= 0 else (at_rest, at_rest)
        yield i, p, system.rate[i], system.rate2[i], V[i], Vd[i], *parent


@every_mechanism
def test_recursions_of_body_fixed_accelerations(name):
    """(65a) to (65c), (66c), and Remark 3."""
    _, system, *_ = state(name)
    for i, p, rate, rate2, V, Vd, V_p, Vd_p in steps(system, "b"):
        X = system.screw_body[i]
        A = Ad(system.C_rel(i, p)) if p >= 0 else np.eye(6)
        for bracket in (
            ad(A @ V_p) @ X * rate,
            ad(A @ V_p) @ V,
            ad(V) @ X * rate,
            -rate * ad(X) @ V,
        ):
            assert_close(A @ Vd_p + bracket + X * rate2, Vd)
        assert_close(X @ (Vd - A @ Vd_p + ad(V) @ A @ V_p) / (X @ X), rate2)


@every_mechanism
def test_recursions_of_spatial_accelerations(name):
    """(68), (69), (70d)."""
    _, system, *_ = state(name)
    for i, _, rate, rate2, V, Vd, V_p, Vd_p in steps(system, "s"):
        J = system.screws_s[i]
        assert_close(V_p + J * rate, V)
        for bracket in (ad(V) @ J * rate, ad(V_p) @ J * rate, ad(V_p) @ V):
            assert_close(Vd_p + J * rate2 + bracket, Vd)


@every_mechanism
def test_recursions_of_hybrid_accelerations(name):
    """(72), (73), (74), and the second form of (75b)."""
    _, system, *_ = state(name)
    for i, p, rate, rate2, V, Vd, V_p, Vd_p in steps(system, "h"):
        S = system.X_h[6 * i : 6 * i + 6, i]
        assert_close(shift(-system.r[i]) @ system.screws_s[i], S)
        A = shift((system.r[p] if p >= 0 else np.zeros(3)) - system.r[i])
        ad_i, ad_p = ad(linear(V)), ad(linear(V_p))
        for bracket in (
            (ad_p - ad_i) @ V_p + ad(angular(V)) @ S * rate,
            ad_p @ V_p - ad_i @ V + ad(V) @ S * rate,
            (ad_p - ad_i) @ V + (ad(V) - ad_p) @ S * rate,
        ):
            assert_close(A @ Vd_p + S * rate2 + bracket, Vd)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_closed_forms_can_be_traced(backend):
    model = random_mechanism(1, (-1, 0, 0)).model
    q, qd, qdd = model.random_state(1)

    def equations(q, qd, qdd):
        system = DynamicSystem(model, q, qd, qdd)
        return {
            "torques": system.torques,
            "by_momenta": system.torques_from_momenta,
            "M": system.mass_matrix,
            "C": system.C_christoffel,
        }

    kernel = compiled(equations, backend, dict.fromkeys(("q", "qd", "qdd"), (model.n,)))
    for value, expected in zip(kernel(q, qd, qdd), equations(q, qd, qdd).values(), strict=True):
        assert_close(value, expected)
